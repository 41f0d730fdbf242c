"""Questions: keys, filters that hide and never change, sharing that never moves the total."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import pytest

from attribution.query.answer import KEYS, Query, QueryResult, Sharing, matches, query
from attribution.run import attribute
from ledger.errors import UsageError
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

DAY = date(2026, 11, 30)
WINDOW = Window.of_day(DAY)
FAR = Window(WINDOW.start - timedelta(days=2), WINDOW.end)


@pytest.fixture(scope="module")
def books(
    tmp_path_factory: pytest.TempPathFactory,
    new_day: type[DayBuilder],
    write_day: Callable[..., None],
) -> Ledger:
    """Two nodes, three experiments, storage in two currencies, one day."""
    day = new_day().node(end=2).node("n2", end=2)
    for hour in (0, 1):
        day.line(f"n1-{hour}", hour=hour, ProviderName="AWS", ListCost=None)
        day.line(f"n2-{hour}", "i-n2", hour=hour, effective="16", ProviderName="AWS")
    day.pod("a", end=2, gpus=4, labels={"experiment": "a", "owner": "lin", "team": "x"})
    day.pod("b", end=1, gpus=2, labels={"experiment": "b", "user_team": "y"})
    day.pod("c", 1, 2, gpus=8, node="n2", labels={"experiment": "a", "owner": "mei"})
    day.use("a", "gpu_activity", 0, 0.5)
    for slot in range(8):
        for card in range(8):
            day.use("c", "gpu_activity", slot / 4, 0.25, device=str(card))
    day.line("s3", "s3", until=24, effective="3", Tags='{"user:team":"x"}')
    day.line("oss", "oss", until=24, effective="7", BillingCurrency="CNY")
    ledger = Ledger.open(str(tmp_path_factory.mktemp("books")), create=True)
    write_day(ledger, day)
    attribute(ledger, Settings(), [DAY], version="1")
    return ledger


def ask(ledger: Ledger, **fields: Any) -> QueryResult:  # noqa: ANN401
    given: dict[str, Any] = {"window": WINDOW, "currency": "USD"}
    for name in ("tags", "filters"):
        fields[name] = matches(fields.get(name, {}))
    if fields.pop("idle", "separate") == "share":
        fields["sharing"] = Sharing(idle=True)
    return query(ledger, Query(**given | fields))[0]


def costs(result: QueryResult) -> dict[Any, Decimal]:
    by = result.query.by
    return {
        row[by[0]] if len(by) == 1 else tuple(row[key] for key in by): row["cost"]
        for row in result.rows
    }


def test_rows_come_by_cost_and_reconcile_with_the_bill(books: Ledger) -> None:
    result = ask(books)
    assert list(costs(result).items()) == [
        ("a", Decimal(24)),
        ("__idle__", Decimal(22)),
        ("__unattributed__", Decimal(3)),
        ("b", Decimal(2)),
    ]
    assert (result.total, result.billed, result.hidden) == (Decimal(51), Decimal(51), Decimal(0))


def test_there_is_one_result_per_currency(books: Ledger) -> None:
    results = query(books, Query(WINDOW))
    assert [(r.currency, r.total) for r in results] == [("CNY", Decimal(7)), ("USD", Decimal(51))]


def test_hours_cards_basis_and_activity(books: Ledger) -> None:
    rows = {row["experiment"]: row for row in ask(books).rows}
    assert rows["a"]["gpu_hours"] == 16.0
    assert rows["b"]["gpu_hours"] == 2.0
    assert {row["basis"] for row in rows.values()} == {"billed"}
    assert {name: row["confidence"] for name, row in rows.items()} == {
        "a": "low",  # by a snapshot of the API alone
        "b": "low",
        "__idle__": "low",
        "__unattributed__": "high",
    }
    assert rows["__idle__"]["active_cost"] == 0
    assert rows["b"]["active_cost"] is None
    assert rows["b"]["active_cost_known_share"] == 0.0
    assert rows["a"]["active_cost"] is None
    rows = {row["owner"]: row for row in ask(books, by=("owner",)).rows}
    assert rows["mei"]["active_cost"] == 4


@pytest.fixture(scope="module")
def crumb(
    tmp_path_factory: pytest.TempPathFactory,
    new_day: type[DayBuilder],
    write_day: Callable[..., None],
) -> Callable[[str, str], Ledger]:
    """Books of a day of storage and of one node whose only pod is doubtful and not measured."""

    def books(node: str, rest: str) -> Ledger:
        day = new_day().node(end=1).line("node", effective=node, ServiceName="Everything")
        day.pod("short", end=1, gpus=8, labels={"experiment": "tiny"})
        day.line("s3", "s3", until=24, effective=rest, ServiceName="Everything")
        ledger = Ledger.open(str(tmp_path_factory.mktemp("crumb")), create=True)
        write_day(ledger, day)
        attribute(ledger, Settings(), [DAY], version="1")
        return ledger

    return books


@pytest.mark.parametrize(
    ("node", "rest", "confidence", "active", "share"),
    [
        ("0.23", "202361", "high", Decimal(202361), 1 - 0.23 / 202361.23),
        ("1", "99.000001", "high", Decimal("99.000001"), 0.99),
        ("1", "99", "low", Decimal(99), 0.99),
        ("1", "98.9", "low", None, 98.9 / 99.9),
        ("1", "-102361", "high", Decimal(-102361), 1 - 1 / 102362),
        ("1", "-1", "low", None, 0.5),
        ("1", "0", "low", None, 0.0),
    ],
)
def test_doubts_weigh_by_cost(
    crumb: Callable[[str, str], Ledger],
    node: str,
    rest: str,
    confidence: str,
    active: Decimal | None,
    share: float,
) -> None:
    (row,) = ask(crumb(node, rest), by=("service",)).rows
    assert (row["confidence"], row["active_cost"]) == (confidence, active)
    assert row["active_cost_known_share"] == pytest.approx(share)
    assert row["cost"] == Decimal(node) + Decimal(rest)


def test_unknown_shares_are_counted(books: Ledger) -> None:
    rows = {row["node"]: row for row in ask(books, by=("node",), cost="list").rows}
    assert (rows["n1"]["cost"], rows["n1"]["unknown"]) == (None, 3)
    assert (rows["n2"]["cost"], rows["n2"]["unknown"]) == (16, 0)
    assert (rows["__idle__"]["cost"], rows["__idle__"]["unknown"]) == (16, 2)


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_keeps_the_total(books: Ledger, key: str) -> None:
    result = ask(books, by=(key,))
    assert sum(costs(result).values()) == result.total == 51


def test_parts_of_a_day_add_up_to_it(books: Ledger) -> None:
    edges = [WINDOW.start, WINDOW.start + timedelta(hours=1), WINDOW.end]
    halves = [ask(books, window=Window(*pair)) for pair in pairwise(edges)]
    assert costs(halves[1]) == {"a": 20, "__idle__": 4}
    assert sum(half.total or 0 for half in halves) == 51
    by_hour = costs(ask(books, by=("hour",)))
    assert by_hour == {"2026-11-30T00:00:00Z": 27, "2026-11-30T01:00:00Z": 24}


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": {"owner": "lin"}},
        {"filters": {"experiment": "a*"}},
        {"filters": {"node": "n1"}},
        {"tags": {"team": "x"}},
        {"filters": {"label:team": "?"}},
    ],
)
@pytest.mark.parametrize("idle", ["separate", "share"])
def test_a_filter_hides_rows_and_changes_none(
    books: Ledger, fields: dict[str, dict[str, str]], idle: Literal["separate", "share"]
) -> None:
    by = ("experiment", "owner", "node", "label:team")
    every = ask(books, by=by, idle=idle)
    some = ask(books, by=by, idle=idle, **fields)
    assert 0 < len(some.rows) < len(every.rows)
    free = {key for key in costs(some) if "__idle__" in key}
    shown = {key: cost for key, cost in costs(some).items() if key not in free}
    assert shown.items() <= costs(every).items()
    assert all(costs(some)[key] <= costs(every)[key] for key in free)
    assert some.window_total == every.total == 51
    assert (some.total or 0) + (some.hidden or 0) == 51


def test_tags_are_globs_over_labels_tags_and_identity(books: Ledger) -> None:
    of_a = Decimal("4.8")  # of the idle of n1, which costs 6: a holds 8 of the other 10
    assert costs(ask(books, tags={"team": "x"})) == {
        "a": 8,
        "__unattributed__": 3,
        "__idle__": of_a,
    }
    assert costs(ask(books, tags={"owner": "m*"})) == {"a": 16, "__idle__": 16}
    assert costs(ask(books, tags={"team": "__idle__"})) == {"__idle__": 22}
    assert costs(ask(books, tags={"nosuch": "*x"})) == {}
    assert costs(ask(books, tags={"nosuch": "*"})) == {}
    assert costs(ask(books, tags={"team": "*"}))["__idle__"] == 6  # nobody on n2 has a team


def test_shared_idle_goes_to_the_holders_of_the_node(books: Ledger) -> None:
    shared = costs(ask(books, idle="share"))
    # n1: a 8, b 2, idle 6 in proportion; n2: c (experiment a) 16, its day's idle 16.
    assert shared == {"a": Decimal("44.8"), "b": Decimal("3.2"), "__unattributed__": Decimal(3)}


def test_what_is_asked_for_does_not_decide_who_gets_the_last_unit_of_idle(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Callable[..., None]
) -> None:
    day = new_day().node(end=1, gpus=4).line("l", effective="4.000000000003")
    for name in "abc":
        labels = {f"k{n}": f"{name}{n}" for n in range(12)}
        day.pod(name, end=1, gpus=1, labels={"experiment": name, **labels})
    write_day(ledger, day)
    attribute(ledger, Settings(), [DAY], version="1")
    asked: list[dict[str, Any]] = [{"filters": {f"label:k{n}": "*"}} for n in range(12)]
    asked += [{"tags": {"k1": "??"}}, {}]
    answers = [costs(ask(ledger, idle="share", **fields)) for fields in asked]
    assert len({tuple(sorted(found.items())) for found in answers}) == 1
    assert len(set(answers[0].values())) > 1


def test_no_grouping_changes_the_total_with_shared_idle(books: Ledger) -> None:
    for by in combinations(("experiment", "node", "resource", "phase", "day"), 2):
        assert ask(books, by=by, idle="share").total == 51


@pytest.mark.parametrize(
    ("by", "hint"),
    [
        ("experimnt", "experiment"),
        ("", "use "),
        ("label:", "label"),
        ("label: ", "label"),
    ],
)
def test_a_bad_key_is_refused_with_the_nearest_name(books: Ledger, by: str, hint: str) -> None:
    with pytest.raises(UsageError, match="not a grouping key") as caught:
        ask(books, by=(by,))
    assert hint in (caught.value.hint or "")


def test_an_empty_tag_is_refused(books: Ledger) -> None:
    with pytest.raises(UsageError):
        ask(books, tags={"": "x"})


def test_a_window_without_rows_is_an_empty_answer(books: Ledger) -> None:
    day = Window.of_day(datetime(2020, 1, 1, tzinfo=UTC).date())
    (result,) = query(books, Query(day))
    assert (result.rows, result.currency) == ([], None)
    assert (result.total, result.window_total, result.billed) == (None, None, None)


@pytest.mark.parametrize(("start", "end"), [(30, 0), (0, 30), (30, 30)])
def test_a_window_that_cuts_an_hour_is_refused(books: Ledger, start: int, end: int) -> None:
    """A part of an hour would be shown whole or not at all, and the total would not be its own."""
    cut = Window(
        WINDOW.start + timedelta(minutes=start), WINDOW.start + timedelta(hours=1, minutes=end)
    )
    with pytest.raises(UsageError, match="cuts an hour") as caught:
        query(books, Query(cut, by=("experiment",)))
    last = "02" if end else "01"
    assert caught.value.hint == f"ask for 2026-11-30T00:00:00Z..2026-11-30T{last}:00:00Z"
