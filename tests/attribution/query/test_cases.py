"""The cases of the field about sharing, filters and grouping, asked of a ledger with their rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from attribution.query.answer import Query, QueryResult, Share, Sharing, matches, query
from ledger.errors import UsageError
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.query_books import DAY, topology, write
from tests.field_cases import allocation_cases

WINDOW = Window.of_day(DAY)


@pytest.fixture(scope="module")
def cases(shared: Path) -> Mapping[str, Mapping[str, Any]]:
    return allocation_cases(shared)


@pytest.fixture(scope="module")
def books(
    cases: Mapping[str, Mapping[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Ledger:
    ledger = Ledger.open(str(tmp_path_factory.mktemp("s1")), create=True)
    return write(ledger, topology(cases["S1"]["given"]))


def asked(when: Mapping[str, Any]) -> Query:
    """The question of a case."""
    share = when.get("share")
    policies = (Share(matches(share["match"]), share["split"]),) if share else ()
    return Query(
        WINDOW,
        by=tuple(when.get("by", ())),
        filters=matches(when.get("filter", {})),
        sharing=Sharing(
            idle=when.get("idle") == "shared",
            pool=when.get("idle_pool", "node"),
            policies=policies,
            overhead=Decimal(when.get("overhead_per_hour", 0)),
            overhead_split=when.get("overhead_split", "weighted"),
        ),
        idle_rows="pool" if when.get("idle_rows") == "per_pool" else "keys",
    )


def named(result: QueryResult) -> dict[str, Decimal]:
    """Costs by name of the row: one name where all keys have the same special one."""
    found = {}
    for row in result.rows:
        values = [row[key] for key in result.query.by]
        alike = len(set(values)) == 1 and values[0] == "__idle__"
        found[values[0] if alike else "/".join(values)] = row["cost"]
    return found


def answer(books: Ledger, request: Query) -> QueryResult:
    (found,) = query(books, request)
    return found


def test_the_whole_topology(cases: Mapping[str, Mapping[str, Any]], books: Ledger) -> None:
    case = cases["S1"]
    assert len(case["given"]["containers"]) == case["expect"]["containers"]
    rows = named(answer(books, Query(WINDOW, by=("target",))))
    expect, tolerance = case["expect"], case["tolerance"]
    assert float(rows["workload"]) == pytest.approx(expect["active"], abs=tolerance)
    assert float(rows["__idle__"]) == pytest.approx(expect["idle"], abs=tolerance)
    total = answer(books, Query(WINDOW, by=())).total
    assert float(total or 0) == pytest.approx(expect["total"], abs=tolerance)
    assert (WINDOW.end - WINDOW.start).total_seconds() == expect["minutes"] * 60


@pytest.mark.parametrize(
    "number",
    [
        "S1-1a",
        "S1-1b",
        "S1-1e",
        "S1-1h",
        "S1-1j",
        "S1-2d",
        "S1-3a",
        "S1-4a",
        "S1-4b",
        "S1-5a",
        "S1-5b",
        "S1-6a",
        "S1-6b",
        "B33-b",
    ],
)
def test_a_case_of_grouping_and_sharing(
    cases: Mapping[str, Mapping[str, Any]], books: Ledger, number: str
) -> None:
    case = cases[number]
    when = dict(case["when"])
    when["by"] = ["kind" if key == "controllerKind" else key for key in when["by"]]
    result = answer(books, asked(when))
    expect = {
        name: pytest.approx(cost, abs=case["tolerance"])
        for name, cost in case["expect"]["rows"].items()
    }
    assert {name: float(cost) for name, cost in named(result).items()} == expect
    assert float(result.total or 0) == pytest.approx(case["expect"]["total"], abs=case["tolerance"])


def test_a_filtered_row_is_the_unfiltered_one(
    cases: Mapping[str, Mapping[str, Any]], books: Ledger
) -> None:
    whole, filtered = (named(answer(books, asked(cases[n]["when"]))) for n in ("S1-3a", "S1-6b"))
    assert filtered.items() <= whole.items()


def test_no_sharing_option_changes_the_total(
    cases: Mapping[str, Mapping[str, Any]], books: Ledger
) -> None:
    case = cases["B17"]
    options = case["given"]["options"]
    combinations = list(product(*options.values()))
    assert len(combinations) == case["expect"]["combinations"]
    for chosen in combinations:
        when = dict(zip(options, chosen, strict=True))
        result = answer(books, asked({"by": case["when"]["by"], **when}))
        name = "with" if when["overhead_per_hour"] else "without"
        expected = pytest.approx(case["expect"][f"total_{name}_overhead"], abs=case["tolerance"])
        assert float(result.total or 0) == expected, when
        assert sum(named(result).values()) == result.total == result.window_total


def test_an_empty_label_key_is_refused(
    cases: Mapping[str, Mapping[str, Any]], books: Ledger
) -> None:
    case = cases["B33-a"]
    with pytest.raises(UsageError) as caught:
        answer(books, asked(case["when"]))
    assert caught.value.exit_code == case["expect"]["exit_code"]
