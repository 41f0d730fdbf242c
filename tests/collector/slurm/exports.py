"""Exports of ``sacct`` for tests: the same jobs as text and as JSON of several data parsers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from collector.slurm import Slurm, from_settings
from ledger.settings import Cluster
from ledger.window import Window

DAY = date(2026, 11, 30)
WINDOW = Window.of_day(DAY)
FIELDS = (
    "JobIDRaw|JobID|JobName|Account|User|Partition|Submit|Start|End|Elapsed|Suspended|State|"
    "NodeList|AllocTRES"
).split("|")
Job = dict[str, str]


def job(number: int | str, start: str, end: str, **more: str) -> Job:
    """A job that ran on ``n1`` with 8 cards; times are hours of the day, or whole times.

    Args:
        number: JobID.
        start: ``01:00`` or ``2026-11-29T01:00:00``; ``Unknown`` = it waits.
        end: The same; ``Unknown`` = it runs.
        more: Fields in place of the usual ones.
    """
    begin, finish = _whole(start), _whole(end)
    ended = "Unknown" not in (begin, finish)
    return {
        "JobIDRaw": str(number).partition("_")[0].partition("+")[0],
        "JobID": str(number),
        "JobName": "grpo-7b",
        "Account": "post",
        "User": "lin",
        "Partition": "gpu",
        "Submit": begin if begin != "Unknown" else "2026-11-30T00:00:00",
        "Start": begin,
        "End": finish,
        "Elapsed": str(_seconds(finish) - _seconds(begin)) if ended else "0",
        "Suspended": "00:00:00",
        "State": "COMPLETED" if ended else "RUNNING",
        "NodeList": "n1",
        "AllocTRES": "billing=64,cpu=64,gres/gpu=8,gres/gpu:h100=8,mem=512G,node=1",
        **more,
    }


def _whole(text: str) -> str:
    return f"2026-11-30T{text}:00" if len(text) == 5 else text


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def as_text(jobs: Sequence[Mapping[str, str]], fields: Sequence[str] | None = None) -> str:
    """``sacct -P`` output."""
    names = list(fields or dict.fromkeys([*FIELDS, *(name for each in jobs for name in each)]))
    lines = ["|".join(names), *("|".join(each.get(name, "") for name in names) for each in jobs)]
    return "\n".join(lines) + "\n"


def as_json(jobs: Sequence[Mapping[str, str]], *, late: bool = True, **meta: object) -> str:
    """``sacct --json`` output: of a late data parser, or of Slurm 21.08."""

    def number(value: int | None) -> object:
        if not late:
            return value or 0
        return {"set": value is not None, "infinite": False, "number": value or 0}

    def moment(text: str) -> int:
        return 0 if text == "Unknown" else _seconds(text)

    documents = []
    for each in jobs:
        head, _, task = each["JobID"].partition("_")
        head, _, offset = head.partition("+")
        tres = []
        for pair in filter(None, each["AllocTRES"].split(",")):
            name, _, amount = pair.partition("=")
            count = int(amount.rstrip("GM")) * (1024 if amount.endswith("G") else 1)
            kind, _, rest = name.partition("/")
            tres.append({"type": kind, "name": rest, "id": 1, "count": count})
        state = each["State"].split()[0]
        documents.append(
            {
                "job_id": int(each["JobIDRaw"]),
                "name": each["JobName"],
                "account": each["Account"],
                "user": each["User"],
                "association": {"account": each["Account"], "cluster": "hpc", "user": "x"},
                "cluster": each.get("Cluster", "hpc"),
                "partition": each["Partition"],
                "nodes": each["NodeList"],
                "array": {
                    "job_id": int(head) if task else 0,
                    "task_id": number(int(task) if task else None),
                },
                "het": {
                    "job_id": int(head) if offset else 0,
                    "job_offset": number(int(offset) if offset else None),
                },
                "comment": {"job": each.get("Comment", ""), "administrator": ""},
                "state": {"current": [state] if late else state, "reason": "None"},
                "time": {
                    "submission": moment(each["Submit"]),
                    "start": moment(each["Start"]),
                    "end": moment(each["End"]),
                    "elapsed": int(each["Elapsed"]),
                    "suspended": number(0),
                },
                "tres": {"allocated": tres, "requested": tres},
                "wckey": {"wckey": "", "flags": []},
                "exit_code": {"return_code": number(0), "status": "SUCCESS"},
                "steps": [{"step": {"id": "batch"}, "time": {"start": 1, "end": 2}}],
            }
        )
    return json.dumps({"meta": meta, "jobs": documents, "errors": [], "warnings": []})


NODES = (
    "NodeName={} Arch=x86_64 CPUTot=128 AvailableFeatures=h100,ib ActiveFeatures=h100,ib\n"
    "   Gres=gpu:h100:8(S:0-1) OS=Linux 5.15.0-105 #115-Ubuntu SMP RealMemory=1048576\n"
    "   State={} Partitions=gpu,all\n"
    "   CfgTRES=cpu=128,mem=1T,billing=128,gres/gpu=8,gres/gpu:h100=8\n"
    "   Reason=was State=DOWN [root@2026-11-01T00:00:00]\n\n"
)


def nodes(*names: str, state: str = "IDLE") -> str:
    """``scontrol show node`` output of nodes with 8 H100, 128 CPUs and 1 TiB."""
    return "".join(NODES.format(name, state) for name in names)


def slurm(folder: Path, data: str | bytes, listed: str | None = None, **block: object) -> Slurm:
    """The collector of an export, which was written the day after."""
    write(folder / "sacct.out", data)
    source: dict[str, object] = {"sacct": "sacct.out", **block}
    if listed is not None:
        (folder / "nodes.txt").write_text(listed)
        source["nodes"] = "nodes.txt"
    return from_settings(Cluster.model_validate({"name": "hpc", "slurm": source}), folder)


def write(path: Path, data: str | bytes, at: str = "2026-12-01T00:10:00") -> Path:
    """A file with the time at which it was written."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, (_seconds(at), _seconds(at)))
    return path
