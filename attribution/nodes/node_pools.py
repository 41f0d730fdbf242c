"""Which pool of the settings a node is in: how its price is split, and by which weights."""

from __future__ import annotations

import polars as pl

from attribution.identity import label
from attribution.phases import glob_regex
from attribution.ratio import KIB_PER_GIB
from ledger.settings import NodePool, PoolMatch, Settings

WEIGHTS = ("weight_gpu", "weight_cpu", "weight_memory")
AWS = (90, 9, 1)
"""Weights of a card, a vCPU and a GiB as AWS splits costs (9 : 0.9 : 0.1)."""
_OPENCOST = (950_000, 31_611, 4_237)
_OPENCOST_SPOT = (950_000, 6_655, 892)
_METHODS = {"gpu-first": AWS, "aws-split": AWS, "opencost": _OPENCOST, "gpu-only": (1, 0, 0)}
_MILLI = 1000
_PER = (_MILLI * KIB_PER_GIB, KIB_PER_GIB, _MILLI)


def fine(weights: tuple[int, int, int]) -> tuple[int, int, int]:
    """Weights of a card, a vCPU and a GiB as those of a card, a millicore and a KiB."""
    gpu, cpu, memory = (weight * per for weight, per in zip(weights, _PER, strict=True))
    return gpu, cpu, memory


def chosen(settings: Settings) -> list[pl.Expr]:
    """The pool of each node; the first that fits.

    Returns:
        Expressions over ``cluster, node, instance_type, capacity_type, labels``: ``method``, and
        ``WEIGHTS``: of one card, millicore and KiB, whole numbers (Int128).
    """
    pools = settings.node_pools
    fits = [(_fits(pool.match), pool.split, _weights(pool)) for pool in pools]
    spot = (pl.col("capacity_type") == "spot").fill_null(value=False)
    method = pl.coalesce(
        *(pl.when(hit).then(pl.lit(name)) for hit, name, _ in fits), pl.lit("gpu-first")
    )
    columns = [method.alias("method")]
    for place, name in enumerate(WEIGHTS):
        values = [
            pl.when(hit).then(_number(weights[place], spot, _spot(split, weights)[place]))
            for hit, split, weights in fits
        ]
        last = pl.lit(fine(AWS)[place], dtype=pl.Int128)
        columns.append(pl.coalesce(*values, last).alias(name))
    return columns


def _weights(pool: NodePool) -> tuple[int, int, int]:
    return fine(pool.weights.whole() if pool.weights else _METHODS[pool.split])


def _spot(split: str, weights: tuple[int, int, int]) -> tuple[int, int, int]:
    return fine(_OPENCOST_SPOT) if split == "opencost" else weights


def _number(weight: int, spot: pl.Expr, on_spot: int) -> pl.Expr:
    plain, other = (pl.lit(number, dtype=pl.Int128) for number in (weight, on_spot))
    return plain if weight == on_spot else pl.when(spot).then(other).otherwise(plain)


def _fits(match: PoolMatch) -> pl.Expr:
    """Whether a node meets all that is given; what a node does not say meets nothing."""
    tests = [
        pl.col(name).str.contains(glob_regex(glob))
        for name in ("cluster", "node", "instance_type")
        if (glob := getattr(match, name)) is not None
    ]
    if match.label is not None:
        key, _, glob = match.label.partition("=")
        tests.append(label("labels", key).str.contains(glob_regex(glob)))
    return pl.all_horizontal(test.fill_null(value=False) for test in tests)
