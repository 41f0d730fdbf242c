"""A live server: raw samples in chunks, several at a time.

Samples come from range selectors (``metric[1h]``) evaluated at the end of each chunk, never from
an evaluation with look-back: back-filled blocks carry no staleness markers, so a dead series would
live on. Servers disagree on whether the start of a range belongs to it, so that samples are kept
by their own time stamps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Event

import msgspec
import polars as pl

from collector.prometheus.access import Access, from_block
from collector.prometheus.link import Answer, Link, Matrix, TooMuchError
from collector.prometheus.series import NODE_INFO, Series
from collector.prometheus.source import SAMPLES, QueryError, Reading
from ledger.errors import AccessError
from ledger.facts import Gap, Quarantine
from ledger.settings import PrometheusSource
from ledger.text import canonical_json
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
        cluster: Name of the cluster, if a label tells clusters apart.
        cluster_label: That label.
    """

    def __init__(
        self, access: Access, cluster: str | None = None, cluster_label: str | None = None
    ) -> None:
        self._access = access
        # Series without the label are asked for as well: they are to be counted, not overlooked.
        self._matcher = (
            ""
            if not (cluster and cluster_label)
            else (f'{{{cluster_label}=~"|{_literal(cluster)}"}}')
        )
        self._and_ours = f",{self._matcher[1:-1]}" if self._matcher else ""
        self._answered = Event()
        self._links: LifoQueue[Link] = LifoQueue()

    @classmethod
    def from_settings(cls, block: PrometheusSource, cluster: str, base: Path) -> Server:
        """The server of a settings block with a ``url``."""
        return cls(from_block(block, base), cluster, block.cluster_label)

    @contextmanager
    def _link(self) -> Iterator[Link]:
        """A connection that nobody else uses meanwhile; kept for the next."""
        try:
            link = self._links.get_nowait()
        except Empty:
            link = Link(self._access, self._answered)
        try:
            yield link
        finally:
            self._links.put(link)

    def _query(self, promql: str, at: datetime) -> Answer:
        with self._link() as link:
            return link.query(promql, at)

    def samples(self, series: Series, window: Window) -> Reading:
        """Raw samples in (start, end].

        The first hour is read alone; the length of the other chunks follows from what it holds.

        Raises:
            QueryError: The server answers, but not about this series.
            AccessError: The server refuses us.
            SourceError: The server cannot be reached.
        """
        first = Window(window.start, min(window.start + FIRST_CHUNK, window.end))
        parts = [self._chunk(series, first)]
        rest = _chunks(first.end, window.end, _length(parts[0][0].height))
        with ThreadPoolExecutor(THREADS) as pool:
            parts.extend(pool.map(lambda chunk: self._chunk(series, chunk), rest))
        warnings = dict.fromkeys(text for part in parts for text in part[1].warnings)
        infos = dict.fromkeys(text for part in parts for text in part[1].infos)
        return Reading(
            pl.concat([part[0] for part in parts]).lazy(),
            gaps=tuple(Gap("partial_response", f"{series.metric}: {text}") for text in warnings),
            notes=tuple(f"{series.metric}: {text}" for text in infos),
        )

    def _chunk(self, series: Series, chunk: Window) -> tuple[pl.DataFrame, Answer]:
        """The samples of a chunk; halved where that is too much for the server."""
        seconds = -(-(chunk.end - chunk.start) // timedelta(seconds=1))
        try:
            answer = self._query(f"{series.metric}{self._matcher}[{seconds}s]", chunk.end)
        except TooMuchError:
            middle = chunk.start + (chunk.end - chunk.start) / 2
            if middle - chunk.start < SHORTEST_CHUNK:
                raise
            halves = [
                self._chunk(series, half)
                for half in (Window(chunk.start, middle), Window(middle, chunk.end))
            ]
            return pl.concat([half[0] for half in halves]), Answer(
                [],
                (*halves[0][1].warnings, *halves[1][1].warnings),
                (*halves[0][1].infos, *halves[1][1].infos),
            )
        frame = to_frame(answer.series).filter(
            pl.col("timestamp") > chunk.start, pl.col("timestamp") <= chunk.end
        )
        if series.nonzero:
            frame = frame.filter(pl.col("value") != 0)
        return frame, Answer([], answer.warnings, answer.infos)

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        """The metrics that the server's index has around the window; all where it has none.

        Raises:
            SourceError: The server cannot be reached.
        """
        selector = f'{{__name__=~"{"|".join(metrics)}"{self._and_ours}}}'
        span = {"start": f"{window.start.timestamp():.3f}", "end": f"{window.end.timestamp():.3f}"}
        try:
            with self._link() as link:
                body = link.get("label/__name__/values", {"match[]": selector, **span})
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
        query = f"group(last_over_time({metric}{self._matcher}[{span}]))"
        return bool(self._query(query, at).series)

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
        probe = f"group(last_over_time({NODE_INFO.metric}{self._matcher}[{span}]))"
        with self._link() as link:
            answer = link.query_range(probe, start, end, _MARK.total_seconds())
        times = sorted(time for series in answer.series for time, _ in series.values)
        return [datetime.fromtimestamp(time, UTC) for time in times]

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
            with self._link() as link:
                body = link.get("status/runtimeinfo")
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


def _literal(text: str) -> str:
    """A text inside a regular expression inside a PromQL string."""
    return re.escape(text).replace("\\", "\\\\").replace('"', '\\"')


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


def to_frame(series: Sequence[Matrix]) -> pl.DataFrame:
    """The samples of a reply, as ``SAMPLES``; time stamps to the millisecond."""
    pairs = list(chain.from_iterable(one.values for one in series))
    if not pairs:
        return pl.DataFrame(schema=SAMPLES)
    seconds, values = zip(*pairs, strict=True)
    labels = pl.DataFrame(
        {
            "labels": [
                canonical_json(
                    {key: value for key, value in one.metric.items() if key != "__name__"}
                )
                for one in series
            ],
            "count": [len(one.values) for one in series],
        }
    )
    repeated = labels.select(pl.col("labels").repeat_by("count").explode())["labels"].drop_nulls()
    return pl.DataFrame(
        {
            "labels": repeated,
            "timestamp": pl.Series(seconds, dtype=pl.Float64),
            "value": pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False),
        }
    ).with_columns(
        timestamp=(pl.col("timestamp") * 1000)
        .round()
        .cast(pl.Int64)
        .cast(pl.Datetime("ms"))
        .dt.replace_time_zone("UTC")
        .cast(SAMPLES["timestamp"])
    )
