"""A bill in two currencies: one JSON text, and a currency that vanishes stays in the report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from jsonschema import Draft202012Validator

import cli
from cli.documents.report import Figures, experiment_rows
from ledger.window import Window

SCHEMAS = Path(cli.__path__[0]).parent / "docs/schemas"
Invoke = Callable[..., Result]


def line(currency: str, cost: str) -> dict[str, str]:
    return {
        "BillingCurrency": currency,
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ChargeCategory": "Usage",
        "ChargePeriodStart": "2026-11-03T00:00:00Z",
        "ChargePeriodEnd": "2026-11-04T00:00:00Z",
    }


def write(folder: Path, *lines: dict[str, str]) -> None:
    with (folder / "bill.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


@pytest.fixture
def books(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed day with 10 USD and 20 CNY."""
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 11, 4, 6, tzinfo=UTC))
    write(tmp_path, line("USD", "10"), line("CNY", "20"))
    (tmp_path / "runbill.yaml").write_text("billing: [{name: b, path: bill.csv}]\n")
    documents(invoke, "run")
    return tmp_path


def documents(invoke: Invoke, *args: str) -> list[dict[str, Any]]:
    done = invoke(*args, "-o", "json")
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    found: list[dict[str, Any]] = data if isinstance(data, list) else [data]
    for each in found:
        schema = json.loads((SCHEMAS / f"{each['kind']}.json").read_text())
        Draft202012Validator(schema).validate(each)
    return found


@pytest.mark.parametrize("command", ["query", "report", "run"])
def test_two_currencies_are_one_json_text(books: Path, invoke: Invoke, command: str) -> None:
    found = documents(invoke, command)
    assert [(each["currency"], Decimal(each["total"])) for each in found] == [
        ("CNY", Decimal(20)),
        ("USD", Decimal(10)),
    ]


def test_one_currency_that_was_asked_for_is_an_object(books: Path, invoke: Invoke) -> None:
    assert isinstance(json.loads(invoke("query", "--currency", "CNY", "-o", "json").stdout), dict)


def test_a_currency_that_vanishes_stays_in_the_report(books: Path, invoke: Invoke) -> None:
    write(books, line("USD", "10"))
    for command in ("run", "report"):
        gone, kept = documents(invoke, command)
        assert (gone["currency"], Decimal(gone["total"]), kept["currency"]) == (
            "CNY",
            Decimal(0),
            "USD",
        )
        (change,) = gone["restatements"]
        assert (Decimal(change["old"]), change["new"]) == (Decimal(20), None)
        assert kept["restatements"] == []


def test_money_of_nobody_is_shown_by_reason(books: Path, invoke: Invoke) -> None:
    for each in documents(invoke, "report"):
        (row,) = each["unattributed"]
        assert (row["reason"], row["cost"]) == ("no_rule", each["total"])
    assert "no_rule" in invoke("report").stdout
    assert "no_rule" in invoke("report", "-o", "html").stdout


def test_active_cost_is_unknown_as_soon_as_a_part_is() -> None:
    def row(phase: str, active: str | None) -> dict[str, Any]:
        return {
            "experiment": "a",
            "phase": phase,
            "cost": Decimal(2),
            "active_cost": None if active is None else Decimal(active),
            "gpu_hours": 1.0,
            "basis": "billed",
            "confidence": "high",
        }

    def active(*rows: dict[str, Any]) -> Decimal | None:
        window = Window.of_day(datetime(2026, 11, 3, tzinfo=UTC).date())
        figures = Figures(window, "USD", Decimal(4), Decimal(4), rows, (), (), (), (), ())
        found: Decimal | None = experiment_rows(figures)[0]["active_cost"]
        return found

    known, dark = row("rollout", "1.5"), row("update", None)
    assert active(known, known) == 3
    assert active(known, dark) is None
    assert active(dark, known) is None


def test_a_currency_is_found_in_any_case_and_an_unknown_one_refused(
    books: Path, invoke: Invoke
) -> None:
    (found,) = documents(invoke, "query", "--currency", "usd")
    assert (found["currency"], Decimal(found["total"])) == ("USD", Decimal(10))
    done = invoke("query", "--currency", "EUR")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "CNY, USD" in done.stderr


def test_the_report_says_which_months_are_final(books: Path, invoke: Invoke) -> None:
    found = documents(invoke, "report")
    months = [month for each in found for month in each["billing_months"]]
    assert [(month["month"], month["currency"], month["state"]) for month in months] == [
        ("2026-11", "CNY", "open"),
        ("2026-11", "USD", "open"),
    ]
    shown = invoke("report", "-o", "markdown")
    assert "November 2026: open, provisional" in shown.stdout


def test_a_corrected_bill_shows_old_new_and_difference(books: Path, invoke: Invoke) -> None:
    write(books, line("USD", "12.5"), line("CNY", "20"))
    documents(invoke, "run")
    [usd] = [each for each in documents(invoke, "report") if each["currency"] == "USD"]
    [change] = usd["restatements"]
    figures = [Decimal(change[name]) for name in ("old", "new", "difference")]
    assert figures == [Decimal(10), Decimal("12.5"), Decimal("2.5")]
