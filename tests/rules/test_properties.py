"""What holds for every world: removal of evidence, sums, order of rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.schema import COSTS
from ledger.window import Window
from rules.fingerprint import fingerprint
from rules.node_money import per_month
from rules.overlap import count_once
from rules.rule import Claim, Finding, Money, Remedy, Stage

if TYPE_CHECKING:
    from tests.rules.conftest import World

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
slow = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

block = st.fixed_dictionaries(
    {
        "activity": st.sampled_from([0.0, 0.0, 0.0, 0.7, None]),
        "pod": st.booleans(),
        "api": st.sampled_from([True, True, False]),
        "sampled": st.sampled_from([True, True, False]),
        "paid": st.sampled_from([True, True, True, False]),
    }
)
"""What each source says of a node for some hours."""
weeks = st.lists(block, min_size=2, max_size=5).flatmap(
    lambda kinds: st.lists(st.sampled_from(kinds), min_size=28, max_size=28)
)
"""A week as 28 blocks of six hours, of a few kinds, so that stretches of one kind occur."""


def build(world: World, blocks: list[dict[str, object]], second: list[int]) -> World:
    """Two weeks of these blocks; ``second`` names those that are busy in the second week."""
    world.rows = {name: [] for name in world.rows}
    world.node("other", source="prometheus/c").pod("sys", "other", 0)
    for week in (0, 1):
        for number, each in enumerate(blocks):
            start = START + (week * 168 + number * 6) * HOUR
            span = Window(start, start + 6 * HOUR)
            created = START - timedelta(days=9)
            if each["api"]:
                world.node(span=span, created=created)
            if each["sampled"]:
                world.node(span=span, source="prometheus/c", created=created)
            if each["pod"]:
                world.pod(span=span)
            if each["activity"] is not None:
                busy = week == 1 and number in second
                world.activity(
                    span,
                    0.9 if busy else float(str(each["activity"])),
                    devices=8,
                    step=timedelta(minutes=15),
                )
            if each["paid"]:
                world.cost("7", span=span)
    return world


def statuses(world: World, frames: dict[str, pl.DataFrame]) -> dict[str | None, str]:
    return {each.resource: each.status for each in world.judge(frames=frames).answers}


@slow
@given(
    weeks,
    st.lists(st.integers(0, 27), max_size=6),
    st.sampled_from(["kubernetes/c", "prometheus/c", "usage", "workloads", "costs"]),
)
def test_taking_a_source_away_never_turns_a_finding_into_clean(
    world: World, blocks: list[dict[str, object]], second: list[int], source: str
) -> None:
    frames = build(world, blocks, second).frames()
    before = statuses(world, frames)
    if source in frames:
        less = {**frames, source: frames[source].clear()}
    else:
        less = {
            name: frame.filter(pl.col("source") != source) if "source" in frame.columns else frame
            for name, frame in frames.items()
        }
    after = statuses(world, less)
    turned = [
        name
        for name, status in after.items()
        if status == "clean" and before.get(name) == "finding"
    ]
    assert turned == []


@slow
@given(weeks, st.lists(st.integers(0, 27), max_size=6))
def test_a_verdict_is_whole_and_does_not_depend_on_the_order_of_rows(
    world: World, blocks: list[dict[str, object]], second: list[int]
) -> None:
    frames = build(world, blocks, second).frames()
    verdict = world.judge(frames=frames)
    shuffled = {
        name: frame.sample(fraction=1, shuffle=True, seed=3) for name, frame in frames.items()
    }
    assert world.judge(frames=shuffled) == verdict
    found = {each.resource for each in verdict.answers if each.status == "finding"}
    assert {each.resource for each in verdict.findings} == found
    assert all((each.reason is None) == (each.status != "unknown") for each in verdict.answers)
    total = sum((row["EffectiveCost"] for row in world.rows["costs"]), Decimal(0))
    for each in verdict.findings:
        assert each.money.spent is None or 0 <= each.money.spent <= total


amounts = st.integers(0, 10**18)


@given(
    st.dictionaries(st.dates(START.date(), START.date() + timedelta(days=27)), amounts, min_size=1)
)
def test_a_month_of_evenly_billed_weekdays_is_spent_over_days_times_thirty(
    units: dict[object, int],
) -> None:
    days = [START.date() + timedelta(days=n) for n in range(28)]
    spent = {day: units.get(day, 0) for day in days}
    assert per_month(spent, frozenset(days)) == Fraction(sum(spent.values()) * 30, 28)


def make(number: int, stage: str, cost: Decimal, proportion: Fraction, span: Window) -> Finding:
    own = cost * proportion.numerator / proportion.denominator
    return Finding(
        stage,
        stage.lower(),
        "high",
        fingerprint(stage, str(number), "x"),
        f"node/{number}",
        "",
        span,
        Money("", cost, own, "USD", "billed"),
        "high",
        (),
        (Claim("c", "n1", span.start, span.end),),
        Remedy(""),
        "",
        proportion,
    )


STAGES = {stage.name: stage for stage in Stage}


def cost_rows(costs: list[Decimal]) -> pl.LazyFrame:
    rows = [
        {
            "cluster": "c",
            "node": "n1",
            "EffectiveCost": cost,
            "ChargePeriodStart": START + n * HOUR,
            "ChargePeriodEnd": START + (n + 1) * HOUR,
        }
        for n, cost in enumerate(costs)
    ]
    kinds = {name: COSTS.schema[name] for name in rows[0]}
    return pl.DataFrame(rows, schema=kinds).lazy()


def test_the_example_of_nights_and_a_smaller_judge() -> None:
    """Cost 300: nights 120, then 40 % smaller counts 0.4 × 180 = 72, sum 192."""
    costs = cost_rows([Decimal(30)] * 10)
    nights = make(1, "TIME_SLICES", Decimal(120), Fraction(1), Window(START, START + 4 * HOUR))
    judge = make(2, "RESIZE", Decimal(300), Fraction(2, 5), Window(START, START + 10 * HOUR))
    counted = count_once([judge, nights], costs, STAGES)
    assert [each.saving_per_month for each in counted] == [72, 120]
    assert [each.money.saving_per_month for each in counted] == [120, 120]


prices = st.lists(st.decimals(0, 10**6, places=12), min_size=6, max_size=6)
spans = st.tuples(st.integers(0, 20), st.integers(1, 24)).map(
    lambda pair: Window(START + pair[0] * HOUR / 4, START + (pair[0] + pair[1]) * HOUR / 4)
)
drafts = st.lists(
    st.tuples(st.sampled_from(sorted(STAGES)), spans, st.fractions(0, 1, max_denominator=9)),
    min_size=1,
    max_size=6,
)


@given(prices, drafts)
def test_savings_never_exceed_cost(
    costs: list[Decimal], plans: list[tuple[str, Window, Fraction]]
) -> None:
    findings = []
    for number, (stage, span, proportion) in enumerate(plans):
        claimed = sum(
            (Fraction(cost) * overlap(span, hour) for hour, cost in enumerate(costs)), Fraction(0)
        )
        units = int(claimed * 10**12)
        findings.append(make(number, stage, Decimal(units).scaleb(-12), proportion, span))
    counted = count_once(findings, cost_rows(costs), STAGES)
    saved = sum((each.saving_per_month or Decimal(0) for each in counted), Decimal(0))
    assert saved <= sum(costs, Decimal(0)) + Decimal("1e-9")
    assert all(
        each.saving_per_month is not None
        and each.money.saving_per_month is not None
        and 0 <= each.saving_per_month <= each.money.saving_per_month
        for each in counted
    )
    assert count_once(findings[::-1], cost_rows(costs[:]), STAGES)[::-1] == counted


def overlap(span: Window, hour: int) -> Fraction:
    start, end = START + hour * HOUR, START + (hour + 1) * HOUR
    length = (min(span.end, end) - max(span.start, start)) / timedelta(minutes=15)
    return Fraction(max(0, int(length)), 4)
