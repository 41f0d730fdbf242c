"""Rows of ``costs``, part by part: from hours of lines to shares with identity, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import polars as pl

from attribution import notes, reconcile
from attribution.costs import assemble, daily, daily_keys, line_rows, node_rows
from attribution.nodes.aws_splits import PodSplits
from attribution.nodes.pools import Rates
from attribution.shards import Shards, by_node, each
from attribution.split import UNITS, node_shares


@dataclass(frozen=True)
class Day:
    """What the rows of a day are worked out from.

    Args:
        lines: All lines by ``line``.
        hours: ``methods.classify``.
        held: Amounts per ``nh`` and ``who``.
        who: What each pod is, by ``who``.
        weights: ``split.weigh_pools``.
        rates: Reference rates.
        told: The provider's own splits.
    """

    lines: pl.DataFrame
    hours: pl.DataFrame
    held: pl.DataFrame
    who: pl.DataFrame
    weights: pl.DataFrame
    rates: Rates
    told: PodSplits


@dataclass(frozen=True)
class Rows:
    """A part of a day's books, complete in itself.

    Args:
        costs: Rows of ``costs``.
        daily: Their roll-up.
        totals: ``reconcile.totals`` of the part.
        doubts: What ``notes.doubts`` reads of the rows, once each.
        foreign: ``notes.foreign_riders``.
    """

    costs: pl.DataFrame
    daily: pl.DataFrame
    totals: pl.DataFrame
    doubts: pl.DataFrame
    foreign: tuple[str, ...] = ()


def of_nodes(parts: pl.DataFrame, day: Day) -> Rows:
    """Rows of lines that pay for nodes.

    Args:
        parts: Rows of ``split.hour_parts``.
        day: The day.
    """
    held = day.held.join(parts.select("nh").unique(), on="nh", how="semi")
    shares = node_shares(parts, day.hours, held, day.weights, day.told)
    costs = assemble(day.lines, node_rows(shares, day.hours, held, day.who))
    foreign = notes.foreign_riders(shares, day.lines, day.hours, day.rates)
    return _rows(costs, shares, tuple(foreign))


def of_lines(others: pl.DataFrame, day: Day) -> Rows:
    """Rows of lines that pay for no node.

    Args:
        others: ``lines.place.Placed.rows``.
        day: The day.
    """
    return _rows(assemble(day.lines, line_rows(others)), others)


def _rows(costs: pl.DataFrame, shares: pl.DataFrame, foreign: tuple[str, ...] = ()) -> Rows:
    # Of nodes only: lines without a node say for themselves what they rest on.
    doubtful = ((pl.col("confidence") == "low") | (pl.col("x_Basis") == "estimated")) & (
        pl.col("node").is_not_null()
    )
    told = costs.lazy().filter(doubtful).select("cluster", "uid", "confidence", "x_Basis").unique()
    totals = reconcile.totals(shares, UNITS)
    return Rows(costs, daily(costs), totals, told.collect(), foreign)


def merge_daily(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The roll-up of a day from those of its parts, in order.

    Parts of different nodes, in the order of the nodes, only need to be laid end to end.
    """
    full = [part for part in parts if not part.is_empty()]
    if not full:
        return parts[0]
    rows = pl.concat(full)
    edges = [(_place(part, 0), _place(part, part.height - 1)) for part in full]
    if all(before[1] < after[0] for before, after in pairwise(edges)):
        return rows
    return daily(rows)


def _place(rows: pl.DataFrame, at: int) -> tuple[tuple[bool, str], ...]:
    """The first keys of the order of a roll-up, nulls last."""
    keys = rows.select(daily_keys()[:2]).row(at)
    return tuple((key is None, str(key or "")) for key in keys)


@dataclass(frozen=True)
class Sums:
    """What is left of the rows of a day once they are written.

    Args:
        rows: Their number.
        daily: Rows of ``costs_daily``.
        doubts: What ``notes.doubts`` reads.
        foreign: ``notes.foreign_riders``.
    """

    rows: int
    daily: pl.DataFrame
    doubts: pl.DataFrame
    foreign: tuple[str, ...]


def write(
    day: Day,
    parts: pl.DataFrame,
    others: pl.DataFrame,
    sink: Callable[[pl.DataFrame], object],
    shards: Shards,
) -> Sums:
    """Work out all rows, hand them on part by part, and compare their sums with the lines.

    Args:
        day: The day.
        parts: ``split.hour_parts``.
        others: ``lines.place.Placed.rows``.
        sink: Takes rows of ``costs``.
        shards: How large a part is.

    Raises:
        ReconcileError: Shares do not add up to their charge.
    """
    nodes = each(
        lambda some: of_nodes(some, day),
        by_node(parts, day.hours, day.held, shards.shares),
        shards.threads,
    )
    loose = others.iter_slices(shards.shares) if others.height else [others]
    count, daily_parts, totals, doubts, foreign = 0, [], [], [], set[str]()
    for some in chain(nodes, (of_lines(rows, day) for rows in loose)):
        sink(some.costs)
        count += some.costs.height
        daily_parts.append(some.daily)
        totals.append(some.totals)
        doubts.append(some.doubts)
        foreign.update(some.foreign)
    reconcile.compare(day.lines, pl.concat(totals), UNITS)
    return Sums(count, merge_daily(daily_parts), pl.concat(doubts).unique(), tuple(sorted(foreign)))
