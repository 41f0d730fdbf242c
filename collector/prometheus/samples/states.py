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

from collector.prometheus.samples.asking import Asking, key_label, without_holes
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.label_sets import Identity
from collector.prometheus.samples.stretches import Known, unite
from collector.prometheus.samples.summary import CELL, SUMMARY
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import SAMPLES, PushDown, Reading
from collector.prometheus.sources.wire import literal
from ledger.facts import Gap
from ledger.window import Window

_TEXT = 12_000  # characters of names in a question; VictoriaMetrics takes 16 KiB
_ROUNDS = 2  # of reading what is in doubt; after that, all of it is read raw
_CELLS = ["labels", "cell"]


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
    _lives: bool = False
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
        self._lives = lives
        day = self.span.end - self.span.start
        cells = self._told(series, names, "", day if self.push.metricsql else CELL)
        if cells.is_empty():
            return None
        self._last = cells
        return self._settle(series, names, cells)

    def again(self, series: Series, names: dict[str, float], uids: Sequence[str]) -> Cleaned | None:
        """The series that was read last once more, with the raw samples of some uids.

        Raises:
            As ``read``.
        """
        uid = pl.col("labels").str.json_path_match("$.uid")
        theirs = uid.is_in(list(uids)).fill_null(value=False)
        cells = self._cut_up(series, names, self._last, self._last.filter(theirs))
        cells = cells.with_columns(proven=pl.col("proven") & ~theirs)
        return self._settle(series, names, cells)

    def _settle(
        self, series: Series, names: dict[str, float], cells: pl.DataFrame
    ) -> Cleaned | None:
        raw = pl.DataFrame(schema=SAMPLES)
        doubtful = cells.filter(~pl.col("proven")).select(_CELLS)
        for turn in range(_ROUNDS + 2):
            if turn <= _ROUNDS and not doubtful.is_empty():
                cells = self._cut_up(series, names, cells, doubtful)
                shorter = cells.filter(~pl.col("proven")).select(_CELLS)
                doubtful = pl.concat([doubtful.filter(pl.col("cell").is_not_null()), shorter])
                doubtful = doubtful.unique(maintain_order=True)
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

    def _told(
        self, series: Series, names: dict[str, float], only: str, cell: timedelta
    ) -> pl.DataFrame:
        """What the server says of cells of a length, of the series that further matchers name."""
        asking = Asking(self.push, self.span, self.interval, self._hear)
        told = [
            asking.cells(replace(series, metric=name), only, cell).with_columns(
                pl.col("value") * times
            )
            for name, times in names.items()
        ]
        cells = pl.concat(told)
        return without_holes(cells) if self._lives and not cells.is_empty() else cells

    def _hear(self, series: Series, reading: Reading, asked: str = "") -> None:
        """Keep what the server said beside an answer, under the name of the series."""

        def named(text: str) -> str:
            return series.metric + text.removeprefix(asked) if asked else text

        told = [Gap(gap.reason, named(gap.detail), gap.amounts) for gap in reading.gaps]
        self.gaps.extend(gap for gap in told if gap not in self.gaps)
        self.notes.extend(map(named, reading.notes))

    def _cut_up(
        self, series: Series, names: dict[str, float], cells: pl.DataFrame, doubtful: pl.DataFrame
    ) -> pl.DataFrame:
        """The cells, with those of a whole day in shorter ones, for the things in doubt."""
        days = cells.filter(pl.col("cell").is_null())
        if days.is_empty() or doubtful.is_empty():
            return cells
        label = key_label(series)
        key = pl.col("labels").str.json_path_match(f"$.{label}")
        keys = doubtful.select(key.unique())["labels"]
        text = "|".join(literal(one) for one in keys.drop_nulls().sort())
        if keys.null_count() or len(text) > _TEXT // 2:  # the question names them twice
            return self._told(series, names, "", CELL)
        theirs = key.is_in(keys.to_list()).fill_null(value=False)
        if days.filter(theirs).is_empty():
            return cells
        shorter = self._told(series, names, f'{label}=~"{text}"', CELL)
        return pl.concat([cells.filter(~theirs), shorter])

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
            inside = inside | pl.lit(everything)
            theirs = pl.lit(value=True) if keys is None else pl.col("key").is_in(keys)
            cells = cells.filter(~(inside & theirs).fill_null(value=False))
        return pl.concat(found), cells.drop("key")


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
