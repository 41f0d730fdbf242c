"""Windows of time: half-open, UTC, and one grammar for all commands.

| form | meaning |
|---|---|
| ``today`` ``yesterday`` | that UTC day (today: up to the last complete hour) |
| ``7d`` ``2w`` | the last N complete UTC days (a week is 7 of them) |
| ``24h`` ``90m`` | up to the last complete hour (minute for ``m``) |
| ``lastweek`` | the last complete week, Monday to Sunday |
| ``month`` ``lastmonth`` | this month up to today's start; the whole month before |
| ``2026-11-01..2026-11-08`` | from the first up to, not including, the second |
| ``2026-11-30`` | that one day |

A bare number is refused, and months exist only as words, because libraries disagree on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from ledger.errors import UsageError

FORMS = "yesterday, today, 7d, 24h, 2w, lastweek, month, lastmonth or 2026-11-01..2026-11-08"
FIRST_YEAR, LAST_YEAR = 1970, 9000
"""Years of days that can be asked for; beyond them arithmetic with days leaves the calendar."""

_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LENGTH = re.compile(r"(\d{1,6})([mhdw])")


@dataclass(frozen=True, order=True)
class Window:
    """A half-open interval ``[start, end)`` of UTC time."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse naive, reversed and empty intervals."""
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise UsageError("a window needs a time zone")
        if self.start >= self.end:
            raise UsageError(f"the window {self} is empty", "its start must lie before its end")

    def __str__(self) -> str:
        """Both ends in ISO 8601, joined by two dots."""
        return f"{iso(self.start)}..{iso(self.end)}"

    @classmethod
    def of_day(cls, day: date) -> Window:
        """The 24 hours of a UTC day."""
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return cls(start, start + timedelta(days=1))

    @classmethod
    def of_days(cls, first: date, last: date) -> Window:
        """The UTC days from first to last, both included."""
        return cls(cls.of_day(first).start, cls.of_day(last).end)

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.start).total_seconds()

    @property
    def whole_days(self) -> bool:
        """Whether both ends lie on midnight UTC."""
        return all(
            t == t.replace(hour=0, minute=0, second=0, microsecond=0)
            for t in (self.start, self.end)
        )

    def days(self) -> Iterator[date]:
        """The UTC days that the window touches, in order."""
        day = self.start.date()
        while Window.of_day(day).start < self.end:
            yield day
            day += timedelta(days=1)

    def widened(self, by: timedelta) -> Window:
        """The window with a margin on both sides."""
        return Window(self.start - by, self.end + by)

    def as_dict(self) -> dict[str, str]:
        """The window as it stands in documents."""
        return {"start": iso(self.start), "end": iso(self.end)}


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with a ``Z``, seconds unless there are fractions."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_day(text: str) -> date:
    """Read ``2026-11-30``.

    Raises:
        UsageError: The text is no date.
    """
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            raise ValueError
        day = date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a day", "write it like 2026-11-30") from None
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise UsageError(f"{text} is a day of no bill", f"years {FIRST_YEAR} to {LAST_YEAR}")
    return day


def parse_window(text: str, now: datetime) -> Window:
    """Resolve a window expression at the moment ``now``.

    Raises:
        UsageError: The expression is not in the grammar, or the window is empty.
    """
    text = text.strip()
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if ".." in text:
        first, _, last = text.partition("..")
        return Window(_moment(first), _moment(last))
    if match := _LENGTH.fullmatch(text):
        return _lookback(int(match[1]), match[2], now.astimezone(UTC), today)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return Window.of_day(parse_day(text))
    return _word(text, now.astimezone(UTC), today)


def _lookback(count: int, unit: str, now: datetime, today: datetime) -> Window:
    if count == 0:
        raise UsageError("a window of length 0 holds nothing", f"use {FORMS}")
    whole_days = unit in "dw"
    end = today if whole_days else now.replace(second=0, microsecond=0)
    if unit == "h":
        end = end.replace(minute=0)
    try:
        window = Window(end - count * _UNITS[unit], end)
    except OverflowError:
        window = None
    if window is None or window.start.year < FIRST_YEAR:
        raise UsageError(f"{count}{unit} reaches before {FIRST_YEAR}", f"use {FORMS}")
    return window


def _word(text: str, now: datetime, today: datetime) -> Window:
    day = timedelta(days=1)
    month = today.replace(day=1)
    monday = today - today.weekday() * day
    hour = now.replace(minute=0, second=0, microsecond=0)
    words = {
        "yesterday": (today - day, today),
        "today": (today, hour),
        "lastweek": (monday - 7 * day, monday),
        "month": (month, today),
        "lastmonth": ((month - day).replace(day=1), month),
    }
    if text not in words:
        raise UsageError(f"{text!r} is not a window", f"use {FORMS}")
    start, end = words[text]
    if start >= end:
        raise UsageError(f"{text!r} holds nothing yet", "no complete hour or day has passed in it")
    return Window(start, end)


def _moment(text: str) -> datetime:
    text = text.strip()
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return Window.of_day(parse_day(text)).start
    try:
        moment = datetime.fromisoformat(text)
        if not re.match(r"\d{4}-\d{2}-\d{2}T\d{2}", text):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time", "write 2026-11-01 or 2026-11-01T06:00Z"
        ) from None
    parse_day(text[:10])
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
