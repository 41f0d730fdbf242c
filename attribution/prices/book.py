"""Which price holds for which kind of node, and when: keys, order of truth, steps of time.

A *kind* is what nodes of one price have in common: provider, region, zone, instance type, operating
system, tenancy, capacity type and card model; where metrics price single nodes, the node as well.
"""

from __future__ import annotations

import polars as pl

from attribution.bill.paying import CLOUDS
from attribution.identity import label
from attribution.ratio import milliseconds
from attribution.spans import by_hour
from ledger.money import to_units

KEYS = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "operating_system",
    "tenancy",
    "capacity_type",
)
KIND = (*KEYS, "gpu_model", "cluster", "node")
OK, UNKNOWN, AMBIGUOUS = "ok", "unknown", "ambiguous"
BOOK, METRIC, REFERENCE = "book", "metric", "reference"
"""Tiers of truth: prices that somebody set or published, what an exporter shows, built-in rates."""

GROUPS = ("node", "card", "vcpu", "gib")
COLUMNS = ("rate", "currency", "rank", "source", "state", "alone")
_RANKS = {
    "contract": 0,
    "settings": 0,
    "upfront": 0,
    "free": 0,
    "spot": 1,
    "list": 2,
    "metric": 3,
    "reference": 4,
}
_GROUP = {"node": "node", "gpu": "card", "gpu_alone": "card", "vcpu": "vcpu", "gib": "gib"}
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_OF_NODE = 10**6
_OF_KEY = 1000


def cloud(name: pl.Expr) -> pl.Expr:
    """The scheme that provider ids of a cloud have, by any of its names; else the name itself."""
    lower = name.str.to_lowercase()
    known = [pl.when(lower.str.contains(p)).then(pl.lit(c)) for c, p in CLOUDS.items()]
    return pl.coalesce(*known, lower)


def kinds_of(hours: pl.DataFrame, *, single: bool) -> pl.DataFrame:
    """Number the kinds of the nodes.

    Nothing in Kubernetes tells a node's tenancy; it counts as ``shared``.

    Args:
        hours: ``node_hours.node_hours``.
        single: Whether each node is a kind of its own.

    Returns:
        ``nh``, ``kind`` and ``KIND`` in lower case (``cluster`` and ``node`` as written, null
        unless ``single``).
    """
    system = pl.coalesce(*(label("labels", key) for key in _OS))
    facts = hours.select("cluster", "node", "labels").unique().with_columns(system=system)
    plain = ("region", "zone", "instance_type", "capacity_type")
    keyed = hours.join(facts, on=["cluster", "node", "labels"], how="left", nulls_equal=True)
    keyed = keyed.select(
        "nh",
        pl.col("provider_id").str.extract(r"^(\w+)://", 1).str.to_lowercase().alias("provider"),
        *(pl.col(key).str.to_lowercase() for key in plain),
        pl.col("system").str.to_lowercase().alias("operating_system"),
        pl.lit("shared").alias("tenancy"),
        _words("gpu_model").alias("gpu_model"),
        *(pl.when(single).then(key).alias(key) for key in ("cluster", "node")),
    )
    kinds = keyed.select(KIND).unique().sort(KIND, nulls_last=True).with_row_index("kind")
    return keyed.join(kinds, on=list(KIND), how="left", nulls_equal=True)


