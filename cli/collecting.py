"""The collect stage: read a source, write its facts and how that went.

A source that fails writes no facts: an empty frame would erase the day. Its exception becomes a
close with a gap that names the exception's type, and the other sources go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from cli import exits
from cli.digest import digests
from cli.guard import Failure, attempt
from cli.render.json import canonical
from cli.wiring import Context, Source
from ledger.facts import Facts, Gap
from ledger.schema import CLOSES, TABLES, TIME, Table
from ledger.window import Window

if TYPE_CHECKING:
    from collector.source import Collector

CLOSED, GAPS, FAILED = "closed", "gaps", "failed"
NO_ROWS = "0" * 32


@dataclass(frozen=True)
class Collected:
    """How reading one source for one window went.

    Args:
        source: Name of the source.
        required: Whether a gap in it matters to the exit code.
        window: The days that were asked for.
        facts: What it said; None if it failed.
        failure: Why it failed; None if it did not.
        code: Exit code that the failure stands for, 0 without one.
    """

    source: str
    required: bool
    window: Window
    facts: Facts | None
    failure: Gap | None = None
    code: int = exits.OK

    @property
    def status(self) -> str:
        """closed, gaps or failed."""
        if self.facts is None:
            return FAILED
        return GAPS if self.facts.gaps else CLOSED

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The failure, or the gaps of the facts."""
        if self.failure:
            return (self.failure,)
        return self.facts.gaps if self.facts else ()

    def above(self, limit: float) -> bool:
        """Whether more than that share of the source's rows had to be put aside."""
        if self.facts is None or not self.facts.quarantined:
            return False
        seen = self.facts.rows + self.facts.quarantined
        return self.facts.quarantined / seen > limit


def collect(context: Context, source: Source, window: Window) -> Collected:
    """Read a source for a window of whole days and replace its partitions.

    Raises:
        LedgerError, SourceError: The ledger could not be written.
    """
    outcome, collector = _read(source, window)
    if outcome.facts is not None and collector is not None:
        facts = _written(context, outcome.source, collector, outcome.facts)
        outcome = replace(outcome, facts=facts)
    _close(context, outcome)
    return outcome


def _read(source: Source, window: Window) -> tuple[Collected, Collector | None]:
    """Ask a source; whatever it raises becomes a gap that names the type."""

    def ask() -> tuple[Collector, Facts]:
        collector = source.build()
        return collector, collector.collect(window)

    answer = attempt(source.name, ask)
    if isinstance(answer, Failure):
        gap = Gap(answer.kind, answer.detail)
        failed = Collected(source.name, source.required, window, None, gap, answer.code)
        return failed, None
    collector, facts = answer
    return Collected(collector.name, collector.required, window, facts), collector


def _written(context: Context, name: str, collector: Collector, facts: Facts) -> Facts:
    """Write the tables of the facts; for snapshots, joined with what an earlier run saw."""
    tables = dict(facts.tables)
    for key, frame in tables.items():
        table = TABLES[key]
        if collector.snapshot:
            tables[key] = _with_earlier(context, table, name, facts.window, frame)
        context.ledger.replace(table, tables[key], facts.window, source=name)
    return replace(facts, tables=tables)


def _with_earlier(
    context: Context, table: Table, name: str, window: Window, frame: pl.DataFrame
) -> pl.DataFrame:
    """New rows, and those of earlier runs whose key the new ones lack: a deleted pod did exist."""
    column = table.source_column
    earlier = context.ledger.scan(table, window, name).collect()
    if earlier.is_empty() or column is None:
        return frame
    fresh = frame.with_columns(pl.lit(name).alias(column))
    return (
        pl.concat([fresh, earlier.select(fresh.columns)], how="vertical_relaxed")
        .unique(["day", *table.key], keep="first", maintain_order=True)
        .drop(column)
    )


