"""Jobs of exports as workloads: formats agree, runs count once, bad records are put aside."""

from __future__ import annotations

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.slurm.text import COMMAND
from ledger.errors import BadInputError, SourceError
from ledger.facts import Facts
from ledger.window import Window
from tests.collector.slurm.exports import WINDOW, Job, as_json, as_text, job, nodes, slurm, write


def pods(facts: Facts) -> list[tuple[Any, ...]]:
    """Job, node, hours from and to, and cards."""
    rows = facts.tables["workloads"].with_columns(
        ((pl.col(edge).dt.epoch("s") - WINDOW.start.timestamp()) / 3600).alias(edge)
        for edge in ("start", "end")
    )
    return sorted(rows.select("pod", "node", "start", "end", "gpus").rows(), key=str)


def reasons(facts: Facts) -> dict[str, int]:
    return {entry.reason: entry.count for entry in facts.quarantine}


JOBS = [
    job(1, "01:00", "03:00", NodeList="n[1-2]", AllocTRES="cpu=16,gres/gpu=16,mem=4G,node=2"),
    job("7_4", "04:00", "05:00", JobIDRaw="9"),
    job("12+1", "06:00", "06:30", JobIDRaw="13"),
    job(20, "22:00", "2026-12-01T02:00:00", State="FAILED"),
]


@pytest.mark.parametrize(
    "export", [as_text(JOBS), as_json(JOBS), as_json(JOBS, late=False)], ids=["P", "json", "21.08"]
)
def test_formats_agree(tmp_path: Path, export: str) -> None:
    facts = slurm(tmp_path, export, nodes("n[1-2]"), cluster="hpc").collect(WINDOW)
    assert pods(facts) == [
        ("1", "n1", 1.0, 3.0, 8),
        ("1", "n2", 1.0, 3.0, 8),
        ("12+1", "n1", 6.0, 6.5, 8),
        ("20", "n1", 22.0, 24.0, 8),
        ("7_4", "n1", 4.0, 5.0, 8),
    ]
    assert (facts.gaps, facts.quarantine, facts.coverage) == ((), (), 1.0)
    row = facts.tables["workloads"].filter(pod="1", node="n1").row(0, named=True)
    assert row["uid"] == "slurm/hpc/1/1796000400/n1"
    assert (row["namespace"], row["root_kind"], row["root_name"]) == ("post", "SlurmJob", "grpo-7b")
    assert (row["cpu_millicores"], row["memory_bytes"]) == (8000, 2 << 30)
    labels = json.loads(row["labels"])
    assert (labels["slurm/user"], labels["slurm/job-id"]) == ("lin", "1")
    assert row["labels"] == json.dumps(labels, sort_keys=True, separators=(",", ":"))


def test_steps_never_count(tmp_path: Path) -> None:
    steps: list[Job] = [job(f"1.{name}", "01:00", "03:00") for name in ("batch", "extern", "0")]
    facts = slurm(tmp_path, as_text([job(1, "01:00", "03:00"), *steps])).collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 3.0, 8)]


def test_any_fields_in_any_order_with_any_delimiter(tmp_path: Path) -> None:
    fields = ["NodeList", "AllocTRES", "End", "State", "Start", "JobID"]
    text = as_text([job(1, "01:00", "03:00")], fields).replace("|", "^")
    assert pods(slurm(tmp_path, text).collect(WINDOW)) == [("1", "n1", 1.0, 3.0, 8)]
    trailing = as_text([job(1, "01:00", "03:00")], [*fields, ""])  # sacct -p
    assert pods(slurm(tmp_path, trailing).collect(WINDOW)) == [("1", "n1", 1.0, 3.0, 8)]


