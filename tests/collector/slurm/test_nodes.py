"""Nodes: what their list tells, what jobs show, and of which time every job is told."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from collector.slurm.files import Export
from collector.slurm.inventory import frame, read
from ledger.errors import BadInputError
from ledger.window import Window
from tests.collector.slurm.exports import WINDOW, as_json, as_text, job, nodes, slurm, write

JOB = job(1, "01:00", "03:00")


def listed(text: str) -> pl.DataFrame:
    return frame(read(Export("nodes", text.encode(), 0)))


def hours(rows: pl.DataFrame) -> list[tuple[str, float, float]]:
    zero = WINDOW.start.timestamp()
    found = rows.select("node", pl.col("start", "end").dt.epoch("s")).rows()
    return [(node, (start - zero) / 3600, (end - zero) / 3600) for node, start, end in found]


def test_scontrol() -> None:
    row = listed(nodes("n[1-2]")).row(0, named=True)
    assert (row["cpus"], row["memory"], row["cards"], row["model"]) == (128, 1 << 40, 8, "h100")
    assert row["up"]
    assert row["counted"]
    assert json.loads(row["labels"])["slurm/partition/gpu"] == "true"
    assert listed(nodes("n1").replace("\n   ", " "))["cards"].to_list() == [8]  # scontrol -o


@pytest.mark.parametrize(
    ("state", "up"),
    [
        ("IDLE", True),
        ("ALLOCATED", True),
        ("MIXED+DRAIN", True),
        ("IDLE+DRAIN", False),
        ("DOWN*", False),
        ("IDLE+CLOUD+POWERED_DOWN", False),
        ("RESERVED", True),
    ],
)
def test_states(state: str, up: bool) -> None:
    assert listed(nodes("n1", state=state))["up"].to_list() == [up]


def test_sinfo_and_json() -> None:
    text = (
        "NODELIST|CPUS|MEMORY|GRES|AVAIL_FEATURES|STATE|PARTITION\n"
        "n1|8|1024|gpu:h100:2,shard:h100:8(S:0)|a,b|mixed|gpu*\n"
        "n1|8|1024|gpu:h100:2,shard:h100:8(S:0)|a,b|mixed|all\n"
        "n2|8|1024|(null)|(null)|idle~|all\n"
    )
    first, second = listed(text).rows(named=True)
    assert (first["cards"], first["model"], first["memory"]) == (2, "h100", 1 << 30)
    assert first["units"] == '{"gres/gpu":"1","gres/shard":"1/4"}'
    assert json.loads(first["labels"])["slurm/partition"] == "gpu,all"
    assert (second["cards"], second["up"]) == (0, False)
    node = {
        "name": "a",
        "cpus": 4,
        "real_memory": {"set": True, "number": 1024},
        "gres": "gpu:1",
        "tres": "cpu=4,mem=1G",
        "state": ["IDLE", "DRAIN"],
        "partitions": ["gpu"],
    }
    row = listed(json.dumps({"nodes": [node]})).row(0, named=True)
    assert (row["cards"], row["up"], row["counted"]) == (1, False, False)


def test_cards_cut_into_instances_are_not_counted() -> None:
    text = "NodeName=n1 CPUTot=4 RealMemory=10 Gres=gpu:a100_1g.5gb:7 State=IDLE\n"
    row = listed(text).row(0, named=True)
    assert (row["cards"], row["model"]) == (None, "a100_1g.5gb")


def test_no_list_of_nodes_is_refused() -> None:
    with pytest.raises(BadInputError, match="no list of Slurm's nodes"):
        listed("hello world\n")


def test_listed_nodes_are_there_while_every_job_is_told(tmp_path: Path) -> None:
    facts = slurm(tmp_path, as_text([JOB]), nodes("n[1-2]")).collect(WINDOW)
    assert hours(facts.tables["nodes"]) == [("n1", 0, 24), ("n2", 0, 24)]
    assert facts.tables["nodes"]["gpu_model"].to_list() == ["h100", "h100"]
    assert not facts.gaps


def test_nodes_that_are_away_count_while_jobs_ran(tmp_path: Path) -> None:
    facts = slurm(tmp_path, as_text([JOB]), nodes("n1", state="DOWN*")).collect(WINDOW)
    assert hours(facts.tables["nodes"]) == [("n1", 1, 3)]
    assert any("down, drained or off" in note for note in facts.notes)


def test_without_a_list_jobs_show_the_nodes(tmp_path: Path) -> None:
    half = "cpu=8,gres/gpu=4,gres/gpu:h100=4,mem=1G,node=1"
    jobs = [job(n, "01:00", "03:00", AllocTRES=half) for n in (1, 2)]
    later = job(3, "03:00", "04:00", AllocTRES=half)
    facts = slurm(tmp_path, as_text([*jobs, later])).collect(WINDOW)
    rows = facts.tables["nodes"]
    assert hours(rows) == [("n1", 1, 4)]
    assert rows.select("gpus", "gpu_model", "cpu_millicores").row(0) == (8, "h100", 16000)
    assert [gap.reason for gap in facts.gaps] == ["capacity_unknown"]


def test_a_job_on_a_node_of_no_list_is_named(tmp_path: Path) -> None:
    stranger = job(2, "04:00", "05:00", NodeList="x9")
    facts = slurm(tmp_path, as_text([JOB, stranger]), nodes("n1")).collect(WINDOW)
    assert ("x9", 4, 5) in hours(facts.tables["nodes"])
    assert ["x9" in gap.detail for gap in facts.gaps] == [True]


def test_cards_that_accounting_does_not_count_are_not_zero(tmp_path: Path) -> None:
    text = nodes("n1").replace(",gres/gpu=8,gres/gpu:h100=8", "")
    bare = job(1, "01:00", "03:00", AllocTRES="cpu=64,mem=1G,node=1")
    facts = slurm(tmp_path, as_text([bare]), text).collect(WINDOW)
    assert facts.tables["workloads"]["gpus"].to_list() == [None]
    assert [gap.reason for gap in facts.gaps] == ["requests_unknown"]


def test_a_day_that_no_file_stands_for_is_not_free(tmp_path: Path) -> None:
    """What ended before START is not in a file: of the day before it nothing is known."""
    long = job(1, "2026-11-28T00:00:00", "05:00")
    facts = slurm(tmp_path, as_text([long, JOB]), nodes("n1", "n2"))
    before = facts.collect(Window.of_day(date(2026, 11, 29)))
    assert before.coverage == 0
    assert [gap.reason for gap in before.gaps] == ["no_samples"]
    assert before.tables["nodes"]["node"].to_list() == ["n1"]  # a job was on it
    nothing = facts.collect(Window.of_day(date(2026, 12, 1)))
    assert not nothing.tables
    assert nothing.coverage == 0
    assert facts.collect(WINDOW).coverage == 1
    reach = facts.reach()
    assert reach is not None
    assert next(iter(reach.days())) == date(2026, 11, 30)


def test_json_says_what_was_asked_for(tmp_path: Path) -> None:
    crossing = [job(1, "22:00", "2026-12-01T02:00:00")]
    command = ["sacct", "-a", "--json", "-S", "2026-11-30", "-E2026-12-01T00:00:00"]
    facts = slurm(tmp_path, as_json(crossing, command=command), nodes("n1")).collect(WINDOW)
    assert (facts.coverage, facts.gaps) == (1.0, ())


def test_files_of_several_days_are_one_time(tmp_path: Path) -> None:
    collector = slurm(tmp_path, "", nodes("n1"), sacct="*.txt")
    write(tmp_path / "a.txt", as_text([JOB]))
    other = job(2, "2026-12-01T05:00:00", "2026-12-01T06:00:00")
    write(tmp_path / "b.txt", as_text([other]), at="2026-12-02T00:05:00")
    facts = collector.collect(Window.of_days(date(2026, 11, 30), date(2026, 12, 1)))
    assert facts.coverage == 1
    assert facts.tables["nodes"].height == 2


def test_a_list_of_nodes_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    facts = slurm(tmp_path, as_text([JOB]), "hello").collect(WINDOW)
    assert [gap.reason for gap in facts.gaps] == ["unreadable_file", "capacity_unknown"]
    assert hours(facts.tables["nodes"]) == [("n1", 1, 3)]


def test_nodes_that_are_pods_are_not_written(tmp_path: Path) -> None:
    facts = slurm(tmp_path, as_text([JOB]), pods=True).collect(WINDOW)
    assert "nodes" not in facts.tables
    assert not facts.gaps
    row = facts.tables["resources"].row(0, named=True)
    assert (row["kind"], row["cluster"]) == ("SlurmAccounting", "hpc")
    covered = [["2026-11-30T00:00:00+00:00", "2026-12-01T00:00:00+00:00"]]
    assert json.loads(row["configuration"]) == {"covered": covered}


@pytest.mark.parametrize("bad", ["NodeName=n[1- CPUTot=8", "NodeName=n1 CfgTRES=cpu=some"])
def test_a_node_that_cannot_be_read_names_its_file(tmp_path: Path, bad: str) -> None:
    [gap, _] = slurm(tmp_path, as_text([JOB]), bad).collect(WINDOW).gaps
    assert (gap.reason, "nodes.txt" in gap.detail) == ("unreadable_file", True)


def test_partitions_of_any_name_are_labels(tmp_path: Path) -> None:
    strange = job(1, "01:00", "03:00", Partition='g"p\\u')
    rows = slurm(tmp_path, as_text([strange])).collect(WINDOW).tables["nodes"]
    assert json.loads(rows["labels"][0])["slurm/partition"] == 'g"p\\u'
