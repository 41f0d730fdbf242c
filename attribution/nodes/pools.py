"""How a node-hour's price falls to pools: ``gpu``, ``cpu``, ``memory``, or the node as a whole.

All weights are integers; ``docs/allocation.md`` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.nodes.methods import CAPACITY, CPU, GPU, MEMORY, WHOLE
from attribution.nodes.node_pools import AWS, WEIGHTS, fine
from attribution.ratio import KIB_PER_GIB, divide, worth
from ledger.money import UNITS
from ledger.settings import Prices, Settings

BUILT_IN_CURRENCY = "USD"
"""Currency of the built-in reference rates."""


@dataclass(frozen=True)
class Rates:
    """Reference rates in units of 1e-12 of a currency per vCPU-hour and GiB-hour."""

    vcpu: int
    gib: int
    currency: str

    @classmethod
    def of(cls, settings: Settings) -> Rates:
        """The rates of the settings in their currency, else the built-in reference rates (USD)."""
        prices = settings.prices or Prices()
        own = prices.model_fields_set & {"vcpu", "gib"}
        currency = settings.currency if own else BUILT_IN_CURRENCY
        vcpu, gib = (int(prices.hourly(name) * UNITS) for name in ("vcpu", "gib"))
        return cls(vcpu, gib, currency)


def pools(hours: pl.DataFrame, prices: pl.DataFrame, rates: Rates) -> pl.DataFrame:
    """Pool weights of each node-hour and currency.

    Args:
        hours: ``classify``.
        prices: ``nh, currency, price``, the price in units.
        rates: Reference rates of riders.

    Returns:
        ``nh, currency, pool, weight``; pools of weight 0 are left out (they would get nothing).
    """
    rows = _with_riders(prices.join(hours, on="nh"), rates)
    parts = [
        rows.select(
            "nh",
            "currency",
            pl.lit(pool).alias("pool"),
            _weight(pool).cast(pl.Int128).alias("weight"),
        )
        for pool in (GPU, CPU, MEMORY, WHOLE)
    ]
    every = pl.concat(parts).drop_nulls("weight")
    # Weights of a split add up to less than 2^63; a price above 2^62 units (four million of a
    # currency an hour, as in IRR) keeps its leading digits.
    total = pl.col("weight").sum().over("nh", "currency")
    every = every.with_columns(pl.col("weight") // (total // 2**62 + 1))
    nothing = pl.col("weight").sum().over("nh", "currency") == 0
    return every.filter((pl.col("weight") > 0) | nothing).sort("nh", "currency", "pool")


def _weight(pool: int) -> pl.Expr:
    """Weight of a pool; null where the node-hour has no such pool."""
    if pool == WHOLE:
        return pl.when(pl.col("whole").is_not_null()).then(1)
    first = {
        GPU: pl.col("price") - pl.col("r_cpu") - pl.col("r_memory"),
        CPU: pl.col("r_cpu"),
        MEMORY: pl.col("r_memory"),
    }[pool]
    first = pl.when(pl.col("price") > 0).then(first).otherwise(int(pool == GPU))
    size = pl.col(CAPACITY[pool]).cast(pl.Int128)
    by_weight = size * pl.col(WEIGHTS[pool])
    # A node without cards, in a pool that weighs nothing but cards, is split as any other.
    none = pl.all_horizontal(pl.col(name) == 0 for name in WEIGHTS[CPU:])
    plain = pl.when(none).then(size * fine(AWS)[pool]).otherwise(by_weight)
    return (
        pl.when(pl.col("whole").is_not_null())
        .then(None)
        .when(~pl.col("carded"))
        .then(None if pool == GPU else plain)
        .when(pl.col("method") == "gpu-first")
        .then(first)
        .otherwise(by_weight)
    )


def _with_riders(rows: pl.DataFrame, rates: Rates) -> pl.DataFrame:
    """Add ``r_cpu`` and ``r_memory``: what pods without a card pay on a node with cards."""
    paid = pl.col("paid")
    cpu, memory = _at_rates(pl.col("rider_cpu"), pl.col("rider_memory"), rates)
    node_cpu, node_memory = _at_rates(
        pl.col("cpu_millicores") * paid, pl.col("memory_kib") * paid, rates
    )
    half = pl.when(pl.col("price") < 0).then(0).otherwise(pl.col("price") // 2)
    rows = rows.with_columns(
        cpu.alias("asked_cpu"),
        memory.alias("asked_memory"),
        # A node that does not say its size is capped by half of its price alone.
        pl.min_horizontal(half, node_cpu + node_memory).alias("cap"),
    )
    asked = pl.col("asked_cpu") + pl.col("asked_memory")
    over = asked > pl.col("cap")
    scaled = pl.col("cap") * pl.col("asked_cpu") // pl.max_horizontal(asked, pl.lit(1))
    return rows.with_columns(
        pl.when(over).then(scaled).otherwise("asked_cpu").alias("r_cpu"),
        pl.when(over).then(pl.col("cap") - scaled).otherwise("asked_memory").alias("r_memory"),
    )


def _at_rates(cpu: pl.Expr, memory: pl.Expr, rates: Rates) -> tuple[pl.Expr, pl.Expr]:
    """What CPU (millicore·ms) and memory (KiB·ms) are worth on a node, in units of its price.

    The reference rates say so in their own currency only. In another one the node's price itself
    does, by the weights of ``aws-split``; on a node that does not say its size nothing can.
    """
    # Their common divisor goes, and whole multiples are taken apart, to stay inside 128 bits.
    weights = [weight // 8 for weight in fine(AWS)]
    price = pl.col("price").cast(pl.Int128).clip(0)
    node = pl.sum_horizontal(
        pl.col(CAPACITY[pool]).cast(pl.Int128) * weights[pool] for pool in (GPU, CPU, MEMORY)
    )
    size = pl.col("cpu_millicores").is_not_null() & pl.col("memory_kib").is_not_null()
    whole = pl.when(size & (pl.col("paid") > 0)).then(node * pl.col("paid"))

    def part(amount: pl.Expr, pool: int) -> pl.Expr:
        claim = amount.cast(pl.Int128) * weights[pool]
        return (price // whole * claim + divide(price % whole * claim, whole)).fill_null(0)

    own = pl.col("currency") == rates.currency
    return (
        pl.when(own).then(worth(cpu, pl.lit(rates.vcpu), 1000)).otherwise(part(cpu, CPU)),
        pl.when(own)
        .then(worth(memory, pl.lit(rates.gib), KIB_PER_GIB))
        .otherwise(part(memory, MEMORY)),
    )