def book_of(prices: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``prices`` for nodes as a book: lower-case keys, rates in units, ranks.

    A price of 0 for a node or a card is none, as nobody gives them away (unless ``kind`` is
    ``free``): the rate is null, not known.
    """
    model = pl.when(pl.col("gpu_model").str.to_lowercase() != "default").then(_words("gpu_model"))
    kind = pl.col("kind").fill_null("settings")
    rate = to_units(pl.col("price_per_hour"))
    given = (rate != 0) | (kind == "free") | pl.col("resource").is_in(["vcpu", "gib"])
    keys = {key: pl.col(key).str.to_lowercase() for key in KEYS}
    keys["provider"] = cloud(pl.col("provider"))
    special = pl.sum_horizontal(pl.col(key).is_not_null().cast(pl.Int64) for key in KEYS)
    length = model.str.len_chars().cast(pl.Int64).fill_null(0)
    alone = pl.col("node").is_not_null().cast(pl.Int64) * _OF_NODE
    rank = kind.replace_strict(_RANKS, default=_RANKS["list"], return_dtype=pl.Int64)
    return (
        prices.filter(pl.col("resource").is_in(list(_GROUP)))
        .select(
            pl.col("resource").replace_strict(_GROUP, return_dtype=pl.String).alias("group"),
            (pl.col("resource") == "gpu_alone").alias("alone"),
            "currency",
            *(expression.alias(f"of_{key}") for key, expression in keys.items()),
            model.alias("of_gpu_model"),
            pl.when(pl.col("node").is_not_null())
            .then(pl.col("source").str.extract(r"^[^/]+/(.+)$", 1))
            .alias("of_cluster"),
            pl.col("node").alias("of_node"),
            milliseconds("start").alias("from"),
            milliseconds("end").alias("until"),
            pl.when(given).then(rate).alias("rate"),
            rank.alias("rank"),
            kind.alias("source"),
            (special * _OF_KEY + length + alone).alias("score"),
        )
        .with_columns(
            pl.when(pl.col("rank") == _RANKS["metric"])
            .then(pl.lit(METRIC))
            .when(pl.col("rank") == _RANKS["reference"])
            .then(pl.lit(REFERENCE))
            .otherwise(pl.lit(BOOK))
            .alias("tier")
        )
        .unique()
    )


def steps(
    kinds: pl.DataFrame, book: pl.DataFrame, start: int, end: int, currency: str
) -> pl.DataFrame:
    """The prices of each kind as step functions of time, cut at hours.

    At any time, and for each tier and group, the best row counts: by order of truth, then the most
    specific key, then the given currency. Two of these that differ are ambiguous; of metrics the
    first by rate counts.

    Args:
        kinds: ``kinds_of``.
        book: ``book_of``.
        start: First moment in milliseconds.
        end: End, exclusive.
        currency: Which currency is preferred where one key has prices in several.

    Returns:
        ``kind, hour, start, end`` and ``TIER_GROUP_COLUMN`` for each tier, of ``GROUPS`` and of
        ``COLUMNS``; ``state`` is null where there is no row.
    """
    every = kinds.select("kind", *KIND).unique("kind")
    fitting = every.join(book, how="cross").filter(_fits()).drop(*KIND)
    fitting = fitting.with_columns(
        pl.max_horizontal("from", pl.lit(start)), pl.min_horizontal("until", pl.lit(end))
    ).filter(pl.col("from") < pl.col("until"))
    edges = [fitting.select("kind", at=edge) for edge in ("from", "until")]
    ends = [every.select("kind", pl.lit(edge).alias("at")) for edge in (start, end)]
    points = pl.concat([*edges, *ends], how="vertical_relaxed").unique().sort("kind", "at")
    pieces = points.with_columns(pl.col("at").shift(-1).over("kind").alias("next"))
    pieces = pieces.drop_nulls("next")
    valid = pieces.join(fitting, on="kind").filter(
        (pl.col("from") <= pl.col("at")) & (pl.col("at") < pl.col("until"))
    )
    best = _best(valid, currency)
    for tier in (BOOK, METRIC, REFERENCE):
        for group in GROUPS:
            names = {name: f"{tier}_{group}_{name}" for name in COLUMNS}
            part = best.filter(tier=tier, group=group).select("kind", "at", *COLUMNS)
            pieces = pieces.join(part.rename(names), on=["kind", "at"], how="left")
    return by_hour(pieces.rename({"at": "start", "next": "end"})).drop("ms")


def _fits() -> pl.Expr:
    """Whether a row of the book holds for a kind."""
    equal = [
        pl.col(f"of_{key}").is_null() | (pl.col(f"of_{key}") == pl.col(key))
        for key in (*KEYS, "cluster", "node")
    ]
    model = pl.col("of_gpu_model").is_null() | pl.col("gpu_model").str.contains(
        pl.col("of_gpu_model"), literal=True
    )
    return pl.all_horizontal(*equal, model).fill_null(value=False)


def _best(valid: pl.DataFrame, currency: str) -> pl.DataFrame:
    """One row per piece, tier and group."""
    one = ["kind", "at", "tier", "group"]
    top = valid.filter(pl.col("rank") == pl.col("rank").min().over(one))
    top = top.filter(pl.col("score") == pl.col("score").max().over(one))
    home = pl.col("currency") == currency
    top = top.filter(home | ~home.any().over(one))
    several = pl.struct("rate", "currency", "alone").n_unique() > 1
    ordered = top.sort(*one, "rate", "currency", "alone", "source", nulls_last=True)
    return ordered.group_by(one, maintain_order=True).agg(
        *(pl.col(name).first() for name in COLUMNS if name != "state"),
        pl.when(several & (pl.col("tier").first() != METRIC))
        .then(pl.lit(AMBIGUOUS))
        .when(pl.col("rate").first().is_null())
        .then(pl.lit(UNKNOWN))
        .otherwise(pl.lit(OK))
        .alias("state"),
    )


def _words(name: str) -> pl.Expr:
    """A card model as lower-case words between blanks."""
    return pl.concat_str(
        pl.lit(" "),
        pl.col(name).str.to_lowercase().str.replace_all(r"[^a-z0-9]+", " "),
        pl.lit(" "),
    )
