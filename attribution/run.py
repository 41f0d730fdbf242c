"""The attribute stage: read a day's facts, work out its costs, replace its partitions."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from attribution.day import DayCosts, close_day
from attribution.facts import read
from attribution.restated import restatement_notes, standing
from ledger.facts import Gap
from ledger.money import from_units, to_units
from ledger.schema import CLOSES, COSTS, COSTS_DAILY, RESTATEMENTS
from ledger.settings import Settings, source_names
from ledger.store import Ledger, conform
from ledger.text import canonical_json, short_hash
from ledger.window import Window

STAGE, SOURCE = "attribute", "attribution"
_CLUSTER_SOURCES = ("agent/", "kubernetes/", "prometheus/", "slurm/", "storage/", "logs/")
_CHANGE = ("BillingCurrency", "experiment")


@dataclass(frozen=True)
class DayClose:
    """How the attribution of a day ended.

    Args:
        day: The day.
        rows: Rows of ``costs``.
        coverage: Part of the paid node time that was seen; None without nodes.
        gaps: What could not be attributed.
        notes: What a reader should know.
        inputs: What the figures were worked out from: digests of settings, bills and clusters.
        restated: Rows that this run added to ``restatements``.
    """

    day: date
    rows: int
    coverage: float | None
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    inputs: str
    restated: pl.DataFrame

    @property
    def status(self) -> str:
        """``closed``, or ``gaps`` if there are any."""
        return "gaps" if self.gaps else "closed"


def attribute(
    ledger: Ledger, settings: Settings, days: Sequence[date], *, version: str
) -> list[DayClose]:
    """Attribute days, each for itself, and replace their costs.

    A day whose shares do not add up to its bill is not written. A second run of unchanged inputs
    leaves the same rows; one with other figures adds to ``restatements`` what changed.

    Args:
        ledger: Where facts are read and costs written.
        settings: Identity rules, roles, node pools, prices.
        days: UTC days.
        version: Version of runbill, for ``closes``.

    Raises:
        ReconcileError: Shares do not add up to their charge.
        ConflictError: Another run attributed the same day at the same time.
        SourceError: The ledger cannot be read or written.
    """
    inputs = _inputs(ledger, settings)
    return [_attribute_one(ledger, settings, day, inputs.get(day), version) for day in days]


class Scratch:
    """Rows of ``costs`` that wait in a folder of their own.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[Path] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Put rows aside, in the order of the table's key."""
        file = self._folder / f"{len(self._files):06d}.parquet"
        conform(COSTS, rows).write_parquet(file, compression="lz4")
        self._files.append(file)

    def rows(self) -> pl.LazyFrame:
        """All rows, in the order in which they came."""
        return pl.scan_parquet(self._files, glob=False)


def stale_days(ledger: Ledger, settings: Settings) -> list[date]:
    """Days with facts whose costs are missing or were worked out from other facts or settings."""
    closes = _closes(ledger).filter(pl.col("stage") == STAGE)
    done = dict(closes.select("day", "inputs").iter_rows())
    return sorted(day for day, now in _inputs(ledger, settings).items() if done.get(day) != now)


def _closes(ledger: Ledger) -> pl.DataFrame:
    columns = ["day", "stage", "source", "digest", "inputs", "settings_hash"]
    return ledger.scan(CLOSES).select(columns).collect()


def _inputs(ledger: Ledger, settings: Settings) -> dict[date, str]:
    """Per day with a collect close: digests of settings, bills and clusters, joined by dots."""
    rows = _closes(ledger).filter(pl.col("stage") == "collect").sort("day", "source")
    days: dict[date, list[tuple[str, str | None]]] = {}
    for day, source, digest in rows.select("day", "source", "digest").iter_rows():
        days.setdefault(day, []).append((source, digest))
    return {day: _digest_inputs(settings, sources) for day, sources in days.items()}


def _digest_inputs(settings: Settings, sources: Sequence[tuple[str, str | None]]) -> str:
    cluster = [pair for pair in sources if pair[0].startswith(_CLUSTER_SOURCES)]
    bills = [pair for pair in sources if pair not in cluster]
    return ".".join(
        (
            settings.attribution_digest(),
            short_hash(canonical_json(bills)),
            short_hash(canonical_json(cluster)),
        )
    )


