"""``query --quota``: what quotas reserve and nobody asked for, taken out of idle.

Each idle row of a pool is cut, in all its cost columns, by the same weights: what stays, and what
goes to each namespace (``quota.quota_overhead``), so that nothing is added and nothing lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

import polars as pl

from attribution.query.capacity import prices
from attribution.query.quota import POOL, quota_overhead
from ledger.money import UNITS, split, to_units
from ledger.quantity import parse
from ledger.schema import COSTS_DAILY, IDENTITY_KEYS, IDLE, MONEY, RESOURCES
from ledger.store import Ledger
from ledger.window import Window

QUOTA = "quota"
"""The target of such rows."""

_PLACE = ("day", "cluster", "namespace", "resource")
_COSTS = ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost", "ActiveCost")
_AMOUNTS = {"name": pl.String(), "hard": MONEY, "asked": MONEY}
_OF_HOLDERS = ("gpu_seconds", "requested", "used", "tags", "annotations", "reason")
_GIB = 2**30
_HOURS = 24
_LARGEST = Fraction(10**9)
"""More than any cluster has: a quota that is meant to be none counts as that."""


def with_reservations(rows: pl.LazyFrame, ledger: Ledger, window: Window) -> pl.LazyFrame:
    """Rows with the idle that quotas reserve at the namespace of the quota.

    Args:
        rows: Rows of ``costs`` or ``costs_daily``.
        ledger: Where the quotas, the nodes and the days stand.
        window: The window of the rows; shares are those of its whole days.

    Returns:
        The rows. A cut row of idle stands once for each namespace more, under the target ``quota``,
        with its cost alone: cards and what is not known stay with what is idle.
    """
    parts = reservations(ledger, window)
    if parts.is_empty():
        return rows
    pools = parts.select(POOL).unique().lazy()
    idle = rows.filter(pl.col("target") == IDLE)
    cut = _cut(idle.join(pools, on=POOL, how="semi").collect(), parts)
    kept = idle.join(pools, on=POOL, how="anti")
    return pl.concat([rows.filter(pl.col("target") != IDLE), kept, cut.lazy()])


def reservations(ledger: Ledger, window: Window) -> pl.DataFrame:
    """How the idle of pools is cut.

    Returns:
        ``POOL``, ``taker`` (the namespace; null: stays idle, even where that is nothing) and
        ``weight``, of pools of which anything goes.
    """
    quotas = _quotas(ledger, window)
    if quotas.is_empty():
        return pl.DataFrame(schema=_cut_schema())
    days = ledger.scan(COSTS_DAILY, window)
    priced = (
        quotas.join(prices(ledger, days, window), on=["day", "cluster", "name"])
        .join(_asked(days), on=_PLACE, how="left")
        .with_columns(
            pl.when(pl.col("asked").is_not_null())
            .then(pl.max_horizontal("asked", "requested", "used"))
            .alias("used")
        )
    )
    idle = days.filter(pl.col("target") == IDLE).group_by(POOL)
    moved = quota_overhead(
        priced.select(*POOL, "namespace", "hard", "used", "price"),
        idle.agg(pl.col("EffectiveCost").sum().alias("cost")).collect(),
        Window.of_day(window.start.date()),
    )
    units = to_units(pl.col("overhead"))
    step = units.sum().over(POOL) // 2**62 + 1
    return (
        moved.filter((pl.col("overhead") > 0) | pl.col("namespace").is_null())
        .select(
            *POOL, pl.col("namespace").alias("taker"), (units // step).cast(pl.Int64).alias("w")
        )
        .filter(pl.col("taker").is_not_null().any().over(POOL))
        .rename({"w": "weight"})
    )


def _cut_schema() -> dict[str, pl.DataType]:
    own = {name: COSTS_DAILY.columns[name].dtype for name in POOL}
    return {**own, "taker": pl.String(), "weight": pl.Int64()}


def _cut(idle: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    numbered = idle.with_row_index("row").with_columns(to_units(pl.col(name)) for name in _COSTS)
    cut = split(
        numbered.join(parts, on=POOL).lazy(),
        group=["row"],
        amounts=list(_COSTS),
        weight="weight",
        order=["taker"],
    ).collect()
    taken = pl.col("taker").is_not_null()
    blank = (*IDENTITY_KEYS, *_OF_HOLDERS)
    unknown = [name for name in idle.columns if name.endswith("_unknown")]
    return (
        cut.filter(~taken | (pl.col("EffectiveCost").is_not_null()))
        .with_columns(
            *(pl.col(name).reinterpret(dtype=MONEY) for name in _COSTS),
            *(pl.when(~taken).then(name).alias(name) for name in blank),
            *(pl.when(taken).then(0).otherwise(name).alias(name) for name in unknown),
            pl.coalesce("taker", "namespace").alias("namespace"),
            pl.when(taken).then(pl.lit(QUOTA)).otherwise("target").alias("target"),
        )
        .select(pl.col(name).cast(dtype) for name, dtype in idle.schema.items())
    )


def _asked(days: pl.LazyFrame) -> pl.DataFrame:
    """What pods of a namespace asked for and used, as a mean over the day."""
    sums = days.filter(pl.col("target") == "workload").group_by(_PLACE)
    mean = [(pl.col(name).sum() / _HOURS).cast(MONEY).alias(name) for name in ("requested", "used")]
    return sums.agg(mean).collect()


def _quotas(ledger: Ledger, window: Window) -> pl.DataFrame:
    """What is reserved.

    Returns:
        ``day, cluster, namespace, name``, ``hard`` (of several the tightest) and ``asked`` (of
        several the most; null = none of them says).
    """
    rows = ledger.scan(RESOURCES, window).filter(pl.col("kind") == "ResourceQuota").collect()
    texts = rows["configuration"].drop_nulls().unique().sort()
    read = [{"configuration": text, **each} for text in texts for each in _read(json.loads(text))]
    amounts = pl.DataFrame(read, schema={"configuration": pl.String(), **_AMOUNTS})
    return (
        rows.select("day", "cluster", "namespace", "configuration")
        .drop_nulls()
        .join(amounts, on="configuration")
        .group_by("day", "cluster", "namespace", "name")
        .agg(pl.col("hard").min(), pl.col("asked").max())
    )


def _read(quota: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """What a quota says of requests; one with scopes is about some pods only: nothing is known."""
    hard, used = quota.get("hard"), quota.get("used")
    if quota.get("scopes") or not isinstance(hard, dict):
        return
    for key, value in sorted(hard.items()):
        name = key.removeprefix("requests.")
        unit = {"cpu": 1, "memory": _GIB}.get(name, 1)
        if name not in ("cpu", "memory") and "/" not in name:
            continue  # limits, counts of objects
        found = used.get(key) if isinstance(used, dict) else None
        amount = _amount(value, unit)
        if amount is not None:
            yield {"name": name, "hard": amount, "asked": _amount(found, unit)}


def _amount(value: object, unit: int) -> Decimal | None:
    """A quantity in units of a resource, in 1e-12 rounded down; None if it is none."""
    try:
        amount = parse(str(value)) / unit
    except ValueError:
        return None
    if amount < 0:
        return None
    return Decimal(int(min(amount, _LARGEST) * UNITS)).scaleb(-12)