def test_missing_fields_are_named(tmp_path: Path) -> None:
    text = as_text([job(1, "01:00", "03:00")], ["JobID", "Start", "State", "JobName"])
    with pytest.raises(BadInputError, match="lacks the fields End, NodeList, AllocTRES") as error:
        slurm(tmp_path, text).collect(WINDOW)
    assert COMMAND in (error.value.hint or "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("JobID    JobName\n-------- --------\n1        a+\n", "fixed width"),
        ("1|a|COMPLETED\n", "no header"),
        ("", "is empty"),
        ('{"jobs": [{"job_id": 1', "no whole JSON"),
        ('{"items": []}', "holds no jobs"),
        (b"\x1f\x8b\x08\x00", "cut or damaged"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, data: str | bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        slurm(tmp_path, data).collect(WINDOW)


def test_nothing_there(tmp_path: Path) -> None:
    found = slurm(tmp_path, "")
    (tmp_path / "sacct.out").unlink()
    with pytest.raises(SourceError, match="no file of Slurm"):
        found.collect(WINDOW)


def test_times_of_a_zone(tmp_path: Path) -> None:
    local = job(1, "09:00", "11:00")
    facts = slurm(tmp_path, as_text([local]), timezone="Asia/Shanghai").collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 3.0, 8)]
    assert not facts.notes
    noted = slurm(tmp_path, as_text([local])).collect(WINDOW)
    assert "without a zone, read as UTC" in noted.notes[0]


def test_an_hour_that_clocks_show_twice_is_told_by_the_elapsed_time(tmp_path: Path) -> None:
    twice = job(1, "2026-11-01T01:30:00", "2026-11-01T01:10:00", ElapsedRaw="2400")
    twice["Elapsed"] = "00:40:00"
    found = slurm(tmp_path, as_text([twice]), timezone="America/New_York")
    rows = found.collect(Window.of_day(date(2026, 11, 1))).tables["workloads"]
    assert [str(t) for t in rows.select("start", "end").row(0)] == [
        "2026-11-01 05:30:00+00:00",
        "2026-11-01 06:10:00+00:00",
    ]


def test_times_with_zone_and_epoch(tmp_path: Path) -> None:
    told = job(1, "01:00", "03:00", Start="2026-11-30T09:00:00+08:00", End="1796007600")
    told["Submit"] = "2026-11-30T01:00:00Z"
    assert pods(slurm(tmp_path, as_text([told])).collect(WINDOW)) == [("1", "n1", 1.0, 3.0, 8)]


def test_a_running_job_ends_where_the_file_ends(tmp_path: Path) -> None:
    runs = job(1, "01:00", "Unknown", Elapsed="04:00:00")
    facts = slurm(tmp_path, as_text([runs]), nodes("n1")).collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 5.0, 8)]
    assert facts.coverage == pytest.approx(5 / 24)
    assert [gap.reason for gap in facts.gaps] == ["no_samples"]
    assert facts.tables["workloads"]["finished_at"].to_list() == [None]


def test_the_newest_record_of_a_run_counts(tmp_path: Path) -> None:
    collector = slurm(tmp_path, "", None, sacct="*.txt")
    write(tmp_path / "a.txt", as_text([job(1, "01:00", "Unknown", Elapsed="10:00:00")]))
    write(tmp_path / "b.txt", as_text([job(1, "01:00", "02:00"), job(2, "03:00", "04:00")]))
    assert pods(collector.collect(WINDOW)) == [
        ("1", "n1", 1.0, 2.0, 8),
        ("2", "n1", 3.0, 4.0, 8),
    ]


def test_a_requeued_job_has_several_runs(tmp_path: Path) -> None:
    collector = slurm(tmp_path, "", None, sacct="*.txt")
    old = [job(1, "01:00", "02:00", State="REQUEUED"), job(1, "03:00", "Unknown", Elapsed="36000")]
    write(tmp_path / "a.txt", as_text(old))
    write(tmp_path / "b.txt", as_text([job(1, "05:00", "06:00")]))
    facts = collector.collect(WINDOW)
    assert pods(facts) == [
        ("1", "n1", 1.0, 2.0, 8),
        ("1", "n1", 3.0, 5.0, 8),
        ("1", "n1", 5.0, 6.0, 8),
    ]
    assert facts.tables["events"].select("kind", "name").rows() == [("restart", "1")]


