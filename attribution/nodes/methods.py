"""Who claims how much of the pools (resources) that a node-hour's price falls to.

Pools are ``gpu`` 0, ``cpu`` 1, ``memory`` 2, and ``WHOLE`` 3 where a node is not split. Kinds of
claims, in the order of ties: pods 0, ``__unattributed__`` 1, ``__idle__`` 2. All amounts are
integers; ``docs/allocation.md`` has the formulas, ``nodes.pools`` the weights of the pools.
"""

from __future__ import annotations

import polars as pl

from attribution.nodes.devices import CARD, FINE
from attribution.nodes.node_hours import cards_unknown

GPU, CPU, MEMORY, WHOLE = range(4)
RESOURCES = {GPU: "gpu", CPU: "cpu", MEMORY: "memory", WHOLE: None}
POD, UNSEEN, FREE = range(3)
_NAMES = {GPU: "cards", CPU: "cpu", MEMORY: "memory"}
CAPACITY = {GPU: "gpus", CPU: "cpu_millicores", MEMORY: "memory_kib"}


def classify(hours: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Add what decides the method of a node-hour.

    Args:
        hours: ``node_hours.node_hours``.
        held: ``nh, who, cpu, memory, cards, unsized``; an amount is null where it is not known.

    Returns:
        ``hours`` with ``carded``, ``whole`` (why the hour is not split: ``capacity_unknown``, or
        ``no_samples`` where a request that it needs is not known; null = it is split), ``unsized``
        (what a pod holds and nobody knows of the cards), ``rider_cpu``, ``rider_memory``, and
        ``held_cards``, ``held_cpu``, ``held_memory``.
    """
    rider = pl.col("cards") == 0
    no_amount = pl.col("cpu").is_null() | pl.col("memory").is_null()
    sums = held.group_by("nh").agg(
        pl.col("cards").sum().alias("held_cards"),
        pl.col("cpu").sum().alias("held_cpu"),
        pl.col("memory").sum().alias("held_memory"),
        pl.col("cpu").filter(rider).sum().alias("rider_cpu"),
        pl.col("memory").filter(rider).sum().alias("rider_memory"),
        (pl.col("cards").is_null() & pl.col("unsized").is_null()).any().alias("no_cards"),
        pl.col("unsized").min(),
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
            pl.when(
                cards_unknown()
                | pl.col("unsized").is_not_null()
                | (~carded & (pl.col("held_cards") > 0))
                | (by_size & no_size)
            )
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


def claims(hours: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Who claims how much of each pool of a node-hour.

    Args:
        hours: ``classify``.
        held: ``nh, who, start, end, cpu, memory, cards``.

    Returns:
        ``nh, pool, kind, who`` (null unless a pod), ``start, end`` (of a pod's part), ``amount``
        (a weight), ``card_ms`` (parts of a card × ms; for pool gpu and hours that are not split).
        Claims of 0 are left out; a pool without any goes to the idle, in a blind cluster to the
        unseen.
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
            pl.col(name).cast(pl.Int128).alias("amount"),
        )
        for pool, name in _NAMES.items()
    ]
    rest = [_rest(hours, pool) for pool in _NAMES]
    whole = hours.filter(pl.col("whole").is_not_null()).select(
        "nh",
        pl.lit(WHOLE).alias("pool"),
        pl.lit(UNSEEN).alias("kind"),
        pl.lit(1, dtype=pl.Int128).alias("amount"),
        pl.max_horizontal(capacity(GPU).fill_null(0) * pl.col("paid"), "held_cards").alias(
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
        .alias("card_ms"),
        _weight().cast(pl.Int64).alias("amount"),
    ).sort("nh", "pool", "kind", "who", "start")


def capacity(pool: int) -> pl.Expr:
    """What a node has of a pool: parts of cards, millicores or KiB."""
    size = pl.col(CAPACITY[pool]).cast(pl.Int128)
    return size * CARD if pool == GPU else size


def _weight() -> pl.Expr:
    """Amounts as weights of a split, which add up to less than 2^63.

    Parts of cards that are all whole multiples of a million are divided by it, which changes no
    share; other amounts that are too large keep their leading digits.
    """
    amount, key = pl.col("amount"), ("nh", "pool")
    coarse = (pl.col("pool") == GPU) & (amount % FINE == 0).all().over(key)
    scaled = pl.when(coarse).then(amount // FINE).otherwise(amount)
    return scaled // (scaled.sum().over(key) // 2**62 + 1)


def _rest(hours: pl.DataFrame, pool: int) -> pl.DataFrame:
    """The claims of the unseen time and of free capacity; riders' pools hold riders only.

    In a cluster whose pods nobody looked for, what looks free belongs to the unseen. ``last`` marks
    who gets a pool that nobody claims.
    """
    has = {GPU: pl.col("carded")}.get(pool, ~pl.col("carded") | (pl.col("method") != "gpu-first"))
    rows = hours.filter(has & pl.col("whole").is_null())
    size = capacity(pool)
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
