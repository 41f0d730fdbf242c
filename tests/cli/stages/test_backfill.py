"""Which days a run reads: property tests of pure functions, and the ledger they look at."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.stages.backfill import RETRY_DAYS, Task, due, explicit, priced, spans
from cli.wiring import Source
from collector.source import Collector
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.window import Window

YESTERDAY = date(2026, 11, 30)


def never() -> Collector:
    raise AssertionError("planning builds no collector")


def source(name: str, *, per_day: bool) -> Source:
    kind, _, cluster = name.partition("/")
    return Source(kind if cluster else "billing", name, True, per_day, never, cluster or None)


def days_of(tasks: list[Task]) -> list[date]:
    return [day for task in tasks for day in task.window.days()]


def closed(
    ledger: Ledger,
    name: str,
    days: list[date],
    status: str = "closed",
    *reasons: str,
    settings: str = "s",
) -> None:
    gaps = json.dumps([{"reason": reason, "detail": "x"} for reason in reasons])
    for day in days:
        frame = pl.DataFrame(
            {"day": [day], "status": [status], "gaps": [gaps], "settings_hash": [settings]}
        )
        ledger.replace(CLOSES, frame, Window.of_day(day), name, stage="collect")


@given(st.sets(st.dates(date(2026, 1, 1), date(2026, 3, 1))))
def test_spans_hold_exactly_the_days_and_never_touch(days: set[date]) -> None:
    found = spans(sorted(days))
    assert [day for window in found for day in window.days()] == sorted(days)
    assert all(one.end < other.start for one, other in pairwise(found))


def test_an_explicit_window_asks_every_source_for_just_that() -> None:
    days = [date(2024, 9, day) for day in (1, 2, 3)]
    plan = explicit([source("bill", per_day=False), source("prometheus/a", per_day=True)], days)
    assert [len(list(task.window.days())) for task in plan] == [3, 1, 1, 1]


def test_a_first_run_reads_all_that_is_held_and_yesterday(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    sources = [source("prometheus/a", per_day=True), source("kubernetes/a", per_day=False)]
    held = Window.of_days(YESTERDAY - timedelta(days=2), YESTERDAY + timedelta(days=1))
    plan = due(ledger, sources, YESTERDAY, {"prometheus/a": held, "kubernetes/a": None})
    by_source = {
        name: days_of([t for t in plan if t.source.name == name])
        for name in ("prometheus/a", "kubernetes/a")
    }
    assert by_source["prometheus/a"] == [YESTERDAY - timedelta(days=n) for n in (2, 1, 0)]
    assert by_source["kubernetes/a"] == by_source["prometheus/a"]  # it cannot tell: it follows


def test_without_neighbours_a_source_that_cannot_tell_reads_yesterday(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    plan = due(ledger, [source("kubernetes/a", per_day=False)], YESTERDAY, {"kubernetes/a": None})
    assert days_of(plan) == [YESTERDAY]


def test_a_later_run_reads_what_is_missing_or_failed(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    first = YESTERDAY - timedelta(days=5)
    closed(ledger, "prometheus/a", [first, first + timedelta(days=2)])
    closed(ledger, "prometheus/a", [first + timedelta(days=3)], "failed")
    held = {"prometheus/a": Window.of_days(first, YESTERDAY)}
    plan = due(ledger, [source("prometheus/a", per_day=True)], YESTERDAY, held)
    assert days_of(plan) == [first + timedelta(days=n) for n in (1, 3, 4, 5)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(str(tmp_path / "ledger"), create=True)


@pytest.mark.parametrize(
    ("status", "reason", "ago", "retried"),
    [
        ("gaps", "query_failed", 3, True),
        ("gaps", "no_series", 3, True),
        ("gaps", "partial_response", 3, True),
        ("gaps", "no_samples", RETRY_DAYS, True),
        ("gaps", "no_samples", RETRY_DAYS + 1, False),
        ("gaps", "access_denied", 3, False),
        ("closed", None, 3, False),
    ],
)
def test_a_day_with_gaps_that_may_close_is_tried_again(
    ledger: Ledger, status: str, reason: str | None, ago: int, retried: bool
) -> None:
    every = [YESTERDAY - timedelta(days=n) for n in range(20)]
    closed(ledger, "prometheus/a", every)
    day = YESTERDAY - timedelta(days=ago)
    closed(ledger, "prometheus/a", [day], status, *([reason] if reason else []))
    held = {"prometheus/a": Window.of_days(every[-1], YESTERDAY)}
    plan = due(ledger, [source("prometheus/a", per_day=True)], YESTERDAY, held)
    found = [(task.window.start.date(), task.again) for task in plan]
    assert found == [(YESTERDAY, False), *([(day, True)] if retried else [])]


def test_no_source_is_tried_again_for_days_that_it_no_longer_holds(ledger: Ledger) -> None:
    day = YESTERDAY - timedelta(days=5)
    closed(ledger, "prometheus/a", [day], "gaps", "query_failed")
    sources = [source("prometheus/a", per_day=True)]
    held = Window.of_days(YESTERDAY - timedelta(days=1), YESTERDAY)
    closed(ledger, "prometheus/a", [YESTERDAY - timedelta(days=1)])
    assert days_of(due(ledger, sources, YESTERDAY, {"prometheus/a": held})) == [YESTERDAY]
    assert days_of(due(ledger, sources, YESTERDAY, {})) == [YESTERDAY]  # it is away


def test_a_failed_snapshot_is_tried_again(ledger: Ledger) -> None:
    day = YESTERDAY - timedelta(days=2)
    closed(ledger, "kubernetes/a", [day], "failed", "SourceError")
    plan = due(ledger, [source("kubernetes/a", per_day=False)], YESTERDAY, {"kubernetes/a": None})
    assert [(task.window, task.again) for task in plan] == [
        (Window.of_day(YESTERDAY), False),
        (Window.of_day(day), True),
    ]


def prices() -> Source:
    return Source("prices", "prices/settings", True, False, never)


def test_prices_follow_every_day_that_is_read_or_closed(ledger: Ledger) -> None:
    closed(ledger, "prometheus/a", [YESTERDAY - timedelta(days=9)])
    closed(ledger, "prometheus/a", [YESTERDAY - timedelta(days=8)], "failed")
    plan = priced(ledger, [prices()], [YESTERDAY], "s")
    assert days_of(plan) == [YESTERDAY - timedelta(days=9), YESTERDAY]


def test_prices_are_read_again_once_the_settings_change(ledger: Ledger) -> None:
    every = [YESTERDAY - timedelta(days=n) for n in (2, 1, 0)]
    closed(ledger, "prometheus/a", every)
    closed(ledger, "prices/settings", every)
    assert days_of(priced(ledger, [prices()], [YESTERDAY], "s")) == [YESTERDAY]
    assert days_of(priced(ledger, [prices()], [YESTERDAY], "other")) == every
    assert priced(ledger, [], [YESTERDAY], "other") == []


def test_a_bill_is_read_again_from_the_month_before(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    every = [date(2026, 9, 1) + timedelta(days=n) for n in range(91)]
    frame = pl.DataFrame({"day": every, "status": ["closed"] * len(every)})
    ledger.replace(CLOSES, frame, Window.of_days(every[0], every[-1]), "bill", stage="collect")
    held = {"bill": Window.of_days(every[0], YESTERDAY)}
    plan = due(ledger, [source("bill", per_day=False)], YESTERDAY, held)
    assert [str(task.window) for task in plan] == ["2026-10-01T00:00:00Z..2026-12-01T00:00:00Z"]