def _attribute_one(
    ledger: Ledger, settings: Settings, day: date, inputs: str | None, version: str
) -> DayClose:
    inputs = inputs or _digest_inputs(settings, [])
    # Settings without any source say nothing of which rows still count.
    facts = read(ledger, day, source_names(settings) or None)
    # Rows wait on disk until all of them balance: nothing of a day that does not is written.
    with tempfile.TemporaryDirectory(prefix="runbill-") as folder:
        costs = Scratch(Path(folder))
        books = close_day(facts, settings, costs.add)
        close = _close(ledger, books, inputs, day)
        _write(ledger, settings, books, costs.rows(), close, version)
    return close


def _close(ledger: Ledger, books: DayCosts, inputs: str, day: date) -> DayClose:
    window = Window.of_day(day)
    old = _closes_inputs(ledger, day)
    restated = RESTATEMENTS.empty()
    if old is not None:
        before = ledger.scan(COSTS_DAILY, window).select(*_CHANGE, "EffectiveCost").collect()
        restated = restatement(day, before, books.daily, old, inputs)
    changes = restatement_notes(standing(ledger, window, restated, inputs))
    notes = (*books.notes, *changes)
    return DayClose(day, books.rows, books.coverage, books.gaps, notes, inputs, restated)


def _closes_inputs(ledger: Ledger, day: date) -> str | None:
    """The inputs of the day's present costs; None if it was never attributed."""
    rows = ledger.scan(CLOSES, Window.of_day(day), SOURCE).filter(pl.col("stage") == STAGE)
    found = rows.select("inputs").collect()["inputs"]
    return str(found[0]) if len(found) else None


def restatement(
    day: date, before: pl.DataFrame, after: pl.DataFrame, old: str, new: str
) -> pl.DataFrame:
    """What changed in a day's effective cost, per experiment and currency.

    Args:
        day: The day.
        before: ``experiment, BillingCurrency, EffectiveCost`` of the earlier figures.
        after: The same of the new ones.
        old: Inputs of the earlier figures.
        new: Inputs of the new ones.

    Returns:
        Rows of ``restatements``; a figure that was not there counts as null.
    """
    both = _sums(before, "old").join(
        _sums(after, "new"), on=list(_CHANGE), how="full", coalesce=True
    )
    changed = both.filter(~pl.col("old").eq_missing(pl.col("new")))
    return changed.sort(_CHANGE).select(
        pl.lit(day).alias("day"),
        "experiment",
        "BillingCurrency",
        "old",
        "new",
        pl.lit(_why(old, new)).alias("why"),
        pl.lit(new).alias("inputs"),
    )


def _sums(daily: pl.DataFrame, name: str) -> pl.DataFrame:
    units = to_units(pl.col("EffectiveCost")).sum()
    return daily.group_by(_CHANGE).agg(from_units(units).alias(name))


def _why(old: str, new: str) -> str:
    """The parts of the inputs that differ: settings, bill, usage."""
    names = ("settings", "bill", "usage")
    pairs = zip(names, old.split("."), new.split("."), strict=False)
    return ", ".join(name for name, before, now in pairs if before != now) or "version"


def _write(
    ledger: Ledger,
    settings: Settings,
    books: DayCosts,
    costs: pl.LazyFrame,
    close: DayClose,
    version: str,
) -> None:
    """Replace the day; the close comes last, so that a day that was cut short is stale."""
    window = Window.of_day(close.day)
    if not close.restated.is_empty():
        kept = ledger.scan(RESTATEMENTS, window).filter(pl.col("inputs") != close.inputs)
        ledger.replace(RESTATEMENTS, pl.concat([kept.collect(), close.restated]), window)
    ledger.replace(COSTS, costs, window)
    ledger.replace(COSTS_DAILY, books.daily, window)
    ledger.replace(CLOSES, _close_row(settings, books, close, version), window, SOURCE, stage=STAGE)


def _close_row(settings: Settings, books: DayCosts, close: DayClose, version: str) -> pl.DataFrame:
    row: Mapping[str, object] = {
        "day": close.day,
        "status": close.status,
        "required": False,
        "coverage": close.coverage,
        "rows": close.rows,
        "quarantined": 0,
        "quarantine": "[]",
        "gaps": canonical_json([gap.as_dict() for gap in close.gaps]),
        "notes": canonical_json(list(close.notes)),
        "residue": "{}",
        "digest": short_hash(books.daily.write_csv()),
        "inputs": close.inputs,
        "settings_hash": settings.digest(),
        "version": version,
    }
    return pl.DataFrame([row], schema={name: CLOSES.columns[name].dtype for name in row})
