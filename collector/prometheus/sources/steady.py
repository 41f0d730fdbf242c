"""A source that goes away half-way: what was read stays, and the rest is a gap.

Before the first answer an unreachable server is an unreachable source. After it, whatever is asked
for fails at once, as an error of that one query, so that the day closes with what is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import (
    PushDown,
    QueryError,
    Reading,
    SampleSource,
    SlowError,
)
from ledger.errors import AccessError, SourceError
from ledger.facts import Quarantine
from ledger.window import Window

SLOW = 2
"""So many subjects in a row without a reply in time mean that the server hangs: one that is asked
about anew, sample by sample, may only be too much for it."""

T = TypeVar("T")


class Patience:
    """Whether a source is still worth asking."""

    def __init__(self) -> None:
        self._answered = False
        self._slow: list[str] = []
        self._lost: SourceError | None = None

    def ask(self, question: Callable[[], T], about: str = "") -> T:
        """The answer to a question.

        Args:
            question: Asks it.
            about: A metric, or a query with its name.

        Raises:
            QueryError: The source is lost since it answered last, or cannot answer this.
            AccessError, SourceError: As the question.
        """
        if self._lost is not None:
            raise QueryError(f"not asked any more: {self._lost.message}", self._lost.hint)
        try:
            answer = question()
        except SlowError as error:
            if not any(_same(one, about) for one in self._slow):
                self._slow.append(about)
            if len(self._slow) >= SLOW:
                self._lost = error
            raise
        except (QueryError, AccessError):
            self._slow.clear()
            raise
        except SourceError as error:
            if not self._answered:
                raise
            self._lost = error
            raise QueryError(f"lost half-way: {error.message}", error.hint) from error
        self._answered = True
        self._slow.clear()
        return answer


def _same(one: str, other: str) -> bool:
    """Whether two subjects are the same metric, asked about in two ways."""
    return bool(one and other) and (one in other or other in one)


class Steady:
    """A ``SampleSource`` that is given up once it is lost.

    Args:
        source: The source.
    """

    def __init__(self, source: SampleSource) -> None:
        self._source = source
        self._patience = Patience()
        self._push_down: _Steady | None = None

    @property
    def push_down(self) -> PushDown | None:
        """As of the source; once it is lost, what it was before, of which each question says so."""
        if self._push_down is None:  # what is known is no answer of a server that hangs
            with suppress(QueryError):
                inner = self._patience.ask(lambda: self._source.push_down)
                self._push_down = None if inner is None else _Steady(inner, self._patience)
        return self._push_down

    def samples(self, series: Series, window: Window) -> Reading:
        """As of the source."""
        return self._patience.ask(lambda: self._source.samples(series, window), series.metric)

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        """As of the source; all of them once it is lost: asking for each says so."""
        try:
            return self._patience.ask(lambda: self._source.held(metrics, window))
        except QueryError:
            return frozenset(metrics)

    def present(self, metrics: Sequence[str]) -> frozenset[str]:
        """As of the source."""
        return self._patience.ask(lambda: self._source.present(metrics))

    def refused(self) -> Sequence[Quarantine]:
        """As of the source."""
        return self._source.refused()

    def reach(self) -> Window | None:
        """As of the source."""
        return self._patience.ask(self._source.reach)


class _Steady:
    """What a steady source's server works out."""

    def __init__(self, inner: PushDown, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    @property
    def metricsql(self) -> bool:
        """As of the server."""
        return self._inner.metricsql

    def span(self, length: timedelta) -> str:
        """As of the server."""
        return self._inner.span(length)

    def matcher(self, extra: str = "") -> str:
        """As of the server."""
        return self._inner.matcher(extra)

    def at(self, promql: str, time: datetime) -> Reading:
        """As of the server."""
        return self._patience.ask(lambda: self._inner.at(promql, time), promql)

    def grid(self, promql: str, window: Window, step: timedelta) -> Reading:
        """As of the server."""
        return self._patience.ask(lambda: self._inner.grid(promql, window, step), promql)

    def samples(self, series: Series, window: Window, only: str) -> Reading:
        """As of the server."""
        return self._patience.ask(lambda: self._inner.samples(series, window, only), series.metric)
