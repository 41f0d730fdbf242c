"""Local nights, weekends and hours of the week as half-open intervals of real UTC instants.

Settings speak local time, the ledger speaks UTC. Every local window is turned into instants day by
day, so a night in which the clocks change has its true length (New York, 22:00-08:00: 9 hours in
spring, 11 in autumn). Nothing ever matches an exact local hour.

| text | meaning |
|---|---|
| ``22:00-08:00`` | every day; an end at or before the start lies on the next day |
| ``Sat-Sun`` | whole local days; a range may pass Sunday (``Sun-Fri`` is six days) |
| ``Mon-Fri 22:00-06:00`` | five nights; Friday's ends on Saturday |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ledger.errors import SettingsError
from ledger.window import Window

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
BINS = 7 * 24
SLOT = timedelta(minutes=15)
_DAY = timedelta(days=1)
_FULL_DAY = 24 * 60
_HINT = "write it like 22:00-08:00, Sat-Sun or Mon-Fri 22:00-06:00"
_FORM = re.compile(
    r"(?P<days>[A-Za-z]{3}(?:-[A-Za-z]{3})?(?:,[A-Za-z]{3}(?:-[A-Za-z]{3})?)*)?"
    r"(?:(?:^|\s+)(?P<start>\d{1,2}:\d{2})-(?P<end>\d{1,2}:\d{2}))?"
)


def zone_of(name: str) -> ZoneInfo:
    """The IANA time zone of that name; never a guess or an alias table.

    Raises:
        SettingsError: There is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SettingsError(
            f"timezone: {name!r} is not an IANA time zone", "write it like Asia/Shanghai"
        ) from None


@dataclass(frozen=True)
class WeeklyWindow:
    """Local hours of the week.

    Args:
        days: Local weekdays on which it begins, Monday = 0.
        start: Minutes after local midnight.
        end: Minutes after the midnight of the day on which it begins; above 1440 = the next day.
    """

    days: frozenset[int]
    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> WeeklyWindow:
        """Read ``22:00-08:00``, ``Sat-Sun`` or ``Mon-Fri 22:00-06:00``.

        Raises:
            SettingsError: The text is not in the grammar, or its ends are equal.
        """
        match = _FORM.fullmatch(text.strip())
        if match is None or not (match["days"] or match["start"]):
            raise SettingsError(f"{text!r} is not a weekly window", _HINT)
        days = _days(match["days"], text) if match["days"] else frozenset(range(7))
        if not match["start"]:
            return cls(days, 0, _FULL_DAY)
        start, end = _minutes(match["start"], text), _minutes(match["end"], text)
        if start == end:
            raise SettingsError(
                f"{text!r}: {match['start']}-{match['end']} begins and ends at the same time",
                "a whole day is 00:00-24:00",
            )
        if start == _FULL_DAY:
            raise SettingsError(f"{text!r}: a window cannot begin at 24:00", _HINT)
        return cls(days, start, end if end > start else end + _FULL_DAY)

    def on(self, day: date, zone: ZoneInfo) -> Window | None:
        """The occurrence that begins on a local day; None if its clock times did not exist."""
        start = _instant(day, self.start, zone, last=False)
        end = _instant(day, self.end, zone, last=True)
        return Window(start, end) if start < end else None

    def intervals(self, window: Window, zone: ZoneInfo) -> list[Window]:
        """All occurrences inside a window: clipped to it, merged where they touch, in order."""
        local = [day for day in _local_days(window, zone, before=2) if day.weekday() in self.days]
        found = [each for day in local if (each := self.on(day, zone))]
        return merged(clipped(found, window))

    @property
    def minutes_per_week(self) -> int:
        """Length in a week without a change of clocks."""
        week = Window.of_days(date(2001, 1, 1), date(2001, 1, 7))  # Monday to Sunday
        return sum(int(each.seconds) for each in self.intervals(week, ZoneInfo("UTC"))) // 60


@dataclass(frozen=True)
class LocalHour:
    """An hour of a local day as it really passed: 0.5, 1 or 2 hours long where clocks change.

    Args:
        span: Its instants, clipped to the window.
        day: The local date.
        bin: Hour of the local week, Monday 00:00 = 0.
    """

    span: Window
    day: date
    bin: int