def _close(context: Context, outcome: Collected) -> None:
    """Replace the ``closes`` rows of the source for the days that were asked."""
    window = outcome.facts.window if outcome.facts else outcome.window
    days = list(window.days())
    figures = _figures(outcome, days) if outcome.facts else _earlier(context, outcome, days)
    frame = pl.DataFrame(
        {
            "day": days,
            "rows": [figures[day][0] for day in days],
            "digest": [figures[day][1] for day in days],
        },
        schema={"day": pl.Date, "rows": pl.Int64, "digest": pl.String},
    )
    context.ledger.replace(
        CLOSES,
        frame.with_columns(_shared(context, outcome)),
        window,
        source=outcome.source,
        stage="collect",
    )


def _figures(outcome: Collected, days: Sequence[date]) -> dict[date, tuple[int, str]]:
    """Rows and digest of what was written, per day."""
    assert outcome.facts is not None  # noqa: S101  asked for by the caller only then
    tables = outcome.facts.tables
    counts: dict[date, int] = dict.fromkeys(days, 0)
    for frame in tables.values():
        for day, count in frame.group_by("day").agg(pl.len()).iter_rows():
            counts[day] += count
    found = digests(tables)
    return {day: (counts[day], found.get(day, NO_ROWS)) for day in days}


def _earlier(
    context: Context, outcome: Collected, days: Sequence[date]
) -> dict[date, tuple[int | None, str | None]]:
    """Rows and digest of an earlier run: they still stand when this one failed."""
    rows = (
        context.ledger.scan(CLOSES, outcome.window, outcome.source)
        .filter(pl.col("stage") == "collect")
        .select("day", "rows", "digest")
        .collect()
    )
    found = {day: (count, digest) for day, count, digest in rows.iter_rows()}
    return {day: found.get(day, (None, None)) for day in days}


def _shared(context: Context, outcome: Collected) -> list[pl.Expr]:
    """The columns of a close that are the same on every day of the window."""
    facts = outcome.facts
    residue = facts.residue if facts else {}
    values: dict[str, tuple[object, pl.DataType]] = {
        "status": (outcome.status, pl.String()),
        "required": (outcome.required, pl.Boolean()),
        "coverage": (facts.coverage if facts else 0.0, pl.Float64()),
        "quarantined": (facts.quarantined if facts else 0, pl.Int64()),
        "quarantine": (
            canonical([q.as_dict() for q in facts.quarantine] if facts else []),
            pl.String(),
        ),
        "gaps": (canonical([gap.as_dict() for gap in outcome.gaps]), pl.String()),
        "notes": (canonical(list(facts.notes) if facts else []), pl.String()),
        "residue": (
            canonical({key: f"{Decimal(value):f}" for key, value in residue.items()}),
            pl.String(),
        ),
        "data_through": (facts.data_through if facts else None, TIME),
        "settings_hash": (context.loaded.settings.digest(), pl.String()),
        "version": (context.version, pl.String()),
    }
    return [pl.lit(value, dtype=dtype).alias(name) for name, (value, dtype) in values.items()]


def complaints(outcomes: Sequence[Collected]) -> Iterator[str]:
    """A line for each source that failed, for the log of whoever runs this unattended."""
    failed = [outcome for outcome in outcomes if outcome.failure]
    lines = (
        f"{each.source} ({'required' if each.required else 'optional'}) failed: {gap.detail}"
        for each in failed
        for gap in each.gaps
    )
    yield from dict.fromkeys(lines)


def exit_code(outcomes: Sequence[Collected], limit: float) -> int:
    """What the collect stage means for the exit code.

    4 or 5 if nothing could be read at all; 3 if a required source failed, has gaps, or lost more
    than ``limit`` of its rows to quarantine; else 0.
    """
    if outcomes and all(outcome.facts is None for outcome in outcomes):
        codes = {outcome.code for outcome in outcomes}
        return next(
            (code for code in (exits.FAULT, exits.ACCESS) if code in codes), exits.UNREACHABLE
        )
    partial = any(
        outcome.required and (outcome.status != CLOSED or outcome.above(limit))
        for outcome in outcomes
    )
    return exits.GAPS if partial else exits.OK
