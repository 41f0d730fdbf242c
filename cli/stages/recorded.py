"""An agent among the sources of a run: what it has recorded is looked at, never replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from cli.stages import closes
from cli.stages.backfill import Task
from cli.stages.guard import Failure, attempt
from cli.wiring import Context
from ledger.errors import ConflictError
from ledger.facts import Facts, Gap
from ledger.schema import CLOSES
from ledger.text import canonical_json
from ledger.window import Window

if TYPE_CHECKING:
    from cli.stages.collecting import Collected


def read(context: Context, task: Task, outcome: Collected) -> Collected:
    """Look at what an agent has recorded of some days, and close those that it has not.

    A day that it watched in part keeps its rows and their digest; the part that nobody watched is
    added to its gaps.

    Args:
        context: Settings and ledger.
        task: The agent and the days.
        outcome: How nothing at all would be told of.

    Raises:
        LedgerError, SourceError: The ledger could not be written.
    """
    answers = [_read_day(context, task, Window.of_day(day), outcome) for day in task.window.days()]
    seen = [each for each in answers if each.facts is not None]
    if not seen:
        return replace(answers[0], window=task.window)
    found = attempt(task.source.name, lambda: task.source.build().collect(task.window))
    if isinstance(found, Failure):
        return replace(outcome, failure=Gap(found.kind, found.detail), code=found.code)
    return replace(outcome, facts=found).limited(context.loaded.settings.quarantine_limit)


def _read_day(context: Context, task: Task, window: Window, outcome: Collected) -> Collected:
    """One day: what the agent lacks of it is written into its close, unless it just writes it."""
    found = attempt(task.source.name, lambda: task.source.build().collect(window))
    if isinstance(found, Failure):
        failed = Gap("not_watched", found.detail)
        day = replace(outcome, window=window, failure=failed, code=found.code)
        closes.write(context, day, {})
        return day
    day = replace(outcome, window=window, facts=found)
    _note_gaps(context, task.source.name, window, day, found)
    return day


def _note_gaps(
    context: Context, source: str, window: Window, outcome: Collected, facts: Facts
) -> None:
    rows = context.ledger.scan(CLOSES, window, source).filter(pl.col("stage") == closes.STAGE)
    row = rows.collect().drop("source", "stage")
    gaps = canonical_json([gap.as_dict() for gap in outcome.gaps])
    if row.height != 1 or row["gaps"][0] == gaps:
        return
    known = row.with_columns(
        pl.lit(outcome.status, pl.String).alias("status"),
        pl.lit(gaps, pl.String).alias("gaps"),
        pl.lit(facts.coverage, pl.Float64).alias("coverage"),
    )
    try:
        context.ledger.replace(CLOSES, known, window, source=source, stage=closes.STAGE)
    except ConflictError:  # the agent is writing that day: it knows better
        return
