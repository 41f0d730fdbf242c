"""Default runs after the settings or the bill changed: what is read and worked out again."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

Invoke = Callable[..., Result]
DAYS = {"2026-11-02", "2026-11-03"}


@pytest.fixture
def world(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The input files of two simulated days, the morning after."""
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 11, 4, 6, tzinfo=UTC))
    done = invoke("simulate", "w", "--days", "2", "--end", "2026-11-03")
    assert done.exit_code == 0, done.stderr
    return tmp_path / "w"


def change(world: Path, **blocks: object) -> None:
    """Replace blocks of the settings; None takes one away."""
    path = world / "runbill.yaml"
    merged = {**yaml.safe_load(path.read_text()), **blocks}
    path.write_text(yaml.safe_dump({k: v for k, v in merged.items() if v is not None}))


def run(invoke: Invoke, world: Path, code: int = 0) -> dict[str, Any]:
    done = invoke("--config", world / "runbill.yaml", "run", "-o", "json")
    assert done.exit_code == code, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def by(invoke: Invoke, world: Path, key: str) -> dict[str, Decimal]:
    done = invoke("--config", world / "runbill.yaml", "query", "--by", key, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return {row[key]: Decimal(row["cost"] or 0) for row in json.loads(done.stdout)["rows"]}


def test_with_prices_and_no_bill_every_day_costs(world: Path, invoke: Invoke) -> None:
    change(world, billing=None, prices={"gpu": {"default": "2"}})
    first = run(invoke, world)
    assert set(first["run"]["attributed"]) >= DAYS
    costs = by(invoke, world, "day")
    assert set(costs) >= DAYS
    assert all(cost > 0 for cost in costs.values())
    assert by(invoke, world, "basis").keys() == {"estimated"}
    again = run(invoke, world)
    assert again["run"]["attributed"] == []


def test_a_changed_price_restates_every_day_it_covers(world: Path, invoke: Invoke) -> None:
    change(world, billing=None, prices={"gpu": {"default": "2"}, "vcpu": "0", "gib": "0"})
    run(invoke, world)
    before = by(invoke, world, "day")
    change(world, prices={"gpu": {"default": "4"}, "vcpu": "0", "gib": "0"})
    data = run(invoke, world)
    assert set(data["run"]["attributed"]) == set(before)
    assert {row["day"] for row in data["restatements"]} == set(before)
    assert by(invoke, world, "day") == {day: 2 * cost for day, cost in before.items()}


def test_removed_prices_price_nothing(world: Path, invoke: Invoke) -> None:
    change(world, billing=None, prices={"gpu": {"default": "2"}})
    run(invoke, world)
    change(world, prices=None)
    assert set(run(invoke, world)["run"]["attributed"]) >= DAYS
    assert sum(by(invoke, world, "day").values()) == 0


def test_prices_that_are_added_price_the_days_that_are_closed(world: Path, invoke: Invoke) -> None:
    change(world, billing=None, prices=None)
    run(invoke, world)
    assert sum(by(invoke, world, "day").values()) == 0
    change(world, prices={"gpu": {"default": "2"}})
    run(invoke, world)
    costs = by(invoke, world, "day")
    assert all(costs[day] > 0 for day in DAYS)


def test_a_renamed_bill_is_paid_once_and_the_old_one_named(world: Path, invoke: Invoke) -> None:
    run(invoke, world)
    before = by(invoke, world, "day")
    bill = yaml.safe_load((world / "runbill.yaml").read_text())["billing"][0]
    change(world, billing=[{**bill, "name": "renamed"}])
    data = run(invoke, world)
    assert by(invoke, world, "day") == before
    paid = by(invoke, world, "source").keys()
    assert "renamed" in paid
    assert bill["name"] not in paid
    old = next(entry for entry in data["coverage"] if entry["source"] == bill["name"])
    assert "no longer counted" in " ".join(old["notes"])


def test_settings_that_change_no_figure_work_out_nothing_again(world: Path, invoke: Invoke) -> None:
    run(invoke, world)
    change(world, timezone="Asia/Shanghai", quarantine_limit=0.5)
    assert run(invoke, world)["run"]["attributed"] == []


def test_prices_alone_are_no_day(world: Path, invoke: Invoke) -> None:
    change(world, prices={"gpu": {"default": "2"}})
    bad = {"name": "train-a", "kubernetes": {"dump": "gone.json"}}
    change(world, clusters=[bad], billing=[{"name": "b", "path": "gone.csv"}])
    data = run(invoke, world, 5)
    assert data["run"]["attributed"] == []
    assert not (world / "ledger/costs").exists()


def test_a_cut_bill_keeps_the_days_that_were_whole(world: Path, invoke: Invoke) -> None:
    run(invoke, world)
    before = by(invoke, world, "day")
    path = world / "bill/focus.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        lines = list(csv.DictReader(file))
    half = len(lines) // 2
    with gzip.open(world / "bill/first.csv.gz", "wt", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines[:half])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    data = run(invoke, world, 3)
    assert by(invoke, world, "day") == before
    collected = [each for each in data["run"]["collected"] if each["gaps"]]
    assert [[gap["reason"] for gap in each["gaps"]] for each in collected] == [
        ["unreadable_file", "quarantine_limit", "earlier_rows_stand"]
    ]
