"""Third stage: the lines of the bill, the nodes that they meet, and the node-hours of the day."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.bill.match import bill_lines, match_lines, node_ids
from attribution.bill.paying import (
    compute_lines,
    covered_hours,
    machine_lines,
    named_part,
    paid_time,
)
from attribution.facts import DayFacts
from attribution.lives.evidence import darken
from attribution.nodes.node_hours import NODE_HOUR, node_hours, up_hours
from attribution.prices.volumes import VolumeEstimates, estimate_volumes
from attribution.stages.evidence import Evidence
from attribution.stages.holders import Holders
from ledger.schema import COST_COLUMNS
from ledger.settings import Settings


@dataclass(frozen=True)
class Bill:
    """Lines and the nodes that they meet.

    Args:
        lines: ``match.bill_lines``, and those that are made for volumes without a line.
        volumes: How these were made.
        paying: The lines that may pay for a node.
        ids: ``match.node_ids``.
        line_hours: ``match.match_lines``: ``line, cluster, node, hour, ms``.
        covered: ``paying.covered_hours``: ``cluster, node, hour``.
    """

    lines: pl.DataFrame
    volumes: VolumeEstimates
    paying: pl.DataFrame
    ids: pl.DataFrame
    line_hours: pl.DataFrame
    covered: pl.DataFrame

    def covering(self, hours: pl.DataFrame) -> pl.DataFrame:
        """The node-hours that a line pays for."""
        return hours.join(self.covered, on=list(NODE_HOUR), how="semi")

    def leaving(self, hours: pl.DataFrame) -> pl.DataFrame:
        """The node-hours that no line pays for."""
        return hours.join(self.covered, on=list(NODE_HOUR), how="anti")

    def compute(self) -> pl.DataFrame:
        """``paying.compute_lines`` of the cloud's bill, without what is wide."""
        narrow = ("line", "ChargeCategory", "ServiceCategory", *COST_COLUMNS)
        return compute_lines(self.paying.filter(x_Basis="billed").select(narrow))

    def unmet(self) -> pl.DataFrame:
        """``paying.machine_lines`` that meet no node."""
        return machine_lines(self.paying.join(self.line_hours, on="line", how="anti"))


def meet(facts: DayFacts, holders: Holders) -> Bill:
    """The lines of a day and the nodes that they meet.

    Args:
        facts: The day.
        holders: When its nodes were there.
    """
    billed = bill_lines(facts.charges, facts.start, facts.end)
    volumes = estimate_volumes(billed, facts)
    lines = pl.concat([billed, volumes.lines])
    paying, ids = _splittable(lines), node_ids(facts.nodes)
    line_hours = match_lines(paying, ids, holders.maybe)
    return Bill(lines, volumes, paying, ids, line_hours, covered_hours(paying, ids))


def hours_of(
    facts: DayFacts, evidence: Evidence, holders: Holders, bill: Bill, settings: Settings
) -> pl.DataFrame:
    """``node_hours.node_hours`` with dark time: all hours in which a node was up or paid."""
    keys = _keys(up_hours(holders.there, evidence.seen), bill)
    hours = node_hours(facts.nodes, keys, evidence.seen, evidence.clusters, settings)
    return darken(hours, evidence.dark)


def _splittable(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines that may pay for a node: not the part of a commitment that nobody used."""
    used = (lines["CommitmentDiscountStatus"] != "Unused").fill_null(True)
    return lines if used.all() else lines.filter(used)  # wide: no copy without need


def _keys(up: pl.DataFrame, bill: Bill) -> pl.DataFrame:
    """Every hour in which a node was up (a held one is) or paid, with the time that is paid for.

    The price of an hour that no line covers is that of the time in which the node was up.
    """
    key = list(NODE_HOUR)
    keys = pl.concat([frame.select(key) for frame in (up, bill.line_hours)]).unique()
    return (
        keys.join(up, on=key, how="left")
        .join(paid_time(bill.paying, bill.line_hours), on=key, how="left")
        .join(bill.covered.with_columns(covered=True), on=key, how="left")
        .join(named_part(bill.line_hours), on=key, how="left")
        .with_columns(
            pl.when("covered").then(pl.coalesce("paid", "part")).otherwise(0).alias("paid")
        )
        .drop("covered", "part")
    )
