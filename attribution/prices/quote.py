"""What the prices say of every node-hour: which of them counts, from when to when, and how much."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.nodes.node_hours import cards_unknown
from attribution.prices.book import (
    AMBIGUOUS,
    BOOK,
    METRIC,
    OK,
    REFERENCE,
    UNKNOWN,
    book_of,
    kinds_of,
    steps,
)
from attribution.ratio import HOUR, KIB_PER_GIB, divide
from attribution.spans import by_hour

NONE, CURRENCY, UNCOUNTED = "none", "currency", "capacity_unknown"
"""Further states of a quote: no price at all; parts in several currencies; a price of something
that nobody counted."""

NODE, CARD, SIZE = "node", "card", "size"
_CAPACITY = ("gpus", "gpu_model", "cpu_millicores", "memory_kib")
_RATES = ("node", "card", "vcpu", "gib")


def quote(
    hours: pl.DataFrame, there: pl.DataFrame, prices: pl.DataFrame, currency: str
) -> pl.DataFrame:
    """Price the time in which each node was up, whether a bill pays for it or not.

    Of a price of the whole node, one per card and those per vCPU and GiB that counts which is
    highest in the order of truth (contract and settings, spot history, list, metric, reference
    rates); among equals in this order. What counts but is not known, or says two things, prices
    nothing: a lower one never takes its place.

    Args:
        hours: ``node_hours.node_hours``.
        there: ``lives.there_spans``: when each node was up.
        prices: Rows of ``prices``.
        currency: Preferred where one key has prices in several.

    Returns:
        One row per node-hour and stretch of one price, ``nh, start, end`` (ms): ``state`` (``ok``
        or why there is no price), ``way``, ``source`` (kind of price), ``currency``, ``rate_node``,
        ``rate_card``, ``rate_vcpu``, ``rate_gib`` (units per hour; null = not part of the price),
        ``book`` and ``metric`` (units of the node per hour by these two tiers, where both are
        known in one currency).
    """
    book = book_of(prices)
    kinds = kinds_of(hours, single=book["of_node"].is_not_null().any())
    up = by_hour(there).select("cluster", "node", "hour", "start", "end")
    facts = hours.select("nh", "cluster", "node", "hour", *_CAPACITY)
    spans = up.join(facts, on=["cluster", "node", "hour"])
    if spans.is_empty():
        first, last = 0, 0
    else:
        first, last = spans.select(
            first=pl.col("hour").min(), last=pl.col("hour").max() + HOUR
        ).row(0)
    priced = steps(kinds, book, first, last, currency)
    rows = (
        spans.join(kinds.select("nh", "kind"), on="nh")
        .join(priced.rename({"start": "from", "end": "to"}), on=["kind", "hour"])
        .with_columns(pl.max_horizontal("start", "from"), pl.min_horizontal("end", "to"))
        .filter(pl.col("start") < pl.col("end"))
    )
    for tier in (BOOK, METRIC, REFERENCE):
        rows = _offer(rows, tier)
    return _choose(rows).sort("nh", "start")


def _carded() -> pl.Expr:
    return pl.col("gpus").fill_null(0) > 0


def _host(name: str, tier: str) -> str:
    """Column of the rate of CPU or memory beside a card: of that tier, else of a lower one."""
    return f"{tier}_with_{name}"


def _offer(rows: pl.DataFrame, tier: str) -> pl.DataFrame:
    """Add what one tier offers: ``TIER_way, _state, _source, _currency, _rate_…, _total``."""
    own = {group: f"{tier}_{group}" for group in _RATES}
    lower: Sequence[str] = {
        BOOK: (BOOK, REFERENCE),
        METRIC: (METRIC, BOOK, REFERENCE),
        REFERENCE: (REFERENCE,),
    }[tier]
    rows = rows.with_columns(
        pl.coalesce(
            *(
                pl.when(pl.col(f"{each}_{name}_state").is_not_null()).then(
                    pl.struct(
                        rate=f"{each}_{name}_rate",
                        currency=f"{each}_{name}_currency",
                        state=f"{each}_{name}_state",
                    )
                )
                for each in lower
            )
        ).alias(_host(name, tier))
        for name in ("vcpu", "gib")
    )
    unsure = cards_unknown()
    sized = ~_carded() & ~unsure
    two = [pl.col(f"{own[name]}_rank") for name in ("vcpu", "gib")]
    ranks = {
        NODE: pl.col(f"{own['node']}_rank"),
        CARD: pl.when(_carded() | unsure).then(pl.col(f"{own['card']}_rank")),
        SIZE: pl.when(sized & two[0].is_not_null() & two[1].is_not_null()).then(
            pl.max_horizontal(*two)
        ),
    }
    rank = pl.min_horizontal(*ranks.values())
    way = pl.coalesce(*(pl.when(each == rank).then(pl.lit(name)) for name, each in ranks.items()))
    rows = rows.with_columns(rank.alias(f"{tier}_rank"), way.alias(f"{tier}_way"))
    return rows.with_columns(_parts(tier)).with_columns(_total(tier).alias(f"{tier}_total"))


def _parts(tier: str) -> list[pl.Expr]:
    """The rates, currency, state and source of the way that a tier prices a node."""
    way = pl.col(f"{tier}_way")
    node, card = f"{tier}_node", f"{tier}_card"
    alone = pl.col(f"{card}_alone").fill_null(value=False)
    by_size = (way == SIZE) | ((way == CARD) & alone)
    host = {name: pl.col(_host(name, tier)).struct for name in ("vcpu", "gib")}
    bare = pl.col("cpu_millicores").is_null() | pl.col("memory_kib").is_null()
    currency = (
        pl.when(way == NODE)
        .then(f"{node}_currency")
        .when(way == CARD)
        .then(f"{card}_currency")
        .when(way == SIZE)
        .then(host["vcpu"].field("currency"))
    )
    mixed = by_size & pl.any_horizontal(
        (host[name].field("currency") != currency).fill_null(value=False) for name in host
    )
    head = pl.when(way == NODE).then(f"{node}_state").when(way == CARD).then(f"{card}_state")
    states = [
        head.otherwise(pl.lit(OK)),
        *(
            pl.when(by_size)
            .then(host[name].field("state").fill_null(UNKNOWN))
            .otherwise(pl.lit(OK))
            for name in host
        ),
    ]
    state = (
        pl.when(way.is_null())
        .then(None)
        .when(pl.any_horizontal(each == AMBIGUOUS for each in states))
        .then(pl.lit(AMBIGUOUS))
        .when(pl.any_horizontal(each == UNKNOWN for each in states))
        .then(pl.lit(UNKNOWN))
        .when(((way == CARD) & cards_unknown()) | ((way == SIZE) & bare))
        .then(pl.lit(UNCOUNTED))
        .when((way == CARD) & alone & bare)
        .then(pl.lit(UNKNOWN))
        .when(mixed)
        .then(pl.lit(CURRENCY))
        .otherwise(pl.lit(OK))
    )
    source = pl.when(way == NODE).then(f"{node}_source").when(way == CARD).then(f"{card}_source")
    return [
        state.alias(f"{tier}_state"),
        currency.alias(f"{tier}_currency"),
        source.otherwise(pl.col(f"{tier}_vcpu_source")).alias(f"{tier}_source"),
        pl.when(way == NODE).then(f"{node}_rate").alias(f"{tier}_rate_node"),
        pl.when(way == CARD).then(f"{card}_rate").alias(f"{tier}_rate_card"),
        *(
            pl.when(by_size).then(host[name].field("rate")).alias(f"{tier}_rate_{name}")
            for name in host
        ),
    ]


def _total(tier: str) -> pl.Expr:
    """Units of the whole node per hour; null where the tier does not know."""
    parts = [pl.col(f"{tier}_rate_{name}") for name in _RATES]
    return pl.when(pl.col(f"{tier}_state") == OK).then(money(parts, pl.lit(HOUR)))


def money(rates: Sequence[pl.Expr], ms: pl.Expr) -> pl.Expr:
    """Units of a node for some milliseconds at its rates, each resource rounded once, half-even.

    Args:
        rates: ``rate_node``, ``rate_card``, ``rate_vcpu``, ``rate_gib``; null is no part of it.
        ms: The time.
    """
    return settle(*weights(rates, ms))


def weights(rates: Sequence[pl.Expr], ms: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Amount × time × rate of cards (or the node), CPU and memory, before their division."""
    node, card, vcpu, gib = (rate.fill_null(0).cast(pl.Int128) for rate in rates)
    time = ms.cast(pl.Int128)
    cpu, memory = (pl.col(name).fill_null(0).cast(pl.Int128) for name in _CAPACITY[2:])
    cards = pl.col("gpus").fill_null(0).cast(pl.Int128)
    return (node + cards * card) * time, cpu * time * vcpu, memory * time * gib


