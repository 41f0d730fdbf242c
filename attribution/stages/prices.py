"""Fourth stage: prices for node-hours that no line of the bill names, and lines laid over them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.bill.paying import may_double, may_pay_all
from attribution.facts import DayFacts
from attribution.nodes.node_hours import NODE_HOUR
from attribution.prices import steps
from attribution.prices.against_bill import currencies, foreign_prices
from attribution.prices.estimate import Estimates, estimate
from attribution.prices.laid_over import LaidOver, lay_over
from attribution.prices.quote import quote
from attribution.stages.bill import Bill
from attribution.stages.evidence import Evidence
from attribution.stages.holders import Amounts, Holders
from ledger.facts import Gap
from ledger.settings import Settings


@dataclass(frozen=True)
class Priced:
    """What node-hours cost beside the lines that meet them.

    Args:
        quotes: ``quote.quote`` of all node-hours.
        made: Lines made for node-hours without one.
        laid: Lines that meet no node, laid over node-hours.
        withheld: Node-hours that are not estimated, as a line that meets no node may pay for them.
        paid: Node-hours that a line pays for.
        gaps: Prices in another currency than the bill.
    """

    quotes: pl.DataFrame
    made: Estimates
    laid: LaidOver
    withheld: pl.DataFrame
    paid: pl.DataFrame
    gaps: tuple[Gap, ...]


def price(
    hours: pl.DataFrame, holders: Holders, bill: Bill, facts: DayFacts, settings: Settings
) -> Priced:
    """Price node-hours that no line pays for.

    Args:
        hours: ``stages.bill.hours_of``.
        holders: When nodes were there.
        bill: What lines pay for.
        facts: The day's prices.
        settings: The currency and the identity rules.
    """
    quotes = quote(hours, holders.there, facts.prices, settings.currency)
    free, unmet = bill.leaving(hours), bill.unmet()
    doubtful = may_double(free, unmet)
    made = estimate(free.join(doubtful, on="nh", how="anti"), quotes)
    dark = free.join(doubtful, on="nh", how="semi").filter(pl.col("up") > 0)
    laid = lay_over(may_pay_all(unmet, dark), dark, quotes, settings)
    paid = bill.covering(hours)
    bills = currencies(bill.paying, bill.line_hours, paid, unmet, dark)
    withheld = dark.join(laid.nodes, on="nh", how="anti")
    return Priced(quotes, made, laid, withheld, paid, foreign_prices(quotes, hours, bills))


@dataclass(frozen=True)
class Cut:
    """Node-hours, parts of hours where their price changes in them.

    Args:
        hours: ``node_hours.node_hours``.
        held: ``node_hours.held_amounts`` with ``nh``.
        made: ``estimate.Estimates.lines``.
    """

    hours: pl.DataFrame
    held: pl.DataFrame
    made: pl.DataFrame


def cut(
    hours: pl.DataFrame, amounts: Amounts, priced: Priced, evidence: Evidence, holders: Holders
) -> Cut:
    """Cut node-hours at the steps of their price, and what was held in them.

    Args:
        hours: ``stages.bill.hours_of``.
        amounts: What pods held in them.
        priced: Where prices change.
        evidence: When nodes were seen.
        holders: When nodes were there, and pods on them.
    """
    held = amounts.held.join(hours.select("nh", *NODE_HOUR), on=list(NODE_HOUR))
    there = holders.there
    times = steps.Times(there, evidence.of(there), holders.lives, amounts.usage)
    return Cut(*steps.cut(hours, held, priced.made.lines, priced.made.steps, times))
