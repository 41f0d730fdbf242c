"""Cards of which several pods hold fractions: together never more than the card.

Which pods share a card is said by the label ``runai-gpu-group`` (KAI, Run:ai) or by the annotation
in which HAMi or Volcano writes the cards that a pod was given, ``UUID,TYPE,MIB,CORES:…;``. Where
fractions add up to more than one, each holds its part of the card in proportion, and the other
cards of the node stay free.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.lives.reservations import groups
from attribution.nodes.devices import CARD
from attribution.ratio import HOUR
from attribution.spans import crowd
from ledger.facts import Gap

_CARD = ["cluster", "node", "group"]
_GIVEN = r'"[^"]*[/_]vgpu[-_](?:devices[-_]allocated|ids[-_]new)"\s*:\s*"([^"]*)"'
_DEVICE = r"[^,:;]+,[^,:;]+,[0-9]+,[0-9]+"


def fit(lives: pl.DataFrame) -> pl.DataFrame:
    """Scale the fractions of each card to the card.

    Args:
        lives: Pod intervals with ``cluster, node, start, end, labels, annotations, cards,
            devices``; a pod's fraction is the same of each of its cards. Reservation pods are not
            among them.

    Returns:
        The lives, cut where a card has too many tenants; ``cards`` is what each holds of it, and
        ``beyond`` what it asked for above that (parts of a card).
    """
    lives = lives.with_columns(pl.lit(0, dtype=pl.Int64).alias("beyond"))
    shared = lives.with_columns(_cards().alias("group"))
    counted = (pl.col("group").list.len() == pl.col("devices")) & (pl.col("cards") > 0)
    shared = shared.filter(counted.fill_null(value=False)).with_row_index("life")
    parts = shared.with_columns(pl.col("cards") // pl.col("devices")).explode("group")
    pieces = crowd(parts.select("life", *_CARD, "start", "end", "cards"), _CARD, ["life"])
    asked = pl.col("cards").sum().over(*_CARD, "start")
    scaled = (pl.col("cards").cast(pl.Int128) * CARD // asked).cast(pl.Int64)
    over = pieces.with_columns(scaled.alias("scaled"), asked.alias("asked"))
    # What rounding down leaves goes to the first tenants, so that the card is whole.
    rest = CARD - pl.col("scaled").sum().over(*_CARD, "start")
    first = pl.int_range(pl.len()).over(*_CARD, "start") < rest
    less = pl.col("cards") - pl.col("scaled") - first.cast(pl.Int64)
    over = over.with_columns(pl.when(pl.col("asked") > CARD).then(less).otherwise(0).alias("over"))
    tight = over.filter((pl.col("over") > 0).any().over("life"))
    if tight.is_empty():
        return lives
    cut = crowd(tight.select("life", "group", "start", "end", "over"), ["life"], ["group"])
    sums = cut.group_by("life", "start", "end").agg(pl.col("over").sum())
    met = sums.join(shared.drop("start", "end", "group"), on="life").with_columns(
        pl.col("cards") - pl.col("over"), pl.col("over").alias("beyond")
    )
    key = ["cluster", "uid", "start"]
    whole = shared.join(tight.select("life").unique(), on="life", how="semi")
    others = lives.join(whole, on=key, how="anti")
    return pl.concat([others, met.select(lives.columns)])


def _cards() -> pl.Expr:
    """Names of the cards of which a pod has fractions; empty or null where nothing tells them."""
    given = pl.col("annotations").str.extract(_GIVEN, 1).str.extract_all(_DEVICE)
    ids = given.list.eval(pl.element().str.extract("^([^,]+)", 1)).list.unique()
    return pl.when(groups().list.len() > 0).then(groups()).otherwise(ids)


def gaps(lives: pl.DataFrame) -> Iterator[Gap]:
    """Cards of which more was asked for than there is.

    Args:
        lives: ``fit``.
    """
    rows = lives.filter(pl.col("beyond") > 0)
    hours = pl.col("beyond") / CARD * (pl.col("end") - pl.col("start")) / HOUR
    found = rows.group_by("cluster").agg(
        pl.col("node").n_unique().alias("nodes"), pl.col("node").min(), hours.sum().alias("much")
    )
    for cluster, nodes, first, much in found.sort("cluster").iter_rows():
        yield Gap(
            "over_commit",
            f"{cluster}: fractions of cards of {nodes} nodes add up to more than the cards, "
            f"e.g. {first}",
            {"gpu_hours": much},
        )
