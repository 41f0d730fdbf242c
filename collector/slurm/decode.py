"""Reads ``sacct --json``, of Slurm 21.08 and later.

The data parsers of Slurm differ: a number stands plain or as ``{set, infinite, number}``, a state
as a text or a list. Fields that are not named here, steps among them, are never decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from collector.slurm.numbers import Number, whole, words
from collector.slurm.record import SCHEMA, with_states
from collector.slurm.tres import as_text


class _Entry(msgspec.Struct):
    type: str = ""
    name: str | None = None
    count: Number = None


class _Tres(msgspec.Struct):
    allocated: list[_Entry] | None = None
    requested: list[_Entry] | None = None


class _Time(msgspec.Struct):
    submission: Number = None
    start: Number = None
    end: Number = None
    elapsed: Number = None
    suspended: Number = None


class _State(msgspec.Struct):
    current: str | list[str] | None = None


class _Association(msgspec.Struct):
    account: str | None = None
    cluster: str | None = None
    user: str | None = None


class _Array(msgspec.Struct):
    job_id: Number = None
    task_id: Number = None
    task: Any = None


class _Het(msgspec.Struct):
    job_id: Number = None
    job_offset: Number = None


class _Wckey(msgspec.Struct):
    wckey: str | None = None


class _Reservation(msgspec.Struct):
    name: str | None = None


class _ExitCode(msgspec.Struct):
    return_code: Number = None


class _Job(msgspec.Struct):
    job_id: Number = None
    name: str | None = None
    account: str | None = None
    user: str | None = None
    cluster: str | None = None
    partition: str | None = None
    qos: str | None = None
    nodes: str | list[str] | None = None
    state: _State | str | list[str] | None = None
    time: _Time | None = None
    tres: _Tres | None = None
    association: _Association | None = None
    array: _Array | None = None
    het: _Het | None = None
    comment: Any = None
    wckey: _Wckey | str | None = None
    reservation: _Reservation | None = None
    exit_code: _ExitCode | None = None


class _Meta(msgspec.Struct):
    command: Any = None


class _Document(msgspec.Struct):
    jobs: list[msgspec.Raw] | None = None
    meta: _Meta | None = None
    errors: list[Any] | None = None


@dataclass(frozen=True)
class Document:
    """What a file of ``sacct --json`` holds.

    Args:
        rows: In the form of ``record.SCHEMA``.
        command: The words of the command that wrote it, where it says so.
        errors: What Slurm itself says that it could not read.
    """

    rows: pl.DataFrame
    command: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


_JOB = msgspec.json.Decoder(_Job, strict=False)
_DOCUMENT = msgspec.json.Decoder(_Document, strict=False)


def decode(data: bytes) -> Document | None:
    """Read a document; None if it is JSON of something else.

    A job that is no job is a row with ``bad``.

    Raises:
        msgspec.MsgspecError: It is no JSON, or was cut off.
    """
    document = _DOCUMENT.decode(data)
    if document.jobs is None:
        return None
    cells = [_cells(raw) for raw in document.jobs]
    columns = dict(zip(SCHEMA, zip(*cells, strict=True), strict=True)) if cells else {}
    command = document.meta.command if document.meta else None
    words_ = command if isinstance(command, list) else words(command).split()
    rows = pl.DataFrame(columns, schema=SCHEMA)
    return Document(with_states(rows), tuple(map(str, words_)), _errors(document.errors))


def _errors(errors: Sequence[Any] | None) -> tuple[str, ...]:
    """What Slurm says of an error: its description, else all of it."""
    return tuple(
        str(each.get("description") or each.get("error") or each)
        if isinstance(each, dict)
        else str(each)
        for each in errors or ()
    )


_NOTHING = (None,) * (len(SCHEMA) - 1)


def _cells(raw: msgspec.Raw) -> tuple[object, ...]:
    """The cells of a job, in the order of ``SCHEMA``."""
    try:
        job = _JOB.decode(raw)
    except msgspec.MsgspecError as error:
        return (*_NOTHING, f"bad_job: {str(error)[:150]}")
    time = job.time or _Time()
    owner = job.association or _Association()
    name, array = _names(job)
    state = job.state.current if isinstance(job.state, _State) else job.state
    comment = job.comment
    told = comment if isinstance(comment, dict) else {"job": comment}
    return (
        job.cluster or owner.cluster or None,
        name,
        None if name is None else str(whole(job.job_id)),
        array,
        whole(time.submission) or None,
        whole(time.start) or None,
        whole(time.end) or None,
        whole(time.elapsed),
        whole(time.suspended),
        words(state),
        ",".join(job.nodes) if isinstance(job.nodes, list) else job.nodes,
        _tres(job.tres),
        job.name or None,
        job.account or owner.account or None,
        job.user or owner.user or None,
        job.partition or None,
        job.qos or None,
        words(told.get("job")) or None,
        words(told.get("administrator")) or None,
        (job.wckey.wckey if isinstance(job.wckey, _Wckey) else job.wckey) or None,
        (job.reservation.name if job.reservation else None) or None,
        _exit(job.exit_code),
        None,
    )


def _names(job: _Job) -> tuple[str | None, str | None]:
    """The name of a job as ``sacct`` prints it, and that of its array."""
    number = whole(job.job_id)
    if number is None:
        return None, None
    if job.array and (parent := whole(job.array.job_id)):
        task = whole(job.array.task_id)
        pending = words(job.array.task)
        if task is None and not pending:
            return str(number), str(parent)
        return f"{parent}_{task if task is not None else f'[{pending}]'}", str(parent)
    if job.het and (parent := whole(job.het.job_id)):
        return f"{parent}+{whole(job.het.job_offset) or 0}", None
    return str(number), None


def _tres(tres: _Tres | None) -> str | None:
    """What was allocated, else what was asked for."""
    for entries in (tres.allocated, tres.requested) if tres else ():
        if text := as_text((e.type, e.name, e.count) for e in entries or ()):
            return text
    return None


def _exit(code: _ExitCode | None) -> str | None:
    number = whole(code.return_code) if code else None
    return None if number is None else str(number)
