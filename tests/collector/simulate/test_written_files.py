"""The files of a world: the same bytes each time, readable by plain tools, true to the truth."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.simulate import WorldOptions, simulate, write_world
from ledger.load import load_settings

END = date(2026, 11, 30)
OPTIONS = WorldOptions(end=END, days=3, nodes=4, interval=300)

Json = dict[str, Any]
Row = dict[str, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(simulate(OPTIONS), folder, openmetrics=True)
    return folder


@pytest.fixture(scope="module")
def bill(folder: Path) -> list[Row]:
    with gzip.open(folder / "bill/focus.csv.gz", "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


@pytest.fixture(scope="module")
def truth(folder: Path) -> Json:
    document: Json = json.loads((folder / "truth.json").read_text("utf-8"))
    return document


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_options_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    written = write_world(simulate(OPTIONS), tmp_path, openmetrics=True)
    assert digests(tmp_path) == digests(folder)
    assert sorted(path.relative_to(tmp_path) for path in written) == sorted(
        path.relative_to(folder) for path in folder.rglob("*") if path.is_file()
    )


def test_a_smaller_world_leaves_nothing_of_the_larger_one(tmp_path: Path) -> None:
    write_world(simulate(OPTIONS), tmp_path, openmetrics=True)
    small = WorldOptions(end=END, days=1, nodes=3, interval=300)
    write_world(simulate(small), tmp_path)
    assert [path.name for path in sorted((tmp_path / "prometheus").iterdir())] == [
        "2026-11-30.parquet"
    ]
    assert not list((tmp_path / "openmetrics").iterdir())


def day_of(row: Row) -> str:
    return row["ChargePeriodStart"][:10]


def seconds(row: Row) -> int:
    start, end = (
        datetime.strptime(row[f"ChargePeriod{edge}"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        for edge in ("Start", "End")
    )
    return int((end - start).total_seconds())


@pytest.mark.parametrize(
    ("column", "figure"), [("EffectiveCost", "cost"), ("BilledCost", "billed")]
)
def test_the_bill_adds_up_to_the_truth(
    bill: list[Row], truth: Json, column: str, figure: str
) -> None:
    """Sums of text cells; a month's fee is told apart by its length and shared out by days."""
    days: dict[str, Decimal] = defaultdict(Decimal)
    fees = [row for row in bill if seconds(row) > 86_400]
    for row in bill:
        if row not in fees:
            days[day_of(row)] += Decimal(row[column])
    assert len(fees) == 1
    for day in truth["days"]:
        fee = Decimal(day[figure]) - days[day["day"]]
        share = Decimal(fees[0][column]) / 30
        assert abs(fee - share) < Decimal("1e-12")
    assert Decimal(truth["total"][figure]) == sum(
        (Decimal(day[figure]) for day in truth["days"]), Decimal(0)
    )


def test_cost_columns_differ_where_they_should(bill: list[Row], truth: Json) -> None:
    committed = [row for row in bill if row["PricingCategory"] == "Committed"]
    assert committed
    assert all(
        Decimal(row["BilledCost"])
        == 0
        < Decimal(row["EffectiveCost"])
        < Decimal(row["ContractedCost"])
        < Decimal(row["ListCost"])
        for row in committed
    )
    fees = [row for row in bill if row["ResourceType"] == "Savings Plan"]
    assert sum(Decimal(row["BilledCost"]) for row in fees) == sum(
        Decimal(row["EffectiveCost"]) for row in committed
    )
    credits = [row for row in bill if row["ChargeCategory"] == "Credit"]
    assert credits
    assert all(Decimal(row["BilledCost"]) < 0 and row["ResourceId"] for row in credits)


def test_the_bill_keeps_the_identities_of_focus(bill: list[Row]) -> None:
    assert len(bill[0]) == 57
    for row in bill:
        if row["PricingQuantity"]:
            quantity = Decimal(row["PricingQuantity"])
            assert Decimal(row["ListUnitPrice"]) * quantity == Decimal(row["ListCost"])
            assert Decimal(row["ContractedUnitPrice"]) * quantity == Decimal(row["ContractedCost"])
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        assert bool(row["ConsumedQuantity"]) == (row["ChargeCategory"] == "Usage")
        assert isinstance(json.loads(row["Tags"]), dict)


def test_some_lines_carry_tags_and_some_do_not(bill: list[Row]) -> None:
    for service in ("Amazon Simple Storage Service", "AmazonCloudWatch"):
        tags = [json.loads(row["Tags"]) for row in bill if row["ServiceName"] == service]
        assert any("experiment" in given for given in tags)
        assert any(not given for given in tags)


def test_truth_names_every_experiment_phase_and_node_once(truth: Json) -> None:
    for figures in (truth["total"], *truth["days"]):
        keys = [(row["experiment"], row["phase"], row["node"]) for row in figures["nodes"]]
        assert len(keys) == len(set(keys))
    targets = {row["experiment"]: row for row in truth["targets"]}
    assert not targets["smoke-test"]["exact"]
    assert Decimal(targets["smoke-test"]["stated_error"]) > 0
    assert targets["grpo-7b"]["exact"]


def test_settings_name_the_files_by_relative_paths(folder: Path) -> None:
    loaded = load_settings(folder / "runbill.yaml")
    assert loaded.settings.timezone == "Asia/Shanghai"
    (cluster,), (bill,) = loaded.settings.clusters, loaded.settings.billing
    assert cluster.kubernetes is not None
    assert cluster.prometheus is not None
    for path in (cluster.kubernetes.dump, cluster.prometheus.export, bill.path):
        assert path is not None
        assert not Path(path).is_absolute()
        assert (folder / path).exists()


def test_objects_are_what_kubectl_prints(folder: Path) -> None:
    items = json.loads((folder / "kubernetes/objects.json").read_text("utf-8"))["items"]
    world = simulate(OPTIONS)
    pods = {item["metadata"]["uid"]: item for item in items if item["kind"] == "Pod"}
    assert set(pods) == {pod.uid for pod in world.pods if pod.in_api}
    kinds = {item["kind"] for item in items}
    assert {
        "Node",
        "Namespace",
        "RayJob",
        "RayCluster",
        "PyTorchJob",
        "JobSet",
        "Job",
        "DaemonSet",
        "ReplicaSet",
        "Deployment",
    } <= kinds
    known = {item["metadata"]["uid"] for item in items}
    for item in items:
        assert {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())} <= known
    for pod in world.pods:
        if pod.in_api and pod.finished < OPTIONS.end_ms:
            (state, *_) = pods[pod.uid]["status"]["containerStatuses"]
            ended = state["state"]["terminated"]["finishedAt"]
            assert ended == datetime.fromtimestamp(pod.finished // 1000, UTC).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            )


def test_the_export_has_the_documented_form(folder: Path) -> None:
    files = sorted((folder / "prometheus").glob("*.parquet"))
    assert [path.stem for path in files] == ["2026-11-28", "2026-11-29", "2026-11-30"]
    for path in files:
        assert pl.read_parquet_schema(path) == {
            "__name__": pl.String(),
            "labels": pl.String(),
            "timestamp": pl.Datetime("ms", "UTC"),
            "value": pl.Float64(),
        }
    labels = pl.read_parquet(files[0]).get_column("labels").unique().to_list()
    assert all(
        text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        for text in labels
    )
