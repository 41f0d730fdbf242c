"""Asking the books: costs of a window by keys, with filters that hide rows and never change one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import polars as pl

from attribution.identity import SPECIAL, label, tag
from attribution.phases import glob_regex
from ledger.errors import UsageError
from ledger.money import from_units, split, to_units
from ledger.schema import COSTS, COSTS_DAILY, IDENTITY_KEYS, IDLE, UNATTRIBUTED
from ledger.store import Ledger
from ledger.window import Window

Cost = Literal["effective", "billed", "contracted", "list", "active"]
COST_OF: Mapping[str, str] = {
    "effective": "EffectiveCost",
    "billed": "BilledCost",
    "contracted": "ContractedCost",
    "list": "ListCost",
    "active": "ActiveCost",
}
KEYS: Mapping[str, str] = {
    **{key: key for key in IDENTITY_KEYS},
    "day": "day",
    "provider": "ProviderName",
    "service": "ServiceName",
    "source": "x_Source",
    "cluster": "cluster",
    "node": "node",
    "namespace": "namespace",
    "resource": "resource",
    "target": "target",
    "reason": "reason",
    "confidence": "confidence",
    "dimension": "x_Dimension",
    "elasticity": "x_Elasticity",
    "basis": "x_Basis",
    "currency": "BillingCurrency",
    "region": "RegionId",
    "account": "SubAccountId",
    "category": "ServiceCategory",
    "charge": "ChargeCategory",
    "pod": "pod",
    "hour": "ChargePeriodStart",
}
"""Grouping keys and the columns that they read; ``label:KEY`` reads the tags."""

_FINE = frozenset({"pod", "hour"})
_POOL = ("BillingCurrency", "day", "cluster", "node", "resource")


@dataclass(frozen=True)
class Query:
    """A question.

    Args:
        window: Time asked for. Whole days are read from ``costs_daily``; else the shares whose
            period begins inside.
        by: Grouping keys, see ``KEYS``, or ``label:KEY``; empty asks for the total alone.
        cost: Which cost.
        tags: Tag or label to glob; a row is shown if all match.
        filters: Grouping key to glob, likewise.
        currency: Only this one.
        idle: ``share`` gives the idle of a node and resource to its holders, by their cost.
    """

    window: Window
    by: tuple[str, ...] = ("experiment",)
    cost: Cost = "effective"
    tags: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    currency: str | None = None
    idle: Literal["separate", "share"] = "separate"


@dataclass(frozen=True)
class QueryResult:
    """An answer in one currency.

    Args:
        query: The question.
        currency: ISO 4217; None if the window holds nothing and no currency was asked for.
        rows: In order of cost, largest first: the keys, ``cost`` (None if no share of it is
            known), ``active_cost`` (None if any share's is unknown), ``active_cost_known_share``
            (part of the effective cost whose activity is known), ``gpu_hours``, ``basis`` (billed,
            estimated, declared or mixed), ``unknown`` (shares whose cost is unknown),
            ``confidence`` (low if any share's is: seen by one source, or a life shorter than the
            distance of two samples).
        total: Sum of the rows shown.
        window_total: Sum of all rows of the window.
        billed: Sum of the invoice lines of the window.
    """

    query: Query
    currency: str | None
    rows: list[dict[str, Any]]
    total: Decimal
    window_total: Decimal
    billed: Decimal

    @property
    def hidden(self) -> Decimal:
        """What the filters hide."""
        return self.window_total - self.total


def query(ledger: Ledger, request: Query) -> list[QueryResult]:
    """Answer a question, with one result per currency (sorted); an empty window gives one.

    Raises:
        UsageError: A key is empty or unknown.
    """
    for key in (*request.by, *request.filters):
        _check(key)
    if empty := [key for key in request.tags if not key.strip()]:
        raise UsageError(f"--tag {empty[0]!r}= has no key", "write --tag owner=lin")
    rows = _read(ledger, request)
    if request.currency:
        rows = rows.filter(pl.col("BillingCurrency") == request.currency)
    if request.idle == "share":
        rows = _share_idle(rows)
    currencies = rows["BillingCurrency"].unique().sort().to_list() or [request.currency]
    return [
        _result(
            request,
            currency,
            rows.filter(pl.col("BillingCurrency") == pl.lit(currency, pl.String)),
        )
        for currency in currencies
    ]


def _check(key: str) -> None:
    if key.startswith("label:") and key.removeprefix("label:").strip():
        return
    if key in KEYS:
        return
    near = difflib.get_close_matches(key, [*KEYS, "label:KEY"], n=1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(KEYS)} or label:KEY"
    raise UsageError(f"{key!r} is not a grouping key", hint)


def _needs(request: Query) -> tuple[bool, list[str]]:
    """Whether the hourly rows are needed, and the columns that are read.

    Idle is shared among rows of all keys, whatever is asked for: rounding must not depend on it.
    """
    keys = {*request.by, *request.filters}
    fine = not request.window.whole_days or bool(keys & _FINE)
    columns = {KEYS[key] for key in keys if key in KEYS} | (set(request.tags) & set(IDENTITY_KEYS))
    if request.idle == "share":
        columns |= {name for key, name in KEYS.items() if fine or key not in _FINE}
    figures = {"EffectiveCost", "BilledCost", "ActiveCost", "gpu_seconds", COST_OF[request.cost]}
    return fine, sorted(columns | figures | {"target", "x_Basis", "BillingCurrency", "confidence"})


def _labels(request: Query) -> list[str]:
    """The ``label:KEY`` columns that a question looks at."""
    keys = {key for key in (*request.by, *request.filters) if key.startswith("label:")}
    return sorted(keys | {f"label:{key}" for key in request.tags})


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
    if not (labels := _labels(request)):
        return rows
    # Many rows share their tags: each is read once.
    distinct = rows.select("tags").unique().collect(engine="streaming")
    values = [_tag(name.removeprefix("label:")).alias(name) for name in labels]
    return rows.join(
        distinct.select("tags", *values).lazy(), on="tags", how="left", nulls_equal=True
    )


def _read(ledger: Ledger, request: Query) -> pl.DataFrame:
    """Rows of the window, summed over what the question does not look at, money in units."""
    fine, columns = _needs(request)
    money = [name for name in columns if name in COST_OF.values()]
    keys = [name for name in columns if name not in (*money, "gpu_seconds")] + _labels(request)
    if request.idle == "share":
        keys.append("tags")
    cost = COST_OF[request.cost]
    counted = not fine and cost != "ActiveCost"
    unknown = pl.col(f"{cost}_unknown").sum() if counted else pl.col(cost).null_count()
    dark = pl.col("EffectiveCost").filter(pl.col("ActiveCost").is_null())
    sums = (
        _source(ledger, request, fine=fine)
        .group_by(keys)
        .agg(
            *(pl.col(name).sum() for name in (*money, "gpu_seconds")),
            pl.col("ActiveCost").null_count().alias("dark"),
            dark.sum().alias("dark_cost"),
            unknown.cast(pl.Int64).alias("unknown"),
            pl.col(cost).count().alias("known"),
        )
        .collect()
    )
    amounts = [*money, "dark_cost"]
    # Any fixed order will do; the rows may be millions, and hashes are compared fastest.
    order = pl.struct(keys).hash(seed=0)
    return sums.sort(order).with_columns(to_units(pl.col(name)) for name in amounts)


def _share_idle(rows: pl.DataFrame) -> pl.DataFrame:
    """Give the idle of each node, day and resource to its holders by effective cost.

    A pool that nobody holds keeps its idle. Its total and every other pool stay as they are. Costs
    weigh in steps of 1e-9, which leaves room for a day of a node in any currency.
    """
    money = [name for name in rows.columns if name in COST_OF.values()]
    free = rows.filter(pl.col("target") == IDLE).group_by(_POOL).agg(pl.col(money).sum())
    free = free.with_row_index("pool")
    rows = rows.with_row_index("row").join(
        free.select("pool", *_POOL),
        on=list(_POOL),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    holds = (pl.col("target") == "workload") & (pl.col("EffectiveCost") > 0)
    given = split(
        rows.filter(holds & pl.col("pool").is_not_null())
        .select("row", "pool", (pl.col("EffectiveCost") // 1000).alias("weight"))
        .join(free.select("pool", *money), on="pool")
        .lazy(),
        group=["pool"],
        amounts=money,
        weight="weight",
        order=["row"],
    ).collect()
    spread = pl.col("pool").is_in(given["pool"].unique().implode()).fill_null(value=False)
    kept = rows.filter(~(spread & (pl.col("target") == IDLE)))
    more = given.select("row", *(pl.col(name).alias(f"more_{name}") for name in money))
    return kept.join(more, on="row", how="left", maintain_order="left").with_columns(
        pl.col(name) + pl.col(f"more_{name}").fill_null(0) for name in money
    )


def _key(key: str) -> pl.Expr:
    """The value of a grouping key as text; what has none is a special target."""
    if key.startswith("label:"):
        value = pl.col(key)
    elif key == "day":
        value = pl.col("day").dt.to_string("iso:strict")
    elif key == "hour":
        value = pl.col("ChargePeriodStart").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    else:
        value = pl.col(KEYS[key])
    if key == "reason":
        return value.fill_null("none").alias(key)
    special = pl.when(pl.col("target").is_in(SPECIAL)).then("target")
    return pl.coalesce(value, special, pl.lit(UNATTRIBUTED)).alias(key)


def _tag(key: str) -> pl.Expr:
    return pl.coalesce(label("tags", key), tag("tags", key))


def _shown(request: Query) -> pl.Expr:
    """Whether a row passes all filters; an identity key given as a tag also meets the identity."""
    tests = [_key(key).str.contains(glob_regex(glob)) for key, glob in request.filters.items()]
    for key, glob in request.tags.items():
        values = [_key(f"label:{key}"), *([_key(key)] if key in IDENTITY_KEYS else [])]
        tests.append(pl.any_horizontal(value.str.contains(glob_regex(glob)) for value in values))
    return pl.all_horizontal(pl.lit(True), *tests)


def _result(request: Query, currency: str | None, rows: pl.DataFrame) -> QueryResult:
    cost = COST_OF[request.cost]
    shown = rows.filter(_shown(request))
    return QueryResult(
        query=request,
        currency=currency,
        rows=_grouped(request, shown),
        total=_sum(shown, cost),
        window_total=_sum(rows, cost),
        billed=_sum(rows, "BilledCost"),
    )


def _sum(rows: pl.DataFrame, name: str) -> Decimal:
    total = rows.select(from_units(pl.col(name).sum().cast(pl.Int128))).item()
    return Decimal(total or 0).quantize(Decimal("1e-12"))


def _grouped(request: Query, rows: pl.DataFrame) -> list[dict[str, Any]]:
    cost, by = COST_OF[request.cost], list(request.by)
    if not by:
        return []
    dark = pl.col("dark").sum() > 0
    effective = pl.col("EffectiveCost").sum().cast(pl.Float64)
    dark_cost = pl.col("dark_cost").sum().cast(pl.Float64)
    single = pl.when(pl.col("x_Basis").n_unique() == 1).then(pl.col("x_Basis").first())
    figures = {
        "cost": from_units(pl.when(pl.col("known").sum() > 0).then(pl.col(cost).sum())),
        "active_cost": from_units(pl.when(~dark).then(pl.col("ActiveCost").sum())),
        "active_cost_known_share": pl.when(effective != 0).then(1 - dark_cost / effective),
        "gpu_hours": pl.col("gpu_seconds").sum().cast(pl.Float64) / 3600,
        "basis": single.otherwise(pl.lit("mixed")),
        "unknown": pl.col("unknown").sum(),
        "confidence": pl.when((pl.col("confidence") == "low").any())
        .then(pl.lit("low"))
        .otherwise(pl.lit("high")),
    }
    wanted = [figure.alias(name) for name, figure in figures.items() if name not in by]
    keyed = rows.with_columns(_key(key) for key in by)
    groups = keyed.group_by(by).agg(wanted)
    ordered = groups.sort("cost", *by, descending=[True, *(False for _ in by)], nulls_last=True)
    return ordered.select(*by, *(name for name in figures if name not in by)).to_dicts()
