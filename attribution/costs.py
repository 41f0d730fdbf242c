"""The product: rows of ``costs`` and their daily roll-up."""

from __future__ import annotations

import polars as pl

from attribution.nodes.devices import CARD
from attribution.nodes.figures import AMOUNTS, active_units, hours_of_pods
from attribution.nodes.methods import FREE, RESOURCES, UNSEEN
from attribution.phases import dimension
from attribution.prices.estimate import doubtful
from attribution.ratio import HOUR, divide
from attribution.split import UNITS
from ledger.money import from_units
from ledger.schema import (
    COST_COLUMNS,
    COSTS,
    COSTS_DAILY,
    IDENTITY_KEYS,
    IDLE,
    SHARED,
    TIME,
    UNATTRIBUTED,
)

_PLACE = (
    "cluster",
    "node",
    "namespace",
    "resource",
    "uid",
    "pod",
    "path",
    "instance_type",
    "root_kind",
    "root_name",
    "annotations",
)
_SHARE = (*_PLACE, "target", "reason", *IDENTITY_KEYS, "tags", "confidence")
_OF_HOUR = ("cluster", "node", "hour", "whole", "snapshot", "instance_type")
_ROW = (
    "line",
    "start",
    "end",
    *_SHARE,
    *UNITS,
    "units_active",
    "card_ms",
    "units_requested",
    "units_used",
)
NOTHING = dict.fromkeys(_PLACE, pl.String())
"""Columns of a share that a line which is not split has no value for."""


def node_rows(
    shares: pl.DataFrame, hours: pl.DataFrame, held: pl.DataFrame, who: pl.DataFrame
) -> pl.DataFrame:
    """Shares of node-hours with place, identity and active cost.

    Args:
        shares: ``split.node_shares``.
        hours: Node-hours by ``nh``.
        held: ``node_hours.held_amounts`` with ``nh``.
        who: The pods by ``who``.
    """
    active = held.select("nh", "who", *AMOUNTS)
    rows = (
        shares.join(hours.select("nh", *_OF_HOUR), on="nh", how="left", maintain_order="left")
        .join(
            who.drop("cluster").rename({"labels": "tags"}),
            on="who",
            how="left",
            maintain_order="left",
        )
        .join(active, on=["nh", "who"], how="left", maintain_order="left")
    )
    kind = pl.col("kind")
    special = (
        pl.when(kind == FREE).then(pl.lit(IDLE)).when(kind == UNSEEN).then(pl.lit(UNATTRIBUTED))
    )
    unseen = pl.coalesce("whole", pl.lit("no_samples"))
    # Free by a snapshot alone: a pod that was deleted before it may have held this.
    trust = pl.when("snapshot").then(pl.lit("low")).otherwise(pl.lit("high"))
    return rows.with_columns(
        active_units().alias("units_active"),
        *hours_of_pods(),
        special.otherwise(pl.lit("workload")).alias("target"),
        pl.when(kind == UNSEEN).then(unseen).otherwise("reason").alias("reason"),
        *(special.otherwise(pl.col(key)).alias(key) for key in IDENTITY_KEYS),
        pl.coalesce("confidence", trust).alias("confidence"),
        pl.col("pool").replace_strict(RESOURCES, return_dtype=pl.String).alias("resource"),
        pl.col("start").fill_null(pl.col("hour")),
        pl.col("end").fill_null(pl.col("hour") + HOUR),
        pl.lit(None, dtype=pl.String).alias("path"),
    ).select(_ROW)


def line_rows(others: pl.DataFrame) -> pl.DataFrame:
    """Shares of lines that pay for no node, in the same form.

    A column that a share does not have (``NOTHING``) is null.

    What nobody used was not active; whether a machine that met no node worked is not known.
    """
    start, end = (pl.col(f"ChargePeriod{edge}").dt.timestamp("ms") for edge in ("Start", "End"))
    nothing_active = (pl.col("target") == SHARED) | (pl.col("units_EffectiveCost") == 0)
    machine = (pl.col("ServiceCategory") == "Compute").fill_null(value=False)
    return others.with_columns(
        *(
            pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in NOTHING.items()
            if name not in others.columns
        ),
        start.alias("start"),
        end.alias("end"),
        pl.when(nothing_active)
        .then(0)
        .when(~machine)
        .then("units_EffectiveCost")
        .cast(pl.Int128)
        .alias("units_active"),
        pl.lit(None, dtype=pl.Int128).alias("card_ms"),
        pl.lit(None, dtype=pl.Int128).alias("units_requested"),
        pl.lit(None, dtype=pl.Int128).alias("units_used"),
    ).select(_ROW)


