"""Pods that have finished stay visible for a while: their lives end before.

The samples of a pod count until it has ended, by the last phase that was seen at each time; the
phase that was seen first counts as valid ever before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

_ALONE = 1.5  # intervals between two samples with none missing
ENDED = ("Succeeded", "Failed")


def until_ended(
    frame: pl.DataFrame,
    phases: pl.DataFrame,
    blocks: pl.DataFrame | None,
    single: Sequence[str] | None = (),
) -> pl.DataFrame:
    """The samples, or stretches, of pods while they have not finished.

    Args:
        frame: ``uid``, ``time``, perhaps ``until`` and ``count``.
        phases: ``uid``, ``time``, ``phase``: of ``chains.changes``.
        blocks: Where the frame has stretches: ``uid``, ``phase``, ``time``, ``until`` of the
            stretches of each phase.
        single: Pods of which the frame has single samples, and that blocks do not tell of (of
            ``unmatched``); None = all.
    """
    finished = pl.col("phase").is_in(ENDED).fill_null(value=False)
    some = phases.filter(finished).select("uid").unique()
    columns = ["uid", "time", *(name for name in ("until", "count") if name in frame.columns)]
    others = frame.select(columns).join(some, on="uid", how="anti")
    finishing = frame.select(columns).join(some, on="uid", how="semi")
    if "until" in frame.columns and blocks is not None and single is not None:
        plain = pl.col("uid").is_in(list(single))
        cut = _cut(finishing.filter(~plain), blocks.filter(~finished))
        others, finishing = pl.concat([others, cut]), finishing.filter(plain)
    before = finishing.sort("time", "uid").join_asof(
        phases, on="time", by="uid", check_sortedness=False
    )
    return pl.concat([others, before.filter(~finished).select(columns)])


def unmatched(
    frame: pl.DataFrame, phases: pl.DataFrame | None, interval: timedelta
) -> list[str] | None:
    """The pods that ended, but at which sample their phases do not tell.

    They do where both were scraped together: a stretch of a pod begins and ends with one of a
    phase, and there is no hole between two phases.

    Args:
        frame: ``uid``, ``time``, perhaps ``until``.
        phases: ``uid``, ``phase``, ``time``, perhaps ``until``; None = nothing is known of them.
        interval: Usual distance of samples.

    Returns:
        Their uids; None if it is all pods.
    """
    if "until" not in frame.columns or phases is None:
        return []
    finished = phases.filter(pl.col("phase").is_in(ENDED))["uid"].unique()
    if finished.is_empty():
        return []
    if "until" not in phases.columns or finished.null_count():
        return None
    ended = pl.col("uid").is_in(finished.to_list())
    theirs, blocks = frame.filter(ended), phases.filter(ended).sort("uid", "time")
    hole = pl.col("time") - pl.col("until").shift() > _ALONE * interval
    same = pl.col("uid") == pl.col("uid").shift()
    odd = [theirs.join(blocks, on=["uid", edge], how="anti")["uid"] for edge in ("time", "until")]
    odd.append(blocks.filter(same & hole)["uid"])
    return pl.concat(odd).unique().sort().to_list()


def _cut(stretches: pl.DataFrame, alive: pl.DataFrame) -> pl.DataFrame:
    """The parts of stretches that lie in the stretches of phases that are no end."""
    blocks = alive.select("uid", low="time", high="until")
    parts = stretches.join(blocks, on="uid").with_columns(
        begin=pl.max_horizontal("time", "low"), end=pl.min_horizontal("until", "high")
    )
    span = (pl.col("until") - pl.col("time")).dt.total_microseconds()
    share = (pl.col("end") - pl.col("begin")).dt.total_microseconds() / span
    inner = ((pl.col("count") - 1) * share.fill_nan(0.0)).round().cast(pl.Int64) + 1
    return parts.filter(pl.col("begin") <= pl.col("end")).select(
        "uid", pl.col("begin").alias("time"), until="end", count=inner
    )
