"""Claims of devices (dynamic resource allocation): who holds their cards, and when.

The cards of a claim go evenly to the pods that it is reserved for and that live at the time. While
none of them does, its namespace holds them: they are taken, and waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from attribution.facts import DayFacts
from attribution.nodes.devices import CARD, Share, fraction
from attribution.spans import clip, crowd, flatten, intersect, union
from ledger.facts import Gap

_POD = ("cluster", "uid")
_CLAIM = ("cluster", "claim")
_HELD = ("cards", "devices", "unsized")
_NOBODY = ""
"""The member of a claim that stands for itself beside its pods."""


@dataclass(frozen=True)
class Claimed:
    """What the claims of a day add.

    Args:
        lives: The pods with what they hold of claims, cut where that changes, and the claims that
            no pod used, as rows of their namespace.
        lost: ``cluster, claim, node_ms, card_ms`` (parts of a card × ms) of claims that nobody used
            and whose node is not told.
    """

    lives: pl.DataFrame
    lost: pl.DataFrame


def spans(facts: DayFacts) -> pl.DataFrame:
    """The claims of cards; what the API tells of one wins over what samples do.

    Args:
        facts: The day.

    Returns:
        ``cluster, claim`` (uid), ``namespace, node, start, end``, ``cards`` (parts of a card; null
        = not known), ``devices, unsized, confidence`` and ``pods`` (list of uids). Intervals of one
        claim do not overlap.
    """
    sampled = pl.col("interval_seconds").is_not_null()
    api = facts.claims.filter(~sampled)
    rows = pl.concat([api, facts.claims.filter(sampled).join(api, on=list(_POD), how="anti")])
    rows = rows.select(
        "cluster",
        pl.col("uid").alias("claim"),
        "namespace",
        "node",
        pl.col("claim").alias("name"),
        pl.col("start").dt.timestamp("ms"),
        pl.col("end").dt.timestamp("ms"),
        pl.col("cards").alias("told"),
        pl.when(sampled).then(pl.lit("high")).otherwise(pl.lit("low")).alias("confidence"),
        "pods",
    )
    rows = flatten(clip(rows, facts.start, facts.end), _CLAIM)
    rows = rows.join(_sized(rows), on="told", how="left", nulls_equal=True).with_columns(
        pl.when(pl.col("cards").is_null())
        .then(pl.format("the devices of claim {}/{}", "namespace", "name"))
        .alias("unsized"),
        pl.col("pods").fill_null("[]").str.json_decode(pl.List(pl.String)),
    )
    return rows.filter((pl.col("cards") > 0) | pl.col("cards").is_null()).drop("told", "name")


def _sized(rows: pl.DataFrame) -> pl.DataFrame:
    """``told``, ``cards`` and ``devices`` of each text that tells cards."""
    texts = rows["told"].unique().to_list()
    found = [fraction(text) for text in texts]
    shares = [Share(None) if cards is None or cards < 0 else Share.of(cards) for cards in found]
    return pl.DataFrame(
        {
            "told": texts,
            "cards": [one.parts for one in shares],
            "devices": [one.devices for one in shares],
        },
        schema={"told": pl.String(), "cards": pl.Int64(), "devices": pl.Int64()},
    )


def add(lives: pl.DataFrame, claims: pl.DataFrame) -> Claimed:
    """Give the cards of claims to those who hold them.

    Args:
        lives: ``devices.add_cards``.
        claims: ``spans``, while cluster and node were seen.
    """
    nothing = {"cluster": pl.String(), "claim": pl.String()}
    none_lost = pl.DataFrame(schema={**nothing, "node_ms": pl.Int64(), "card_ms": pl.Int128()})
    if claims.is_empty():
        return Claimed(lives, none_lost)
    tenants = _tenants(lives, claims)
    own = claims.select(*_CLAIM, pl.lit(_NOBODY).alias("uid"), "node", "start", "end", *_HELD)
    pieces = crowd(pl.concat([tenants.select(own.columns), own]), _CLAIM, ["uid"])
    pods = pl.col("members") - 1
    shared = pieces.filter(pl.col("uid") != _NOBODY).with_columns(pl.col("cards") // pods)
    alone = pieces.filter((pl.col("uid") == _NOBODY) & (pods == 0))
    places = tenants.sort("start").group_by(_CLAIM).agg(pl.col("node").first().alias("place"))
    told = claims.select(*_CLAIM, "start", "end", "namespace", "confidence")
    alone = intersect(alone, told, _CLAIM).join(places, on=list(_CLAIM), how="left")
    alone = alone.with_columns(pl.coalesce("node", "place").alias("node"))
    placed = pl.col("node").is_not_null()
    length = pl.col("end") - pl.col("start")
    lost = (
        alone.filter(~placed)
        .group_by(_CLAIM)
        .agg(
            length.sum().alias("node_ms"),
            (pl.col("cards").fill_null(0).cast(pl.Int128) * length).sum().alias("card_ms"),
        )
    )
    every = pl.concat(
        [_with_shares(lives, shared), _as_lives(alone.filter(placed), lives)], how="diagonal"
    )
    return Claimed(every.sort("cluster", "uid", "start"), lost.sort(_CLAIM))


def _tenants(lives: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    """``cluster, claim, uid, node, start, end``: when each pod lived with its claim."""
    reserved = (
        claims.explode("pods", empty_as_null=True)
        .drop_nulls("pods")
        .select(*_CLAIM, "start", "end", *_HELD, uid="pods", at="node")
        .unique()
    )
    lived = lives.join(reserved.select(_POD).unique(), on=list(_POD), how="semi")
    met = intersect(union(lived, [*_POD, "node"]), reserved, _POD)
    return met.filter((pl.col("at") == pl.col("node")).fill_null(value=True)).drop("at")


def _with_shares(lives: pl.DataFrame, shared: pl.DataFrame) -> pl.DataFrame:
    """Lives with what their claims add; cut where that changes.

    Args:
        lives: ``devices.add_cards``.
        shared: ``cluster, uid, start, end, cards, devices, unsized`` per claim.
    """
    held = shared.select(_POD).unique()
    mine = lives.join(held, on=list(_POD), how="semi").with_row_index("life")
    others = lives.join(held, on=list(_POD), how="anti")
    parts = shared.with_row_index("life", offset=mine.height)
    edges = [*_POD, "start", "end"]
    every = pl.concat([frame.select(*edges, "life") for frame in (mine, parts)])
    cut = crowd(every, _POD, ["life"]).drop("members")
    more = (
        cut.join(parts.select("life", *_HELD), on="life")
        .group_by(*_POD, "start")
        .agg(
            pl.when(pl.col("cards").null_count() == 0).then(pl.col("cards").sum()).alias("more"),
            pl.col("devices").sum().alias("more_devices"),
            pl.col("unsized").min().alias("more_unsized"),
        )
    )
    pieces = (
        cut.join(mine.drop(edges), on="life")
        .join(more, on=[*_POD, "start"], how="left")
        .with_columns(
            pl.when(pl.col("more_devices").is_null())
            .then("cards")
            .otherwise(pl.col("cards") + pl.col("more"))
            .alias("cards"),
            pl.col("devices") + pl.col("more_devices").fill_null(0),
            pl.coalesce("unsized", "more_unsized").alias("unsized"),
        )
    )
    return pl.concat([others, pieces.select(lives.columns)])


def _as_lives(alone: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """Claims that no pod uses, in the form of pods that are held."""
    rows = alone.with_columns(
        pl.col("claim").alias("uid"),
        pl.lit("held").alias("state"),
        pl.lit("{}").alias("labels"),
        pl.lit(0, dtype=pl.Int64).alias("cpu_millicores"),
        pl.lit(0, dtype=pl.Int64).alias("memory_bytes"),
        pl.lit(0, dtype=pl.Int64).alias("gpus"),
    )
    return rows.select(name for name in lives.columns if name in rows.columns)


def gaps(lost: pl.DataFrame) -> Iterator[Gap]:
    """Claims of cards that nobody can be found to hold.

    Args:
        lost: ``Claimed.lost``.
    """
    hours = 3_600_000
    sums = lost.group_by("cluster").agg(
        pl.len(), pl.col("claim").min(), pl.col("card_ms").sum() / (CARD * hours)
    )
    for cluster, count, first, card_hours in sums.sort("cluster").iter_rows():
        yield Gap(
            "capacity_unknown",
            f"{cluster}: {count} claims of devices name no node and no pod, e.g. {first}",
            {"gpu_hours": float(card_hours)},
        )
