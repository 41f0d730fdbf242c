"""Amounts of cores, memory and devices: requests of pods, capacities of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from collector.cards import is_device, original
from collector.prometheus.samples.chains import changes
from ledger.text import canonical_json

AMOUNTS = ("cpu_millicores", "memory_bytes", "devices")
_MOST = 2**62  # what 64 bits hold; more is no amount


def amounts(
    frame: pl.DataFrame, key: str, parts: Sequence[str], total: pl.Expr | None = None
) -> pl.DataFrame:
    """The steps of what a pod asks for, or of what a node has.

    Args:
        frame: ``key``, ``parts``, ``resource`` (sanitised name), ``time``, ``value`` (cores,
            bytes, pieces).
        key: Pod or node.
        parts: Columns that tell amounts of one resource apart, e.g. the container. Each part's
            amount is carried from sample to sample, so that a lost sample is no change.
        total: What the parts come to, as an aggregate of ``amount`` (Int64) by ``parts``; their
            sum by default.

    Returns:
        ``key``, ``time``, ``cpu_millicores``, ``memory_bytes`` (Int64) and ``devices`` (JSON object
        of whole units by resource, in its own spelling, zeros included); one row per change, as
        ``changes`` gives them. Null = not said.
    """
    what = [key, *parts, "resource"]
    steps = changes(
        frame.unique([*what, "time"], keep="first", maintain_order=True), what, ["value"]
    )
    points = steps.select(key, "time").unique()
    grid = points.join(steps.select(what).unique(), on=key).sort("time", *what)
    now = grid.join_asof(steps, on="time", by=what, check_sortedness=False)
    sums = _named(now).group_by(key, "time", "name", "written")
    whole = sums.agg(amount=pl.col("amount").sum() if total is None else total)
    return changes(_per_key(whole, key), [key], AMOUNTS)


def _named(now: pl.DataFrame) -> pl.DataFrame:
    """Original resource names and whole units; other resources are left out."""
    texts = now["resource"].unique().drop_nulls().sort()
    named = [(text, original(text) or text) for text in texts]
    names = pl.DataFrame(
        [
            (text, name, canonical_json(name))
            for text, name in named
            if name in ("cpu", "memory") or is_device(name)
        ],
        schema={"resource": pl.String, "name": pl.String, "written": pl.String},
        orient="row",
    )
    value = pl.col("value") * pl.when(pl.col("name") == "cpu").then(1000).otherwise(1)
    return (
        now.join(names, on="resource")
        .with_columns(value=value.round())
        .filter(pl.col("value").abs() <= _MOST)
        .with_columns(amount=pl.col("value").cast(pl.Int64))
    )


def _per_key(whole: pl.DataFrame, key: str) -> pl.DataFrame:
    """One row per key and time."""
    plain = pl.col("name").is_in(["cpu", "memory"])
    entry = pl.format("{}:{}", "written", "amount")
    devices = (
        whole.filter(~plain)
        .sort(key, "time", "name")
        .group_by(key, "time", maintain_order=True)
        .agg(devices=entry.str.join(","))
        .with_columns(devices=pl.concat_str(pl.lit("{"), "devices", pl.lit("}")))
    )
    sums = whole.group_by(key, "time").agg(
        cpu_millicores=pl.col("amount").filter(pl.col("name") == "cpu").first(),
        memory_bytes=pl.col("amount").filter(pl.col("name") == "memory").first(),
    )
    return sums.join(devices, on=[key, "time"], how="left").select(key, "time", *AMOUNTS)