def settle(cards: pl.Expr, cpu: pl.Expr, memory: pl.Expr) -> pl.Expr:
    """The units of (sums of) ``weights``."""
    return (
        divide(cards, pl.lit(HOUR, dtype=pl.Int128))
        + divide(cpu, pl.lit(1000 * HOUR, dtype=pl.Int128))
        + divide(memory, pl.lit(KIB_PER_GIB * HOUR, dtype=pl.Int128))
    )


def _choose(rows: pl.DataFrame) -> pl.DataFrame:
    """The first tier that has a price, or knows that there is one."""
    tiers = (BOOK, METRIC, REFERENCE)

    def of(name: str) -> pl.Expr:
        chain = [
            pl.when(pl.col(f"{tier}_state").is_not_null()).then(
                pl.struct(pl.col(f"{tier}_{name}").alias("value"))
            )
            for tier in tiers
        ]
        return pl.coalesce(*chain).struct.field("value").alias(name)

    same = pl.col(f"{BOOK}_currency") == pl.col(f"{METRIC}_currency")
    return rows.select(
        "nh",
        "cluster",
        "node",
        "hour",
        "start",
        "end",
        *_CAPACITY,
        of("state").fill_null(NONE),
        of("way"),
        of("source"),
        of("currency"),
        *(of(f"rate_{name}") for name in _RATES),
        pl.when(same).then(f"{BOOK}_total").alias("book"),
        pl.when(same).then(f"{METRIC}_total").alias("metric"),
    )
