"""The ``closes`` table: what a day's reading saw, lacked and put aside, and which days are done."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from cli.stages.digest import digests
from cli.wiring import Context
from ledger.errors import LedgerError
from ledger.facts import Facts
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.text import canonical_json
from ledger.window import Window

if TYPE_CHECKING:
    from cli.stages.collecting import Collected

STAGE = "collect"
NO_ROWS = "0" * 32
STANDS = "earlier_rows_stand"
"""The gap that says that the rows of an earlier, better reading were not replaced."""


@dataclass(frozen=True)
class Earlier:
    """What the last close of a source's day says.

    Args:
        status: closed, gaps or failed.
        rows: Rows that were written.
        digest: Their digest.
        reasons: Why there are gaps.
        coverage: The share of the window that was seen; None = not known.
    """

    status: str
    rows: int | None
    digest: str | None
    reasons: frozenset[str]
    coverage: float | None = None

    @property
    def complete(self) -> bool:
        """Whether the rows of the day come from a reading that lacked nothing."""
        return self.status == "closed" or self.stands

    @property
    def stands(self) -> bool:
        """Whether the rows of the day come from a reading before that of the close."""
        return STANDS in self.reasons


def days_of(outcome: Collected) -> list[date]:
    """The days that a reading was about."""
    return list((outcome.facts.window if outcome.facts else outcome.window).days())


def earlier(ledger: Ledger, source: str, days: Sequence[date]) -> dict[date, Earlier]:
    """The last close of each day of a source that has one."""
    rows = (
        ledger.scan(CLOSES, Window.of_days(days[0], days[-1]), source)
        .filter(pl.col("stage") == STAGE)
        .select("day", "status", "rows", "digest", "gaps", "coverage")
        .collect()
    )
    return {
        day: Earlier(
            status,
            count,
            digest,
            frozenset(gap["reason"] for gap in json.loads(gaps or "[]")),
            coverage,
        )
        for day, status, count, digest, gaps, coverage in rows.iter_rows()
    }


def attributed(ledger: Ledger) -> list[date]:
    """The days that hold attributed costs, in order.

    Raises:
        LedgerError: There are none.
    """
    closes = ledger.scan(CLOSES).filter(pl.col("stage") == "attribute").select("day").unique()
    days = sorted(closes.collect()["day"])
    if not days:
        raise LedgerError("no day has been attributed yet", "close one: runbill run")
    return days


def write(context: Context, outcome: Collected, before: Mapping[date, Earlier]) -> None:
    """Replace the closes of the source for the days that a reading was about.

    What was put aside or lost by rounding is known of the whole reading only: it stands on the
    first day, so that adding up closes adds it once.

    Args:
        context: Settings, ledger and version.
        outcome: How the reading went.
        before: The closes that are replaced. Where earlier rows stand, so do their figures.
    """
    days = days_of(outcome)
    figures = _figures(outcome.facts, days) if outcome.facts else {}
    rows = [
        {
            "day": day,
            **_gaps(outcome, day),
            **_once(outcome.facts, first=day == days[0], start=days[0]),
            "coverage": _coverage(outcome, before, day),
            **(figures[day] if day in figures and day not in outcome.kept else _stood(before, day)),
        }
        for day in days
    ]
    same = {
        "required": outcome.required,
        "data_through": outcome.facts.data_through if outcome.facts else None,
        "settings_hash": context.loaded.settings.digest(),
        "version": context.version,
    }
    names = {*rows[0], *same}
    schema = {name: column.dtype for name, column in CLOSES.columns.items() if name in names}
    context.ledger.replace(
        CLOSES,
        pl.DataFrame([{**row, **same} for row in rows], schema=schema),
        Window.of_days(days[0], days[-1]),
        source=outcome.source,
        stage=STAGE,
    )


def _coverage(outcome: Collected, before: Mapping[date, Earlier], day: date) -> float | None:
    """What share was seen of the rows that the day has now: series that stand keep theirs."""
    if outcome.kind in ("prometheus", "slurm") and day in outcome.kept:
        return before[day].coverage
    return outcome.facts.coverage if outcome.facts else 0.0


def _gaps(outcome: Collected, day: date) -> dict[str, object]:
    """Status and gaps of a day; that earlier rows stand is said of the days where they do."""
    gaps = [gap for gap in outcome.gaps if gap.reason != STANDS or day in outcome.kept]
    return {"status": outcome.status, "gaps": canonical_json([gap.as_dict() for gap in gaps])}


def _once(facts: Facts | None, *, first: bool, start: date) -> dict[str, object]:
    """What is said of the reading as a whole, on its first day; the others point there."""
    quarantine = facts.quarantine if facts and first else ()
    residue = facts.residue if facts and first else {}
    notes = list(facts.notes) if facts else []
    if facts and facts.quarantine and not first:
        notes.append(f"what was put aside in this reading is told on its first day, {start}")
    return {
        "quarantined": sum(entry.count for entry in quarantine),
        "quarantine": canonical_json([entry.as_dict() for entry in quarantine]),
        "residue": canonical_json({key: f"{Decimal(lost):f}" for key, lost in residue.items()}),
        "notes": canonical_json(notes),
    }


def _figures(facts: Facts, days: Sequence[date]) -> dict[date, dict[str, object]]:
    """Rows and digest of what was written, per day."""
    counts: dict[date, int] = dict.fromkeys(days, 0)
    for frame in facts.tables.values():
        for day, count in frame.group_by("day").agg(pl.len()).iter_rows():
            counts[day] += count
    found = digests(facts.tables)
    return {day: {"rows": counts[day], "digest": found.get(day, NO_ROWS)} for day in days}


def _stood(before: Mapping[date, Earlier], day: date) -> dict[str, object]:
    """Rows and digest of an earlier reading."""
    known = before.get(day)
    return {"rows": known.rows if known else None, "digest": known.digest if known else None}