def assemble(lines: pl.DataFrame, *rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``costs``, in the order in which they are given.

    Args:
        lines: All lines by ``line``, with the columns of ``charges``.
        rows: ``node_rows`` and ``line_rows``.
    """
    own = [
        name
        for name in COSTS.columns
        if name in lines.columns
        and name not in (*COST_COLUMNS, "ChargePeriodStart", "ChargePeriodEnd")
    ]
    shares = pl.concat(rows)
    told = lines.select(
        "line", "ServiceProviderName", *own, line_type().alias("x_LineType")
    ).with_columns(invoice_month().alias("x_InvoiceMonth"))
    joined = shares.join(told, on="line", how="left", maintain_order="left")
    return joined.with_columns(
        dimension(pl.col("phase"), pl.col("x_Dimension")).alias("x_Dimension"),
        pl.when(doubtful()).then(pl.lit("low")).otherwise("confidence").alias("confidence"),
        # Who provides the service, not who resells it.
        pl.coalesce("ServiceProviderName", "ProviderName").alias("ProviderName"),
        *(_time(name).alias(f"ChargePeriod{name.title()}") for name in ("start", "end")),
        *(
            from_units(pl.col(units)).alias(name)
            for units, name in zip(
                (*UNITS, "units_active", "units_requested", "units_used"),
                (*COST_COLUMNS, "ActiveCost", "requested", "used"),
                strict=True,
            )
        ),
        from_units(divide(pl.col("card_ms") * 10**9, pl.lit(CARD, dtype=pl.Int128))).alias(
            "gpu_seconds"
        ),
    ).select(pl.col(name).cast(column.dtype) for name, column in COSTS.columns.items())


def line_type() -> pl.Expr:
    """What kind of line a charge is, by the columns of FOCUS."""
    category, name = pl.col("ChargeCategory"), pl.col("ServiceName").str.to_lowercase()
    committed = pl.col("CommitmentDiscountId").is_not_null()
    negative = (pl.col("BilledCost") < 0) | (pl.col("EffectiveCost") < 0)
    return (
        pl.when(category == "Tax")
        .then(pl.lit("tax"))
        .when(category == "Credit")
        .then(pl.lit("credit"))
        .when(category == "Adjustment")
        .then(pl.when(negative).then(pl.lit("refund")).otherwise(pl.lit("adjustment")))
        .when(pl.col("CommitmentDiscountStatus") == "Unused")
        .then(pl.lit("commitment_unused"))
        .when(name.str.contains(r"\bsupport\b"))
        .then(pl.lit("support"))
        .when(category == "Purchase")
        .then(pl.lit("purchase"))
        .when((category == "Usage") & negative)
        .then(pl.lit("discount"))
        .when(committed)
        .then(pl.lit("commitment"))
        .otherwise(pl.lit("usage"))
    )


def invoice_month() -> pl.Expr:
    """The month of the invoice, else that of the billing period."""
    return pl.coalesce("x_InvoiceMonth", pl.col("BillingPeriodStart").dt.strftime("%Y-%m"))


def _time(name: str) -> pl.Expr:
    return pl.from_epoch(name, time_unit="ms").dt.replace_time_zone("UTC").cast(TIME)


def daily_keys() -> list[str]:
    """What a row of ``costs_daily`` is for, in the order of its rows: place first."""
    unknown = [f"{name}_unknown" for name in COST_COLUMNS]
    figures = (*COST_COLUMNS, "ActiveCost", "gpu_seconds", "requested", "used", *unknown)
    place = ["cluster", "node"]
    rest = [name for name in COSTS_DAILY.columns if name not in (*figures, *place)]
    return [*place, *rest]


def daily(costs: pl.DataFrame) -> pl.DataFrame:
    """Sum ``costs`` over lines, pods and hours, or such sums of parts of a day once more.

    A cost column is the sum of its known shares (null if none is known) beside the number of
    unknown ones; ``ActiveCost`` is null as soon as one share's is, ``used`` as soon as that of a
    share is that asked for something.
    """
    keys = daily_keys()

    def known(name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)

    def unknown(name: str) -> pl.Expr:
        count = f"{name}_unknown"
        told = pl.col(count).sum() if count in costs.columns else pl.col(name).null_count()
        return told.cast(pl.Int64).alias(count)

    dark = pl.col("requested").is_not_null() & pl.col("used").is_null()
    sums = costs.group_by(keys).agg(
        *(known(name) for name in COST_COLUMNS),
        pl.when(pl.col("ActiveCost").null_count() == 0)
        .then(pl.col("ActiveCost").sum())
        .alias("ActiveCost"),
        *(known(name) for name in ("gpu_seconds", "requested")),
        pl.when(~dark.any() & (pl.col("used").count() > 0)).then(pl.col("used").sum()),
        *(unknown(name) for name in COST_COLUMNS),
    )
    return sums.sort(keys, nulls_last=True).select(
        pl.col(name).cast(column.dtype) for name, column in COSTS_DAILY.columns.items()
    )
