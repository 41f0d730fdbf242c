"""Attribution of one day: a pure function from facts and settings to costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import polars as pl

from attribution import gaps, notes, rows
from attribution.bill import gaps as bill_gaps
from attribution.facts import DayFacts
from attribution.lives.jobs import take_out
from attribution.lives.names import meet_by_name
from attribution.nodes import card_groups, claims, contradictions
from attribution.prices.against_bill import rescaled
from attribution.shards import SHARDS, Shards
from attribution.stages.bill import Bill, hours_of, meet
from attribution.stages.evidence import Evidence, gather
from attribution.stages.holders import find_holders, measure
from attribution.stages.prices import Priced, cut, price
from attribution.stages.shares import Work, share_out
from ledger.facts import Gap
from ledger.schema import COSTS
from ledger.settings import Settings


@dataclass(frozen=True)
class DayCosts:
    """A day's books.

    Args:
        costs: Rows of ``costs``.
        daily: Rows of ``costs_daily``.
        gaps: What could not be attributed, with hours.
        coverage: Part of the paid node time in which the cluster was seen; None without nodes.
        notes: What a reader should know and cannot change.
        rows: How many rows of ``costs`` there are.
    """

    costs: pl.DataFrame
    daily: pl.DataFrame
    gaps: tuple[Gap, ...]
    coverage: float | None
    notes: tuple[str, ...] = ()
    rows: int = 0


def attribute_day(facts: DayFacts, settings: Settings, shards: Shards = SHARDS) -> DayCosts:
    """``close_day`` with all rows in memory."""
    kept: list[pl.DataFrame] = []
    books = close_day(facts, settings, kept.append, shards)
    return replace(books, costs=pl.concat(kept))


def close_day(
    facts: DayFacts,
    settings: Settings,
    sink: Callable[[pl.DataFrame], object],
    shards: Shards = SHARDS,
) -> DayCosts:
    """Give every charge of a day to somebody.

    What is small (nodes, lives, lines and their hours) is worked out for the whole day; usage and
    shares in parts (``shards``), whose rows do not depend on where the day is cut.

    Args:
        facts: The day.
        settings: Identity rules, roles, node pools, prices.
        sink: Takes the rows of ``costs``, part by part, at least one. They balance only once this
            function has returned.
        shards: How large the parts are.

    Returns:
        The books without the rows of ``costs``.

    Raises:
        ReconcileError: Shares do not add up to their charge.
        SettingsError: A rule cannot be used.
    """
    facts, jobs = take_out(meet_by_name(facts))
    evidence = gather(facts, settings)
    holders = find_holders(facts, evidence, settings, jobs)
    amounts = measure(facts, holders, shards)
    bill = meet(facts, holders)
    hours = hours_of(facts, evidence, holders, bill, settings)
    priced = price(hours, holders, bill, facts, settings)
    parts = cut(hours, amounts, priced, evidence, holders)
    work = share_out(parts, bill, priced, holders, facts, settings)
    found = (
        *gaps.find(facts, settings, work.day.hours, holders.every, holders.lives, evidence.seen),
        *_gaps(bill, priced, work),
        *holders.nowhere,
        *claims.gaps(holders.lost),
        *card_groups.gaps(holders.lives),
        *contradictions.find(holders.lives, amounts.usage, facts.usage, work.day.hours),
        *priced.made.gaps,
    )
    del amounts  # the largest of all, and not needed any more
    sums = rows.write(work.day, work.parts, work.others.rows, sink, shards)
    told = tuple(_notes(evidence, bill, priced, work, sums, settings))
    return DayCosts(
        COSTS.empty(), sums.daily, found, gaps.coverage(work.day.hours), told, sums.rows
    )


def _gaps(bill: Bill, priced: Priced, work: Work) -> Iterator[Gap]:
    """What the bill and the prices could not be held against."""
    yield from bill_gaps.unmatched(work.day.hours, bill.line_hours, bill.compute())
    yield from bill_gaps.withheld(priced.withheld)
    yield from bill_gaps.misnamed(bill.paying, bill.line_hours)
    yield from priced.gaps
    yield from bill.volumes.gaps
    yield from work.others.gaps


def _notes(
    evidence: Evidence,
    bill: Bill,
    priced: Priced,
    work: Work,
    sums: rows.Sums,
    settings: Settings,
) -> Iterator[str]:
    """What a reader of the books should know."""
    yield from notes.snapshots(evidence.clusters)
    yield from notes.doubts(sums.doubts)
    yield from notes.built_in_rates(priced.made.by_size, settings)
    yield from notes.fees_twice(bill.lines, priced.made.lines)
    yield from priced.laid.notes
    yield from rescaled(priced.quotes, priced.paid, work.parts)
    yield from sums.foreign
    yield from bill.volumes.notes
    yield from work.others.notes
