"""What holds of reading the books of any day: windows, labels, active cost, corrections."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from attribution.day import attribute_day
from attribution.query.answer import Query, query
from attribution.run import attribute, stale_days
from ledger.schema import COST_COLUMNS, COSTS
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.conftest import DAY
from tests.attribution.plans import POOLS, Plan, builder, plans
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

WINDOW = Window.of_day(DAY)
UNIT = Decimal("1e-12")
IDENTITY = (
    "BillingCurrency",
    "cluster",
    "node",
    "resource",
    "target",
    "reason",
    "experiment",
    "phase",
)
Write = Callable[..., None]
Figures = dict[tuple[str, str, str], tuple[Decimal, float]]


def close(ledger: Ledger, day: DayBuilder, write_day: Write, digest: str = "d1") -> pl.DataFrame:
    """The costs of a day that is written and closed."""
    write_day(ledger, day, digest=digest)
    attribute(ledger, POOLS, stale_days(ledger, POOLS), version="test")
    return ledger.scan(COSTS, WINDOW).sort(COSTS.key, nulls_last=True).collect()


def figures(ledger: Ledger, window: Window) -> Figures:
    """Cost and GPU-hours by currency, experiment and phase."""
    found: Figures = {}
    for result in query(ledger, Query(window, by=("experiment", "phase"))):
        for row in result.rows:
            key = (str(result.currency), str(row["experiment"]), str(row["phase"]))
            found[key] = (row["cost"] or Decimal(0), row["gpu_hours"])
    return found


@settings(max_examples=examples(10), deadline=None)
@given(plan=plans(), cuts=st.sets(st.integers(1, 23), max_size=6))
def test_windows_of_a_day_add_up_to_it(
    new_day: type[DayBuilder], write_day: Write, plan: Plan, cuts: set[int]
) -> None:
    edges = [WINDOW.start + timedelta(hours=hour) for hour in (0, *sorted(cuts), 24)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(folder, create=True)
        close(ledger, builder(new_day, plan), write_day)
        whole = figures(ledger, WINDOW)
        parts: dict[tuple[str, str, str], list[Any]] = {key: [Decimal(0), 0.0] for key in whole}
        for start, end in pairwise(edges):
            for key, (cost, hours) in figures(ledger, Window(start, end)).items():
                parts[key][0] += cost
                parts[key][1] += hours
    for key, (cost, hours) in whole.items():
        assert parts[key][0] == cost
        assert abs(parts[key][1] - hours) < 1e-9


@settings(max_examples=examples(20), deadline=None)
@given(plan=plans(), at=st.floats(0.1, 0.9))
def test_a_label_that_changes_moves_nothing_between_other_keys(
    new_day: type[DayBuilder], plan: Plan, at: float
) -> None:
    """The life is cut at the change; by any key but that label it is one."""
    facts = builder(new_day, plan).facts()
    length = pl.col("end") - pl.col("start")
    cut = (pl.col("start") + length * at).dt.round("1m").alias("cut")
    rows = facts.workloads.with_columns(cut)
    after = pl.col("labels").str.replace("{", '{"step":"two",', literal=True)
    changed = pl.concat(
        [
            rows.with_columns(end="cut").drop("cut"),
            rows.with_columns(after.str.replace(",}", "}", literal=True), start="cut").drop("cut"),
        ]
    ).filter(pl.col("start") < pl.col("end"))
    keys = ("x_LineId", "BillingCurrency", "target", "reason", "uid", "resource", "experiment")

    def sums(workloads: pl.DataFrame) -> pl.DataFrame:
        costs = attribute_day(replace(facts, workloads=workloads), POOLS).costs
        named = costs.with_columns(pl.col("x_LineId").fill_null(""))
        return named.group_by(keys).agg(pl.col(COST_COLUMNS).sum()).sort(keys)

    assert_frame_equal(sums(facts.workloads), sums(changed))


@settings(max_examples=examples(25), deadline=None)
@given(plan=plans())
def test_what_was_active_is_a_part_of_what_was_paid(new_day: type[DayBuilder], plan: Plan) -> None:
    """Never more, never against it, and not known stays so in the sum of a day."""
    books = attribute_day(builder(new_day, plan).facts(), POOLS)
    paid, active = pl.col("EffectiveCost"), pl.col("ActiveCost")
    both = books.costs.filter(active.is_not_null())
    assert both.filter(paid.is_null() & (active != 0)).is_empty()
    assert both.filter(active.abs() > paid.abs()).is_empty()
    assert both.filter(active.sign() * paid.sign() < 0).is_empty()
    # What two lists of columns tell apart of a day: a row of the day and the shares that are in it.
    keys = [name for name in books.daily.columns if name in IDENTITY]
    shares = books.costs.group_by(keys).agg(dark=active.is_null().any())
    days = books.daily.group_by(keys).agg(dark=active.is_null().any())
    assert_frame_equal(shares, days, check_row_order=False)


@settings(max_examples=examples(8), deadline=None)
@given(plan=plans(), factor=st.sampled_from(["0", "-1", "1.1"]))
def test_a_bill_restated_and_restated_back_gives_the_first_rows(
    new_day: type[DayBuilder], write_day: Write, plan: Plan, factor: str
) -> None:
    right = builder(new_day, plan)
    other = [
        {
            name: None if line[name] is None else (line[name] * Decimal(factor)).quantize(UNIT)
            for name in COST_COLUMNS
        }
        for line in plan.lines
    ]
    lines = [line | costs for line, costs in zip(plan.lines, other, strict=True)]
    wrong = builder(new_day, replace(plan, lines=lines))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(folder, create=True)
        first = close(ledger, right, write_day, "d1")
        close(ledger, wrong, write_day, "d2")
        again = close(ledger, right, write_day, "d1")
    assert_frame_equal(first, again)
