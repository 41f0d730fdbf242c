"""Efficiency: how much of what workloads asked for was used, per resource and over all of them.

An expression reads rows of ``costs`` or ``costs_daily``; sums of its parts can be summed again, so
that a question may group twice. Efficiencies are worked out from sums and never averaged.

- of a resource: Σ used ÷ Σ requested; nothing requested, but used and paid for: 1; nothing: 0. Of
  cards, used is the mean activity of the pod's devices times its card-hours, so that eight busy
  cards are 1.0. Idle and unattributed capacity is left out.
- over all: the mean of CPU, memory *and* cards, weighted by cost, adjustments included.
- unknown (null), never scaled up, where the use of more than 1 % of what was requested, or of cost,
  is not known; and where there is no workload at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

RESOURCES = ("cpu", "memory", "gpu")
_OF_RESOURCE = ("requested", "used", "dark", "paid")
PARTS = ("judged", *(f"{resource}_{part}" for resource in RESOURCES for part in _OF_RESOURCE))
"""Additive columns: ``judged`` (workload rows of the three resources) and, of each resource,
``requested`` (in the unit of the rows), ``used`` (of rows whose use is known), ``dark`` (requested
by rows whose use is not) and ``paid`` (cost)."""

FIGURES = (*(f"{resource}_efficiency" for resource in RESOURCES), "efficiency")
"""What ``figures`` gives, as Float64."""


def parts(cost: str = "EffectiveCost") -> list[pl.Expr]:
    """Aggregations of rows into ``PARTS``.

    Args:
        cost: The column that weighs the resources.

    Returns:
        Expressions over ``target, resource, requested, used`` and the cost, for ``agg`` or
        ``select``.
    """
    work = pl.col("target") == "workload"
    unknown = pl.col("used").is_null()
    found = [(work & pl.col("resource").is_in(RESOURCES)).sum().cast(pl.Int64).alias("judged")]
    for resource in RESOURCES:
        own = (work & (pl.col("resource") == resource)).fill_null(value=False)
        sums = {
            "requested": pl.col("requested").filter(own),
            "used": pl.col("used").filter(own),
            "dark": pl.col("requested").filter(own & unknown),
            "paid": pl.col(cost).filter(own),
        }
        found += [values.sum().alias(f"{resource}_{name}") for name, values in sums.items()]
    return found


def figures() -> dict[str, pl.Expr]:
    """Aggregations of rows of ``PARTS`` into ``FIGURES``, for ``agg`` or ``select``."""
    own = {resource: _of_resource(resource) for resource in RESOURCES}
    weights = {name: _total(name, "paid").clip(lower_bound=0) for name in RESOURCES}
    all_paid = pl.sum_horizontal(weights.values())
    unknown = pl.sum_horizontal(
        pl.when(own[name].is_null()).then(weights[name]).otherwise(0.0) for name in RESOURCES
    )
    earned = pl.sum_horizontal(own[name].fill_null(0.0) * weights[name] for name in RESOURCES)
    anything = pl.max_horizontal(
        _total(name, part).abs() for name in RESOURCES for part in ("requested", "paid")
    )
    total = (
        pl.when((all_paid > 0) & (unknown * 100 <= all_paid))
        .then(earned / (all_paid - unknown))
        .when(anything == 0)
        .then(0.0)
    )
    judged = pl.col("judged").sum() > 0
    named = {f"{name}_efficiency": value for name, value in own.items()} | {"efficiency": total}
    return {name: pl.when(judged).then(value) for name, value in named.items()}


def efficiencies(
    rows: pl.DataFrame, by: Sequence[str] = (), cost: str = "EffectiveCost"
) -> pl.DataFrame:
    """The figures of each group of rows.

    Args:
        rows: Rows of ``costs`` or ``costs_daily``.
        by: Columns to group by; none gives one row.
        cost: The column that weighs the resources.

    Returns:
        ``by`` and ``FIGURES``, sorted.
    """
    if not by:
        return rows.select(parts(cost)).select(**figures())
    sums = rows.group_by(by).agg(parts(cost))
    return sums.group_by(by).agg(**figures()).sort(by, nulls_last=True)


def _total(resource: str, part: str) -> pl.Expr:
    return pl.col(f"{resource}_{part}").sum().cast(pl.Float64)


def _of_resource(resource: str) -> pl.Expr:
    """The efficiency of one resource; null if too little of its use is known."""
    asked, used, dark, paid = (_total(resource, part) for part in _OF_RESOURCE)
    return (
        pl.when(dark * 100 > asked)
        .then(None)
        .when(asked > dark)
        .then(used / (asked - dark))
        .when((used > 0) & (paid > 0))
        .then(1.0)
        .otherwise(0.0)
    )
