"""What shares of a node-hour say beside their cost: active cost, and hours asked for and used."""

from __future__ import annotations

import polars as pl

from attribution.nodes.devices import CARD
from attribution.nodes.methods import CPU, FREE, GPU, MEMORY, POD
from attribution.ratio import HOUR, KIB_PER_GIB, divide

AMOUNTS = (
    "active",
    "watched",
    "sampled",
    "asked_cpu",
    "asked_memory",
    "used_cpu",
    "used_memory",
)
"""Columns of ``node_hours.held_amounts`` that are read."""


def active_units() -> pl.Expr:
    """Cards by their activity, CPU and memory whole, free capacity nothing, unseen unknown.

    A pod that is held runs no container, so its cards do nothing, whatever telemetry says. Activity
    is the mean over the sampled time of all of its cards, where that is (nearly) all of its time.
    """
    cost, pod = pl.col("units_EffectiveCost"), pl.col("kind") == POD
    return (
        pl.when(pl.col("kind") == FREE)
        .then(0)
        .when(pod & (pl.col("pool") != GPU))
        .then(cost)
        .when(pod & (pl.col("phase") == "wait"))
        .then(0)
        .when(pod & pl.col("sampled"))
        .then(_times_activity(cost))
        .otherwise(None)
        .cast(pl.Int128)
    )


def _times_activity(amount: pl.Expr) -> pl.Expr:
    """An amount times the mean activity of the pod's cards, never the sum over its tenants."""
    watched = pl.max_horizontal("watched", pl.lit(1)).cast(pl.Int128)
    return divide(amount * pl.col("active").cast(pl.Int128), watched * 10**9)


def hours_of_pods() -> list[pl.Expr]:
    """``requested`` and ``used`` of pods on the main line of a node-hour, in units of 1e-12 hours.

    Of cards, used is the request times the mean activity of the devices. A pod that is held runs no
    container: it uses nothing where nothing was sampled.
    """
    pool, waits = pl.col("pool"), pl.col("phase") == "wait"
    cards = _hours("card_ms", CARD)
    requested = (
        pl.when(pool == GPU)
        .then(cards)
        .when(pool == CPU)
        .then(_hours("asked_cpu", 1000))
        .when(pool == MEMORY)
        .then(_hours("asked_memory", KIB_PER_GIB))
    )
    measured = (
        pl.when((pool == GPU) & waits)
        .then(0)
        .when((pool == GPU) & pl.col("sampled"))
        .then(_times_activity(cards))
        .when(pool == CPU)
        .then(_hours("used_cpu", 1000))
        .when(pool == MEMORY)
        .then(_hours("used_memory", KIB_PER_GIB))
    )
    used = pl.coalesce(measured, pl.when(waits).then(pl.lit(0, dtype=pl.Int128)))
    counted = pl.col("main") & (pl.col("kind") == POD)
    return [
        pl.when(counted).then(amount).cast(pl.Int128).alias(f"units_{name}")
        for name, amount in (("requested", requested), ("used", used))
    ]


def _hours(amount: str, unit: int) -> pl.Expr:
    """An amount × ms as hours of its unit, in units of 1e-12."""
    return divide(pl.col(amount).cast(pl.Int128) * 10**12, pl.lit(unit * HOUR, dtype=pl.Int128))
