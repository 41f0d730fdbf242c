"""What jobs inside a pod take out of what the pod holds (Slurm on Kubernetes).

The pod excludes others from its cards, CPU and memory; its jobs have them. Together they hold what
the pod does: jobs that claim more are scaled to it. What no job holds is free capacity of the
Slurm cluster, so nobody's, as on a machine of its own; where not every job is told it stays with
the pod, as nobody knows whether it was free.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.lives.jobs import Placed
from attribution.spans import crowd, intersect, subtract, union

_POD = ("cluster", "uid")
_PIECE = ("cluster", "holder", "start")
_AMOUNTS = ("cards", "cpu_millicores", "memory_bytes")


@dataclass(frozen=True)
class Settled:
    """What pods and jobs hold.

    Args:
        lives: All of them, cut where that changes; of pods with jobs what these do not hold, in
            time in which not every job is told.
        alone: ``cluster, holder, uid, start, end``: when a job held all cards of its pod alone, so
            that what the pod's cards did is what the job did. None without jobs in pods.
    """

    lives: pl.DataFrame
    alone: pl.DataFrame | None = None


def settle(lives: pl.DataFrame, placed: Placed | None) -> Settled:
    """Split what pods hold among their jobs and themselves.

    Args:
        lives: All pods and jobs with ``cards`` (``devices.add_cards``).
        placed: Where jobs in pods ran; None = nowhere.
    """
    if placed is None:
        return Settled(lives)
    jobs = lives.join(placed.inside.select(_POD).unique(), on=list(_POD), how="semi")
    pods = lives.join(placed.holders, on=list(_POD), how="semi")
    others = lives.join(pl.concat([jobs, pods]).select(_POD), on=list(_POD), how="anti")
    inside = intersect(jobs, placed.inside, _POD).with_columns(pl.lit(value=True).alias("job"))
    own = pods.with_columns(pl.col("uid").alias("holder"), pl.lit(value=False).alias("job"))
    members = pl.concat([inside.select(own.columns), own]).with_row_index("member")
    pieces = crowd(
        members.select("member", "cluster", "holder", "start", "end"),
        ["cluster", "holder"],
        ["member"],
    ).join(members.drop("cluster", "holder", "start", "end"), on="member", maintain_order="left")
    shared = _scaled(pieces)
    left = shared.filter(~pl.col("job")).select(lives.columns)
    kept = subtract(left, placed.told, ["cluster"])
    found = [others, shared.filter("job").select(lives.columns), kept]
    all_cards = (pl.col("cards") > 0) & (pl.col("cards") == pl.col("cards_has"))
    alone = shared.filter(pl.col("job") & (pl.col("members") == 2) & all_cards)
    return Settled(
        pl.concat(found).sort(*_POD, "start"), union(alone, ["cluster", "holder", "uid"])
    )


def _scaled(pieces: pl.DataFrame) -> pl.DataFrame:
    """Amounts of jobs within those of their pod, and of the pod what is left."""
    job = pl.col("job")
    rows = pieces.with_columns(
        *(pl.col(n).filter(~job).first().over(_PIECE).alias(f"{n}_has") for n in _AMOUNTS),
        *(pl.col(n).filter(job).sum().over(_PIECE).alias(f"{n}_ask") for n in _AMOUNTS),
        *((pl.col(n).is_null() & job).any().over(_PIECE).alias(f"{n}_unsure") for n in _AMOUNTS),
    )
    rows = rows.with_columns(_amount(name).alias(name) for name in _AMOUNTS)
    # CPU and memory travel with cards: a pod whose cards are all its jobs' is no rider.
    bare = ~job & (pl.col("cards_has") > 0) & (pl.col("cards") == 0)
    rows = rows.with_columns(
        pl.when(bare.fill_null(value=False)).then(0).otherwise(n).alias(n) for n in _AMOUNTS[1:]
    )
    nothing = pl.all_horizontal((pl.col(n) == 0).fill_null(value=False) for n in _AMOUNTS)
    tenanted = pl.col("members") > 1
    return rows.filter(job | ~(nothing & tenanted))


def _amount(name: str) -> pl.Expr:
    has, ask = pl.col(f"{name}_has"), pl.col(f"{name}_ask")
    scaled = (pl.col(name).cast(pl.Int128) * has // pl.max_horizontal(ask, pl.lit(1))).cast(
        pl.Int64
    )
    part = pl.when((has > 0) & (ask > has)).then(scaled).otherwise(pl.col(name))
    rest = pl.when(~pl.col(f"{name}_unsure")).then((has - ask).clip(0))
    return pl.when("job").then(part).otherwise(rest)
