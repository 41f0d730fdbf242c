"""What a reader of a day's books should know and need not mend, one line each."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.nodes.methods import CPU, MEMORY, POD
from attribution.nodes.pools import Rates
from ledger.money import UNITS
from ledger.settings import Prices, Settings
from ledger.text import counted

_PER = {"vcpu": "vCPU-hour", "gib": "GiB-hour"}


def snapshots(clusters: pl.DataFrame) -> Iterator[str]:
    """A line for each cluster that has no other source than the API, and needs none.

    Args:
        clusters: ``evidence.weigh_clusters``.
    """
    alone = clusters.filter(pl.col("snapshot") & pl.col("blind").is_null())
    for cluster in alone["cluster"]:
        yield (
            f"{cluster}: only a snapshot of the API speaks of it (snapshot_only); pods deleted "
            "before the snapshot are not seen"
        )


def doubts(costs: pl.DataFrame) -> Iterator[str]:
    """How many pods have low confidence, and that some costs are estimated.

    Args:
        costs: Rows of ``costs``.
    """
    doubted = (pl.col("confidence") == "low") & pl.col("uid").is_not_null()
    low = costs.filter(doubted).select("cluster", "uid").n_unique()
    if low:
        yield (
            f"{counted(low, 'pod')} with low confidence: seen by one source, or shorter than the "
            "distance of two samples"
        )
    if costs.filter(pl.col("x_Basis") == "estimated").height:
        yield "node-hours without a bill line are priced from `prices` and estimated"


def built_in_rates(node_hours: int, settings: Settings) -> Iterator[str]:
    """That nodes without cards are priced at rates which the settings do not name.

    Args:
        node_hours: How many were priced by vCPU and GiB.
        settings: ``prices``.
    """
    prices = settings.prices or Prices()
    missing = sorted({"vcpu", "gib"} - prices.model_fields_set, reverse=True)
    if node_hours and missing:
        rates = " and ".join(f"{getattr(prices, name)} per {_PER[name]}" for name in missing)
        keys = " and ".join(f"prices.{name}" for name in missing)
        yield (
            f"{node_hours} hours of nodes without cards are priced at the built-in reference "
            f"rates: {settings.currency} {rates}; set {keys}"
        )


def foreign_riders(
    shares: pl.DataFrame, lines: pl.DataFrame, hours: pl.DataFrame, rates: Rates
) -> Iterator[str]:
    """Currencies in which riders do not pay the reference rates.

    Args:
        shares: ``split.node_shares``.
        lines: All lines by ``line``.
        hours: ``methods.classify``.
        rates: The reference rates.
    """
    foreign = lines.filter(pl.col("BillingCurrency") != rates.currency)
    gpu_first = hours.filter("carded", pl.col("method") == "gpu-first")
    paid = (
        shares.filter((pl.col("kind") == POD) & pl.col("pool").is_in([CPU, MEMORY]))
        .join(foreign.select("line", "BillingCurrency"), on="line")
        .join(gpu_first.select("nh"), on="nh", how="semi")
    )
    for currency in paid["BillingCurrency"].unique().sort():
        yield (
            f"pods without a card pay in {currency} by the weights of aws-split: the reference "
            f"rates are in {rates.currency}"
        )


def fees_twice(lines: pl.DataFrame, estimated: pl.DataFrame) -> Iterator[str]:
    """That a fee in advance counts in effective cost, and once more as it is spread over its hours.

    Bills should give such a purchase no effective cost (FOCUS); some do.

    Args:
        lines: ``match.bill_lines``.
        estimated: Lines of node-hours that no bill pays for.
    """
    bought = lines.filter(
        pl.col("CommitmentDiscountId").is_null(),
        pl.col("units_EffectiveCost") > 0,
        ChargeCategory="Purchase",
        ServiceCategory="Compute",
        x_Basis="billed",
    )
    spread = estimated.filter(x_PriceSource="upfront")
    if bought.is_empty() or spread.is_empty():
        return
    for currency in bought["BillingCurrency"].unique().sort():
        fee, part = (
            int(frame.filter(BillingCurrency=currency)["units_EffectiveCost"].sum()) / UNITS
            for frame in (bought, spread)
        )
        if part:
            yield (
                f"purchases of machines ({currency} {fee:.2f}) have an effective cost, and "
                f"`upfront` prices spread fees over node-hours ({currency} {part:.2f} this day): "
                "where they are one, effective cost counts it twice; billed cost does not"
            )
