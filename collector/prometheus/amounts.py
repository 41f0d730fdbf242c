"""Amounts of cores, memory and cards: requests of pods, capacities of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from collector.cards import original, rank
from collector.prometheus.chains import changes

AMOUNTS = ("cpu_millicores", "memory_bytes", "gpus", "gpu_resource", "gpu_others")


def amounts(frame: pl.DataFrame, key: str, parts: Sequence[str]) -> pl.DataFrame:
    """The steps of what a pod asks for, or of what a node has.

    Args:
        frame: ``key``, ``parts``, ``resource`` (sanitised name), ``time``, ``value`` (cores,
            bytes, pieces).
        key: Pod or node.
        parts: Columns whose amounts add up, e.g. the container. Each part's amount is carried
            from sample to sample, so that a lost sample of one container is no change.

    Returns:
        ``key``, ``time``, ``cpu_millicores``, ``memory_bytes``, ``gpus`` (Int64, units of the card
        resource that ``collector.cards`` takes), ``gpu_resource``, and ``gpu_others`` (further card
        resources with an amount, by rank, with commas between); one row per change, as
        ``changes`` gives them. Null = not said.
    """
    what = [key, *parts, "resource"]
    steps = changes(
        frame.unique([*what, "time"], keep="first", maintain_order=True), what, ["value"]
    )
    points = steps.select(key, "time").unique()
    grid = points.join(steps.select(what).unique(), on=key).sort("time", *what)
    now = grid.join_asof(steps, on="time", by=what, check_sortedness=False)
    total = _named(now).group_by(key, "time", "name", "rank").agg(pl.col("amount").sum())
    return changes(_per_key(total, key), [key], AMOUNTS)


def _named(now: pl.DataFrame) -> pl.DataFrame:
    """Original resource names and whole units; unknown resources are left out."""
    texts = now["resource"].unique().drop_nulls().sort()
    names = pl.DataFrame(
        {
            "resource": texts,
            "name": [original(text) or text for text in texts],
            "rank": [rank(original(text) or "") for text in texts],
        },
        schema={"resource": pl.String, "name": pl.String, "rank": pl.Int64},
    ).filter(pl.col("rank").is_not_null() | pl.col("name").is_in(["cpu", "memory"]))
    scale = pl.when(pl.col("name") == "cpu").then(1000).otherwise(1)
    return now.join(names, on="resource").with_columns(
        amount=(pl.col("value") * scale).round().cast(pl.Int64)
    )


def _per_key(total: pl.DataFrame, key: str) -> pl.DataFrame:
    """One row per key and time."""
    others = pl.col("name").slice(1)
    cards = (
        total.filter(pl.col("rank").is_not_null(), pl.col("amount") > 0)
        .sort(key, "time", "rank", "name")
        .group_by(key, "time", maintain_order=True)
        .agg(
            gpus=pl.col("amount").first(),
            gpu_resource=pl.col("name").first(),
            gpu_others=pl.when(pl.len() > 1).then(others.str.join(",")),
        )
    )
    plain = total.group_by(key, "time").agg(
        cpu_millicores=pl.col("amount").filter(pl.col("name") == "cpu").first(),
        memory_bytes=pl.col("amount").filter(pl.col("name") == "memory").first(),
    )
    return plain.join(cards, on=[key, "time"], how="left").select(key, "time", *AMOUNTS)
