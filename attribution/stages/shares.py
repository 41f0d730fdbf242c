"""Fifth stage: lines over hours, hours over pools, and lines that pay for no node."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution import rows
from attribution.facts import DayFacts
from attribution.lines import credits
from attribution.lines.place import Placed, place
from attribution.nodes import aws_splits
from attribution.nodes.methods import classify
from attribution.nodes.node_hours import NODE_HOUR
from attribution.nodes.pools import Rates
from attribution.split import hour_parts, weigh_pools
from attribution.stages.bill import Bill
from attribution.stages.holders import Holders
from attribution.stages.prices import Cut, Priced
from ledger.settings import Settings


@dataclass(frozen=True)
class Work:
    """What is left to do: the rows of ``costs``.

    Args:
        day: What they are worked out from.
        parts: ``split.hour_parts`` of the lines that pay for nodes.
        others: The lines that pay for none.
    """

    day: rows.Day
    parts: pl.DataFrame
    others: Placed


def share_out(
    cut: Cut, bill: Bill, priced: Priced, holders: Holders, facts: DayFacts, settings: Settings
) -> Work:
    """Cut lines over their hours, weigh the pools of each hour, and place what pays for no node.

    Args:
        cut: Node-hours and what was held in them.
        bill: Lines and the nodes that they meet.
        priced: Lines that were made or laid over nodes.
        holders: Who the pods are.
        facts: The day.
        settings: Identity rules, node pools, reference rates.
    """
    hours = classify(cut.hours, cut.held)
    told = aws_splits.read(facts.pod_splits, bill.ids, holders.lives, hours)
    hours = told.split_whole(hours)
    lines, line_hours = _all_lines(bill, hours, cut.made, priced)
    parts = credits.over_nodes(lines, hour_parts(lines, line_hours), hours, settings)
    loose = bill.lines.join(parts.select("line").unique(), on="line", how="anti")
    parts, rest = priced.laid.apart(parts, lines)
    loose = pl.concat([loose, rest.select(bill.lines.columns)])
    others = place(loose, holders.lives, holders.who, facts, settings)
    rates = Rates.of(settings)
    weights, told = told.over(weigh_pools(parts, hours, rates), parts, hours)
    day = rows.Day(lines, hours, cut.held, holders.who, weights, rates, told)
    return Work(day, parts, others)


def _all_lines(
    bill: Bill, hours: pl.DataFrame, made: pl.DataFrame, priced: Priced
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines of the bill and the estimated ones, and ``line, nh, hour, ms`` of both."""
    lines, laid = bill.lines, priced.laid
    made = made.with_row_index("line", offset=lines.height)
    numbered = bill.line_hours.join(hours.select("nh", *NODE_HOUR, "up"), on=list(NODE_HOUR))
    # Only hours without a paying line are cut, by the steps of their price.
    hour = ["line", *NODE_HOUR]
    part = (
        pl.col("ms") * pl.col("up") // pl.max_horizontal(pl.col("up").sum().over(hour), 1)
    ).clip(1)
    cut = pl.len().over(hour) > 1
    numbered = numbered.with_columns(pl.when(cut).then(part).otherwise("ms").alias("ms"))
    estimated = made.select("line", "nh", hour="start", ms="length")
    return (
        pl.concat([laid.marked(lines), made.select(lines.columns)]),
        pl.concat([numbered.select(estimated.columns), estimated, laid.parts]),
    )
