"""What a live server works out itself: summaries instead of samples.

Servers differ in two ways that matter, so that they are asked once:

- whether the start of a range belongs to it (in Prometheus 2 it does; in Prometheus 3 and
  VictoriaMetrics it does not). Samples have milliseconds: a range shorter by one leaves the start
  out;
- whether they know MetricsQL, which summarises in several ways in one pass over the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from collector.prometheus.series.metric import Series
from collector.prometheus.sources.decode import Answer
from collector.prometheus.sources.session import LARGEST
from collector.prometheus.sources.source import QueryError, Reading, TooMuchError
from collector.prometheus.sources.wire import Wire
from ledger.facts import Gap
from ledger.window import Window

PARALLEL = 2  # answers of tens of megabytes that are read at a time
_ROOM = LARGEST * 3 // 5  # aimed at, as series may be more later than in the first part
_MOST_STEPS = 10_000  # Prometheus gives at most 11,000 points of a series
_FIRST = 8  # a first look at a grid takes an eighth of it
EDGE = "count_over_time({}[20s:10s])"  # at a multiple of 10 s: 3 points if both ends belong
_PLAIN = "vector(1)"
METRICSQL = 'label_set(vector(1),"a","b")'
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class ServerPush:
    """Summaries that a server works out.

    Args:
        wire: The server.
        raw: Reads the raw samples of a series, of those that further matchers name.
        closed: Whether the start of a range belongs to it.
        metricsql: Whether it knows MetricsQL.
    """

    wire: Wire
    raw: Callable[[Series, Window, str], Reading]
    closed: bool
    metricsql: bool

    def span(self, length: timedelta) -> str:
        """A range selector that holds exactly the samples in (t - length, t]."""
        seconds = length // timedelta(seconds=1)
        if self.closed:
            whole = length - _MILLISECOND
            seconds, rest = divmod(whole // _MILLISECOND, 1000)
            return f"[{seconds}s{rest}ms]" if rest else f"[{seconds}s]"
        return f"[{seconds}s]"

    def matcher(self, extra: str = "") -> str:
        """``{…}`` of the cluster's series and what is asked beside."""
        return self.wire.matcher(extra)

    def samples(self, series: Series, window: Window, only: str) -> Reading:
        """Raw samples of the series that further matchers name.

        Raises:
            As ``Server.samples``.
        """
        return self.raw(series, window, only)

    def at(self, promql: str, time: datetime) -> Reading:
        """An instant query.

        Raises:
            TooMuchError, QueryError, AccessError, SourceError: As ``source.PushDown`` says.
        """
        return reading(promql, [self.wire.query(promql, time)])

    def grid(self, promql: str, window: Window, step: timedelta) -> Reading:
        """A range query at start + step, start + 2 step, … up to end.

        The first eighth tells how large the rest is.

        Raises:
            TooMuchError, QueryError, AccessError, SourceError: As ``source.PushDown`` says.
        """
        count = (window.end - window.start) // step
        if count < 1:
            return reading(promql, [])
        ask = _Grid(self.wire, promql, window.start, step)
        if count <= _FIRST:
            return reading(promql, ask.steps(1, count))
        first = min(-(-count // _FIRST), _MOST_STEPS)
        parts = ask.steps(1, first)
        length = _steps_that_fit(parts, first)
        starts = range(first + 1, count + 1, length)
        with ThreadPoolExecutor(PARALLEL) as pool:
            for more in pool.map(lambda low: ask.steps(low, min(low + length - 1, count)), starts):
                parts.extend(more)
        return reading(promql, parts)


@dataclass(frozen=True)
class _Grid:
    """A range query in parts."""

    wire: Wire
    promql: str
    start: datetime
    step: timedelta

    def steps(self, low: int, high: int) -> list[Answer]:
        """The answers at steps ``low`` to ``high``; halved where that is too much."""
        start, end = (self.start + number * self.step for number in (low, high))
        try:
            return [self.wire.query_range(self.promql, start, end, self.step)]
        except TooMuchError:
            if low == high:
                raise
            middle = (low + high) // 2
            return [*self.steps(low, middle), *self.steps(middle + 1, high)]


def _steps_that_fit(parts: list[Answer], steps: int) -> int:
    labels = max(part.label_bytes + 64 * part.series for part in parts)
    points = max(1, sum(part.point_bytes for part in parts)) / steps
    return max(1, min(_MOST_STEPS, int((_ROOM - labels) / points)))


def reading(promql: str, answers: list[Answer]) -> Reading:
    """Answers as one reading; what the server left out is a gap."""
    warnings = dict.fromkeys(text for answer in answers for text in answer.warnings)
    infos = dict.fromkeys(text for answer in answers for text in answer.infos)
    frames = [answer.frame for answer in answers]
    return Reading(
        pl.concat([Answer().frame, *frames]).lazy(),
        gaps=tuple(Gap("partial_response", f"{promql}: {text}") for text in warnings),
        notes=tuple(f"{promql}: {text}" for text in infos),
    )


def push_down(wire: Wire, raw: Callable[[Series, Window, str], Reading]) -> ServerPush | None:
    """What the server can work out; None if it does not answer as one that can.

    Raises:
        AccessError: The server refuses us.
        SourceError: The server cannot be reached.
    """
    now = datetime.now(UTC)
    at = now.replace(second=now.second // 10 * 10, microsecond=0)
    points = None
    metricsql = True
    for inner in (METRICSQL, _PLAIN):
        try:
            found = wire.query(EDGE.format(inner), at).frame
        except QueryError:
            metricsql = False
            continue
        points = found["value"][0] if found.height == 1 else None
        break
    if points not in (2.0, 3.0):
        return None
    if metricsql:
        wire.more = {"nocache": "1"}
    return ServerPush(wire, raw, points == 3.0, metricsql)
