"""How a node-hour's price falls to pools (resources) and claims (who holds them).

Pools are ``gpu`` 0, ``cpu`` 1, ``memory`` 2, and ``WHOLE`` 3 where a node is not split. Kinds of
claims, in the order of ties: pods 0, ``__unattributed__`` 1, ``__idle__`` 2. All weights and
amounts are integers; ``docs/allocation.md`` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.node_hours import cards_unknown
from attribution.ratio import KIB_PER_GIB, divide, worth
from ledger.money import UNITS
from ledger.settings import Prices, Settings

GPU, CPU, MEMORY, WHOLE = range(4)
RESOURCES = {GPU: "gpu", CPU: "cpu", MEMORY: "memory", WHOLE: None}
POD, UNSEEN, FREE = range(3)
_NAMES = {GPU: "cards", CPU: "cpu", MEMORY: "memory"}
_CAPACITY = {GPU: "gpus", CPU: "cpu_millicores", MEMORY: "memory_kib"}
_MILLI = 1000
_WEIGHTS = {
    "aws-split": {GPU: 90 * _MILLI * KIB_PER_GIB, CPU: 9 * KIB_PER_GIB, MEMORY: _MILLI},
    "opencost": {
        GPU: 950_000 * _MILLI * KIB_PER_GIB,
        CPU: 31_611 * KIB_PER_GIB,
        MEMORY: 4_237 * _MILLI,
    },
}
"""Weight of one card, one millicore and one KiB."""


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
        return cls(int(prices.vcpu * UNITS), int(prices.gib * UNITS), currency)


def classify(hours: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Add what decides the method of a node-hour.

    Args:
        hours: ``node_hours.node_hours``.
        held: ``nh, who, cpu, memory, cards``; an amount is null where a request is not known.

    Returns:
        ``hours`` with ``carded``, ``whole`` (why the hour is not split: ``capacity_unknown``, or
        ``no_samples`` where a request that it needs is not known; null = it is split),
        ``rider_cpu``, ``rider_memory``, and ``held_cards``, ``held_cpu``, ``held_memory``.
    """
    rider = pl.col("cards") == 0
    no_amount = pl.col("cpu").is_null() | pl.col("memory").is_null()
    sums = held.group_by("nh").agg(
        pl.col("cards").sum().alias("held_cards"),
        pl.col("cpu").sum().alias("held_cpu"),
        pl.col("memory").sum().alias("held_memory"),
        pl.col("cpu").filter(rider).sum().alias("rider_cpu"),
        pl.col("memory").filter(rider).sum().alias("rider_memory"),
        pl.col("cards").is_null().any().alias("no_cards"),
        no_amount.any().alias("no_amounts"),
        (no_amount & rider).any().alias("no_rider"),
    )
    names = ("held_cards", "held_cpu", "held_memory", "rider_cpu", "rider_memory")
    carded = pl.col("gpus").fill_null(0) > 0
    by_size = ~carded | (pl.col("method") != "gpu-first")
    no_size = pl.col("cpu_millicores").is_null() | pl.col("memory_kib").is_null()
    return (
        hours.join(sums, on="nh", how="left", maintain_order="left")
        .with_columns(
            pl.col(*names).fill_null(0),  # nobody held anything
            pl.col("no_cards", "no_amounts", "no_rider").fill_null(value=False),
        )
        .with_columns(
            carded.alias("carded"),
            pl.when(cards_unknown() | (~carded & (pl.col("held_cards") > 0)) | (by_size & no_size))
            .then(pl.lit("capacity_unknown"))
            .when(
                (carded & (pl.col("no_cards") | pl.col("no_rider")))
                | (by_size & pl.col("no_amounts"))
            )
            .then(pl.lit("no_samples"))
            .alias("whole"),
        )
        .drop("no_cards", "no_amounts", "no_rider")
    )


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
    size = pl.col(_CAPACITY[pool]).cast(pl.Int128)
    plain = None if pool == GPU else size * _WEIGHTS["aws-split"][pool]
    return (
        pl.when(pl.col("whole").is_not_null())
        .then(None)
        .when(~pl.col("carded"))
        .then(plain)
        .when(pl.col("method") == "gpu-first")
        .then(first)
        .when(pl.col("method") == "aws-split")
        .then(size * _WEIGHTS["aws-split"][pool])
        .otherwise(size * _WEIGHTS["opencost"][pool])
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
    weights = {pool: weight // 8 for pool, weight in _WEIGHTS["aws-split"].items()}
    price = pl.col("price").cast(pl.Int128).clip(0)
    node = pl.sum_horizontal(
        pl.col(_CAPACITY[pool]).cast(pl.Int128) * weights[pool] for pool in (GPU, CPU, MEMORY)
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


def claims(hours: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Who claims how much of each pool of a node-hour.

    Args:
        hours: ``classify``.
        held: ``nh, who, start, end, cpu, memory, cards``.

    Returns:
        ``nh, pool, kind, who`` (null unless a pod), ``start, end`` (of a pod's part), ``amount``,
        ``card_ms`` (for pool gpu and hours that are not split). Claims of 0 are left out; a pool
        without any goes to the idle, in a blind cluster to the unseen.
    """
    both = held.join(hours.select("nh", "carded", "whole", "method"), on="nh")
    both = both.filter(pl.col("whole").is_null())
    gpu_first = pl.col("carded") & (pl.col("method") == "gpu-first")
    pods = [
        both.filter(
            (pl.col("carded") if pool == GPU else ~gpu_first | (pl.col("cards") == 0))
            & (pl.col(name) > 0)
        ).select(
            "nh",
            pl.lit(pool).alias("pool"),
            pl.lit(POD).alias("kind"),
            "who",
            "start",
            "end",
            pl.col(name).alias("amount"),
        )
        for pool, name in _NAMES.items()
    ]
    rest = [_rest(hours, pool) for pool in _NAMES]
    whole = hours.filter(pl.col("whole").is_not_null()).select(
        "nh",
        pl.lit(WHOLE).alias("pool"),
        pl.lit(UNSEEN).alias("kind"),
        pl.lit(1, dtype=pl.Int64).alias("amount"),
        pl.max_horizontal(pl.col("gpus").fill_null(0) * pl.col("paid"), "held_cards").alias(
            "card_ms"
        ),
    )
    every = pl.concat([*pods, *rest, whole], how="diagonal")
    nothing = pl.col("amount").sum().over("nh", "pool") == 0
    kept = every.filter((pl.col("amount") > 0) | (nothing & pl.col("last")))
    return kept.with_columns(
        pl.when(pl.col("pool") == GPU)
        .then("amount")
        .when(pl.col("card_ms") > 0)
        .then("card_ms")
        .alias("card_ms")
    ).sort("nh", "pool", "kind", "who", "start")


def _rest(hours: pl.DataFrame, pool: int) -> pl.DataFrame:
    """The claims of the unseen time and of free capacity; riders' pools hold riders only.

    In a cluster whose pods nobody looked for, what looks free belongs to the unseen. ``last`` marks
    who gets a pool that nobody claims.
    """
    has = {GPU: pl.col("carded")}.get(pool, ~pl.col("carded") | (pl.col("method") != "gpu-first"))
    rows = hours.filter(has & pl.col("whole").is_null())
    size = pl.col(_CAPACITY[pool])
    unseen = size * pl.col("unseen")
    free = (size * pl.col("paid") - pl.col(f"held_{_NAMES[pool]}") - unseen).clip(0)
    blind = pl.col("blind").is_not_null()
    return pl.concat(
        [
            rows.select(
                "nh",
                pl.lit(pool).alias("pool"),
                pl.lit(kind).alias("kind"),
                amount.alias("amount"),
                last.alias("last"),
            )
            for kind, amount, last in (
                (UNSEEN, pl.when(blind).then(unseen + free).otherwise(unseen), blind),
                (FREE, pl.when(blind).then(0).otherwise(free), ~blind),
            )
        ]
    )
