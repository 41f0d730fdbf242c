"""What must not change a cell, and what the source may lose without losing the rest."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collector.prometheus.cluster import pods
from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.series.catalogue import ALL
from ledger.errors import SourceError
from ledger.facts import Facts
from ledger.window import Window
from tests.collector.prometheus.builders import (
    MINUTE,
    WINDOW,
    MemorySource,
    Sample,
    at,
    canonical,
    collect,
    frame,
    node,
    pod,
    small_day,
)

BASE = small_day()
EXPECTED = collect(BASE)


def same(facts: Facts, expected: Facts = EXPECTED) -> None:
    assert list(facts.tables) == list(expected.tables)
    for name, table in expected.tables.items():
        assert_frame_equal(facts.tables[name], table, check_exact=True)
    assert facts.coverage == expected.coverage
    assert facts.gaps == expected.gaps


def relabelled(samples: list[Sample], **labels: str) -> list[Sample]:
    return [
        sample._replace(labels=canonical({**json.loads(sample.labels), **labels}))
        for sample in samples
    ]


def shuffled(samples: list[Sample], dice: random.Random) -> list[Sample]:
    return dice.sample(samples, len(samples))


def scraped_twice(samples: list[Sample], dice: random.Random) -> list[Sample]:
    return [*samples, *dice.sample(samples, len(samples) // 3)]


def replicated(samples: list[Sample], dice: random.Random) -> list[Sample]:
    names = [f"prometheus-{number}" for number in range(2)]
    copy = relabelled(samples, prometheus_replica=names[0])
    other = relabelled(samples, prometheus_replica=names[1])
    return [*copy, *dice.sample(other, dice.randrange(len(other)))]


def two_exporters(samples: list[Sample], dice: random.Random) -> list[Sample]:
    other = relabelled(samples, instance=f"10.0.0.{dice.randrange(2, 250)}:8080", job="opencost")
    return [*samples, *dice.sample(other, len(other) // 2)]


def restarted(samples: list[Sample], dice: random.Random) -> list[Sample]:
    moment = at("0:00") + timedelta(minutes=dice.randrange(1440))
    return [
        sample if sample.time < moment else relabelled([sample], instance="10.7.7.7:8080")[0]
        for sample in samples
    ]


def with_garbage(samples: list[Sample], dice: random.Random) -> list[Sample]:
    bad = [
        sample._replace(value=value, time=sample.time + timedelta(seconds=7))
        for sample in dice.sample(samples, 20)
        for value in (math.nan, math.inf, -1.0)
    ]
    return [*samples, *bad]


@pytest.mark.parametrize(
    "change", [shuffled, scraped_twice, replicated, two_exporters, restarted, with_garbage]
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_changes_that_mean_nothing_change_no_cell(
    change: Callable[[list[Sample], random.Random], list[Sample]], seed: int
) -> None:
    same(collect(change(BASE, random.Random(seed))))


def test_reading_in_parts_changes_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = with_garbage(BASE, random.Random(7))
    whole = collect(broken)
    monkeypatch.setattr(pods, "MANY", 50)
    parts = collect(broken)
    same(parts)
    assert parts.quarantine == whole.quarantine


def test_garbage_shows_in_the_count_only() -> None:
    facts = collect(with_garbage(BASE, random.Random(5)))
    found = {entry.reason for entry in facts.quarantine}
    assert found == {"nan", "inf", "negative"}
    assert EXPECTED.quarantined == 0


@given(st.integers(0, 2000), st.integers(1, 1500), st.booleans())
@settings(max_examples=10, deadline=None)
def test_days_add_up_to_a_window(start: int, length: int, ends: bool) -> None:
    first = WINDOW.start - timedelta(days=1) + start * MINUTE
    samples = [
        *node("gpu-0", WINDOW.start - timedelta(days=1, minutes=5), WINDOW.end + 20 * MINUTE),
        *pod(
            "u1",
            first,
            first + length * MINUTE,
            running=first + length // 2 * MINUTE,
            phase="Succeeded" if ends else "Running",
        ),
    ]
    whole = Window(WINDOW.start - timedelta(days=1), WINDOW.end)
    both = collect(samples, whole)
    days = [collect(samples, Window.of_day(day)) for day in whole.days()]
    for name in both.tables:
        parts = [day.tables[name] for day in days if name in day.tables]
        assert_frame_equal(both.tables[name], pl.concat(parts), check_exact=True)
    told = [day.coverage for day in days if day.coverage is not None]
    assert both.coverage == pytest.approx(sum(told) / len(days), abs=1e-3)
    for name in ("nodes", "workloads"):
        lived = [
            table["end"] - table["start"]
            for day in days
            if (table := day.tables.get(name)) is not None
        ]
        if name == "nodes":
            assert sum((spans.sum() for spans in lived), timedelta()) == timedelta(days=2)
        elif not ends and all("workloads" in day.tables for day in days):
            assert sum((spans.sum() for spans in lived), timedelta()) == min(
                length * MINUTE, WINDOW.end - first
            )


@given(st.integers(0, 700), st.integers(360, 730), st.integers(0, 2))
@settings(max_examples=8, deadline=None)
def test_dropping_every_third_scrape_moves_a_life_by_less_than_a_percent(
    start: int, length: int, lost: int
) -> None:
    first = at("0:00") + start * MINUTE
    machine = node("gpu-0", at("0:00"), at("24:00"))
    long = [*machine, *pod("u1", first, first + length * MINUTE)]
    kept = [sample for sample in long if (sample.time - WINDOW.start) // MINUTE % 3 != lost]
    few, many = (
        facts.tables["workloads"].select((pl.col("end") - pl.col("start")).sum()).item()
        for facts in (collect(kept), collect(long))
    )
    assert abs(few - many) < 0.01 * many
    nodes = [facts.tables["nodes"] for facts in (collect(kept), collect(long))]
    few, many = (each.select((pl.col("end") - pl.col("start")).sum()).item() for each in nodes)
    assert abs(few - many) < 0.01 * many


@pytest.mark.parametrize("metric", [series.metric for series in ALL if not series.optional])
def test_a_query_that_fails_is_a_gap_that_says_what_is_blind(metric: str) -> None:
    facts = collect(BASE, broken=frozenset({metric}))
    failed = [gap for gap in facts.gaps if gap.reason == "query_failed"]
    assert [metric in gap.detail and "blind" in gap.detail for gap in failed] == [True]
    assert not [gap for gap in facts.gaps if gap.reason == "no_series" and metric in gap.detail]
    absent = {"workloads"} if metric == "kube_pod_info" else set()
    assert set(facts.tables) == {"nodes", "workloads", "usage", "coverage"} - absent


def test_a_source_that_answers_nothing_is_an_error_and_writes_nothing() -> None:
    with pytest.raises(SourceError, match="every query failed"):
        collect(BASE, broken=frozenset(series.metric for series in ALL))


def test_what_is_needed_is_declared_and_probed() -> None:
    collector = PrometheusCollector("train-a", MemorySource(frame(BASE)))
    assert set(collector.permissions.series) == {name for series in ALL for name in series.names}
    probes = {probe.need: probe for probe in collector.probe()}
    assert set(probes) == {series.metric for series in ALL}
    assert all(probe.ok for probe in probes.values())
    blind = PrometheusCollector(
        "train-a",
        MemorySource(frame([sample for sample in BASE if sample.name != "kube_pod_info"])),
    )
    missing = [probe for probe in blind.probe() if not probe.ok]
    assert [(probe.need, bool(probe.blind)) for probe in missing] == [("kube_pod_info", True)]


def test_the_collector_is_named_after_its_cluster() -> None:
    collector: Any = PrometheusCollector("train-a", MemorySource(frame(BASE)))
    assert (collector.name, collector.required, collector.snapshot) == (
        "prometheus/train-a",
        True,
        False,
    )
