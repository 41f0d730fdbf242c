"""State series of a live server: summaries with their proof, and samples where the proof fails.

What is proven of a series and a cell of time (``summary``): all its values are one, and, where it
tells when something lived, that no hole between its samples is longer than a chain may miss. The
rest is read raw: the things it speaks of, if they are few, else all series of that cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from collector.prometheus.clean import Cleaned, Identity
from collector.prometheus.metric import Series
from collector.prometheus.source import SAMPLES, PushDown, Reading
from collector.prometheus.stretches import Known, unite, usual
from collector.prometheus.summary import CELL, SUMMARY, Wording, decode
from collector.prometheus.wire import literal
from ledger.facts import Gap
from ledger.window import Window

_TEXT = 12_000  # characters of names in a question; VictoriaMetrics takes 16 KiB
_ROUNDS = 2  # of reading what is in doubt; after that, all of it is read raw
_CELLS = ["labels", "cell"]
_STEPS = [timedelta(seconds=seconds) for seconds in (60, 30, 20, 15, 10, 5, 3, 2, 1)]


@dataclass
class States:
    """Reads state series of a span.

    Args:
        push: The server.
        span: What is read, a multiple of ``summary.CELL``.
        window: The day.
        who: Whose samples are kept.
        interval: Usual distance of samples of states.
        gaps: What the server said it left out.
        notes: What else it said.
    """

    push: PushDown
    span: Window
    window: Window
    who: Identity
    interval: timedelta
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _last: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SUMMARY))

    def read(self, series: Series, names: dict[str, float], *, lives: bool) -> Cleaned | None:
        """The series as stretches; None if it has no samples.

        Args:
            series: What is read.
            names: The names under which it is asked for, and what a value under each is times one
                under the series' own.
            lives: Whether holes matter.

        Raises:
            QueryError: It cannot be read so; perhaps its samples can.
            AccessError, SourceError: As ``source.PushDown`` says.
        """
        told = [self._summary(replace(series, metric=name), times) for name, times in names.items()]
        cells = pl.concat(told)
        if cells.is_empty():
            return None
        if lives:
            cells = _without_holes(cells)
        self._last = cells
        return self._settle(series, names, cells)

    def again(self, series: Series, names: dict[str, float], uids: Sequence[str]) -> Cleaned | None:
        """The series that was read last once more, with the raw samples of some uids.

        Raises:
            As ``read``.
        """
        theirs = pl.col("labels").str.json_path_match("$.uid").is_in(list(uids))
        cells = self._last.with_columns(proven=pl.col("proven") & ~theirs.fill_null(value=False))
        return self._settle(series, names, cells)

    def _settle(
        self, series: Series, names: dict[str, float], cells: pl.DataFrame
    ) -> Cleaned | None:
        raw = pl.DataFrame(schema=SAMPLES)
        doubtful = cells.filter(~pl.col("proven")).select(_CELLS)
        for turn in range(_ROUNDS + 2):
            if not doubtful.is_empty():
                more, cells = self._fall_back(
                    series, names, cells, doubtful, everything=turn > _ROUNDS
                )
                raw = pl.concat([raw, more])
            known = Known(cells, raw, self.span.start)
            cleaned, doubtful = unite(known, series, self.window, self.who)
            if doubtful.is_empty():
                break
        return None if cleaned.samples.is_empty() and not cleaned.quarantine else cleaned

    def _summary(self, series: Series, times: float) -> pl.DataFrame:
        plain = not series.valued
        wording = Wording(self.push, self._step)
        asked = wording.ask(series, plain=plain)
        found = self.push.grid(asked, self.span, CELL)
        self._hear(series, found, asked)
        cells = _going_on(decode(found, valued=not plain and not series.nonzero))
        if series.nonzero and self.push.metricsql:  # as many ones as samples: no other value
            cells = _without_holes(cells)
        if series.ceiling is not None:
            fine = pl.col("value") <= series.ceiling
            cells = cells.with_columns(proven=pl.col("proven") & fine)
        if not self.push.metricsql:  # a subquery may step over samples that follow sooner
            distance = (pl.col("last") - pl.col("first")) / pl.max_horizontal(
                pl.col("count") - 1, pl.lit(1)
            )
            slow = (pl.col("count") < 2) | (distance >= 0.9 * self._step)
            cells = cells.with_columns(proven=pl.col("proven") & slow)
        return cells.with_columns(pl.col("value") * times)

    @property
    def _step(self) -> timedelta:
        """A divisor of a quarter of an hour, so that every cell ends on a step."""
        return next((step for step in _STEPS if step <= 1.1 * self.interval), _STEPS[-1])

    def _hear(self, series: Series, reading: Reading, asked: str = "") -> None:
        """Keep what the server said beside an answer, under the name of the series."""

        def named(text: str) -> str:
            return series.metric + text.removeprefix(asked) if asked else text

        told = [Gap(gap.reason, named(gap.detail), gap.amounts) for gap in reading.gaps]
        self.gaps.extend(gap for gap in told if gap not in self.gaps)
        self.notes.extend(map(named, reading.notes))

    def _fall_back(
        self,
        series: Series,
        names: dict[str, float],
        cells: pl.DataFrame,
        doubtful: pl.DataFrame,
        *,
        everything: bool,
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The samples of what is in doubt, and the cells that still stand."""
        label = key_label(series)
        key = pl.col("labels").str.json_path_match(f"$.{label}")
        cells = cells.with_columns(key=key)
        doubtful = doubtful.with_columns(key=key)
        found = []
        for spans, only, keys in _groups(doubtful, self.span, label, everything=everything):
            for name, times in names.items():
                one = replace(series, metric=name)
                reading = self.push.samples(one, spans, only)
                self._hear(one, reading)
                rows = reading.frame.collect()
                found.append(rows if times == 1 else rows.with_columns(pl.col("value") * times))
            start, end = (pl.lit(at, SUMMARY["cell"]) for at in (spans.start, spans.end))
            inside = (pl.col("cell") > start) & (pl.col("cell") <= end)
            theirs = pl.lit(value=True) if keys is None else pl.col("key").is_in(keys)
            cells = cells.filter(~(inside & theirs).fill_null(value=False))
        return pl.concat(found), cells.drop("key")


def key_label(series: Series) -> str:
    """The label that tells best what a series is about."""
    for column in ("uid", *series.identity):
        if column in series.identity and column != "namespace":
            return series.identity[column][0]
    return next(iter(series.identity.values()))[0]


def _groups(
    doubtful: pl.DataFrame, span: Window, label: str, *, everything: bool
) -> list[tuple[Window, str, list[str] | None]]:
    """Spans of time, the matcher and the keys of what is read raw in each; None = all series."""

    def only(keys: pl.Series) -> tuple[str, list[str]] | None:
        if everything or keys.null_count():
            return None
        told = keys.unique().sort().to_list()
        text = "|".join(literal(key) for key in told)
        return None if len(text) > _TEXT else (f'{label}=~"{text}"', told)

    whole = only(doubtful["key"])
    if whole is not None:
        return [(span, *whole)]
    if everything:
        return [(span, "", None)]
    groups: list[tuple[Window, str, list[str] | None]] = []
    for (cell,), rows in doubtful.group_by("cell", maintain_order=True):
        end = _utc(cell)
        chosen = only(rows["key"])
        groups.append((Window(end - CELL, end), *(chosen or ("", None))))
    return groups


def _utc(moment: object) -> datetime:
    if not isinstance(moment, datetime):
        raise TypeError(f"{moment} is no time")
    return moment.astimezone(UTC)


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


def _without_holes(cells: pl.DataFrame) -> pl.DataFrame:
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
