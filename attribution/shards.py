"""Parts of a day that are worked out one after another, so that memory does not grow with the day.

A part is a pure function of what it is given; no figure depends on where a day is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

_NODE = ("cluster", "node")
_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Shards:
    """How large the parts of a day may be.

    Args:
        slots: Rows of usage whose pods are looked at together.
        shares: Rows of ``costs`` that are worked out together.
        threads: Parts that are worked out at a time.
    """

    slots: int = 2_000_000
    shares: int = 250_000
    threads: int = 2


SHARDS = Shards()


def each(
    work: Callable[[_Part], _Result], parts: Iterable[_Part], threads: int
) -> Iterator[_Result]:
    """The results of the parts in their order; no more than ``threads`` of them wait."""
    with ThreadPoolExecutor(threads) as pool:
        waiting = []
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > threads:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()


def ranges(weights: pl.Series, limit: int) -> list[tuple[int, int]]:
    """Cut rows into ranges ``[first, last)`` whose weights add up to about the limit."""
    if weights.is_empty():
        return []
    part = (weights.cum_sum() - weights) // max(limit, 1)
    return runs(part)


def runs(part: pl.Series) -> list[tuple[int, int]]:
    """The ranges ``[first, last)`` of consecutive equal values."""
    lengths = part.rle().struct.field("len").cast(pl.Int64)
    ends = lengths.cum_sum()
    return list(zip((ends - lengths).to_list(), ends.to_list(), strict=True))


def by_node(
    parts: pl.DataFrame, hours: pl.DataFrame, held: pl.DataFrame, limit: int
) -> Sequence[pl.DataFrame]:
    """Cut the hours of lines into parts whose shares are about as many as the limit.

    Nodes stay whole, as their daily sums do, unless one alone is larger than the limit.

    Args:
        parts: ``split.hour_parts``.
        hours: Node-hours by ``nh``.
        held: Amounts of pods by ``nh``.
        limit: Rows.

    Returns:
        The rows of ``parts`` in the order of node, node-hour and line.
    """
    pods = held.group_by("nh").agg(pl.len().alias("rows"))
    rows = (
        parts.join(hours.select("nh", *_NODE), on="nh", how="left")
        .join(pods, on="nh", how="left")
        .sort(*_NODE, "nh", "line", nulls_last=True)
        .with_columns(pl.col("rows").fill_null(0).cast(pl.Int64) * 2 + 3)
    )
    if rows.is_empty():
        return []
    before = pl.col("rows").cum_sum() - pl.col("rows")
    places = rows.select(pl.struct(*_NODE).rle_id().alias("node"), before.alias("before"))
    cut = places.select(
        pl.struct(
            (pl.col("before").first().over("node") // max(limit, 1)).alias("part"),
            ((pl.col("before") - pl.col("before").first().over("node")) // max(limit, 1)).alias(
                "piece"
            ),
        )
    ).to_series()
    rows = rows.drop(*_NODE, "rows")
    return [rows.slice(first, last - first) for first, last in runs(cut)]
