"""The seam between where samples come from and what is made of them.

Everything behind ``SampleSource`` differs (a live server, a folder of Parquet files); everything
in front of it is shared, so that both give the same facts of the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import polars as pl

from collector.prometheus.series.metric import Series
from ledger.errors import SourceError
from ledger.facts import Gap, Quarantine
from ledger.schema import TIME
from ledger.window import Window

SAMPLES: dict[str, pl.DataType] = {"labels": pl.String(), "timestamp": TIME, "value": pl.Float64()}


class QueryError(SourceError):
    """The source answers, but not about this one series."""


class TooMuchError(QueryError):
    """The amount of samples or the time was too much; a shorter range may do."""


class SlowError(TooMuchError):
    """There was no reply in time: too much was asked for, or the server hangs."""


@dataclass(frozen=True)
class Reading:
    """The raw samples of one metric.

    Args:
        frame: ``labels`` String (canonical JSON object: sorted keys, no blanks, no ``__name__``),
            ``timestamp`` Datetime(us, UTC), ``value`` Float64. Samples carry their own time
            stamps, in (start, end]; a source that can hold absurd ones hands those over as well.
            Rows in any order, possibly several times.
        gaps: What the source said it left out.
        quarantine: Files or replies that were put aside.
        notes: What else it said.
    """

    frame: pl.LazyFrame
    gaps: tuple[Gap, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()
    notes: tuple[str, ...] = ()


class PushDown(Protocol):
    """What a server can work out itself, so that samples need not travel.

    A summary is only worth what proves it: where the proof fails, the raw samples are read.
    """

    @property
    def metricsql(self) -> bool:
        """Whether it knows the functions of VictoriaMetrics (``aggr_over_time``, ...)."""
        ...

    def span(self, length: timedelta) -> str:
        """A range selector that holds exactly the samples in (t - length, t]: ``[900s]``."""
        ...

    def matcher(self, extra: str = "") -> str:
        """``{…}``: the cluster's series, series without its label included, and what is asked.

        Args:
            extra: Further matchers, as in ``phase="Running",uid=~"a|b"``.
        """
        ...

    def at(self, promql: str, time: datetime) -> Reading:
        """An instant query; the frame has a row per series, time stamps are ``time``.

        Raises:
            TooMuchError: The answer is too large, or the server would have to read too much.
            QueryError: It cannot answer this query.
            AccessError: The source refuses us.
            SourceError: The source cannot be reached.
        """
        ...

    def grid(self, promql: str, window: Window, step: timedelta) -> Reading:
        """A range query at start + step, start + 2 step, … up to end, in as few parts as fit.

        Raises:
            As ``at``.
        """
        ...

    def samples(self, series: Series, window: Window, only: str) -> Reading:
        """Raw samples, as of ``SampleSource``, of the series that further matchers name.

        Raises:
            As ``SampleSource.samples``.
        """
        ...


class SampleSource(Protocol):
    """Where raw samples come from."""

    @property
    def push_down(self) -> PushDown | None:
        """What the source can work out itself; None if it only has samples.

        Raises:
            AccessError: The source refuses us.
            SourceError: The source cannot be reached.
        """
        ...

    def samples(self, series: Series, window: Window) -> Reading:
        """All samples of a metric in (start, end] by their own time stamps, never by look-back.

        Where ``series.nonzero`` is set, samples of value 0 may be left out at the source.

        Raises:
            QueryError: This series cannot be read; others may be.
            AccessError: The source refuses us.
            SourceError: The source cannot be reached.
        """
        ...

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        """Which of the metrics may have samples in the window; one cheap question.

        Others have none. A source that cannot tell names all.

        Raises:
            SourceError: The source cannot be reached.
        """
        ...

    def present(self, metrics: Sequence[str]) -> frozenset[str]:
        """Which of the metrics have samples near the end of what is held; cheap.

        Raises:
            SourceError: The source cannot be reached (or ``AccessError``).
        """
        ...

    def refused(self) -> Sequence[Quarantine]:
        """Files that cannot be read at all; a server has none."""
        ...

    def reach(self) -> Window | None:
        """From the oldest to the newest sample held; None if there is none or it cannot tell.

        Raises:
            SourceError: The source cannot be reached (or ``AccessError``).
        """
        ...
