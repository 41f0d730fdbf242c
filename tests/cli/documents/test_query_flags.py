"""``runbill query``: what its flags mean, through the program."""

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

SCHEMA = Path(cli.__path__[0]).parent / "docs/schemas/query.json"
Invoke = Callable[..., Result]
DAY = "2026-11-03..2026-11-04"


def line(day: int, cost: str, *, currency: str = "USD", **tags: str) -> dict[str, str]:
    return {
        "BillingCurrency": currency,
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ChargeCategory": "Tax" if tags.pop("tax", "") else "Usage",
        "ServiceName": "Storage",
        "ChargePeriodStart": f"2026-11-{day:02}T00:00:00Z",
        "ChargePeriodEnd": f"2026-11-{day + 1:02}T00:00:00Z",
        "Tags": json.dumps(tags),
    }


@pytest.fixture
def books(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Two closed days: the first without b, the second without c."""
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 11, 4, 6, tzinfo=UTC))
    lines = [
        line(2, "4", experiment="a", owner="lin+mei"),
        line(2, "1", experiment="c", owner="mei"),
        line(3, "6", experiment="a", owner="lin+mei"),
        line(3, "2", experiment="b", owner="mei"),
        line(3, "0.8", tax="yes"),
    ]
    with (tmp_path / "bill.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    (tmp_path / "runbill.yaml").write_text(
        "billing: [{name: b, path: bill.csv}]\n"
        "sharing: [{match: {line_type: tax}, split: weighted}]\n"
    )
    done = invoke("run", "--window", "2026-11-02..2026-11-04", "-o", "json")
    assert done.exit_code == 0, done.stderr
    return invoke


def ask(invoke: Invoke, *flags: str) -> dict[str, Any]:
    done = invoke("query", "--window", DAY, *flags, "-o", "json")
    assert done.exit_code == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    return data


def costs(data: dict[str, Any]) -> dict[str, Decimal]:
    key = data["by"][0]
    return {row[key]: Decimal(row["cost"]) for row in data["rows"]}


def test_the_settings_share_and_flags_override(books: Invoke) -> None:
    data = ask(books)
    assert costs(data) == {"a": Decimal("6.6"), "b": Decimal("2.2")}
    (policy,) = data["sharing"]
    assert (policy["match"], policy["keys"]) == ({"line_type": "tax"}, 2)
    assert Decimal(policy["amount"]) == Decimal("0.8")
    apart = {"a": 6, "b": 2, "__unattributed__": Decimal("0.8")}
    assert costs(ask(books, "--no-sharing")) == apart
    evenly = {"a": Decimal("6.4"), "b": Decimal("2.4")}
    assert costs(ask(books, "--share", "line_type=tax:even")) == evenly
    assert costs(ask(books, "--share", "line_type=tax", "--share-split", "even")) == evenly
    assert costs(ask(books, "--share", "experiment=nobody")) == apart


def test_overhead_adds_itself_once(books: Invoke) -> None:
    data = ask(books, "--overhead", "0.5", "--overhead-split", "even", "--no-sharing")
    assert costs(data) == {"a": 12, "b": 8, "__unattributed__": Decimal("0.8")}
    assert Decimal(data["overhead"]["amount"]) == 12
    assert Decimal(data["total"]) == Decimal("20.8")
    assert Decimal(data["billed"]) == Decimal("8.8")


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["--tag", "owner!=mei"], {"a", "__unattributed__"}),
        (["--tag", "owner=lin+mei"], {"a"}),
        (["--tag", "owner=lin mei"], set()),
        (["--tag", "owner=l*", "--tag", "owner=mei"], {"a", "b"}),
        (["--tag", "owner!=l*", "--tag", "owner!=mei"], {"__unattributed__"}),
        (["--filter", "experiment!=a", "--filter", "line_type=usage"], {"b"}),
    ],
)
def test_conditions(books: Invoke, flags: list[str], kept: set[str]) -> None:
    data = ask(books, "--no-sharing", *flags)
    assert costs(data).keys() == kept
    assert Decimal(data["total"]) + Decimal(data["hidden"]) == Decimal("8.8")


def test_the_window_before(books: Invoke) -> None:
    data = ask(books, "--compare", "previous", "--no-sharing")
    rows = {row["experiment"]: row for row in data["rows"]}
    assert {name: row["presence"] for name, row in rows.items()} == {
        "a": "both",
        "b": "new",
        "c": "gone",
        "__unattributed__": "new",
    }
    figures = [Decimal(rows["a"][name]) for name in ("cost", "previous", "difference")]
    assert figures == [Decimal(6), Decimal(4), Decimal(2)]
    assert [rows[name]["change"] for name in "abc"] == [0.5, None, -1.0]
    assert Decimal(rows["b"]["previous"]) == 0
    assert Decimal(rows["c"]["cost"]) == 0
    assert data["compare"]["closed_days"] == 1
    assert Decimal(data["compare"]["total"]) == 5
    days = ask(books, "--compare", "previous", "--by", "day")
    assert [row["presence"] for row in days["rows"]] == ["both"]


def test_nobody_looked_at_the_window_before(books: Invoke) -> None:
    done = books("query", "--compare", "previous", "-o", "json")
    data = json.loads(done.stdout)
    assert (data["compare"]["closed_days"], data["compare"]["total"]) == (0, None)
    assert {(row["previous"], row["presence"]) for row in data["rows"]} == {(None, None)}


def test_the_largest_and_the_others(books: Invoke) -> None:
    data = ask(books, "--top", "1", "--no-sharing")
    assert costs(data) == {"a": 6, "other": 2, "__unattributed__": Decimal("0.8")}
    assert data["folded"] == 1
    both = ask(books, "--top", "1", "--no-sharing", "--compare", "previous")
    rows = {row["experiment"]: row for row in both["rows"]}
    assert Decimal(rows["other"]["previous"]) == 1
    assert both["folded"] == 2


@pytest.mark.parametrize(
    "flags",
    [
        ["--by", "label:"],
        ["--by", "tag:"],
        ["--by", "annotation: "],
        ["--by", ""],
        ["--share", "nosuch=1"],
        ["--overhead", "much"],
        ["--overhead", "-1"],
        ["--overhead", ""],
        ["--currency", "dollars"],
        ["--currency", ""],
        ["--top", "0"],
    ],
)
def test_what_cannot_be_meant_is_refused(books: Invoke, flags: list[str]) -> None:
    done = books("query", *flags)
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_currency_of_a_window_of_nothing_is_written_as_a_code(books: Invoke) -> None:
    assert ask(books, "--currency", "gbp", "--window", "2026-10-01")["currency"] == "GBP"


def test_quotas_are_said_to_be_looked_at(books: Invoke) -> None:
    data = ask(books, "--quota")
    assert (data["quota"], ask(books)["quota"]) == (True, False)
    assert costs(data) == costs(ask(books))
    assert "what quotas reserve" in books("query", "--quota").stdout


def test_the_keys_of_sharing_are_checked_with_the_settings(tmp_path: Path, invoke: Invoke) -> None:
    settings = tmp_path / "runbill.yaml"
    settings.write_text("sharing: [{match: {line_type!: tax}}, {match: {nosuch: a}}]\n")
    done = invoke("config", "validate")
    assert done.exit_code == 2
    assert "sharing.1.match: 'nosuch' is not a grouping key" in done.stderr
    settings.write_text("sharing: [{match: {line_type!: tax}}]\n")
    assert invoke("config", "validate").exit_code == 0


def test_people_see_what_was_moved(books: Invoke) -> None:
    text = books("query", "--window", DAY, "--overhead", "1", "--compare", "previous").stdout
    assert "line_type=tax, by own cost over 2 keys" in text
    assert "Overhead" in text
    assert "Before" in text
