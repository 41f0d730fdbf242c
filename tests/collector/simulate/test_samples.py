"""The series: on the grid, both ends included, once each, and fit for a real Prometheus."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from collector.simulate import World, WorldOptions, simulate
from collector.simulate.export import write_export, write_openmetrics
from collector.simulate.options import DAY
from collector.simulate.series import LINGER, samples, series_frame
from tests.prometheus_server import backfill, require_prometheus

OPTIONS = WorldOptions(end=date(2026, 11, 30), days=1, nodes=4, interval=120, outage_hours=1)
KEY = ["__name__", "labels"]


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(OPTIONS)


def all_samples(world: World) -> pl.DataFrame:
    """All samples; ``at`` in milliseconds, and the labels that tests ask for."""
    start, end = world.options.start_ms, world.options.end_ms + world.options.step
    names = ("uid", "phase", "pod", "exported_pod", "UUID", "resource")
    return (
        samples(series_frame(world).lazy(), start, end, world.options.step)
        .with_columns(
            pl.col("timestamp").dt.timestamp("ms").alias("at"),
            *(pl.col("labels").str.json_path_match(f"$.{name}").alias(name) for name in names),
        )
        .collect()
    )


@pytest.fixture(scope="module")
def found(world: World) -> pl.DataFrame:
    return all_samples(world)


def test_every_sample_lies_on_the_grid_and_stands_once(found: pl.DataFrame) -> None:
    assert (found["at"] % OPTIONS.step == 0).all()
    assert not found.select(*KEY, "at").is_duplicated().any()


def test_a_pod_shows_from_its_binding_to_its_end_both_included() -> None:
    options = replace(OPTIONS, outage_hours=0)
    world = simulate(options)
    info = all_samples(world).filter(pl.col("__name__") == "kube_pod_info")
    spans = info.group_by("uid").agg(
        pl.col("at").min().alias("first"), pl.col("at").max().alias("last")
    )
    seen = {uid: (first, last) for uid, first, last in spans.iter_rows()}
    for pod in world.pods:
        if pod.name == "smoke-test":
            assert pod.uid not in seen
            continue
        end = pod.finished + LINGER * options.step if pod.lingers else pod.finished
        assert seen[pod.uid] == (max(pod.bound, options.start_ms), min(end, options.end_ms))


def test_exactly_one_phase_holds_at_any_time(found: pl.DataFrame) -> None:
    phases = found.filter(pl.col("__name__") == "kube_pod_status_phase")
    sums = phases.group_by("uid", "at").agg(pl.col("value").sum())
    assert (sums["value"] == 1).all()
    assert set(phases.filter(pl.col("value") == 1)["phase"]) == {"Pending", "Running", "Succeeded"}


def test_nobody_scraped_during_the_outage(found: pl.DataFrame) -> None:
    assert OPTIONS.outage is not None
    start, end = OPTIONS.outage
    inside = found.filter(pl.col("at").is_between(start, end, closed="none"))
    assert inside.is_empty()
    assert set(found.filter(pl.col("at").is_in([start, end]))["at"]) == {start, end}


def test_every_watched_card_has_one_holder_and_a_ratio(world: World, found: pl.DataFrame) -> None:
    cards = found.filter(pl.col("__name__").str.starts_with("DCGM"))
    assert cards["value"].is_between(0, 1).all()
    counts = cards.group_by("at").agg(pl.len(), pl.col("UUID").n_unique())
    watched = sum(node.gpus for node in world.nodes if node.gpus and node.pool != "spare")
    assert (counts["len"] == watched).all()
    assert (counts["UUID"] == watched).all()
    busy = cards.filter(pl.col("exported_pod").is_null() & (pl.col("value") > 0))
    assert busy.is_empty()


def test_pods_use_less_than_they_asked_for(world: World, found: pl.DataFrame) -> None:
    asked = {pod.name: (pod.cpu_millicores / 1000, pod.memory_bytes) for pod in world.pods}
    memory = found.filter(pl.col("__name__") == "container_memory_working_set_bytes")
    for pod, most in (
        memory.group_by("pod", "at")
        .agg(pl.col("value").sum())
        .group_by("pod")
        .agg(pl.col("value").max())
        .iter_rows()
    ):
        assert most < asked[pod][1]
    # The counter of the name that is used twice starts again with its second pod.
    cpu = found.filter(
        (pl.col("__name__") == "container_cpu_usage_seconds_total")
        & (pl.col("pod") != "ablation-0")
    ).sort(*KEY, "at")
    gained, passed = pl.col("value").diff().over(KEY), pl.col("at").diff().over(KEY)
    rates = cpu.select("pod", (gained * 1000 / passed).alias("cores"))
    rates = rates.drop_nulls()
    assert (rates["cores"] > 0).all()
    for pod, cores in rates.group_by("pod").agg(pl.col("cores").max()).iter_rows():
        assert cores < asked[pod][0]


def test_day_files_hold_each_sample_once(tmp_path: Path) -> None:
    world = simulate(WorldOptions(end=date(2026, 11, 30), days=3, nodes=3, interval=300))
    files = list(write_export(world, tmp_path))
    parts = [pl.read_parquet(path) for path in files]
    whole = pl.concat(parts)
    start = world.options.start_ms
    expected = samples(series_frame(world).lazy(), start, start + 4 * DAY, world.options.step)
    columns = [*KEY, "timestamp", "value"]
    order = [*KEY, "timestamp"]
    assert whole.sort(order).equals(expected.select(columns).collect().sort(order))
    assert parts[1]["timestamp"].min() == datetime(2026, 11, 29, tzinfo=UTC)
    assert parts[2]["timestamp"].max() == datetime(2026, 12, 1, tzinfo=UTC)


def test_promtool_takes_every_sample_of_the_text(world: World, tmp_path: Path) -> None:
    require_prometheus()
    files = list(write_openmetrics(world, tmp_path / "text"))
    backfill(files, tmp_path / "blocks")
    table = subprocess.run(
        ["promtool", "tsdb", "list", str(tmp_path / "blocks")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    column = [word for word in table[0].split("  ") if word.strip()]
    position = [word.strip() for word in column].index("NUM SAMPLES")
    taken = sum(int(line.split()[position]) for line in table[1:])
    (export,) = write_export(world, tmp_path / "export")
    assert taken == pl.scan_parquet(export).select(pl.len()).collect().item()


def test_the_text_is_sorted_by_family_and_ends(world: World, tmp_path: Path) -> None:
    (path,) = write_openmetrics(world, tmp_path)
    lines = path.read_text("utf-8").splitlines()
    assert lines[-1] == "# EOF"
    types = [line.split()[2:] for line in lines if line.startswith("# TYPE")]
    families = [family for family, _ in types]
    assert families == sorted(set(families))
    assert dict(types)["container_cpu_usage_seconds"] == "counter"
    family = ""
    for line in lines[:-1]:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        else:
            assert line.split("{")[0].removesuffix("_total") == family
