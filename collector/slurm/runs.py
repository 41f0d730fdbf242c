"""The runs of all files of an export as one list: each run once, by its newest record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from collector.slurm import checks, files, parts
from collector.slurm.spans import Span, merged
from ledger.errors import BadInputError, RunbillError, SourceError
from ledger.facts import Gap, Quarantine

_RUN = ("cluster", "job", "start")
_NOBODY = ""


@dataclass(frozen=True)
class Runs:
    """What all files say.

    Args:
        rows: ``record.SCHEMA``, ``hosts``, ``checks.TRES_SCHEMA``, ``exported``, and ``until``: the
            end, else the last moment at which the job is known to run; null = not started.
        covered: The time of which every job is told.
        read: Records that were read, good and bad.
        quarantine: What was put aside.
        gaps: What could not be read.
        notes: What a reader should know.
    """

    rows: pl.DataFrame
    covered: tuple[Span, ...]
    read: int
    quarantine: tuple[Quarantine, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]

    @property
    def through(self) -> int | None:
        """The last moment that any file knows of."""
        return self.rows["exported"].max()  # type: ignore[return-value]


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Args:
        zone: IANA zone of times that carry none.
        told: Whether the settings name it.
        delimiter: What stands between cells of a text.
        cluster: Name of the cluster in Slurm; None = the only one.
    """

    zone: str = "UTC"
    told: bool = False
    delimiter: str | None = None
    cluster: str | None = None


def gather(paths: Sequence[Path], reading: Reading) -> Runs:
    """Read every file of an export.

    Raises:
        SourceError: None of them can be read.
        BadInputError: None of them is an export, or they speak of several clusters.
    """
    found: list[parts.Part] = []
    broken: list[tuple[Path, RunbillError]] = []
    for path, export in files.each(paths):
        try:
            if isinstance(export, RunbillError):
                raise export
            found.append(parts.read(export, reading.zone, reading.delimiter))
        except (BadInputError, SourceError) as error:
            broken.append((path, error))
    if not found:
        raise broken[0][1]
    sorted_out = [checks.sort_out(part.rows, part.where, part.exported) for part in found]
    every = pl.concat(
        rows.with_columns(
            pl.lit(part.exported, dtype=pl.Int64).alias("exported"),
            pl.lit(number).alias("file"),
        )
        for number, ((rows, _), part) in enumerate(zip(sorted_out, found, strict=True))
    )
    quarantine = [entry for _, entries in sorted_out for entry in entries]
    return Runs(
        _newest(_of_cluster(every, reading.cluster)),
        merged(part.covered for part in found if part.covered),
        sum(part.rows.height for part in found) + len(broken),
        (*quarantine, *_aside(broken)),
        tuple(_gaps(found, broken)),
        tuple(_notes(found, every, reading)),
    )


def _of_cluster(rows: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """The rows of one cluster of Slurm.

    Raises:
        BadInputError: There are several, and none is named; or the named one is not there.
    """
    names = sorted(rows["cluster"].drop_nulls().unique().to_list())
    if name is not None:
        if names and name not in names:
            raise BadInputError(
                f"no job of the Slurm cluster {name!r}", f"the files hold {', '.join(names)}"
            )
        return rows.filter((pl.col("cluster") == name) | pl.col("cluster").is_null()).with_columns(
            pl.lit(name).alias("cluster")
        )
    if len(names) > 1:
        raise BadInputError(
            f"the files hold jobs of several Slurm clusters: {', '.join(names)}",
            "name one as slurm.cluster in the settings",
        )
    return rows.with_columns(pl.lit(names[0] if names else _NOBODY).alias("cluster"))


def _newest(rows: pl.DataFrame) -> pl.DataFrame:
    """Each run once: a record that has an end, else that of the newest file.

    A run that an older file saw running ends, at the latest, where the next run of its job begins.
    A job that waits in one file and runs in another does not wait.
    """
    runs = rows.filter(pl.col("start").is_not_null())
    order = [*_RUN, "done", "exported", "file", "end", "nodes", "tres"]
    runs = runs.with_columns(pl.col("end").is_not_null().alias("done")).sort(
        order, nulls_last=False
    )
    runs = runs.unique(_RUN, keep="last", maintain_order=True)
    until = pl.coalesce("end", pl.max_horizontal("exported", "start"))
    after = pl.col("start").shift(-1).over("cluster", "job")
    runs = runs.with_columns(pl.min_horizontal(until, after).alias("until")).drop("done")
    waits = rows.filter(pl.col("start").is_null()).sort("cluster", "job", "exported", "file")
    waits = waits.unique(["cluster", "job"], keep="last", maintain_order=True)
    ran = runs.group_by("cluster", "job").agg(pl.col("start").max().alias("ran"))
    waits = waits.join(ran, on=["cluster", "job"], how="left")
    still = pl.col("ran").is_null() | (pl.col("ran") < pl.col("submit"))
    waits = waits.filter(still.fill_null(value=False)).drop("ran")
    waits = waits.with_columns(pl.lit(None, dtype=pl.Int64).alias("until"))
    return pl.concat([runs, waits.select(runs.columns)]).drop("file")


def _aside(broken: Sequence[tuple[Path, RunbillError]]) -> Iterator[Quarantine]:
    for path, error in broken:
        yield Quarantine("unreadable_file", str(path), 1, error.message)


def _gaps(
    found: Sequence[parts.Part], broken: Sequence[tuple[Path, RunbillError]]
) -> Iterator[Gap]:
    for _, error in broken:
        yield Gap("unreadable_file", str(error))
    for part in found:
        for error_ in part.errors:
            yield Gap("partial_response", f"{part.where}: Slurm says: {error_}"[:300])


def _notes(found: Sequence[parts.Part], rows: pl.DataFrame, reading: Reading) -> Iterator[str]:
    for part in found:
        yield from part.notes
    zoneless = sum(part.zoneless for part in found)
    if zoneless and not reading.told:
        yield (
            f"{zoneless} jobs have times without a zone, read as {reading.zone}: name the zone of "
            "the machine that ran sacct as slurm.timezone"
        )
    suspended = rows.filter(pl.col("suspended") > 0)
    if not suspended.is_empty():
        hours = suspended["suspended"].sum() / 3600
        yield (
            f"{suspended.height} jobs were suspended for {hours:.1f} hours: sacct does not say "
            "when, so they hold their nodes all the while"
        )
    unread = rows.filter(pl.col("bad_tres").is_not_null() | pl.col("tres").is_null())
    unread = unread.filter(pl.col("start").is_not_null())
    if not unread.is_empty():
        yield (
            f"{unread.height} jobs do not say what they were allocated, e.g. job "
            f"{unread['job'].min()!s}: what they held is not known"
        )
