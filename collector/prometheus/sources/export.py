"""A Parquet export of Prometheus series.

Form (``docs/architecture.md``): a folder of ``*.parquet`` files at any depth with ``__name__``
String, ``labels`` String (canonical JSON object of all labels but ``__name__``), ``timestamp``
Datetime (UTC), ``value`` Float64. Rows in any order; a series may stand in several files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path

import polars as pl

from collector.folders import walk
from collector.prometheus.samples.clean import ABSURD
from collector.prometheus.series.catalogue import NODE_INFO, Series
from collector.prometheus.sources.source import SAMPLES, Reading
from ledger.errors import BadInputError, SourceError
from ledger.facts import Gap, Quarantine
from ledger.schema import TIME
from ledger.window import Window

_COLUMNS = ("__name__", "labels", "timestamp", "value")


@dataclass(frozen=True)
class _File:
    """A file with its schema, read by path."""

    path: Path
    schema: Mapping[str, pl.DataType]

    @property
    def zone(self) -> str | None:
        """Time zone of the time stamps; None is read as UTC."""
        dtype = self.schema["timestamp"]
        return dtype.time_zone if isinstance(dtype, pl.Datetime) else None

    def scan(self) -> pl.LazyFrame:
        """The file in its own types, without the files of its folder."""
        return pl.scan_parquet(self.path, glob=False)

    @cached_property
    def _times(self) -> tuple[datetime, datetime] | None:
        """First and last time stamp as UTC; None if the file has none, or a row without one."""
        time = pl.col("timestamp")
        ends = self.scan().select(time.min(), high=time.max(), lacking=time.null_count())
        try:
            low, high, lacking = ends.collect().row(0)
        except (pl.exceptions.PolarsError, OSError):  # told when the rows themselves are read
            return None
        return None if lacking or low is None else (_utc(low), _utc(high))

    def may_hold(self, window: Window) -> bool:
        """Whether a row may lie in the window or be absurd; spares reading the other days."""
        if self._times is None:
            return True
        low, high = self._times
        other_day = high <= window.start or low > window.end
        return not other_day or low < window.start - ABSURD or high > window.end + ABSURD

    def select(self, metric: str, window: Window, *, nonzero: bool) -> pl.LazyFrame:
        """Samples of a metric, as ``SAMPLES``."""
        time, value = pl.col("timestamp"), pl.col("value")
        form = self.schema["timestamp"]
        wanted = (
            (time > _literal(window.start, form)) & (time <= _literal(window.end, form))
            | time.is_null()
            | (time < _literal(window.start - ABSURD, form))
            | (time > _literal(window.end + ABSURD, form))
        )
        if nonzero:
            wanted = wanted & (value.is_null() | (value != 0))
        if self.zone is None:
            time = time.dt.replace_time_zone("UTC")
        return (
            self.scan()
            .filter(pl.col("__name__") == metric, wanted)
            .select(
                pl.col("labels").cast(pl.String),
                time.dt.convert_time_zone("UTC").cast(TIME),
                value.cast(pl.Float64),
            )
        )


@lru_cache(maxsize=64)
def _literal(moment: datetime, form: pl.DataType) -> pl.Expr:
    """A time in the type of the file's time stamps, so that its statistics can skip rows.

    Kept, because making a literal costs far more than comparing a row group with it.
    """
    zone = form.time_zone if isinstance(form, pl.Datetime) else None
    if zone is None:
        return pl.lit(moment.replace(tzinfo=None)).cast(form)
    return pl.lit(moment).dt.convert_time_zone(zone).cast(form)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


class ParquetExport:
    """Samples from a folder of Parquet files.

    Args:
        folder: The folder, or one file.
    """

    push_down = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def samples(self, series: Series, window: Window) -> Reading:
        """Samples of a metric in (start, end], and those years away, which cannot be true.

        Files that cannot be read are put aside, counted, and named as gaps.

        Raises:
            SourceError: There is no file in the folder.
            BadInputError: None of its files can be read.
        """
        readable, quarantine = self._files
        files = [file for file in readable if file.may_hold(window)]
        frames = [file.select(series.metric, window, nonzero=series.nonzero) for file in files]
        none = pl.DataFrame(schema=SAMPLES)
        try:
            frame = pl.concat([none.lazy(), *frames]).collect()
        except (pl.exceptions.PolarsError, OSError):  # a broken page shows only when it is read
            parts = [none]
            for file, lazy in zip(files, frames, strict=True):
                try:
                    parts.append(lazy.collect())
                except (pl.exceptions.PolarsError, OSError) as error:
                    quarantine = (*quarantine, self._unreadable(file.path, error))
            frame = pl.concat(parts)
        # What stands in a file that cannot be read is not known: that is a gap, not only a count.
        gaps = tuple(
            Gap("unreadable_file", f"{entry.where} was not read: {entry.example}")
            for entry in quarantine
        )
        return Reading(frame.lazy(), gaps=gaps, quarantine=quarantine)

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        """The metrics with any sample in the files that may hold the window."""
        name = pl.col("__name__").cast(pl.String)
        wanted = list(metrics)
        files = [file for file in self._files[0] if file.may_hold(window)]
        try:
            found = pl.collect_all(
                [file.scan().filter(name.is_in(wanted)).select(name.unique()) for file in files]
            )
        except (pl.exceptions.PolarsError, OSError):  # told when the rows themselves are read
            return frozenset(metrics)
        return frozenset(text for frame in found for text in frame["__name__"])

    def present(self, metrics: Sequence[str]) -> frozenset[str]:
        """The metrics that have any sample."""
        names = pl.concat(
            [file.scan().select(pl.col("__name__").unique()) for file in self._files[0]]
        ).collect()["__name__"]
        return frozenset(metrics) & frozenset(names.drop_nulls())

    def refused(self) -> tuple[Quarantine, ...]:
        """The files that have not the form, or are cut or damaged."""
        return self._files[1]

    def reach(self) -> Window | None:
        """Oldest to newest sample of nodes (of anything, without nodes)."""
        return self._span(pl.col("__name__") == NODE_INFO.metric) or self._span(pl.lit(value=True))

    def _span(self, which: pl.Expr) -> Window | None:
        ends = pl.concat(
            [
                file.scan()
                .filter(which)
                .select(low=pl.col("timestamp").min(), high=pl.col("timestamp").max())
                .select(
                    pl.all().dt.replace_time_zone("UTC")
                    if file.zone is None
                    else pl.all().dt.convert_time_zone("UTC")
                )
                .cast(TIME)
                for file in self._files[0]
            ]
        ).collect()
        low, high = ends["low"].min(), ends["high"].max()
        if isinstance(low, datetime) and isinstance(high, datetime) and low < high:
            return Window(low.astimezone(UTC), high.astimezone(UTC))
        return None

    @cached_property
    def _files(self) -> tuple[list[_File], tuple[Quarantine, ...]]:
        """The files that have the form, and those that were put aside; read once."""
        single = self.folder.is_file()
        every, barred = ([self.folder], []) if single else walk(self.folder)
        found = [path for path in every if single or path.suffix == ".parquet"]
        if not found and not barred:
            raise SourceError(
                f"no *.parquet file in {self.folder}",
                "prometheus.export names a folder with an export of the series",
            )
        good: list[_File] = []
        bad = [
            Quarantine(
                "unreadable", self._short(folder), 1, "not allowed, or a name that is no UTF-8"
            )
            for folder in barred
        ]
        for path in found:
            try:
                file = _File(path, pl.read_parquet_schema(path))
            except (pl.exceptions.PolarsError, OSError) as error:
                bad.append(self._unreadable(path, error))
                continue
            problem = _problem(file.schema)
            if problem is None:
                good.append(file)
            else:
                bad.append(Quarantine(problem[0], self._short(path), 1, problem[1]))
        if not good:
            raise BadInputError(
                f"no file in {self.folder} is an export of series: {bad[0].where}: {bad[0].example}"
            )
        return good, tuple(bad)

    def _short(self, path: Path) -> str:
        return path.name if path == self.folder else path.relative_to(self.folder).as_posix()

    def _unreadable(self, path: Path, error: Exception) -> Quarantine:
        text = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        return Quarantine("unreadable", self._short(path), 1, text)


def _problem(schema: Mapping[str, pl.DataType]) -> tuple[str, str] | None:
    """Why a file of this schema is no export; None if it is one."""
    absent = [name for name in _COLUMNS if name not in schema]
    if absent:
        return "missing_column", f"no column {absent[0]}"
    if not isinstance(schema["timestamp"], pl.Datetime):
        return "bad_column", f"timestamp is {schema['timestamp']}, no time"
    if not schema["value"].is_numeric():
        return "bad_column", f"value is {schema['value']}, no number"
    return None
