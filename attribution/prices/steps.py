"""Node-hours in which the price changes: cut there, so that each pod pays the price of its time."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.nodes.node_hours import NODE_HOUR, held_amounts
from attribution.nodes.usage import PodUsage
from attribution.spans import intersect

_PLACE = ["cluster", "node"]


@dataclass(frozen=True)
class Times:
    """When things were: nodes ``there`` and ``seen``, pod ``lives``, and their ``usage``."""

    there: pl.DataFrame
    seen: pl.DataFrame
    lives: pl.DataFrame
    usage: PodUsage


def cut(
    hours: pl.DataFrame, held: pl.DataFrame, lines: pl.DataFrame, steps: pl.DataFrame, times: Times
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Cut node-hours at the steps of their price.

    No bill line pays for such an hour, so a part of it is paid for as long as the node was up.

    Args:
        hours: ``node_hours.node_hours``.
        held: ``node_hours.held_amounts`` with ``nh``.
        lines: ``estimate.Estimates.lines``.
        steps: ``estimate.Estimates.steps``.
        times: What the amounts of the parts are integrated from.

    Returns:
        The three frames, the parts of an hour as node-hours with numbers of their own.
    """
    if steps.is_empty():
        return hours, held, lines
    first = int(hours.select(pl.col("nh").max()).item()) + 1
    number = (first + pl.int_range(pl.len())).cast(hours.schema["nh"])
    tiles = steps.sort("nh", "step").with_columns(number.alias("part"))
    tiles = tiles.join(hours.select("nh", *NODE_HOUR), on="nh")
    parts = hours.join(tiles.select("nh", "part"), on="nh").join(_up(tiles, times), on="part")
    parts = parts.with_columns(
        pl.col("part").alias("nh"),
        pl.col("part_up").alias("up"),
        pl.col("part_up").alias("paid"),
        (pl.col("part_up") - pl.col("part_seen")).alias("unseen"),
    )
    whole = hours.join(tiles, on="nh", how="anti")
    kept = held.join(tiles, on="nh", how="anti")
    moved = lines.join(tiles.select("nh", "step", "part"), on=["nh", "step"], how="left")
    return (
        pl.concat([whole, parts.select(hours.columns)], how="vertical_relaxed").sort("nh"),
        pl.concat([kept, _held(tiles, times).select(held.columns)], how="vertical_relaxed"),
        moved.with_columns(pl.coalesce("part", "nh").alias("nh")).select(lines.columns).sort("nh"),
    )


def _up(tiles: pl.DataFrame, times: Times) -> pl.DataFrame:
    """``part, part_up, part_seen``: how long the node was up in each part, and seen up, in ms."""
    spans = tiles.select(*_PLACE, "part", "start", "end")
    up = intersect(spans, times.there, _PLACE)
    seen = intersect(up, times.seen, _PLACE)
    ms = (pl.col("end") - pl.col("start")).sum()
    every = spans.select("part").join(up.group_by("part").agg(part_up=ms), on="part", how="left")
    both = every.join(seen.group_by("part").agg(part_seen=ms), on="part", how="left")
    return both.with_columns(pl.col("part_up", "part_seen").fill_null(0))


def _held(tiles: pl.DataFrame, times: Times) -> pl.DataFrame:
    """Amounts per part; the n-th parts of all hours go together, as no two are of one hour."""
    found = []
    for step in tiles["step"].unique().sort():
        some = tiles.filter(step=step)
        inside = intersect(times.lives, some.select(*_PLACE, "start", "end"), _PLACE)
        amounts = held_amounts(inside, times.usage)
        numbers = some.select(*NODE_HOUR, nh="part")
        found.append(amounts.join(numbers, on=list(NODE_HOUR)))
    return pl.concat(found)
