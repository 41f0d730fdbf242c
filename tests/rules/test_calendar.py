"""Local hours as intervals of instants: changes of the clocks, wraps, bad input."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import SettingsError
from ledger.window import Window
from rules.calendar import BINS, WeeklyWindow, local_hours, run_text, runs, zone_of

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Etc/GMT+3",
)
zones = st.sampled_from([ZoneInfo(name) for name in ZONES])
days = st.dates(date(2026, 1, 1), date(2027, 1, 1))


def whole_days(first: str, last: str) -> Window:
    return Window.of_days(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "night",
        "22-08",
        "25:00-08:00",
        "22:60-08:00",
        "24:00-08:00",
        "Mon-Foo",
        "Mon 22:00",
        "22:00-08:00 Mon",
        "Mon-Fri22:00-06:00",
    ],
)
def test_text_outside_the_grammar_is_refused_and_named(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        WeeklyWindow.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("22:00-08:00", 70),
        ("Sat-Sun", 48),
        ("Fri-Mon", 96),
        ("Mon,Wed-Thu 00:00-24:00", 72),
        ("sun 23:30-00:15", 0.75),
        ("00:00-24:00", 168),
    ],
)
def test_length_of_a_week(text: str, hours: float) -> None:
    assert WeeklyWindow.parse(text).minutes_per_week == hours * 60


def test_unknown_zone_is_named() -> None:
    for name in ("CET-1", "../etc/passwd", "", "Asia/Atlantis"):
        with pytest.raises(SettingsError, match="is not an IANA time zone"):
            zone_of(name)


def test_weekend_merges_over_sunday_and_is_clipped() -> None:
    weekly = WeeklyWindow.parse("Sat-Mon")
    found = weekly.intervals(whole_days("2026-03-01", "2026-03-08"), ZoneInfo("UTC"))
    assert [(w.start.day, w.end.day) for w in found] == [(1, 3), (7, 9)]


def test_a_window_inside_the_skipped_hour_does_not_happen() -> None:
    zone = ZoneInfo("America/New_York")
    weekly = WeeklyWindow.parse("02:15-02:45")
    assert weekly.on(date(2026, 3, 8), zone) is None
    ordinary = weekly.on(date(2026, 3, 9), zone)
    assert ordinary is not None
    assert ordinary.seconds == 1800


def test_an_end_inside_a_change_of_clocks() -> None:
    zone = ZoneInfo("America/New_York")
    weekly = WeeklyWindow.parse("22:00-01:30")
    spring, autumn = weekly.on(date(2026, 3, 7), zone), weekly.on(date(2026, 10, 31), zone)
    skipped = WeeklyWindow.parse("22:00-02:30").on(date(2026, 3, 7), zone)
    assert spring
    assert autumn
    assert skipped
    # 01:30 comes twice in autumn, and the night lasts until the second; 02:30 is skipped in
    # spring, and the night ends at the change.
    assert [each.seconds / 3600 for each in (spring, autumn, skipped)] == [3.5, 4.5, 4.0]


def test_a_skipped_hour_is_absent_and_a_doubled_one_counts_twice() -> None:
    zone = ZoneInfo("America/New_York")
    spring = local_hours(whole_days("2026-03-08", "2026-03-08"), zone)
    sunday = 6 * 24
    assert sunday + 2 not in [hour.bin for hour in spring]
    autumn = local_hours(whole_days("2026-11-01", "2026-11-01"), zone)
    (doubled,) = [hour for hour in autumn if hour.bin == sunday + 1]
    assert doubled.span.seconds == 7200


@given(days, st.integers(1, 20), zones)
def test_local_hours_tile_the_window(first: date, count: int, zone: ZoneInfo) -> None:
    window = Window.of_days(first, first + timedelta(days=count - 1))
    hours = local_hours(window, zone)
    assert (hours[0].span.start, hours[-1].span.end) == (window.start, window.end)
    assert all(a.span.end == b.span.start for a, b in pairwise(hours))
    for hour in hours:
        local = hour.span.start.astimezone(zone)
        assert (local.date(), local.weekday() * 24 + local.hour) == (hour.day, hour.bin)


@given(days, zones, st.integers(0, 95), st.integers(1, 95))
def test_an_instant_is_inside_exactly_when_the_local_clock_says_so(
    day: date, zone: ZoneInfo, start: int, length: int
) -> None:
    end = (start + length) % 96
    text = f"{start // 4:02d}:{start % 4 * 15:02d}-{end // 4:02d}:{end % 4 * 15:02d}"
    window = Window.of_day(day)
    intervals = WeeklyWindow.parse(text).intervals(window, zone)
    changes = zone.utcoffset(window.start.replace(tzinfo=None)) != zone.utcoffset(
        window.end.replace(tzinfo=None) + timedelta(days=1)
    )
    for quarter in range(96):
        moment = window.start + quarter * timedelta(minutes=15)
        local = moment.astimezone(zone)
        clock = local.hour * 4 + local.minute // 15
        said = start <= clock < end if start < end else clock >= start or clock < end
        found = any(each.start <= moment < each.end for each in intervals)
        assert found == said or changes


@given(st.sets(st.integers(0, BINS - 1)))
def test_runs_partition_the_hours(bins: set[int]) -> None:
    found = runs(bins)
    assert sorted((first + n) % BINS for first, length in found for n in range(length)) == sorted(
        bins
    )
    assert all((first + length) % BINS not in bins for first, length in found if length < BINS)


def test_a_run_is_written_over_sunday() -> None:
    assert [run_text(*run) for run in runs({167, 0, 1})] == ["Sun 23:00-Mon 02:00"]


def test_windows_are_instants_of_utc() -> None:
    found = WeeklyWindow.parse("22:00-08:00").on(date(2026, 3, 2), ZoneInfo("Asia/Kolkata"))
    assert found == Window(
        datetime(2026, 3, 2, 16, 30, tzinfo=UTC), datetime(2026, 3, 3, 2, 30, tzinfo=UTC)
    )
