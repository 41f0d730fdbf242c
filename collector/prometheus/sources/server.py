"""A live server: raw samples in chunks, several at a time.

Samples come from range selectors (``metric[1h]``) evaluated at the end of each chunk, never from
an evaluation with look-back: back-filled blocks carry no staleness markers, so a dead series would
live on. Servers disagree on whether the start of a range belongs to it, so that samples are kept
by their own time stamps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import msgspec
import polars as pl

from collector.prometheus.series.catalogue import NODE_INFO, Series
from collector.prometheus.sources.access import Access, from_block
from collector.prometheus.sources.decode import Answer
from collector.prometheus.sources.push import ServerPush, push_down, reading
from collector.prometheus.sources.source import QueryError, Reading, TooMuchError
from collector.prometheus.sources.wire import Wire
from ledger.errors import AccessError
from ledger.facts import Quarantine
from ledger.settings import PrometheusSource
from ledger.window import Window

FIRST_CHUNK = timedelta(hours=1)
LONGEST_CHUNK = timedelta(hours=6)
SHORTEST_CHUNK = timedelta(minutes=5)  # neither chosen nor halved below
CHUNK_ROWS = 250_000
THREADS = 4
_MARK = timedelta(hours=6)  # grain of the first look for the oldest sample
_FARTHEST = timedelta(days=1825)  # 7,300 looks; a range query may have 11,000 points


class Server:
    """Samples from the HTTP API of Prometheus, Thanos, Mimir or VictoriaMetrics.

    Args:
        access: How the server is reached.
        cluster: What the label says of the cluster, if one tells clusters apart.
        cluster_label: That label.
    """

    def __init__(
        self, access: Access, cluster: str | None = None, cluster_label: str | None = None
    ) -> None:
        self._wire = Wire(access, cluster, cluster_label)

    @property
    def asked(self) -> int:
        """Number of requests so far, repeated ones included."""
        return self._wire.tally.asked

    @property
    def largest(self) -> int:
        """Bytes of the largest answer so far, unpacked."""
        return self._wire.tally.largest

    @cached_property
    def push_down(self) -> ServerPush | None:
        """What the server works out itself; None if it does not answer as one that can.

        Raises:
            AccessError: The server refuses us.
            SourceError: The server cannot be reached.
        """
        return push_down(self._wire, self._samples)

    @classmethod
    def from_settings(cls, block: PrometheusSource, cluster: str, base: Path) -> Server:
        """The server of a settings block with a ``url``."""
        return cls(from_block(block, base), block.cluster_value or cluster, block.cluster_label)

    def samples(self, series: Series, window: Window) -> Reading:
        """Raw samples in (start, end].

        The first hour is read alone; the length of the other chunks follows from what it holds.

        Raises:
            QueryError: The server answers, but not about this series.
            AccessError: The server refuses us.
            SourceError: The server cannot be reached.
        """
        return self._samples(series, window, "")

    def _samples(self, series: Series, window: Window, only: str) -> Reading:
        selector = series.metric + self._wire.matcher(only)
        if only:  # few series
            return reading(series.metric, self._chunk(selector, series, window))
        first = Window(window.start, min(window.start + FIRST_CHUNK, window.end))
        parts = self._chunk(selector, series, first)
        rest = _chunks(first.end, window.end, _length(sum(part.frame.height for part in parts)))
        with ThreadPoolExecutor(THREADS) as pool:
            for more in pool.map(lambda chunk: self._chunk(selector, series, chunk), rest):
                parts.extend(more)
        return reading(series.metric, parts)

    def _chunk(self, selector: str, series: Series, chunk: Window) -> list[Answer]:
        """The samples of a chunk; halved where that is too much for the server."""
        seconds = -(-(chunk.end - chunk.start) // timedelta(seconds=1))
        try:
            answer = self._wire.query(f"{selector}[{seconds}s]", chunk.end)
        except TooMuchError:
            middle = chunk.start + (chunk.end - chunk.start) / 2
            if middle - chunk.start < SHORTEST_CHUNK:
                raise
            halves = (Window(chunk.start, middle), Window(middle, chunk.end))
            return [part for half in halves for part in self._chunk(selector, series, half)]
        frame = answer.frame.filter(
            pl.col("timestamp") > chunk.start, pl.col("timestamp") <= chunk.end
        )
        if series.nonzero:
            frame = frame.filter(pl.col("value") != 0)
        return [replace(answer, frame=frame)]

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        """The metrics that the server's index has around the window; all where it has none.

        Raises:
            SourceError: The server cannot be reached.
        """
        selector = self._wire.matcher(f'__name__=~"{"|".join(metrics)}"')
        span = {"start": f"{window.start.timestamp():.3f}", "end": f"{window.end.timestamp():.3f}"}
        try:
            body = self._wire.get("label/__name__/values", {"match[]": selector, **span})
            return frozenset(msgspec.json.decode(body, type=_Names).data) & frozenset(metrics)
        except (AccessError, QueryError, msgspec.DecodeError, UnicodeError):
            return frozenset(metrics)

    def present(self, metrics: Sequence[str]) -> frozenset[str]:
        """The metrics with a sample in the last hour, or else day, of what the server holds."""
        reach = self.reach()
        at = datetime.now(UTC) if reach is None else reach.end
        return frozenset(
            name for name in metrics if self._any(name, "1h", at) or self._any(name, "1d", at)
        )

    def _any(self, metric: str, span: str, at: datetime) -> bool:
        query = f"group(last_over_time({metric}{self._wire.matcher()}[{span}]))"
        return not self._wire.query(query, at).frame.is_empty()

    def refused(self) -> tuple[Quarantine, ...]:
        """None: a server has no files."""
        return ()

    def reach(self) -> Window | None:
        """From the oldest to the newest sample of nodes.

        A look at the last minutes before every sixth hour of what the server says it keeps (at
        most 5 years). From the first and the last hit on, whole spans of six hours, as a look may
        have fallen into a hole; then the raw samples of the outermost ones.
        """
        now = datetime.now(UTC).replace(microsecond=0)
        kept = self._retention()
        oldest = now - -(-kept // _MARK) * _MARK
        marks = self._marks(oldest, now, "15m") or self._marks(oldest, now, "6h")
        if not marks:
            return None
        first, last = marks[0], marks[-1]
        while first > oldest and self._any(NODE_INFO.metric, "6h", first - _MARK):
            first -= _MARK
        while last < now and self._any(NODE_INFO.metric, "6h", last + _MARK):
            last += _MARK
        low = self._ends(Window(first - _MARK, first))
        high = self._ends(Window(last - _MARK, last))
        if low is None or high is None or low.start >= high.end:
            return None
        return Window(low.start.astimezone(UTC), high.end.astimezone(UTC))

    def _marks(self, start: datetime, end: datetime, span: str) -> list[datetime]:
        probe = f"group(last_over_time({NODE_INFO.metric}{self._wire.matcher()}[{span}]))"
        found = self._wire.query_range(probe, start, end, _MARK).frame
        return [time.astimezone(UTC) for time in found["timestamp"].sort()]

    def _ends(self, span: Window) -> Window | None:
        times = (
            self.samples(NODE_INFO, span)
            .frame.select(low=pl.col("timestamp").min(), high=pl.col("timestamp").max())
            .collect()
        )
        low, high = times.row(0)
        if low is None:
            return None
        return Window(low, max(high, low + timedelta(microseconds=1)))

    def _retention(self) -> timedelta:
        """How long the server keeps samples by its own word; stores without one: 5 years."""
        try:
            body = self._wire.get("status/runtimeinfo")
            told = msgspec.json.decode(body, type=_Runtime).data.storageRetention
        except AccessError:
            raise
        except (QueryError, msgspec.DecodeError, UnicodeError):
            return _FARTHEST
        return min(parse_retention(told) or _FARTHEST, _FARTHEST)


class _Names(msgspec.Struct):
    data: list[str]


class _RuntimeData(msgspec.Struct):
    storageRetention: str = ""


class _Runtime(msgspec.Struct):
    data: _RuntimeData = msgspec.field(default_factory=_RuntimeData)


_PIECE = re.compile(r"(\d+)(ms|[smhdwy])")
_DURATION = re.compile(r"(?:\d+(?:ms|[smhdwy]))+")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


def parse_retention(text: str) -> timedelta | None:
    """The time of ``15d``, ``1y2w`` or ``15d or 10GiB``; None if it names none."""
    for part in text.split(" or "):
        found = _DURATION.fullmatch(part.strip())
        if found and part.strip():
            pieces = _PIECE.findall(part)
            return timedelta(seconds=sum(int(count) * _UNITS[unit] for count, unit in pieces))
    return None


def _length(rows: int) -> timedelta:
    """Chunk length that gives about ``CHUNK_ROWS`` if an hour gives ``rows``."""
    if not rows:
        return LONGEST_CHUNK
    minutes = max(1, CHUNK_ROWS * 60 // rows)
    return min(LONGEST_CHUNK, max(SHORTEST_CHUNK, timedelta(minutes=minutes)))


def _chunks(start: datetime, end: datetime, length: timedelta) -> list[Window]:
    count = -(-(end - start) // length) if end > start else 0
    return [
        Window(start + length * number, min(start + length * (number + 1), end))
        for number in range(count)
    ]
