"""What holds of the books of any day, on generated days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from attribution.day import DayCosts, attribute_day
from attribution.facts import DayFacts
from attribution.shards import Shards
from collector.simulate.facts import facts as simulated
from collector.simulate.options import WorldOptions
from collector.simulate.world import simulate
from ledger.money import to_units
from ledger.schema import COST_COLUMNS, COSTS
from ledger.settings import Settings
from tests.attribution.plans import POOLS, Plan, build, plans
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

LINE = ("x_Source", "x_LineId", "x_Part")


def tables(facts: DayFacts) -> dict[str, pl.DataFrame]:
    names = ("charges", "prices", "nodes", "workloads", "usage", "claims")
    return {name: getattr(facts, name) for name in names}


@settings(max_examples=examples(25), deadline=None)
@given(plan=plans())
def test_parts_add_up_and_none_turns_against_its_charge(
    new_day: type[DayBuilder], plan: Plan
) -> None:
    facts = build(new_day, plan)
    books = attribute_day(facts, POOLS)
    units = [to_units(pl.col(name)).alias(name) for name in COST_COLUMNS]
    charges = facts.charges.select(*LINE, *units).sort(LINE)
    billed = books.costs.filter(x_Basis="billed").select(*LINE, "target", *units)
    shares = (
        billed.group_by(LINE)
        .agg(
            pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
            for name in COST_COLUMNS
        )
        .sort(LINE)
    )
    assert_frame_equal(charges, shares)
    signs = billed.join(charges, on=LINE, suffix="_whole")
    for name in COST_COLUMNS:
        assert signs.filter(pl.col(name).sign() * pl.col(f"{name}_whole").sign() < 0).is_empty()
        known = books.daily[name].sum() or Decimal(0)
        assert known == (books.costs[name].sum() or Decimal(0))
    assert books.costs.filter(pl.col("gpu_seconds") < 0).is_empty()
    assert books.costs.select(COSTS.key).is_unique().all()


@settings(max_examples=examples(25), deadline=None)
@given(plan=plans(), seed=st.integers(0, 1000))
def test_order_and_copies_of_rows_do_not_matter(
    new_day: type[DayBuilder], plan: Plan, seed: int
) -> None:
    facts = build(new_day, plan)
    mixed = {
        name: pl.concat([frame, frame]).sample(fraction=1, shuffle=True, seed=seed)
        for name, frame in tables(facts).items()
    }
    shuffled = DayFacts.of_tables(facts.day, mixed)
    once, again = attribute_day(facts, POOLS), attribute_day(shuffled, POOLS)
    assert_frame_equal(once.costs, again.costs)
    assert_frame_equal(once.daily, again.daily)
    assert once.gaps == again.gaps


@settings(max_examples=examples(15), deadline=None)
@given(plan=plans(), at=st.floats(0.1, 0.9))
def test_cutting_intervals_does_not_matter(
    new_day: type[DayBuilder], plan: Plan, at: float
) -> None:
    """Rows of one state cut in two (two windows, a label that changed and changed back)."""
    facts = build(new_day, plan)
    length = pl.col("end") - pl.col("start")
    cut = (pl.col("start") + length * at).dt.round("1m").alias("cut")
    api = pl.col("interval_seconds").is_null()

    def halves(frame: pl.DataFrame) -> pl.DataFrame:
        rows = frame.filter(api).with_columns(cut)
        return pl.concat(
            [
                frame.filter(~api),
                rows.with_columns(end="cut").drop("cut"),
                rows.with_columns(start="cut").drop("cut"),
            ]
        ).filter(pl.col("start") < pl.col("end"))

    split = replace(facts, nodes=halves(facts.nodes), workloads=halves(facts.workloads))
    assert_frame_equal(attribute_day(facts, POOLS).costs, attribute_day(split, POOLS).costs)


def without(facts: DayFacts, lost: str) -> DayFacts:
    """The day without what one source or series tells."""
    sampled = pl.col("interval_seconds").is_not_null()
    requests = ("cpu_millicores", "memory_bytes", "gpus")
    given = tables(facts)
    if lost in ("workloads", "requests"):
        del given["claims"]  # what a pod asks for by a claim is its request too
    match lost:
        case "sampled pods":
            given["workloads"] = given["workloads"].filter(~sampled)
        case "requests":
            given["workloads"] = given["workloads"].with_columns(
                pl.lit(None, dtype=pl.Int64).alias(name) for name in requests
            )
        case _:
            del given[lost]
    return DayFacts.of_tables(facts.day, given)


@settings(max_examples=examples(25), deadline=None)
@given(plan=plans(), lost=st.sampled_from(["nodes", "workloads", "sampled pods", "requests"]))
def test_a_lost_source_never_lowers_the_bill(
    new_day: type[DayBuilder], plan: Plan, lost: str
) -> None:
    """What its money pays for is unattributed: not free, and not some other experiment's."""
    facts = build(new_day, replace(plan, hole=True))
    books = attribute_day(without(facts, lost), POOLS)
    billed = books.costs.filter(x_Basis="billed")
    assert (billed["EffectiveCost"].sum() or 0) == (facts.charges["EffectiveCost"].sum() or 0)
    before = attribute_day(facts, POOLS)
    if lost in ("nodes", "workloads"):
        # A credit that names no machine follows its account, whoever holds the machines.
        machines = books.costs.filter(pl.col("target") != "__shared__")
        assert set(machines["target"]) <= {"__unattributed__"}
    if lost == "sampled pods":
        assert books.costs.filter(target="__idle__").is_empty()
        assert set(named(books)) <= set(named(before))
    if lost == "requests":
        assert named(books) == []


