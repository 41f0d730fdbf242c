"""Pods that only reserve a card for fractions of it (KAI, Run:ai): they hold and pay nothing.

The device plugin gives the card to the reservation pod, so telemetry names that pod as its tenant.
What the card did is told of the pods of its group instead: each sees the figure of the whole card.
"""

from __future__ import annotations

import polars as pl

NAMES = ("kai-resource-reservation", "runai-reservation")
"""Namespaces of reservation pods, and values of their label ``app``."""

_MARKS = "|".join(
    (
        rf'"(?:label_)?app"\s*:\s*"(?:{"|".join(NAMES)})"',
        r'"app\.runai\.resource\.reservation"',
        r'"run\.ai/reserve_for_gpu_index"',
    )
)
_GROUP = r'"(?:label_)?runai[-_]gpu[-_]group(?:/[^"]*)?"\s*:\s*"[^"]+"'
_METER = "gpu_activity"


def is_reservation() -> pl.Expr:
    """Whether a pod only reserves a card, by its ``namespace, labels, annotations``."""
    marks = [pl.col(name).str.contains(_MARKS) for name in ("labels", "annotations")]
    marks.append(pl.col("namespace").is_in(NAMES))
    return pl.any_horizontal(mark.fill_null(value=False) for mark in marks)


def tell_tenants(
    usage: pl.DataFrame | pl.LazyFrame, lives: pl.DataFrame
) -> pl.DataFrame | pl.LazyFrame:
    """Usage, with the activity of reserved cards told of the pods that share them as well.

    Args:
        usage: Rows of ``usage``.
        lives: All pods on nodes, reservation pods included.
    """
    reserves = is_reservation()
    reserving, tenants = _groups(lives.filter(reserves)), _groups(lives.filter(~reserves))
    pairs = reserving.join(
        tenants.rename({"uid": "tenant"}), on=["cluster", "node", "group"]
    ).select("cluster", "uid", "tenant")
    if pairs.is_empty():
        return usage
    names = usage.lazy().collect_schema().names()
    told = (
        usage.lazy()
        .filter(pl.col("meter") == _METER)
        .join(pairs.unique().lazy(), on=["cluster", "uid"])
        .with_columns(pl.col("tenant").alias("uid"))
        .select(names)
    )
    if isinstance(usage, pl.DataFrame):
        return pl.concat([usage, told.collect()])
    return pl.concat([usage, told])


def groups() -> pl.Expr:
    """The cards that a pod shares or reserves, by its ``labels``: a list without copies."""
    found = pl.col("labels").str.extract_all(_GROUP)
    return found.list.eval(pl.element().str.extract(r'"([^"]+)"$', 1)).list.unique()


def _groups(lives: pl.DataFrame) -> pl.DataFrame:
    """``cluster, uid, node, group``: the cards that a pod shares or reserves."""
    rows = lives.select("cluster", "uid", "node", groups().alias("group"))
    return rows.explode("group", empty_as_null=True).drop_nulls("group").unique()
