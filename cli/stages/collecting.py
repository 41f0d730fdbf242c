"""The collect stage: read a source, write its facts and how that went.

A source that fails writes no facts: an empty frame would erase the day. Its exception becomes a
close with a gap that names the exception's type, and the other sources go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from cli import exits
from cli.stages import closes, recorded
from cli.stages.backfill import Task, spans
from cli.stages.closes import Earlier
from cli.stages.guard import Failure, attempt
from cli.wiring import Context
from ledger.facts import Facts, Gap
from ledger.schema import TABLES, Table
from ledger.window import Window

if TYPE_CHECKING:
    from collector.source import Collector

CLOSED, GAPS, FAILED = "closed", "gaps", "failed"
_REFUSED = frozenset(
    {
        "unreadable_file",
        "missing_column",
        "repeated_column",
        "access_denied",
        "incomplete_export",
        "no_exchange_rate",
    }
)
"""Gaps of a bill that mean that lines of it are missing."""
_BROKEN = frozenset({"query_failed", "partial_response", "source_lost"})
"""Gaps of a store of series that mean that it holds more than it told."""


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
        kind: billing, kubernetes, prometheus or prices.
        again: Whether these days were closed with gaps before and are but tried once more.
        kept: Days whose rows of an earlier, complete reading stand.
        excess: That more had to be put aside than ``quarantine_limit`` allows.
    """

    source: str
    required: bool
    window: Window
    facts: Facts | None
    failure: Gap | None = None
    code: int = exits.OK
    kind: str = ""
    again: bool = False
    kept: frozenset[date] = frozenset()
    excess: Gap | None = None

    @property
    def status(self) -> str:
        """closed, gaps or failed."""
        if self.facts is None:
            return FAILED
        return GAPS if self.facts.gaps or self.excess else CLOSED

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The failure, or the gaps of the facts, too much put aside, and what stands for them."""
        own = (self.failure,) if self.failure else self.facts.gaps if self.facts else ()
        return (*own, *(gap for gap in (self.excess, self.standing) if gap))

    @property
    def standing(self) -> Gap | None:
        """What is to be said of the days whose earlier rows stand."""
        if not self.kept:
            return None
        lacks = "could not be read" if self.facts is None else "was read in part"
        whose = "complete" if self.kind == "billing" else "fuller"
        return Gap(
            closes.STANDS,
            f"{self.source} {lacks}: on {len(self.kept)} days the rows of the earlier, {whose} "
            "reading stand",
        )

    def above(self, limit: float) -> bool:
        """Whether more than that share of what was read had to be put aside."""
        if self.facts is None or not self.facts.quarantined:
            return False
        return self.facts.quarantined / max(self.facts.seen, self.facts.quarantined) > limit

    def limited(self, limit: float) -> Collected:
        """The same, with the gap that says so if more was put aside than the limit allows."""
        if self.facts is None or not self.above(limit):
            return self
        aside, seen = self.facts.quarantined, max(self.facts.seen, self.facts.quarantined)
        detail = f"{aside} of {seen} rows read were put aside, more than quarantine_limit: {limit}"
        return replace(self, excess=Gap("quarantine_limit", detail))


def collect(context: Context, task: Task) -> Collected:
    """Read a source for a window of whole days and replace its partitions.

    Raises:
        LedgerError, SourceError: The ledger could not be written.
    """
    if task.source.kind == "agent":  # it has written what it saw itself
        return recorded.read(context, task, _unread(task))
    outcome, collector = _read(task)
    outcome = outcome.limited(context.loaded.settings.quarantine_limit)
    days = closes.days_of(outcome)
    before = closes.earlier(context.ledger, outcome.source, days)
    outcome = replace(outcome, kept=_kept(outcome, days, before))
    if outcome.facts is not None and collector is not None:
        facts = _written(context, outcome, collector, outcome.facts)
        outcome = replace(outcome, facts=facts)
    closes.write(context, outcome, before)
    return outcome


def _unread(task: Task) -> Collected:
    source = task.source
    return Collected(
        source.name, source.required, task.window, None, kind=source.kind, again=task.again
    )


def _read(task: Task) -> tuple[Collected, Collector | None]:
    """Ask a source; whatever it raises becomes a gap that names the type."""
    source = task.source

    def ask() -> tuple[Collector, Facts]:
        collector = source.build()
        return collector, collector.collect(task.window)

    answer = attempt(source.name, ask)
    outcome = _unread(task)
    if isinstance(answer, Failure):
        return replace(outcome, failure=Gap(answer.kind, answer.detail), code=answer.code), None
    collector, facts = answer
    return (
        replace(outcome, source=collector.name, required=collector.required, facts=facts),
        collector,
    )


def _kept(
    outcome: Collected, days: Sequence[date], before: Mapping[date, Earlier]
) -> frozenset[date]:
    """The days that must not be replaced by less than what was read of them before."""
    known = {day: before[day] for day in days if day in before}
    if outcome.kind == "billing" and (outcome.facts is None or _cut(outcome.facts)):
        return frozenset(day for day, earlier in known.items() if earlier.complete)
    if outcome.kind in ("prometheus", "slurm"):
        return frozenset(day for day, earlier in known.items() if _poorer(outcome, earlier))
    return frozenset()


def _poorer(outcome: Collected, earlier: Earlier) -> bool:
    """Whether series told less than before: the store broke off, or has forgotten part of the day.

    A day that its close calls failed has no rows to keep.
    """
    if earlier.rows is None:
        return False
    if outcome.facts is None:
        return True
    reasons = {gap.reason for gap in outcome.facts.gaps}
    broken = bool(reasons & _BROKEN) and (earlier.stands or not earlier.reasons & _BROKEN)
    now, then = outcome.facts.coverage, earlier.coverage
    return broken or (now is not None and then is not None and now < then)


def _cut(facts: Facts) -> bool:
    """Whether lines are known to be missing, so that what was read must not pass for the bill."""
    lacking = facts.coverage is not None and facts.coverage < 1
    return lacking or any(gap.reason in _REFUSED for gap in facts.gaps)


def _written(context: Context, outcome: Collected, collector: Collector, facts: Facts) -> Facts:
    """Write the tables of the facts and return what was written.

    Snapshots are joined with what an earlier run saw; days that are kept are left alone.
    """
    if outcome.kept:
        facts = _without(facts, outcome.kept)
    tables = dict(facts.tables)
    windows = spans(sorted(set(facts.window.days()) - outcome.kept))
    for key, frame in tables.items():
        table = TABLES[key]
        if collector.snapshot:
            tables[key] = _with_earlier(context, table, outcome.source, facts.window, frame)
        for window in windows:
            days = list(window.days())
            # A filter that keeps all would copy millions of rows.
            rows = tables[key]
            if len(windows) > 1 or outcome.kept:
                rows = rows.filter(pl.col("day").is_between(days[0], days[-1]))
            context.ledger.replace(table, rows, window, source=outcome.source)
    return replace(facts, tables=tables)


def _without(facts: Facts, kept: AbstractSet[date]) -> Facts:
    """The facts without the rows of some days; how much was read stays known."""
    fresh = ~pl.col("day").is_in(sorted(kept))
    tables = {name: frame.filter(fresh) for name, frame in facts.tables.items()}
    return replace(facts, tables=tables, read=facts.seen)


def _with_earlier(
    context: Context, table: Table, name: str, window: Window, frame: pl.DataFrame
) -> pl.DataFrame:
    """New rows, and the earlier ones of what the new ones do not know: a deleted pod did exist.

    A pod that both know is told by the new rows alone: two tellings of one life do not add up.
    """
    column = table.source_column
    earlier = context.ledger.scan(table, window, name).collect()
    if earlier.is_empty() or column is None:
        return frame
    same = ["day", *(key for key in table.key if key != "start")]
    gone = earlier.drop(column).join(frame, on=same, how="anti", nulls_equal=True)
    return pl.concat([frame, gone.select(frame.columns)], how="vertical_relaxed")


def complaints(outcomes: Sequence[Collected]) -> Iterator[str]:
    """What went wrong, a line each, for the log of whoever runs this unattended."""
    lines = (line for each in outcomes for line in _complaints(each))
    yield from dict.fromkeys(lines)


def _complaints(each: Collected) -> Iterator[str]:
    """That a source failed, or why reading it in part gives exit code 3."""
    need = "required" if each.required else "optional"
    if each.failure:
        yield from (f"{each.source} ({need}) failed: {gap.detail}" for gap in each.gaps)
    elif each.required and not each.again:
        yield from (f"{each.source} ({need}) has gaps: {gap.detail}" for gap in each.gaps)
    elif each.excess:
        yield f"{each.source} ({need}): {each.excess.detail}"


def exit_code(outcomes: Sequence[Collected], limit: float) -> int:
    """What the collect stage means for the exit code.

    4 or 5 if nothing could be read at all (the prices of the settings do not count: they are
    always at hand); 3 if a required source failed, has gaps, or lost more than ``limit`` of its
    rows to quarantine; else 0. Gaps of a day that was tried again were told when it was closed.
    """
    asked = [outcome for outcome in outcomes if outcome.kind != "prices"]
    if asked and all(outcome.facts is None for outcome in asked):
        codes = {outcome.code for outcome in asked}
        return next(
            (code for code in (exits.FAULT, exits.ACCESS) if code in codes), exits.UNREACHABLE
        )
    partial = any(
        outcome.required and (outcome.status != CLOSED or outcome.above(limit))
        for outcome in outcomes
        if not outcome.again
    )
    return exits.GAPS if partial else exits.OK