def local_hours(window: Window, zone: ZoneInfo) -> list[LocalHour]:
    """The local hours of a window, in order and without holes.

    A local hour that the clocks skip is not there; one that they repeat is one hour of double
    length. Resolution is 15 minutes, which every present-day offset is a multiple of.
    """
    hours: list[LocalHour] = []
    for start in _slots(window):
        local = start.astimezone(zone)
        span = Window(start, min(start + SLOT, window.end))
        label = local.weekday() * 24 + local.hour
        if hours and (hours[-1].day, hours[-1].bin) == (local.date(), label):
            span = Window(hours[-1].span.start, span.end)
            hours.pop()
        hours.append(LocalHour(span, local.date(), label))
    return hours


def covers(intervals: Iterable[Window], span: Window) -> bool:
    """Whether one of the intervals holds the whole span."""
    return any(each.start <= span.start and span.end <= each.end for each in intervals)


def merged(windows: Iterable[Window]) -> list[Window]:
    """The same instants as intervals that neither overlap nor touch, in order."""
    result: list[Window] = []
    for each in sorted(windows):
        if result and each.start <= result[-1].end:
            result[-1] = Window(result[-1].start, max(each.end, result[-1].end))
        else:
            result.append(each)
    return result


def clipped(windows: Iterable[Window], bounds: Window) -> list[Window]:
    """The parts of the windows that lie inside the bounds."""
    pairs = ((max(each.start, bounds.start), min(each.end, bounds.end)) for each in windows)
    return [Window(start, end) for start, end in pairs if start < end]


def runs(bins: Collection[int]) -> list[tuple[int, int]]:
    """Hours of the week in a row, as (first bin, length); a run may pass Sunday night."""
    if len(set(bins)) == BINS:
        return [(0, BINS)]
    firsts = [b for b in sorted(bins) if (b - 1) % BINS not in bins]
    return [
        (first, next(n for n in range(1, BINS) if (first + n) % BINS not in bins))
        for first in firsts
    ]


def run_text(first: int, length: int) -> str:
    """A run of hours as a reader writes it: ``Sat 00:00-Mon 00:00``."""
    return f"{_bin_text(first)}-{_bin_text((first + length) % BINS)}"


def _bin_text(label: int) -> str:
    return f"{DAYS[label // 24]} {label % 24:02d}:00"


def _days(text: str, whole: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = _weekday(first, whole), _weekday(last or first, whole)
        found.update((start + n) % 7 for n in range((end - start) % 7 + 1))
    return frozenset(found)


def _weekday(text: str, whole: str) -> int:
    if text.capitalize() not in DAYS:
        raise SettingsError(
            f"{whole!r}: {text!r} is not a day of the week", f"use {', '.join(DAYS)}"
        )
    return DAYS.index(text.capitalize())


def _minutes(text: str, whole: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    total = hours * 60 + minutes
    if minutes > 59 or total > _FULL_DAY:
        raise SettingsError(f"{whole!r}: {text!r} is not a time of day", _HINT)
    return total


def _local_days(window: Window, zone: ZoneInfo, before: int) -> Iterator[date]:
    day = window.start.astimezone(zone).date() - before * _DAY
    while day <= window.end.astimezone(zone).date():
        yield day
        day += _DAY


def _slots(window: Window) -> Iterator[datetime]:
    start = window.start
    while start < window.end:
        yield start
        start += SLOT


def _instant(day: date, minutes: int, zone: ZoneInfo, *, last: bool) -> datetime:
    """The instant at which a local clock shows a time of day.

    Of a doubled time the first counts for a start and the last for an end, so that the whole
    doubled hour is inside; a skipped time is the instant of the change.
    """
    wall = datetime.combine(day, time()) + timedelta(minutes=minutes)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= second:
        return second if last else first
    # The clocks skipped this time: fold 1 lies before the change, fold 0 after it.
    before = second.astimezone(zone).utcoffset()
    moment = second
    while moment < first and moment.astimezone(zone).utcoffset() == before:
        moment += timedelta(minutes=1)
    return moment
