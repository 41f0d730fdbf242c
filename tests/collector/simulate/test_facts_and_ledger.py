"""Facts straight from the schedule, and the large ledger: in the schemas, adding up."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.simulate import WorldOptions, simulate, write_ledger
from collector.simulate.facts import facts
from collector.simulate.options import milliseconds
from collector.simulate.shares import units
from collector.simulate.truth import work_out
from ledger.schema import (
    CHARGES,
    COST_COLUMNS,
    COSTS,
    COSTS_DAILY,
    IDLE,
    NODES,
    TABLES,
    WORKLOADS,
)
from ledger.store import Ledger, conform
from ledger.window import Window

END = date(2026, 11, 30)
WORLD = simulate(WorldOptions(end=END, days=3, nodes=4, outage_hours=1))
LARGE = WorldOptions(end=END, days=2, nodes=3, containers=57, experiments=5)


@pytest.mark.parametrize("day", list(WORLD.options.window.days()))
def test_facts_fit_their_tables_and_their_day(day: date) -> None:
    window = Window.of_day(day)
    for name, frame in facts(WORLD, day).items():
        assert conform(TABLES[name], frame).height == frame.height > 0
        assert not frame.select(TABLES[name].partition + TABLES[name].key).is_duplicated().any()
        if "start" in frame.columns:
            assert (frame["start"] < frame["end"]).all()
            assert (frame["start"] >= window.start).all()
            assert (frame["end"] <= window.end).all()


@pytest.mark.parametrize("day", list(WORLD.options.window.days()))
def test_charges_add_up_to_the_truth(day: date) -> None:
    rows = work_out(WORLD).days[milliseconds(Window.of_day(day).start)]
    charges = facts(WORLD, day)["charges"]
    for column, name in enumerate(("EffectiveCost", "BilledCost")):
        assert units(sum(charges[name], Decimal(0))) == sum(
            amount[column] for amount in rows.values()
        )


def test_facts_are_the_same_each_time_and_empty_outside_the_world() -> None:
    first, again = facts(WORLD, END), facts(WORLD, END)
    assert all(first[name].equals(again[name]) for name in first)
    after = facts(WORLD, END + timedelta(days=1))
    assert all(frame.is_empty() for frame in after.values())


def test_the_short_pod_is_known_to_the_api_alone_and_the_forgotten_to_samples_alone() -> None:
    days = [facts(WORLD, day)["workloads"] for day in WORLD.options.window.days()]
    sources = dict(
        pl.concat(days).group_by("uid").agg(pl.col("source").unique().sort()).iter_rows()
    )
    for pod in WORLD.pods:
        told = sources[pod.uid]
        assert ("kubernetes/train-a" in told) == pod.in_api
        assert ("prometheus/train-a" in told) == (pod.name != "smoke-test")


def test_usage_counts_the_scrapes_of_each_slot() -> None:
    usage = facts(WORLD, END)["usage"]
    assert set(usage["meter"]) == {"gpu_activity", "cpu_usage", "memory_working_set"}
    assert (usage["samples"] > 0).all()
    assert (usage["samples"] <= usage["expected"]).all()
    cards = usage.filter(pl.col("meter") == "gpu_activity")
    per_card = cards.group_by("device", "slot").agg(pl.col("samples").sum())
    assert (per_card["samples"] == 15).all()


def test_the_large_ledger_adds_up_by_day_and_line(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path), create=True)
    write_ledger(LARGE, ledger)
    costs, charges = ledger.scan(COSTS).collect(), ledger.scan(CHARGES).collect()
    key = ["day", "x_LineId"]
    sums = costs.group_by(key).agg(pl.col(*COST_COLUMNS).sum()).sort(key)
    assert sums.equals(charges.select(*key, *COST_COLUMNS).sort(key))
    daily = ledger.scan(COSTS_DAILY).collect()
    figures = [*COST_COLUMNS, "ActiveCost", "gpu_seconds"]
    assert daily.select(pl.col(figures).sum()).equals(costs.select(pl.col(figures).sum()))
    hours = costs["gpu_seconds"].sum() / 3600
    assert hours == ledger.scan(NODES).select(pl.col("gpus").sum()).collect().item() * 24


def test_the_large_ledger_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path), create=True)
    write_ledger(LARGE, ledger)
    pods = ledger.scan(WORKLOADS).group_by("day").agg(pl.col("uid").n_unique()).collect()
    assert sorted(pods.iter_rows()) == [(END - timedelta(days=1), 57), (END, 57)]
    experiments = ledger.scan(COSTS_DAILY).select("experiment").unique().collect()["experiment"]
    assert set(experiments) == {IDLE, *(f"exp-{number:04d}" for number in range(5))}


def test_a_second_writing_leaves_the_same_rows(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path), create=True)
    write_ledger(LARGE, ledger)
    first = {name: ledger.scan(TABLES[name]).collect() for name in ("costs", "costs_daily")}
    write_ledger(LARGE, ledger)
    for name, frame in first.items():
        again = ledger.scan(TABLES[name]).collect()
        assert again.sort(again.columns).equals(frame.sort(frame.columns))
