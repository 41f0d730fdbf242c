"""Ask a server for summaries of state series, in the words that it knows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.samples import rollups
from collector.prometheus.samples.stretches import usual
from collector.prometheus.samples.summary import CELL, SUMMARY, Wording, decode
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.push import PARALLEL
from collector.prometheus.sources.source import PushDown, Reading, SlowError, TooMuchError
from ledger.window import Window

_STEPS = [timedelta(seconds=seconds) for seconds in (60, 30, 20, 15, 10, 5, 3, 2, 1)]
_HALVES = 4  # how often series are halved where an answer would be too large
_EVEN = "02468acegikmoqsuwyACEGIKMOQSUWY"

Hear = Callable[[Series, Reading, str], None]


@dataclass(frozen=True)
class Asking:
    """Asks for summaries.

    Args:
        push: The server.
        span: What is read.
        interval: Usual distance of samples of states.
        hear: Told of each answer: the series, the answer and the question.
    """

    push: PushDown
    span: Window
    interval: timedelta
    hear: Hear

    def cells(self, series: Series, only: str, cell: timedelta) -> pl.DataFrame:
        """Rows of ``SUMMARY``; ``cell`` is null where there is one for the whole span.

        Args:
            series: What is asked about.
            only: Further matchers.
            cell: Length of cells; other than ``CELL`` only of a server that knows MetricsQL.

        Raises:
            As ``PushDown.grid``.
        """
        if self.push.metricsql:
            found = self._rolled(series, only, cell, 0)
        else:
            found = self._worded(series, only)
        if series.ceiling is not None:
            fine = pl.col("value") <= series.ceiling
            found = found.with_columns(proven=pl.col("proven") & fine)
        if cell == CELL:
            return found
        return found.with_columns(cell=pl.lit(None, SUMMARY["cell"]))

    def _rolled(self, series: Series, only: str, cell: timedelta, turn: int) -> pl.DataFrame:
        asked = list(rollups.questions(self.push, series, cell, only, telling(series)))

        def ask(promql: str) -> Reading:
            return self.push.grid(promql, self.span, cell)

        try:
            with ThreadPoolExecutor(PARALLEL) as pool:
                answers = list(pool.map(ask, [promql for promql, _ in asked]))
        except SlowError:
            raise
        except TooMuchError:
            if turn == _HALVES:
                raise
            even = f'{key_label(series)}@~".*[{_EVEN}]{"." * turn}"'
            halves = [
                ",".join(part for part in (only, even.replace("@", sign)) if part) for sign in "=!"
            ]
            return pl.concat([self._rolled(series, half, cell, turn + 1) for half in halves])
        for (promql, _), answer in zip(asked, answers, strict=True):
            self.hear(series, answer, promql)
        marks = [mark for _, mark in asked]
        frames = [answer.frame.collect() for answer in answers]
        cells = rollups.decode(list(zip(frames, marks, strict=True)), series)
        return without_holes(cells) if series.nonzero else cells

    def _worded(self, series: Series, only: str) -> pl.DataFrame:
        plain = not series.valued
        asked = Wording(self.push, self._step).ask(series, only, plain=plain)
        found = self.push.grid(asked, self.span, CELL)
        self.hear(series, found, asked)
        cells = _going_on(decode(found, valued=not plain and not series.nonzero))
        # A subquery may step over samples that follow sooner.
        distance = (pl.col("last") - pl.col("first")) / pl.max_horizontal(
            pl.col("count") - 1, pl.lit(1)
        )
        slow = (pl.col("count") < 2) | (distance >= 0.9 * self._step)
        return cells.with_columns(proven=pl.col("proven") & slow)

    @property
    def _step(self) -> timedelta:
        """A divisor of a quarter of an hour, so that every cell ends on a step."""
        return next((step for step in _STEPS if step <= 1.1 * self.interval), _STEPS[-1])


def key_label(series: Series) -> str:
    """The label that tells best what a series is about."""
    for column in ("uid", *series.identity):
        if column in series.identity and column != "namespace":
            return series.identity[column][0]
    return next(iter(series.identity.values()))[0]


def telling(series: Series) -> list[str]:
    """Labels that tell most series of a metric apart."""
    return [key_label(series), *(labels[0] for labels in series.info.values())]


def _going_on(cells: pl.DataFrame) -> pl.DataFrame:
    """Fill the first sample of cells that a series goes on into, where nothing changed before."""
    ordered = cells.sort("labels", "cell")
    before = (pl.col("labels") == pl.col("labels").shift()) & (
        pl.col("cell") == pl.col("cell").shift() + CELL
    )
    same = before & pl.col("proven").shift() & (pl.col("value") == pl.col("value").shift())
    start = pl.when(same).then(pl.col("last").shift())
    opens = pl.col("cell") == pl.col("cell").min()
    span = (pl.col("last") - pl.col("cell") + CELL) / pl.col("count")
    distance = pl.when(same).then((pl.col("last") - start) / pl.col("count")).otherwise(span)
    guess = pl.when(same | opens).then(pl.col("last") - (pl.col("count") - 1) * distance)
    return ordered.with_columns(first=pl.coalesce("first", guess)).with_columns(
        proven=pl.col("proven") & pl.col("first").is_not_null()
    )


def without_holes(cells: pl.DataFrame) -> pl.DataFrame:
    """Prove only cells in which at most one sample is missing, and none is too many."""
    interval = usual(
        cells.filter("proven").select("count", time="first", until="last"),
        pl.DataFrame(schema={"series": pl.UInt32, "time": SUMMARY["cell"]}),
    )
    span = (pl.col("last") - pl.col("first")).dt.total_microseconds()
    expected = (span / (interval / timedelta(microseconds=1))).round() + 1
    fine = (pl.col("count") >= expected - 1) & (pl.col("count") <= expected)
    fine = fine & (pl.col("count") > 0)
    return cells.with_columns(proven=pl.col("proven") & fine.fill_null(value=False))
