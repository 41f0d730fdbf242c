"""Reading the rows of a question, summed over what it does not look at."""

from __future__ import annotations

import polars as pl

from attribution.identity import label, tag
from attribution.question import COST_OF, FINE, KEYS, Query
from ledger.money import to_units
from ledger.schema import COSTS, COSTS_DAILY, IDENTITY_KEYS
from ledger.store import Ledger

_ALWAYS = frozenset({"target", "x_Basis", "BillingCurrency", "confidence"})


def read_rows(ledger: Ledger, request: Query) -> pl.DataFrame:
    """Rows of the window, summed over what the question does not look at, money in units.

    Returns:
        The columns of the keys that are looked at, ``label:KEY`` columns, cost columns and
        ``gpu_seconds``; ``size`` and ``effective_size`` (absolute cost, as asked and effective:
        what a part of the row weighs, credits too); ``dark``, ``dark_size`` and ``dark_unknown``
        (without a known activity: shares, their absolute effective cost, and shares of which that
        is not known either), ``unknown`` and ``known`` (shares by whether their cost is known),
        ``billed`` (rows that stand on an invoice).
    """
    fine, columns = request.fine, _columns(request)
    money = [name for name in columns if name in COST_OF.values()]
    keys = [name for name in columns if name not in (*money, "gpu_seconds")] + request.labels
    cost = COST_OF[request.cost]
    counted = not fine and cost != "ActiveCost"
    unknown = pl.col(f"{cost}_unknown").sum() if counted else pl.col(cost).null_count()
    effective, dark = pl.col("EffectiveCost"), pl.col("ActiveCost").is_null()
    sums = (
        _source(ledger, request, fine=fine)
        .group_by(keys)
        .agg(
            *(pl.col(name).sum() for name in (*money, "gpu_seconds")),
            pl.col(cost).abs().sum().alias("size"),
            effective.abs().sum().alias("effective_size"),
            dark.sum().cast(pl.Int64).alias("dark"),
            effective.filter(dark).abs().sum().alias("dark_size"),
            effective.filter(dark).null_count().cast(pl.Int64).alias("dark_unknown"),
            unknown.cast(pl.Int64).alias("unknown"),
            pl.col(cost).count().alias("known"),
            pl.col("BilledCost").count().alias("billed"),
        )
        .collect()
    )
    amounts = [*money, "size", "effective_size", "dark_size"]
    # Any fixed order will do; the rows may be millions, and hashes are compared fastest.
    order = pl.struct(keys).hash(seed=0)
    return sums.sort(order).with_columns(to_units(pl.col(name)) for name in amounts)


def whole_key(*, fine: bool) -> list[str]:
    """All columns that tell rows apart, whatever a question asks for, in a fixed order."""
    keys = {name for key, name in KEYS.items() if fine or key not in FINE}
    return [*sorted(keys | _ALWAYS), "tags"]


def _columns(request: Query) -> list[str]:
    """The columns that are read.

    Idle is shared among rows of all keys, whatever is asked for: rounding must not depend on it.
    """
    keys = {*request.by, *request.filters}
    columns = {KEYS[key] for key in keys if key in KEYS} | (set(request.tags) & set(IDENTITY_KEYS))
    if request.idle == "share":
        columns |= {*whole_key(fine=request.fine)}
    figures = {"EffectiveCost", "BilledCost", "ActiveCost", "gpu_seconds", COST_OF[request.cost]}
    return sorted(columns | figures | _ALWAYS)


def _source(ledger: Ledger, request: Query, *, fine: bool) -> pl.LazyFrame:
    """The rows of the window with a column for each label that is asked for."""
    if fine:
        inside = pl.col("ChargePeriodStart").is_between(
            request.window.start, request.window.end, closed="left"
        )
        hour = pl.col("ChargePeriodStart").dt.truncate("1h")
        rows = ledger.scan(COSTS, request.window).filter(inside).with_columns(hour)
    else:
        rows = ledger.scan(COSTS_DAILY, request.window)
    if not (labels := request.labels):
        return rows
    # Many rows share their tags: each is read once.
    distinct = rows.select("tags").unique().collect(engine="streaming")
    values = [_tag(name.removeprefix("label:")).alias(name) for name in labels]
    return rows.join(
        distinct.select("tags", *values).lazy(), on="tags", how="left", nulls_equal=True
    )


def _tag(key: str) -> pl.Expr:
    return pl.coalesce(label("tags", key), tag("tags", key))
