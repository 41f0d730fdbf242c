"""The collectors read a world's files without a gap, and see what ``facts`` says they would."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from collector import billing, kubernetes, prometheus
from collector.simulate import World, WorldOptions, simulate, write_world
from collector.simulate.facts import facts
from collector.source import Collector
from ledger.facts import Facts
from ledger.load import load_settings
from ledger.schema import COST_COLUMNS
from ledger.window import Window

END = date(2026, 11, 30)
DAY = END - timedelta(days=1)
OPTIONS = WorldOptions(end=END, days=3, nodes=4)


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(OPTIONS)


@pytest.fixture(scope="module")
def collected(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Facts]:
    """What each collector says of the day in the middle."""
    folder = tmp_path_factory.mktemp("world")
    write_world(world, folder)
    loaded = load_settings(folder / "runbill.yaml")
    (cluster,), (bill,) = loaded.settings.clusters, loaded.settings.billing
    base: Path = loaded.base
    collectors: dict[str, Collector] = {
        "bill": billing.from_settings(bill, base),
        "api": kubernetes.from_settings(cluster, base),
        "samples": prometheus.from_settings(cluster, base),
    }
    return {name: found.collect(Window.of_day(DAY)) for name, found in collectors.items()}


@pytest.fixture(scope="module")
def expected(world: World) -> dict[str, pl.DataFrame]:
    return facts(world, DAY)


def test_nothing_is_missing_and_nothing_is_put_aside(collected: dict[str, Facts]) -> None:
    for found in collected.values():
        assert found.gaps == ()
        assert found.quarantine == ()


def test_the_bill_is_read_to_the_last_digit(
    collected: dict[str, Facts], expected: dict[str, pl.DataFrame]
) -> None:
    columns = [
        "ChargePeriodStart",
        "ChargePeriodEnd",
        "ResourceId",
        "ChargeCategory",
        "ServiceName",
        "Tags",
        "x_Part",
        *COST_COLUMNS,
    ]
    given = collected["bill"].tables["charges"].select(columns)
    assert given.sort(columns).equals(expected["charges"].select(columns).sort(columns))


@pytest.mark.parametrize(("source", "prefix"), [("api", "kubernetes/"), ("samples", "prometheus/")])
def test_pods_are_seen_as_they_lived(
    collected: dict[str, Facts], expected: dict[str, pl.DataFrame], source: str, prefix: str
) -> None:
    columns = [
        "uid",
        "namespace",
        "pod",
        "node",
        "start",
        "end",
        "state",
        "root_kind",
        "root_name",
        "role",
        "owners",
        "labels",
        "cpu_millicores",
        "memory_bytes",
        "gpus",
        "finished_at",
    ]
    if source == "api":
        columns += ["owner_labels", "bound_at"]
    rows = expected["workloads"].filter(pl.col("source").str.starts_with(prefix)).select(columns)
    given = collected[source].tables["workloads"].select(columns)
    assert given.sort(columns).to_dicts() == rows.sort(columns).to_dicts()


@pytest.mark.parametrize(("source", "prefix"), [("api", "kubernetes/"), ("samples", "prometheus/")])
def test_nodes_are_seen_as_they_stood(
    collected: dict[str, Facts], expected: dict[str, pl.DataFrame], source: str, prefix: str
) -> None:
    columns = [
        "node",
        "start",
        "end",
        "provider_id",
        "instance_type",
        "capacity_type",
        "region",
        "cpu_millicores",
        "memory_bytes",
        "gpus",
        "gpu_model",
        "labels",
    ]
    rows = expected["nodes"].filter(pl.col("source").str.starts_with(prefix)).select(columns)
    given = collected[source].tables["nodes"].select(columns)
    assert given.sort(columns).to_dicts() == rows.sort(columns).to_dicts()
