"""Nodes and lines of the bill that do not meet."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.node_sums import sum_nodes
from attribution.ratio import HOUR
from ledger.facts import Gap
from ledger.text import counted


def unmatched(
    hours: pl.DataFrame, line_hours: pl.DataFrame, compute: pl.DataFrame
) -> Iterator[Gap]:
    """Nodes without a bill line, in a day whose bill pays for machines: names may not match.

    Args:
        hours: ``methods.classify``.
        line_hours: ``match.match_lines``.
        compute: ``paying.compute_lines``.
    """
    if line_hours.is_empty() and compute.is_empty():
        return
    lone = hours.filter(pl.col("up") > 0).join(line_hours, on=["cluster", "node"], how="anti")
    rows = sum_nodes(lone, ["cluster"], pl.col("up"))
    for cluster, nodes, first, node_hours, _ in rows.iter_rows():
        yield Gap(
            "unmatched_node",
            f"{cluster}: {nodes} nodes meet no line of the bill, e.g. {first}",
            {"node_hours": node_hours},
        )


def withheld(hours: pl.DataFrame) -> Iterator[Gap]:
    """Node-hours that are not estimated, as a compute line without a node may pay for them.

    A gap per cluster and instance type.

    Args:
        hours: ``methods.classify``, those hours.
    """
    rows = (
        hours.filter(pl.col("up") > 0)
        .group_by("cluster", "instance_type")
        .agg(
            pl.col("node").n_unique().alias("nodes"),
            pl.col("node").min().alias("first"),
            pl.col("up").sum(),
            (pl.col("up") * pl.col("gpus").fill_null(0)).sum().alias("cards"),
        )
        .sort("cluster", "instance_type", nulls_last=True)
    )
    for cluster, kind, nodes, first, up, cards in rows.iter_rows():
        yield Gap(
            "unpriced",
            f"{cluster}: {counted(nodes, 'node')} of {kind or 'unknown type'} not estimated, e.g. "
            f"{first}: lines of the bill for machines meet no node and may pay for them",
            {"node_hours": up / HOUR, "gpu_hours": cards / HOUR},
            {"type": kind} if kind else {},
        )


def misnamed(lines: pl.DataFrame, line_hours: pl.DataFrame) -> Iterator[Gap]:
    """Declared costs of nodes that no source describes: nobody's pods pay for them.

    Args:
        lines: ``match.bill_lines``.
        line_hours: ``match.match_lines``.
    """
    rows = lines.filter(pl.col("ResourceId").str.starts_with("node/"), x_Basis="declared")
    lost = rows.join(line_hours, on="line", how="anti")["ResourceId"].unique().sort()
    if lost.len():
        yield Gap(
            "unknown_node",
            f"declared costs name {counted(lost.len(), 'node')} that no source describes, e.g. "
            f"{lost[0]}",
            {"nodes": float(lost.len())},
        )
