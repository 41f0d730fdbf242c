from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import UsageError
from ledger.window import Window, parse_window

NOW = datetime(2026, 12, 1, 9, 41, 7, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2026-11-30T00:00", "2026-12-01T00:00"),
        ("today", "2026-12-01T00:00", "2026-12-01T09:00"),
        ("7d", "2026-11-24T00:00", "2026-12-01T00:00"),
        ("2w", "2026-11-17T00:00", "2026-12-01T00:00"),
        ("24h", "2026-11-30T09:00", "2026-12-01T09:00"),
        ("90m", "2026-12-01T08:11", "2026-12-01T09:41"),
        ("lastweek", "2026-11-23T00:00", "2026-11-30T00:00"),
        ("lastmonth", "2026-11-01T00:00", "2026-12-01T00:00"),
        ("2026-11-01..2026-11-08", "2026-11-01T00:00", "2026-11-08T00:00"),
        ("2026-11-30", "2026-11-30T00:00", "2026-12-01T00:00"),
        ("2026-11-01T06:00Z..2026-11-01T18:30", "2026-11-01T06:00", "2026-11-01T18:30"),
        ("2026-11-01T08:00+08:00..2026-11-02", "2026-11-01T00:00", "2026-11-02T00:00"),
    ],
)
def test_each_form_means_one_window(text: str, start: str, end: str) -> None:
    window = parse_window(text, NOW)
    assert window == Window(
        datetime.fromisoformat(f"{start}+00:00"), datetime.fromisoformat(f"{end}+00:00")
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "7M",
        "1mo",
        "1.5h",
        "-7d",
        "0d",
        "tomorrow",
        "2026-13-01",
        "2026-11-01..",
        "2026-11-08..2026-11-01",
        "2026-11-01..2026-11-01",
        "month",
        "9999w 1d",
        "999999w",
        "9999-12-31",
        "0001-01-01",
        "0001-01-01T00:00+14:00..2026-11-01",
        "3000w",
        "2026-1-1",
    ],
)
def test_anything_else_is_refused_in_one_line_with_a_reason(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_window(text, NOW)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 400))
def test_the_days_of_a_window_cover_it_once(first: date, more: int) -> None:
    window = Window.of_days(first, first + timedelta(days=more))
    days = list(window.days())
    assert len(days) == more + 1
    assert window.whole_days
    assert sum(Window.of_day(day).seconds for day in days) == window.seconds


def test_a_window_prints_what_parses_to_it() -> None:
    window = parse_window("7d", NOW)
    assert parse_window(str(window), NOW) == window
    assert window.as_dict() == {"start": "2026-11-24T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
