"""Bad input through ``run``: put aside, counted and named; the rest of the day closes."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from cli.main import main

Invoke = Callable[..., Result]
DAY = "2026-11-30"


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The input files of one simulated day."""
    folder = tmp_path_factory.mktemp("inputs")
    done = CliRunner().invoke(main, ["simulate", str(folder), "--days", "1", "--end", DAY])
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def world(inputs: Path, tmp_path: Path) -> Path:
    """A copy of the input files, to break."""
    folder = tmp_path / "world"
    shutil.copytree(inputs, folder)
    return folder


def close(invoke: Invoke, folder: Path) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON document and stderr of closing the day."""
    done = invoke("--config", folder / "runbill.yaml", "run", "--day", DAY, "-o", "json")
    assert "Traceback" not in done.stderr
    return done.exit_code, json.loads(done.stdout), done.stderr


def limited(folder: Path, limit: float) -> None:
    """Say which share of rows may be put aside."""
    path = folder / "runbill.yaml"
    path.write_text(f"{path.read_text()}quarantine_limit: {limit}\n")


LIMITS = pytest.mark.parametrize(("limit", "expected"), [(0, 3), (0.5, 0)])
"""Some rows are put aside: too many of them, or few enough."""


def source(data: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in data["coverage"] if entry["source"].endswith(name))


def bill(folder: Path) -> Path:
    return folder / "bill/focus.csv.gz"


def lines(folder: Path) -> list[dict[str, str]]:
    with gzip.open(bill(folder), "rt", newline="") as file:
        return list(csv.DictReader(file))


def write_lines(folder: Path, rows: list[dict[str, str]]) -> None:
    with gzip.open(bill(folder), "wt", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def objects(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "kubernetes/objects.json").read_text())
    return data


def write_objects(folder: Path, data: dict[str, Any]) -> None:
    (folder / "kubernetes/objects.json").write_text(json.dumps(data))


def a_pod(data: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads(
        json.dumps(next(item for item in data["items"] if item["kind"] == "Pod"))
    )
    pod["metadata"] |= {"uid": "11111111-2222-3333-4444-555555555555", "name": "odd-one"}
    return pod


def test_good_input_is_exit_code_0(world: Path, invoke: Invoke) -> None:
    code, data, errors = close(invoke, world)
    assert (code, errors) == (0, "")
    assert {entry["status"] for entry in data["coverage"]} == {"closed"}


@pytest.mark.parametrize("content", [b"", b"\x00\xff not a bill", b"a,b\n1,2\n"])
def test_an_unreadable_bill_fails_alone(world: Path, invoke: Invoke, content: bytes) -> None:
    bill(world).write_bytes(content)
    code, data, _ = close(invoke, world)
    assert code == 3
    failed = [entry for entry in data["run"]["collected"] if entry["status"] == "failed"]
    assert len(failed) == 1
    assert failed[0]["gaps"][0]["detail"]
    assert source(data, "kubernetes/train-a")["status"] == "closed"
    assert source(data, "prometheus/train-a")["status"] == "closed"
    assert data["run"]["attributed"] == [DAY]


def test_nothing_readable_is_5_and_erases_nothing(world: Path, invoke: Invoke) -> None:
    assert close(invoke, world)[0] == 0
    before = pl.read_delta(str(world / "ledger/charges")).sort("x_LineId", "x_Part")
    shutil.rmtree(world / "bill")
    shutil.rmtree(world / "prometheus")
    (world / "kubernetes/objects.json").unlink()
    code, data, _ = close(invoke, world)
    assert code == 5
    assert {entry["status"] for entry in data["run"]["collected"]} == {"failed"}
    after = pl.read_delta(str(world / "ledger/charges")).sort("x_LineId", "x_Part")
    assert before.equals(after)


def test_a_truncated_parquet_bill_beside_a_good_one(world: Path, invoke: Invoke) -> None:
    whole = world / "bill/second.parquet"
    pl.DataFrame({"BilledCost": ["1"], "BillingCurrency": ["USD"]}).write_parquet(whole)
    whole.write_bytes(whole.read_bytes()[:-20])
    code, data, _ = close(invoke, world)
    assert code == 3
    found = next(entry for entry in data["run"]["collected"] if entry["gaps"])
    assert "second.parquet" in json.dumps(found["gaps"])
    assert "second.parquet" in json.dumps(found["quarantine"])
    assert Decimal(data["total"]) > 0


def test_a_focus_column_missing(world: Path, invoke: Invoke) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "ChargePeriodStart"}
        for row in lines(world)
    ]
    write_lines(world, rows)
    code, data, _ = close(invoke, world)
    assert code == 3
    assert "ChargePeriodStart" in json.dumps(data["run"]["collected"])


@LIMITS
def test_bill_lines_that_are_no_numbers_are_put_aside_and_counted(
    world: Path, invoke: Invoke, limit: float, expected: int
) -> None:
    limited(world, limit)
    rows = lines(world)
    broken = [
        dict(rows[0], BilledCost="NaN"),
        dict(rows[1], EffectiveCost="lots"),
        dict(rows[2], ChargePeriodEnd="2026-11-29T00:00:00Z"),
    ]  # its clock goes back
    write_lines(world, rows + broken)
    code, data, _ = close(invoke, world)
    assert code == expected
    found = next(entry for entry in data["run"]["collected"] if entry["quarantine"])
    assert sum(entry["count"] for entry in found["quarantine"]) == 3
    assert source(data, found["source"])["quarantine"]


@pytest.mark.parametrize(("aside", "expected"), [(1, 0), (2, 3)])
def test_a_thousandth_of_a_bill_may_be_put_aside(
    world: Path, invoke: Invoke, aside: int, expected: int
) -> None:
    """The default limit, on both sides: one or two of a thousand lines."""
    good = dict(lines(world)[0], ResourceId="")
    broken = dict(good, BilledCost="NaN")
    write_lines(world, [good] * (1000 - aside) + [broken] * aside)
    assert close(invoke, world)[0] == expected


def test_negative_charges_are_credits_and_stay(world: Path, invoke: Invoke) -> None:
    rows = lines(world)
    total = Decimal(close(invoke, world)[1]["billed"])
    credit = dict(
        rows[0],
        BilledCost="-5.5",
        EffectiveCost="-5.5",
        ChargeCategory="Credit",
        ResourceId="",
        ContractedCost="-5.5",
        ListCost="-5.5",
    )
    write_lines(world, [*rows, credit])
    code, data, _ = close(invoke, world)
    assert code == 0
    assert Decimal(data["billed"]) == total - Decimal("5.5")


@LIMITS
def test_samples_that_cannot_be_are_put_aside(
    world: Path, invoke: Invoke, limit: float, expected: int
) -> None:
    limited(world, limit)
    path = next((world / "prometheus").rglob("*.parquet"))
    frame = pl.read_parquet(path)
    usage = frame.filter(pl.col("__name__").str.contains("UTIL|ACTIVE"))
    assert not usage.is_empty()
    odd = usage.head(2).with_columns(
        pl.Series("value", [float("nan"), -1.97e25]),
        timestamp=pl.col("timestamp") + pl.duration(seconds=7),
    )
    odd.write_parquet(world / "prometheus/odd.parquet")
    code, data, _ = close(invoke, world)
    assert code == expected
    found = source(data, "prometheus/train-a")["quarantine"]
    assert sum(entry["count"] for entry in found) == 2
    assert Decimal(data["total"]) == Decimal(data["billed"])


def test_a_truncated_export_file(world: Path, invoke: Invoke) -> None:
    (world / "prometheus/cut.parquet").write_bytes(b"PAR1\x00\x00")
    code, data, _ = close(invoke, world)
    assert code == 3
    assert "cut.parquet" in json.dumps(source(data, "prometheus/train-a"))
    assert Decimal(data["total"]) > 0


def test_a_pod_without_a_node_costs_nothing(world: Path, invoke: Invoke) -> None:
    data = objects(world)
    pod = a_pod(data)
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}
    data["items"].append(pod)
    write_objects(world, data)
    code, report, _ = close(invoke, world)
    assert code == 0
    assert Decimal(report["total"]) == Decimal(report["billed"])


@LIMITS
def test_a_pod_whose_clock_goes_back_is_put_aside(
    world: Path, invoke: Invoke, limit: float, expected: int
) -> None:
    limited(world, limit)
    data = objects(world)
    pod = a_pod(data)
    for status in pod["status"].get("containerStatuses", []):
        status["state"] = {
            "terminated": {
                "startedAt": "2026-11-30T10:00:00Z",
                "exitCode": 0,
                "finishedAt": "2026-11-30T09:00:00Z",
            }
        }
    pod["status"]["phase"] = "Succeeded"
    data["items"].append(pod)
    write_objects(world, data)
    code, report, _ = close(invoke, world)
    assert code == expected
    assert "odd-one" in json.dumps(source(report, "kubernetes/train-a"))
    assert Decimal(report["total"]) == Decimal(report["billed"])


def test_an_unreadable_dump_fails_alone(world: Path, invoke: Invoke) -> None:
    (world / "kubernetes/objects.json").write_text('{"items": [')
    code, data, _ = close(invoke, world)
    assert code == 3
    assert source(data, "kubernetes/train-a")["status"] == "failed"
    assert Decimal(data["total"]) == Decimal(data["billed"]) > 0


def test_an_optional_source_that_fails_is_shown_and_no_code(world: Path, invoke: Invoke) -> None:
    import yaml

    path = world / "runbill.yaml"
    data = yaml.safe_load(path.read_text())
    data["clusters"][0]["kubernetes"]["required"] = False
    path.write_text(yaml.safe_dump(data))
    (world / "kubernetes/objects.json").unlink()
    code, report, _ = close(invoke, world)
    assert code == 0
    assert source(report, "kubernetes/train-a")["status"] == "failed"


def test_a_fault_in_a_collector_is_a_gap_that_names_its_type(
    world: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("collector.kubernetes.from_settings", broken)
    code, report, _ = close(invoke, world)
    assert code == 3
    gap = source(report, "kubernetes/train-a")["gaps"][0]
    assert (gap["reason"], gap["detail"]) == ("ZeroDivisionError", "kubernetes/train-a: oh")
    shown = invoke("--config", world / "runbill.yaml", "report")
    assert "ZeroDivisionError" in shown.stdout
