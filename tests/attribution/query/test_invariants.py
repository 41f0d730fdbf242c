"""Whatever is shared, filtered or grouped: no total changes, and no filter changes a row."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attribution.query.answer import Cost, Match, Query, Share, Sharing, matches, query
from attribution.query.question import Pool
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.query_books import DAY, days_before, row, write
from tests.effort import examples

WINDOW = Window.of_days(days_before(1), DAY)
ALPHABET = ("a", "b", "c")
KEYS = ("namespace", "cluster", "node", "day", "resource", "label:team", "experiment", "line_type")
COSTS = st.one_of(
    st.integers(0, 10**14),
    st.integers(-(10**13), 0),
    st.sampled_from([1, 2, 3, 7, 10**12]),
).map(lambda units: Decimal(units).scaleb(-12))


@st.composite
def a_row(draw: st.DrawFn) -> dict[str, Any]:
    """A workload, a charge by its own tags, or something special."""
    pick = st.sampled_from(ALPHABET)
    target = draw(
        st.sampled_from(
            ["workload"] * 4 + ["__idle__"] * 2 + ["charge", "__shared__", "__unattributed__"]
        )
    )
    fields: dict[str, Any] = {
        "day": days_before(draw(st.integers(0, 1))),
        "target": target,
        "x_LineType": draw(st.sampled_from(["usage", "tax"])),
        "x_Basis": draw(st.sampled_from(["billed", "estimated"])),
    }
    if target in ("workload", "__idle__", "__unattributed__"):
        fields |= {"cluster": draw(pick), "node": draw(pick)}
        fields["resource"] = draw(st.sampled_from(["cpu", "gpu"]))
    if target in ("workload", "charge"):
        named = draw(pick)
        fields |= {"namespace": named if target == "workload" else None, "experiment": draw(pick)}
        fields["tags"] = json.dumps({"team": draw(pick)} if draw(st.booleans()) else {})
    return row(draw(COSTS), **fields)


@st.composite
def sharing(draw: st.DrawFn) -> Sharing:
    """Any choice."""
    policies = st.builds(
        lambda key, glob, split: Share((Match(key, glob),), split),
        st.sampled_from(["namespace", "target", "line_type", "experiment", "cluster"]),
        st.sampled_from(["a", "b", "tax", "__shared__", "__idle__", "__unattributed__", "*"]),
        st.sampled_from(["even", "weighted", "none"]),
    )
    return Sharing(
        idle=draw(st.booleans()),
        pool=draw(st.sampled_from(["node", "cluster"])),
        policies=tuple(draw(st.lists(policies, max_size=3))),
        overhead=draw(st.sampled_from([Decimal(0), Decimal(7), Decimal("0.000000000001")])),
        overhead_split=draw(st.sampled_from(["even", "weighted"])),
    )


BY = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True).map(tuple)
ROWS = st.lists(a_row(), min_size=1, max_size=14)


def books(rows: Sequence[dict[str, Any]], folder: str) -> Ledger:
    return write(Ledger.open(str(Path(folder) / "ledger"), create=True), rows)


def answer(ledger: Ledger, request: Query) -> tuple[dict[tuple[str, ...], Any], Any]:
    (result,) = query(ledger, request)
    return {tuple(r[key] for key in request.by): r["cost"] for r in result.rows}, result


@given(ROWS, BY, sharing(), st.sampled_from(["effective", "billed", "list"]))
@settings(max_examples=examples(25))
def test_no_choice_changes_the_total(
    rows: list[dict[str, Any]], by: tuple[str, ...], how: Sharing, cost: Cost
) -> None:
    own = sum((r["EffectiveCost"] for r in rows), Decimal(0))
    with tempfile.TemporaryDirectory() as folder:
        ledger = books(rows, folder)
        found, result = answer(ledger, Query(WINDOW, by, cost=cost, sharing=how))
        assert result.total == result.window_total == own + 48 * how.overhead
        assert sum(found.values()) == result.total
        assert result.billed == own
        top, folded = answer(ledger, Query(WINDOW, by, cost=cost, sharing=how, top=1))
        assert sum(top.values()) == result.total
        assert folded.folded == (len(found) - len(top) + 1 if folded.folded else 0)


@given(ROWS, BY, sharing(), st.data())
@settings(max_examples=examples(25))
def test_a_filter_changes_no_row(
    rows: list[dict[str, Any]], by: tuple[str, ...], how: Sharing, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(by))
    glob = data.draw(st.sampled_from(["a", "b*", "*", "tax", "cpu", "2026-11-30", "__shared__"]))
    negated = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        ledger = books(rows, folder)
        request = Query(WINDOW, by, sharing=how)
        whole, every = answer(ledger, request)
        kept, some = answer(ledger, replace(request, filters=(Match(key, glob, negated),)))
        other, rest = answer(ledger, replace(request, filters=(Match(key, glob, not negated),)))
        assert some.window_total == rest.window_total == every.total
        assert abs((some.total + rest.total) - every.total) <= Decimal(len(rows)).scaleb(-12)
        for name, cost in {**kept, **other}.items():
            if not any("__idle__" in value for value in name):
                assert whole[name] == cost


@given(ROWS, BY, sharing(), st.randoms())
@settings(max_examples=examples(10))
def test_the_order_of_rows_is_of_no_meaning(
    rows: list[dict[str, Any]], by: tuple[str, ...], how: Sharing, random: Random
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        request = Query(WINDOW, by, sharing=how)
        (first,), (second,) = query(books(rows, one), request), query(books(shuffled, two), request)
        assert first.rows == second.rows


@pytest.mark.parametrize("pool", ["node", "cluster"])
@pytest.mark.parametrize("key", ["namespace", "label:team"])
def test_hours_add_up_to_their_day_under_overhead(tmp_path: Path, pool: Pool, key: str) -> None:
    ledger = books(
        [row(3, namespace="a", tags='{"team":"x"}'), row(4, day=days_before(1))], str(tmp_path)
    )
    how = Sharing(idle=True, pool=pool, overhead=Decimal(1))
    found, result = answer(ledger, Query(WINDOW, ("day", key), sharing=how))
    days = {
        day: sum(c for k, c in found.items() if k[0] == day) for day in ("2026-11-29", "2026-11-30")
    }
    assert days == {"2026-11-29": 28, "2026-11-30": 27}
    assert result.overhead == 48


def test_overhead_that_nobody_can_take_stays_in_its_day(tmp_path: Path) -> None:
    ledger = books(
        [row(1, namespace="a"), row(2, target="__idle__", day=days_before(1))], str(tmp_path)
    )
    request = Query(WINDOW, ("day",), sharing=Sharing(overhead=Decimal(1)))
    whole, _ = answer(ledger, request)
    assert whole == {("2026-11-29",): 26, ("2026-11-30",): 25}
    for day in ("2026-11-29", "2026-11-30"):
        found, _ = answer(ledger, replace(request, filters=(Match("day", day),)))
        assert found == {(day,): whole[day,]}


@pytest.mark.parametrize(("own", "got"), [((10, -30), (14, -30)), ((10, -10), (14, -10))])
def test_a_credit_above_its_usage_takes_no_part(
    tmp_path: Path, own: tuple[int, int], got: tuple[int, int]
) -> None:
    rows = [row(cost, namespace=name) for cost, name in zip(own, "ab", strict=True)]
    ledger = books([*rows, row(4, target="__shared__")], str(tmp_path))
    how = Sharing(policies=(Share((Match("target", "__shared__"),)),))
    found, _ = answer(ledger, Query(WINDOW, ("namespace",), sharing=how))
    assert found == {("a",): got[0], ("b",): got[1]}


def test_where_all_are_credits_they_take_it(tmp_path: Path) -> None:
    rows = [row(-1, namespace="a"), row(-3, namespace="b"), row(-4, target="__shared__")]
    how = Sharing(policies=(Share((Match("target", "__shared__"),)),))
    request = Query(WINDOW, ("namespace",), sharing=how)
    found, _ = answer(books(rows, str(tmp_path)), request)
    assert found == {("a",): -2, ("b",): -6}


def test_matches_reads_flags() -> None:
    assert matches([("owner!", "lin"), ("a", "b=c+!")]) == (
        Match("owner", "lin", negated=True),
        Match("a", "b=c+!"),
    )