def named(books: DayCosts) -> list[str]:
    """The experiments that pay for nodes."""
    return sorted(set(books.costs.filter(target="workload")["experiment"]))


@settings(max_examples=examples(15), deadline=None)
@given(plan=plans())
def test_lost_usage_never_lowers_the_bill_nor_keeps_a_card_active(
    new_day: type[DayBuilder], plan: Plan
) -> None:
    facts = build(new_day, plan)
    books = attribute_day(without(facts, "usage"), POOLS)
    billed = books.costs.filter(x_Basis="billed")
    assert (billed["EffectiveCost"].sum() or 0) == (facts.charges["EffectiveCost"].sum() or 0)
    cards = books.costs.filter(pl.col("phase") != "wait", target="workload", resource="gpu")
    assert cards["ActiveCost"].is_null().all()


@settings(max_examples=examples(15), deadline=None)
@given(plan=plans(), slots=st.integers(1, 40), shares=st.integers(1, 40))
def test_no_figure_depends_on_where_a_day_is_cut(
    new_day: type[DayBuilder], plan: Plan, slots: int, shares: int
) -> None:
    facts = build(new_day, plan)
    whole = attribute_day(facts, POOLS)
    lazily = replace(facts, usage=facts.usage.lazy())
    for shards in (Shards(slots=slots, shares=shares), Shards(slots=1, shares=1, threads=1)):
        parts = attribute_day(lazily, POOLS, shards)
        assert_frame_equal(parts.costs, whole.costs)
        assert_frame_equal(parts.daily, whole.daily)
        assert replace(parts, costs=whole.costs, daily=whole.daily) == whole


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_simulated_day_is_the_same_in_any_number_of_parts(parts: int) -> None:
    options = WorldOptions(days=1, end=date(2026, 11, 30))
    tables = simulated(simulate(options), options.end)
    facts = DayFacts.of_tables(options.end, tables)
    whole = attribute_day(facts, Settings(), Shards(slots=10**9, shares=10**9))
    size = -(-tables["usage"].height // parts), -(-whole.costs.height * 2 // parts)
    cut = attribute_day(facts, Settings(), Shards(*size))
    assert_frame_equal(cut.costs, whole.costs)
    assert_frame_equal(cut.daily, whole.daily)
