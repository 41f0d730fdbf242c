"""What is not known is shown as not known: in totals, tiles, coverage and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from jsonschema import Draft202012Validator

import cli

SCHEMAS = Path(cli.__path__[0]).parent / "docs/schemas"
Invoke = Callable[..., Result]
HEAD = "BillingCurrency,BilledCost,ChargeCategory,ChargePeriodStart,ChargePeriodEnd"
LINE = "USD,10,Usage,2026-11-03T00:00:00Z,2026-11-04T00:00:00Z"


@pytest.fixture(autouse=True)
def morning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 11, 4, 6, tzinfo=UTC))


def bill(folder: Path, head: str = HEAD, *lines: str) -> None:
    (folder / "bill.csv").write_text("\n".join([head, *lines, ""]))
    (folder / "runbill.yaml").write_text("billing: [{name: b, path: bill.csv}]\n")


def document(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.stdout)
    schema = json.loads((SCHEMAS / f"{data['kind']}.json").read_text())
    Draft202012Validator(schema).validate(data)
    return data


def test_a_bill_without_effective_cost_has_no_known_total(tmp_path: Path, invoke: Invoke) -> None:
    bill(tmp_path, HEAD, LINE)
    done = invoke("run", "--day", "2026-11-03", "-o", "json")
    assert done.exit_code == 3, done.stderr
    data = document(done)
    assert (data["total"], data["billed"], data["unknown"]) == (None, "10.000000000000", 1)
    assert [row["cost"] for row in data["experiments"]] == [None]
    (entry,) = (each for each in data["coverage"] if each["source"] == "b")
    assert [gap["reason"] for gap in entry["gaps"]] == ["missing_column"]
    assert "EffectiveCost" in entry["gaps"][0]["detail"]
    asked = document(invoke("query", "-o", "json"))
    assert (asked["total"], asked["window_total"], asked["unknown"]) == (None, None, 1)
    shown = invoke("run", "--day", "2026-11-03").stdout
    assert "0.00" not in shown.replace("10.00", "")
    assert "1 share of unknown cost" in shown


def test_known_parts_are_summed_beside_unknown_ones(tmp_path: Path, invoke: Invoke) -> None:
    bill(tmp_path, f"{HEAD},EffectiveCost", f"{LINE},7", f"{LINE},")
    assert invoke("run", "--day", "2026-11-03").exit_code == 0
    asked = document(invoke("query", "-o", "json"))
    assert (asked["total"], asked["unknown"]) == ("7.000000000000", 1)
    none = document(invoke("query", "--filter", "experiment=nobody", "-o", "json"))
    assert (none["total"], none["hidden"]) == ("0.000000000000", "7.000000000000")


def test_nothing_read_costs_nothing_known(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "runbill.yaml").write_text("billing: [{name: b, path: gone.csv}]\n")
    done = invoke("run", "-o", "json")
    assert done.exit_code == 5
    data = document(done)
    assert (data["total"], data["billed"]) == (None, None)
    assert "0.00" not in invoke("run").stdout


def test_too_much_put_aside_is_told_where_it_matters(tmp_path: Path, invoke: Invoke) -> None:
    bill(tmp_path, f"{HEAD},EffectiveCost", f"{LINE},7", f"{LINE},seven")
    done = invoke("run", "--day", "2026-11-03", "-o", "json")
    assert done.exit_code == 3
    said = "1 of 2 rows read were put aside, more than quarantine_limit: 0.001"
    assert said in done.stderr
    (entry,) = (each for each in document(done)["coverage"] if each["source"] == "b")
    assert (entry["status"], entry["gaps"][0]["reason"]) == ("gaps", "quarantine_limit")
    assert said in entry["gaps"][0]["detail"]


def test_a_second_run_says_that_nothing_changed(tmp_path: Path, invoke: Invoke) -> None:
    bill(tmp_path, f"{HEAD},EffectiveCost", f"{LINE},7")
    config = tmp_path / "else where.yaml"
    (tmp_path / "runbill.yaml").rename(config)
    assert "Nothing was closed" not in invoke("--config", config, "run").stdout
    again = invoke("--config", config, "run").stdout
    assert "Already closed, nothing changed: 2026-11-03" in again
    (tmp_path / "bill.csv").unlink()
    lacking = invoke("--config", config, "run").stdout
    assert f"Nothing was closed: runbill --config '{config}' doctor says" in lacking
