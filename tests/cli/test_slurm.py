"""Slurm by the command line: from sacct's text to figures by experiment and owner."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Invoke

HEADER = "JobID|JobName|Account|User|State|Submit|Start|End|Elapsed|NodeList|AllocTRES|Comment\n"
SACCT = HEADER + (
    "1|grpo-7b|post|lin|COMPLETED|{d}T00:50:00|{d}T01:00:00|{d}T03:00:00|02:00:00|g[1-2]|"
    "cpu=8,gres/gpu=16,gres/gpu:a100=16,mem=1G,node=2|\n"
    "1.batch|batch|post||COMPLETED|{d}T00:50:00|{d}T01:00:00|{d}T03:00:00|02:00:00|g1|"
    "cpu=4,gres/gpu=8,mem=1G,node=1|\n"
    "2_7|sweep|post|bo|FAILED|{d}T00:50:00|{d}T22:00:00|2026-12-01T01:00:00|03:00:00|g1|"
    "cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=1G,node=1|experiment=kl team=rl\n"
)
NODES = "".join(
    f"NodeName=g{n} CPUTot=128 RealMemory=1000000 Gres=gpu:a100:8 State=IDLE Partitions=gpu "
    "CfgTRES=cpu=128,mem=1000000M,gres/gpu=8,gres/gpu:a100=8\n"
    for n in (1, 2)
)
SETTINGS = """\
clusters: [{name: hpc, slurm: {sacct: sacct.txt, nodes: nodes.txt, timezone: UTC}}]
prices: {gpu: {A100: 2.00}}
"""


def test_jobs_are_billed_by_experiment_and_owner(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT.format(d="2026-11-30"))
    (tmp_path / "nodes.txt").write_text(NODES)
    (tmp_path / "runbill.yaml").write_text(SETTINGS)
    day = ("--day", "2026-11-30")
    assert invoke("collect", "slurm", *day).exit_code == 0
    assert invoke("collect", "prices", *day).exit_code == 0
    assert invoke("attribute", *day).exit_code == 0
    window = ("--window", "2026-11-30", "-o", "json")
    answer = json.loads(invoke("query", "--by", "experiment,owner", *window).stdout)
    found = {(r["experiment"], r["owner"]): (r["cost"], r["gpu_hours"]) for r in answer["rows"]}
    zeros = "0" * 12
    assert found == {
        ("grpo-7b", "lin"): (f"64.{zeros}", 32.0),  # 16 cards for 2 hours at 2
        ("kl", "rl"): (f"16.{zeros}", 8.0),  # 4 cards for the 2 hours of this day
        ("__idle__", "__idle__"): (f"688.{zeros}", 344.0),  # of 2 nodes · 8 cards · 24 hours
    }
    assert answer["total"] == f"768.{zeros}"
    doctor = json.loads(invoke("doctor", "-o", "json").stdout)
    needs = {each["need"]: each["ok"] for each in doctor["needs"] if each["source"] == "slurm/hpc"}
    assert len(needs) == 2
    assert all(needs.values())


def test_a_day_that_the_export_lacks_is_a_gap(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT.format(d="2026-11-30"))
    (tmp_path / "runbill.yaml").write_text(SETTINGS.replace(", nodes: nodes.txt", ""))
    result = invoke("collect", "slurm", "--day", "2026-11-20")
    assert result.exit_code == 3
    assert "sacct tells every job of no time" in result.stderr


def test_two_clusters_must_not_read_the_same_jobs(tmp_path: Path, invoke: Invoke) -> None:
    block = "slurm: {sacct: sacct.txt}"
    (tmp_path / "runbill.yaml").write_text(
        f"clusters: [{{name: a, {block}}}, {{name: b, {block}}}]\n"
    )
    result = invoke("config", "validate")
    assert result.exit_code == 2
    assert "read the same jobs of Slurm" in result.stderr
