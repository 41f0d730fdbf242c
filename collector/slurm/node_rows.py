"""Rows of ``nodes``: what the list of nodes tells of them, else what their jobs show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from collector.gaps import about
from collector.slurm.inventory import SCHEMA
from collector.slurm.labels import of_node
from collector.slurm.rows import EXACT
from collector.slurm.spans import Span, bounds, by_day, clip, union
from collector.slurm.tres import CARD
from ledger.facts import Gap
from ledger.schema import NODES
from ledger.window import Window

_BETWEEN = "\n"  # no line of sacct holds it
_SIZES = ("cpus", "memory", "cards")


def nodes(
    pieces: pl.DataFrame,
    inventory: pl.DataFrame | None,
    covered: Sequence[Span],
    window: Window,
    name: str,
) -> pl.DataFrame:
    """Nodes that could take jobs while every job is told, and any node while jobs ran on it.

    Args:
        pieces: ``rows.held``.
        inventory: Rows in the form of ``inventory.SCHEMA``; None = there is no list.
        covered: The time of which every job is told.
        window: Whole UTC days.
        name: Name of the cluster in the settings.
    """
    listed = inventory if inventory is not None else pl.DataFrame(schema=SCHEMA)
    times = pl.DataFrame(covered, schema={"start": pl.Int64(), "end": pl.Int64()}, orient="row")
    up = listed.filter("up").select("node").join(times, how="cross")
    busy = pieces.select("node", "start", "end")
    spans = union(clip(pl.concat([up, busy]), window), ["node"])
    shown = _shown(pieces).join(listed.select("node"), on="node", how="anti")
    facts = pl.concat([listed, shown.select(list(SCHEMA))])
    rows = by_day(spans).join(facts, on="node", how="left")
    cards = pl.col("cards") > 0
    made = {
        "cluster": pl.lit(name),
        "cpu_millicores": pl.col("cpus") * 1000,
        "memory_bytes": pl.col("memory"),
        "gpus": pl.col("cards"),
        "gpu_resource": pl.when(cards).then(pl.lit(CARD)),
        "gpu_model": pl.col("model"),
        "gpu_units": pl.col("units"),
        "interval_seconds": pl.lit(EXACT),
    }
    columns = [
        (made[each] if each in made else pl.col(each) if each in rows.columns else pl.lit(None))
        .cast(dtype)
        .alias(each)
        for each, dtype in NODES.schema.items()
        if each != NODES.source_column
    ]
    return rows.select(columns).sort("day", *NODES.key)


def _shown(pieces: pl.DataFrame) -> pl.DataFrame:
    """What jobs show of nodes: the most that they held at once; in the form of ``SCHEMA``."""
    edges = pl.concat(
        [
            pieces.select(
                "node", pl.col(edge).alias("at"), *(pl.col(n).fill_null(0) * sign for n in _SIZES)
            )
            for edge, sign in (("start", 1), ("end", -1))
        ]
    )
    steps = edges.group_by("node", "at").agg(pl.col(_SIZES).sum()).sort("node", "at")
    most = steps.with_columns(pl.col(name).cum_sum().over("node") for name in _SIZES)
    sizes = most.group_by("node").agg(pl.col(_SIZES).max())
    words = pieces.group_by("node").agg(
        pl.col("model").drop_nulls().unique().sort(),
        pl.col("partition").drop_nulls().unique().sort(),
        *(pl.col(each).null_count().alias(f"no_{each}") for each in _SIZES),
    )
    one = pl.col("model").list.len() == 1
    names = words["partition"].list.join(_BETWEEN)
    told = {text: of_node(tuple(filter(None, text.split(_BETWEEN)))) for text in names.unique()}
    return sizes.join(words, on="node").with_columns(
        *(pl.when(pl.col(f"no_{each}") == 0).then(each).alias(each) for each in _SIZES),
        pl.when(one).then(pl.col("model").list.first()).alias("model"),
        pl.when(pl.col("cards") > 0).then(pl.lit(f'{{"{CARD}":"1"}}')).alias("units"),
        pl.lit(value=True).alias("up"),
        pl.lit(value=True).alias("counted"),
        pl.col("partition")
        .list.join(_BETWEEN)
        .replace_strict(told, default="{}", return_dtype=pl.String)
        .alias("labels"),
        pl.lit(None, dtype=pl.String).alias("provider_id"),
        pl.lit(None, dtype=pl.String).alias("instance_type"),
    )


def gaps(pieces: pl.DataFrame, inventory: pl.DataFrame | None) -> Iterator[Gap]:
    """What is not known of nodes.

    Args:
        pieces: ``rows.held``.
        inventory: Rows in the form of ``inventory.SCHEMA``; None = there is no list.
    """
    ran = pieces.select("node").unique()
    if inventory is None:
        what = "nodes are known by their jobs alone: give slurm.nodes (scontrol show node)"
        yield from about("capacity_unknown", what, sorted(ran["node"].to_list()))
    else:
        strange = ran.join(inventory, on="node", how="anti")
        what = "nodes ran jobs and stand in no list of nodes; their sizes are what jobs held"
        yield from about("capacity_unknown", what, sorted(strange["node"].to_list()))
        uncounted = inventory.filter(~pl.col("counted"))
        what = (
            "nodes have cards that accounting does not count: add gres/gpu to "
            "AccountingStorageTRES of slurm.conf"
        )
        yield from about("requests_unknown", what, sorted(uncounted["node"].to_list()))
        cut = inventory.filter(pl.col("cards").is_null())
        what = "nodes have cards cut into instances (MIG): how many cards is not told"
        yield from about("capacity_unknown", what, sorted(cut["node"].to_list()))


def untold(covered: Sequence[Span], window: Window) -> int:
    """How many seconds of a window lie in no covered time."""
    first, last = bounds(window)
    told = sum(max(min(end, last) - max(start, first), 0) for start, end in covered)
    return last - first - told
