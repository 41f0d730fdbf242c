"""The Parquet export: same facts however it is cut into files, broken files put aside."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from collector.prometheus import from_settings
from collector.prometheus.collect import PrometheusCollector
from ledger.errors import BadInputError, SettingsError, SourceError
from ledger.facts import Facts
from ledger.settings import Cluster, PrometheusSource
from ledger.window import Window
from tests.collector.prometheus.builders import (
    MINUTE,
    WINDOW,
    Sample,
    at,
    collect,
    frame,
    node,
    small_day,
    write_parquet,
)

BASE = small_day()
EXPECTED = collect(BASE)


def of(folder: Path) -> PrometheusCollector:
    block = PrometheusSource(export=folder.name)
    return from_settings(Cluster(name="train-a", prometheus=block), folder.parent)


def same(facts: Facts) -> None:
    for name, table in EXPECTED.tables.items():
        assert_frame_equal(facts.tables[name], table, check_exact=True)


@pytest.mark.parametrize("files", [1, 3])
def test_files_are_cut_as_they_like(tmp_path: Path, files: int) -> None:
    same(of(write_parquet(BASE, tmp_path / "export", files)).collect(WINDOW))


def test_files_may_lie_deep_and_overlap(tmp_path: Path) -> None:
    write_parquet(BASE, tmp_path / "export" / "2026" / "11", 2)
    write_parquet(BASE[: len(BASE) // 2], tmp_path / "export" / "again")
    same(of(tmp_path / "export").collect(WINDOW))


@pytest.mark.parametrize(
    "form",
    [
        pl.Datetime("us", "UTC"),
        pl.Datetime("ns", "UTC"),
        pl.Datetime("ms"),
        pl.Datetime("ms", "Asia/Shanghai"),
    ],
)
def test_time_stamps_come_in_several_forms(tmp_path: Path, form: pl.Datetime) -> None:
    (tmp_path / "export").mkdir()
    frame(BASE).with_columns(
        pl.col("timestamp")
        .dt.convert_time_zone(form.time_zone or "UTC")
        .cast(pl.Datetime(form.time_unit, form.time_zone or "UTC"))
        .dt.replace_time_zone(form.time_zone)
    ).write_parquet(tmp_path / "export" / "a.parquet")
    same(of(tmp_path / "export").collect(WINDOW))


def test_a_truncated_file_is_put_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_parquet(BASE, tmp_path / "export")
    whole = (folder / "part-0.parquet").read_bytes()
    (folder / "broken.parquet").write_bytes(whole[: len(whole) // 2])
    facts = of(folder).collect(WINDOW)
    same(facts)
    assert [(entry.reason, entry.where, entry.count) for entry in facts.quarantine] == [
        ("unreadable", "broken.parquet", 1)
    ]
    assert [gap.reason for gap in facts.gaps] == ["unreadable_file"]
    assert "broken.parquet" in facts.gaps[0].detail


def test_a_broken_page_is_put_aside_when_it_is_read(tmp_path: Path) -> None:
    folder = write_parquet(BASE, tmp_path / "export")
    whole = bytearray((folder / "part-0.parquet").read_bytes())
    whole[4 : len(whole) // 2] = bytes(len(whole) // 2 - 4)
    (folder / "broken.parquet").write_bytes(whole)
    facts = of(folder).collect(WINDOW)
    same(facts)
    assert {(entry.reason, entry.where) for entry in facts.quarantine} == {
        ("unreadable", "broken.parquet")
    }


def test_a_file_of_another_form_is_put_aside(tmp_path: Path) -> None:
    folder = write_parquet(BASE, tmp_path / "export")
    frame(BASE).drop("value").write_parquet(folder / "no-value.parquet")
    frame(BASE).with_columns(pl.lit("1").alias("value")).write_parquet(folder / "text.parquet")
    frame(BASE).with_columns(pl.lit(1).alias("timestamp")).write_parquet(folder / "time.parquet")
    facts = of(folder).collect(WINDOW)
    same(facts)
    assert [(entry.reason, entry.where) for entry in facts.quarantine] == [
        ("missing_column", "no-value.parquet"),
        ("bad_column", "text.parquet"),
        ("bad_column", "time.parquet"),
    ]


def test_absurd_times_are_counted_and_other_days_are_not(tmp_path: Path) -> None:
    text = BASE[0].labels
    odd = [Sample(BASE[0].name, text, datetime(year, 1, 1, tzinfo=UTC), 1.0) for year in (1, 2099)]
    other_day = Sample(BASE[0].name, text, at("0:00").replace(day=20), 1.0)
    facts = of(write_parquet([*BASE, *odd, other_day], tmp_path / "export")).collect(WINDOW)
    same(facts)
    assert [(entry.reason, entry.where, entry.count) for entry in facts.quarantine] == [
        ("out_of_window", "kube_node_info", 2)
    ]


def test_a_folder_without_files_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no \*\.parquet file"):
        of(tmp_path / "nothing").collect(WINDOW)


def test_a_folder_of_broken_files_is_no_export(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "a.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(BadInputError, match=r"a\.parquet"):
        of(tmp_path / "export").collect(WINDOW)


def test_the_export_says_how_far_it_reaches_and_what_it_holds(tmp_path: Path) -> None:
    collector = of(write_parquet(BASE, tmp_path / "export"))
    assert collector.reach() == Window(WINDOW.start - 20 * MINUTE, WINDOW.end + 20 * MINUTE)
    assert all(probe.ok for probe in collector.probe())


def test_a_cluster_without_a_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="train-a"):
        from_settings(Cluster(name="train-a"), tmp_path)


def test_one_folder_of_two_clusters_gives_each_its_own(tmp_path: Path) -> None:
    def of(cluster: str | None, name: str) -> list[Sample]:
        label = f'{{"cluster":"{cluster}",' if cluster else "{"
        return [
            sample._replace(labels=sample.labels.replace("{", label, 1))
            for sample in node(name, at("0:00"), at("1:00"))
        ]

    write_parquet([*of("a", "one"), *of("b", "two"), *of(None, "three")], tmp_path / "series")
    for name, seen in (("a", "one"), ("b", "two")):
        block = {"export": str(tmp_path / "series"), "cluster_label": "cluster"}
        cluster = Cluster.model_validate({"name": name, "prometheus": block})
        facts = from_settings(cluster, tmp_path).collect(WINDOW)
        assert facts.tables["nodes"]["node"].unique().to_list() == [seen]
        assert {entry.reason for entry in facts.quarantine} == {"no_cluster"}
