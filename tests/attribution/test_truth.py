"""The simulator's truth is written independently; attribution must meet it to the last digit."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime

import polars as pl
import pytest

from attribution.day import attribute_day
from attribution.facts import DayFacts
from collector.simulate.facts import facts
from collector.simulate.model import World
from collector.simulate.options import WorldOptions
from collector.simulate.truth import Key, Truth, work_out
from collector.simulate.world import simulate
from ledger.money import to_units
from ledger.settings import Settings

END = date(2026, 11, 30)


def given_costs(world: World, day: date) -> dict[Key, tuple[int, int]]:
    """What attribution says, in the keys of the truth."""
    books = attribute_day(DayFacts.of_tables(day, facts(world, day)), Settings())
    rows = books.costs.select(
        "experiment",
        "phase",
        "reason",
        "node",
        "target",
        "ServiceName",
        *(to_units(pl.col(name)).alias(name) for name in ("EffectiveCost", "BilledCost")),
    )
    sums: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for experiment, phase, reason, node, target, service, effective, billed in rows.iter_rows():
        key = Key(
            experiment,
            phase if target == "workload" and reason is None else None,
            reason,
            node,
            service if node is None else None,
        )
        sums[key][0] += effective
        sums[key][1] += billed
    return {key: (pair[0], pair[1]) for key, pair in sums.items()}


def differences(world: World, truth: Truth, day: date) -> dict[Key, int]:
    """Given less right effective cost (units) where figures differ, in billed cost as well."""
    start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000
    right = {key: (amount.effective, amount.billed) for key, amount in truth.days[start].items()}
    given = given_costs(world, day)
    nothing = (0, 0)
    return {
        key: given.get(key, nothing)[0] - right.get(key, nothing)[0]
        for key in right.keys() | given.keys()
        if given.get(key, nothing) != right.get(key, nothing)
    }


@pytest.mark.parametrize("seed", [1, 2, 3, 11])
def test_every_experiment_phase_and_node_equals_the_truth(seed: int) -> None:
    world = simulate(WorldOptions(seed=seed, days=3, end=END, outage_hours=3 * (seed % 2)))
    truth = work_out(world)
    for day in world.options.window.days():
        wrong = differences(world, truth, day)
        assert {key for key in wrong if key.target not in truth.errors} == set()
        for target, error in truth.errors.items():
            assert sum(abs(wrong[key]) for key in wrong if key.target == target) <= error


def test_a_pod_that_ended_one_scrape_before_midnight_ended_there() -> None:
    """Known to samples alone, which go on after it."""
    end, zone = date(2026, 11, 5), "America/New_York"
    world = simulate(WorldOptions(seed=7, days=16, nodes=4, end=end, timezone=zone))
    day = date(2026, 10, 21)
    midnight = int(datetime(2026, 10, 22, tzinfo=UTC).timestamp()) * 1000
    last = [pod for pod in world.pods if pod.finished == midnight - world.options.step]
    assert any(not pod.in_api for pod in last)
    truth = work_out(world)
    wrong = differences(world, truth, day)
    assert {key for key in wrong if key.target not in truth.errors} == set()


def test_what_lies_between_two_scrapes_is_marked() -> None:
    world = simulate(WorldOptions(days=3, end=END))
    short = {pod.uid for pod in world.pods if pod.finished - pod.bound < world.options.step}
    marked: set[str] = set()
    for day in world.options.window.days():
        books = attribute_day(DayFacts.of_tables(day, facts(world, day)), Settings())
        low = books.costs.filter(pl.col("confidence") == "low")
        marked |= set(low["uid"].drop_nulls())
    assert short
    assert short <= marked