def test_truncated_exports_that_overlap_count_once(tmp_path: Path) -> None:
    collector = slurm(tmp_path, "", None, sacct="*.txt")
    write(tmp_path / "a.txt", as_text([job(1, "00:00", "12:00")]))
    write(tmp_path / "b.txt", as_text([job(1, "06:00", "18:00")]))
    assert pods(collector.collect(WINDOW)) == [
        ("1", "n1", 0.0, 6.0, 8),
        ("1", "n1", 6.0, 18.0, 8),
    ]


def test_jobs_that_wait_have_no_node(tmp_path: Path) -> None:
    waits = job("5_[3-9%2]", "Unknown", "Unknown", State="PENDING", NodeList="None assigned")
    waits["Submit"] = "2026-11-30T20:00:00"
    facts = slurm(tmp_path, as_text([job(1, "01:00", "03:00"), waits])).collect(WINDOW)
    assert ("5_[3-9%2]", None, 20.0, 24.0, 8) in pods(facts)
    row = facts.tables["workloads"].filter(pl.col("node").is_null()).row(0, named=True)
    assert (row["state"], row["reason"]) == ("held", "Pending")


def test_bad_records_are_put_aside_by_reason(tmp_path: Path) -> None:
    good = job(1, "01:00", "03:00")
    bad = [
        job(2, "03:00", "01:00"),
        {**job(3, "01:00", "03:00"), "Elapsed": "-5"},
        job(4, "2062-01-01T00:00:00", "2062-01-02T00:00:00"),
        job(5, "01:00", "Unknown", State="WOBBLING"),
        job(6, "01:00", "Unknown", State="COMPLETED"),
        job(7, "01:00", "03:00", NodeList="gpu[1-"),
        job(8, "01:00", "03:00", NodeList="None assigned"),
        job(9, "01:00", "03:00", Start="yesterday"),
        job("", "01:00", "03:00"),
    ]
    facts = slurm(tmp_path, as_text([good, *bad]) + "10|cut\n").collect(WINDOW)
    assert reasons(facts) == {
        "end_before_start": 1,
        "negative": 1,
        "out_of_window": 1,
        "unknown_state": 1,
        "no_end": 1,
        "bad_host_list": 1,
        "no_nodes": 1,
        "bad_date": 1,
        "missing_job": 1,
        "cut_line": 1,
    }
    assert pods(facts) == [("1", "n1", 1.0, 3.0, 8)]
    assert facts.read == 11


def test_a_delimiter_in_the_name_is_no_new_cell(tmp_path: Path) -> None:
    odd = job(1, "01:00", "03:00", JobName="a|b|c")
    facts = slurm(tmp_path, as_text([odd])).collect(WINDOW)
    assert facts.tables["workloads"]["root_name"].to_list() == ["a|b|c"]
    several = {**odd, "Comment": "x|y"}
    facts = slurm(tmp_path, as_text([several])).collect(WINDOW)
    assert reasons(facts) == {"delimiter_inside": 1}


def test_a_bad_job_of_json_and_errors_of_slurm(tmp_path: Path) -> None:
    document = json.loads(as_json([job(1, "01:00", "03:00")]))
    document["jobs"].append({"job_id": 2, "time": "never"})
    document["errors"] = [{"description": "connection lost"}]
    facts = slurm(tmp_path, json.dumps(document)).collect(WINDOW)
    assert reasons(facts) == {"bad_job": 1}
    assert "connection lost" in next(g.detail for g in facts.gaps if g.reason == "partial_response")


def test_encodings(tmp_path: Path) -> None:
    named = job(1, "01:00", "03:00", JobName="größe")
    for data in (as_text([named]).encode("utf-8-sig"), as_text([named]).encode("utf-16")):
        facts = slurm(tmp_path, gzip.compress(data)).collect(WINDOW)
        assert facts.tables["workloads"]["root_name"].to_list() == ["größe"]
    facts = slurm(tmp_path, as_text([named]).encode("latin-1")).collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 3.0, 8)]
    assert any("no UTF-8" in note for note in facts.notes)


