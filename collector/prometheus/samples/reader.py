"""Read the series of one day, cleaned, and keep the account of what was missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

import polars as pl

from collector.prometheus.samples.clean import Cleaned, clean
from collector.prometheus.samples.label_sets import Identity
from collector.prometheus.samples.states import States
from collector.prometheus.samples.summary import CELL
from collector.prometheus.series.catalogue import (
    ALL,
    FALLBACKS,
    MARGIN,
    NODE_INFO,
    POD_INFO,
    USUAL_INTERVAL,
)
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.session import TransientError
from collector.prometheus.sources.source import PushDown, QueryError, SampleSource
from ledger.facts import Gap, Quarantine
from ledger.window import Window


class Reader:
    """Reads series of a window plus one margin, and gathers gaps, quarantine and notes.

    Args:
        source: Where samples come from.
        who: Whose samples are kept.
        window: The day.
    """

    def __init__(self, source: SampleSource, who: Identity, window: Window) -> None:
        self.source = source
        self.who = who
        self.window = window
        self.wide = window.widened(MARGIN)
        self.gaps: list[Gap] = []
        self.quarantine: list[Quarantine] = []
        self.notes: list[str] = []
        self.newest: datetime | None = None
        self.asked = 0
        self.samples = 0
        self.failures: list[QueryError] = []
        self._lives: States | None = None
        self.interval = USUAL_INTERVAL
        """Usual distance of samples of states; as of the series that was read first."""

    def read(self, series: Series) -> Cleaned | None:
        """The series, or the first of its fallbacks that has samples; None = nothing of it.

        Raises:
            AccessError: The source refuses us.
            SourceError: The source cannot be reached.
        """
        return self._first(series, self.read_one)

    def read_lives(self, series: Series) -> Cleaned | None:
        """As ``read``; samples may be stretches (``until``, ``count``) without a hole.

        Raises:
            AccessError, SourceError: As ``read``.
        """
        return self._first(series, lambda one: self._stretches(one, lives=True))

    def read_lives_again(self, series: Series, uids: Sequence[str] | None) -> Cleaned | None:
        """What ``read_lives`` read last, with the raw samples of some uids; None = of all.

        Raises:
            AccessError, SourceError: As ``read``.
        """
        if uids is None or self._lives is None:
            return self.read(series)
        names = {name: series.also.get(name, 1.0) for name in self.names(series)}
        states = self._lives
        try:
            return states.again(series, names, uids)
        except QueryError:
            return self.read(series)

    def read_states(self, series: Series) -> Cleaned | None:
        """As ``read``; samples may be stretches (``until``, ``count``) in which nothing changed.

        Raises:
            AccessError, SourceError: As ``read``.
        """
        return self._first(series, lambda one: self._stretches(one, lives=False))

    def _first(self, series: Series, read: Callable[[Series], Cleaned | None]) -> Cleaned | None:
        failed = len(self.failures)
        for candidate in (series, *FALLBACKS.get(series.metric, ())):
            found = read(candidate)
            if found is not None:
                if candidate is not series:
                    self.notes.append(
                        f"{series.metric} has no samples; {candidate.metric} was read instead"
                    )
                return found
        if not series.optional and len(self.failures) == failed:
            self.gaps.append(no_series(series, self.window))
        return None

    def read_steps(
        self, series: Series, parts: int = 1, *, whole: bool = False
    ) -> pl.DataFrame | None:
        """When a series changed: its columns, ``time`` and ``value``, without repetitions.

        Args:
            series: A series of states, amounts or labels, without fallbacks.
            parts: Into how many spans the window is cut, so that only one of them is in memory.
            whole: Where a server summarises, give all stretches, with ``until``.
        """
        failed = len(self.failures)
        if self._push is not None:
            found = self._stretches(series, lives=False)
            if found is None and not series.optional and len(self.failures) == failed:
                self.gaps.append(no_series(series, self.window))
            if found is None:
                return None
            if whole:
                return found.frame.drop("ident", "meaning", "count", strict=False)
            return found.steps.drop("ident", "meaning", "until", "count", strict=False)
        length = (self.wide.end - self.wide.start) / parts
        pieces = []
        for number in range(parts):
            start = self.wide.start + number * length
            end = self.wide.end if number == parts - 1 else start + length
            piece = self._read(series, Window(start, end), first=number == 0)
            if piece is not None:
                pieces.append(piece.steps.drop("ident", "meaning"))
            elif len(self.failures) > failed:
                return None
        if not pieces and not series.optional:
            self.gaps.append(no_series(series, self.window))
        return pl.concat(pieces) if pieces else None

    def read_one(self, series: Series) -> Cleaned | None:
        """Exactly this series; None if it has no plausible samples or its query failed."""
        return self._read(series, self.wide)

    @cached_property
    def _push(self) -> PushDown | None:
        """What the source works out itself, if the span fits its cells."""
        fits = not (self.wide.end - self.wide.start) % CELL
        return self.source.push_down if fits else None

    def _stretches(self, series: Series, *, lives: bool) -> Cleaned | None:
        """The series as stretches; as samples where the source has nothing else."""
        push = self._push
        names = self.names(series)
        if push is None or not names:
            return self.read_one(series)
        states = States(push, self.wide, self.window, self.who, self.interval)
        if lives:
            self._lives = states
        try:
            cleaned = states.read(
                series, {name: series.also.get(name, 1.0) for name in names}, lives=lives
            )
        except TransientError as error:
            self.asked += 1
            self._failed(series, series.metric, error)
            return None
        except QueryError:  # a store that cannot summarise, or not so much
            return self.read_one(series)
        self.asked += len(names)
        self.gaps.extend(gap for gap in states.gaps if gap not in self.gaps)
        self.notes.extend(states.notes)
        return None if cleaned is None else self._keep(cleaned)

    def names(self, series: Series) -> list[str]:
        """The names under which the series is asked for: its own unless it is optional, and others.

        What is optional is first looked for among the names that the source holds.
        """
        own = [] if series.optional and series.metric not in self._held else [series.metric]
        return [*own, *(name for name in series.also if name in self._held)]

    @cached_property
    def _held(self) -> frozenset[str]:
        """What the source holds; an answer that lacks what every cluster has tells nothing."""
        optional = {name for series in ALL if series.optional for name in series.names}
        wanted = optional | {name for series in ALL for name in series.also}
        usual = {NODE_INFO.metric, POD_INFO.metric}
        held = self.source.held(sorted(wanted | usual), self.wide)
        return held if usual & held else frozenset(wanted)

    def _read(self, series: Series, span: Window, *, first: bool = True) -> Cleaned | None:
        parts = []
        for name in self.names(series):
            part = self._raw(series, name, span)
            if part is None:
                return None
            parts.append(part)
        if not parts:
            return None
        cleaned = clean(pl.concat(parts), series, self.window, self.who)
        return self._keep(cleaned, first=first)

    def _keep(self, cleaned: Cleaned, *, first: bool = True) -> Cleaned | None:
        aside = [  # absurd times belong to no span; each span sees them all
            entry for entry in cleaned.quarantine if first or entry.reason != "out_of_window"
        ]
        self.quarantine.extend(aside)
        absurd = sum(entry.count for entry in aside if entry.reason == "out_of_window")
        self.samples += cleaned.read + absurd
        self.notes.extend(cleaned.notes)
        self._see(cleaned.samples)
        return None if cleaned.samples.is_empty() else cleaned

    def _raw(self, series: Series, name: str, span: Window) -> pl.DataFrame | None:
        """The samples of a series under one of its names; None if its query failed."""
        self.asked += 1
        try:
            reading = self.source.samples(replace(series, metric=name), span)
            raw = reading.frame.collect()
        except QueryError as error:
            self._failed(series, name, error)
            return None
        self.gaps.extend(gap for gap in reading.gaps if gap not in self.gaps)
        self.quarantine.extend(  # a broken file is one, however many series are read
            entry for entry in reading.quarantine if entry not in self.quarantine
        )
        self.notes.extend(reading.notes)
        times = series.also.get(name, 1.0)
        return raw if times == 1 else raw.with_columns(pl.col("value") * times)

    def _failed(self, series: Series, name: str, error: QueryError) -> None:
        self.failures.append(error)
        blind = series.blind or series.metric
        self.gaps.append(Gap("query_failed", f"{name}: {error.message}; blind: {blind}"))

    def _see(self, samples: pl.DataFrame) -> None:
        newest = samples["until" if "until" in samples.columns else "time"].max()
        if isinstance(newest, datetime):
            newest = newest.astimezone(UTC)
            self.newest = max(newest, self.newest or newest)


def no_series(series: Series, window: Window) -> Gap:
    """The gap of a series without samples."""
    return Gap("no_series", f"{series.metric} has no samples in {window}; blind: {series.blind}")