def test_several_clusters_need_a_name(tmp_path: Path) -> None:
    both = [
        job(1, "01:00", "03:00", Cluster="east"),
        job(1, "05:00", "06:00", Cluster="west"),
    ]
    with pytest.raises(BadInputError, match="several Slurm clusters: east, west"):
        slurm(tmp_path, as_text(both)).collect(WINDOW)
    facts = slurm(tmp_path, as_text(both), cluster="west").collect(WINDOW)
    assert pods(facts) == [("1", "n1", 5.0, 6.0, 8)]
    with pytest.raises(BadInputError, match="no job of the Slurm cluster 'north'"):
        slurm(tmp_path, as_text(both), cluster="north").collect(WINDOW)


def test_one_unreadable_file_of_several_is_a_gap(tmp_path: Path) -> None:
    collector = slurm(tmp_path, "", None, sacct="*.txt")
    write(tmp_path / "a.txt", as_text([job(1, "01:00", "02:00")]))
    write(tmp_path / "b.txt", "nothing of the kind")
    facts = collector.collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 2.0, 8)]
    assert "unreadable_file" in [gap.reason for gap in facts.gaps]
    assert reasons(facts) == {"unreadable_file": 1}


def test_amounts_that_do_not_divide_are_named(tmp_path: Path) -> None:
    odd = job(1, "01:00", "03:00", NodeList="n[1-2]", AllocTRES="cpu=9,gres/gpu=9,mem=3M,node=2")
    facts = slurm(tmp_path, as_text([odd])).collect(WINDOW)
    assert [(p[1], p[4]) for p in pods(facts)] == [("n1", 5), ("n2", 4)]
    assert any("do not divide" in note for note in facts.notes)


def test_amounts_that_cannot_be_read_are_not_known(tmp_path: Path) -> None:
    cut = job(1, "01:00", "03:00", AllocTRES="cpu=64,gres/gp+")
    facts = slurm(tmp_path, as_text([cut])).collect(WINDOW)
    assert pods(facts) == [("1", "n1", 1.0, 3.0, None)]
    assert any("do not say what they were allocated" in note for note in facts.notes)


def test_free_fields_are_labels(tmp_path: Path) -> None:
    told = job(1, "01:00", "03:00", Comment="experiment=abc, team=x", WCKey="a=b;team=y")
    row = slurm(tmp_path, as_text([told])).collect(WINDOW).tables["workloads"].row(0, named=True)
    labels = json.loads(row["labels"])
    assert (labels["experiment"], labels["team"], labels["a"]) == ("abc", "x", "b")
    assert row["labels"] == json.dumps(labels, sort_keys=True, separators=(",", ":"))


def test_end_states_are_events(tmp_path: Path) -> None:
    jobs = [
        job(1, "01:00", "02:00", State="OUT_OF_MEMORY", ExitCode="0:125"),
        job(2, "02:00", "03:00", State="CANCELLED by 1000"),
        job(3, "03:00", "04:00", State="NODE_FAIL"),
        job(4, "04:00", "05:00", State="COMPLETED"),
    ]
    rows = slurm(tmp_path, as_text(jobs)).collect(WINDOW).tables["events"]
    assert rows.filter(name="1")["attributes"].to_list() == ['{"exitCode":0}']
    assert sorted(rows.select("name", "kind", "reason").rows()) == [
        ("1", "out_of_memory", "OUT_OF_MEMORY"),
        ("2", "killed", "CANCELLED"),
        ("3", "failed", "NODE_FAIL"),
    ]


def test_a_large_array_and_a_wide_job(tmp_path: Path) -> None:
    tasks = [job(f"5_{n}", "01:00", "03:00", JobIDRaw=str(9 + n)) for n in range(10_000)]
    wide = job(1, "04:00", "05:00", NodeList="c[00001-10000]", AllocTRES="cpu=10000,node=10000")
    facts = slurm(tmp_path, as_text([*tasks, wide])).collect(WINDOW)
    assert facts.tables["workloads"].height == 20_000
