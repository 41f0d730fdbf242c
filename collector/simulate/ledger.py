"""A large ledger written straight: facts and costs of many days, for benchmarks of what reads it.

The load is uniform: every node holds two lanes of pods that follow one another, each with half of
the cards; what no pod holds is idle. A day is worked out in polars alone and written before the
next begins, so memory stays that of one day.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import polars as pl

from collector.simulate.facts import BILL
from collector.simulate.model import GPU_RESOURCE, REGION
from collector.simulate.nodes import GIB, GPU_MODEL
from collector.simulate.options import DAY, HOUR, MINUTE, WorldOptions, milliseconds
from ledger.money import from_units, split, to_units
from ledger.schema import (
    CHARGES,
    CLOSES,
    COST_COLUMNS,
    COSTS,
    COSTS_DAILY,
    IDENTITY_KEYS,
    IDLE,
    MONEY,
    NODES,
    TIME,
    WORKLOADS,
    Table,
)
from ledger.store import Ledger
from ledger.window import Window

PODS = 10_000
"""Pods a day where the options do not say."""

_PODS_PER_NODE = 10
_PRICES = {
    "BilledCost": "88.488",
    "EffectiveCost": "58.992000000001",
    "ContractedCost": "88.488",
    "ListCost": "98.32",
}
_FIGURES = (*COST_COLUMNS, "ActiveCost", "gpu_seconds")


def write_ledger(options: WorldOptions, ledger: Ledger) -> None:
    """Write ``nodes``, ``workloads``, ``charges``, ``costs``, ``costs_daily`` and ``closes``.

    Args:
        options: ``days`` and ``end`` give the days, ``containers`` the pods a day (default 10,000),
            ``experiments`` their experiments; there is at least one node for ten pods.
        ledger: Where to; rows of these days and sources are replaced.

    Raises:
        LedgerError: The ledger cannot be written.
    """
    for day in options.window.days():
        window = Window.of_day(day)
        source = f"kubernetes/{options.cluster}"
        pods, nodes = _pods(options, day), _nodes(options, day)
        charges = _charges(options, day, nodes)
        costs = _costs(charges, pods, options)
        ledger.replace(NODES, nodes, window, source)
        ledger.replace(WORKLOADS, _workloads(pods, day), window, source)
        ledger.replace(CHARGES, _only(charges, CHARGES), window, BILL)
        ledger.replace(COSTS, _only(costs, COSTS), window)
        ledger.replace(COSTS_DAILY, _daily(costs), window)
        for stage, name, rows in (
            ("collect", source, pods.height),
            ("collect", BILL, charges.height),
            ("attribute", "attribution", costs.height),
        ):
            ledger.replace(CLOSES, _close(day, rows), window, name, stage=stage)


def _only(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    return frame.select(name for name in table.columns if name in frame.columns)


def _size(options: WorldOptions) -> tuple[int, int]:
    """Pods a day, and nodes."""
    pods = options.containers or PODS
    return pods, max(options.nodes, -(-pods // _PODS_PER_NODE))


def _time(at: pl.Expr) -> pl.Expr:
    return at.cast(pl.Datetime("ms", "UTC")).cast(TIME)


def _start(day: date) -> int:
    return milliseconds(Window.of_day(day).start)


def _name(prefix: str, number: pl.Expr, width: int) -> pl.Expr:
    return pl.lit(prefix) + number.cast(pl.String).str.zfill(width)


def _nodes(options: WorldOptions, day: date) -> pl.DataFrame:
    """The nodes of a day; all there for the whole of it."""
    count, cards = _size(options)[1], options.gpus_per_node
    index = pl.col("index")
    return pl.select(pl.int_range(count, dtype=pl.Int64).alias("index")).select(
        pl.lit(day).alias("day"),
        pl.lit(options.cluster).alias("cluster"),
        _name("gpu-", index, 5).alias("node"),
        (pl.lit(f"aws:///{REGION}a/") + _name("i-", index, 17)).alias("provider_id"),
        _time(pl.lit(_start(day))).alias("start"),
        _time(pl.lit(_start(day) + DAY)).alias("end"),
        pl.lit("p5.48xlarge").alias("instance_type"),
        pl.lit("on-demand").alias("capacity_type"),
        pl.lit(REGION).alias("region"),
        pl.lit(f"{REGION}a").alias("zone"),
        pl.lit(cards * 24_000, dtype=pl.Int64).alias("cpu_millicores"),
        pl.lit(cards * 256 * GIB, dtype=pl.Int64).alias("memory_bytes"),
        pl.lit(cards, dtype=pl.Int64).alias("gpus"),
        pl.lit(GPU_RESOURCE).alias("gpu_resource"),
        pl.lit(GPU_MODEL).alias("gpu_model"),
        pl.lit("{}").alias("labels"),
    )


def _pods(options: WorldOptions, day: date) -> pl.DataFrame:
    """The pods of a day: ``cluster, node, uid, namespace, pod, begin, until`` (ms), identity."""
    pods, nodes = _size(options)
    salt = (day.toordinal() * 7919 + options.seed * 104_729) % 1_000_003
    index = pl.col("index")
    slots = max(1, -(-pods // nodes) // 2 + (-(-pods // nodes) % 2))
    length = DAY // slots // MINUTE * MINUTE
    lane, slot = index // nodes % 2, index // nodes // 2
    late = (index * 31 + salt) % max(1, length // MINUTE // 8) * MINUTE
    group = (index * 131 + index // nodes * 37 + salt) % options.experiments
    begin = _start(day) + slot * length
    text = _name("", group, 4)
    identity = {
        "experiment": pl.lit("exp-") + text,
        "model_version": pl.lit("model-") + (group % 50).cast(pl.String),
        "pipeline": pl.lit("pipeline-") + (group % 10).cast(pl.String),
        "owner": pl.lit("user-") + (group % 40).cast(pl.String),
        "project": pl.lit("team-") + (group % 20).cast(pl.String),
        "phase": pl.when(lane == 0).then(pl.lit("rollout")).otherwise(pl.lit("update")),
    }
    return pl.select(pl.int_range(pods, dtype=pl.Int64).alias("index")).select(
        pl.lit(options.cluster).alias("cluster"),
        _name("gpu-", index % nodes, 5).alias("node"),
        (pl.lit(f"{day:%Y%m%d}-0000-4000-8000-") + _name("", index, 12)).alias("uid"),
        identity["project"].alias("namespace"),
        (pl.lit(f"job-{day:%m%d}-") + _name("", index, 6)).alias("pod"),
        (begin + late).alias("begin"),
        (begin + length - MINUTE).alias("until"),
        pl.when(lane == 0)
        .then((options.gpus_per_node + 1) // 2)
        .otherwise(options.gpus_per_node // 2)
        .cast(pl.Int64)
        .alias("cards"),
        *(value.alias(key) for key, value in identity.items()),
        (pl.lit('{"experiment":"exp-') + text + '"}').alias("tags"),
    )


def _workloads(pods: pl.DataFrame, day: date) -> pl.DataFrame:
    rows = pods.select(
        pl.lit(day).alias("day"),
        "cluster",
        "uid",
        "namespace",
        "pod",
        "node",
        _time(pl.col("begin")).alias("start"),
        _time(pl.col("until")).alias("end"),
        pl.lit("running").alias("state"),
        _time(pl.col("begin")).alias("bound_at"),
        _time(pl.col("until")).alias("finished_at"),
        pl.col("tags").alias("labels"),
        (pl.col("cards") * 8000).alias("cpu_millicores"),
        (pl.col("cards") * 64 * GIB).alias("memory_bytes"),
        pl.col("cards").alias("gpus"),
        pl.lit(GPU_RESOURCE).alias("gpu_resource"),
    )
    return rows.filter(pl.col("start") < pl.col("end"))


def _charges(options: WorldOptions, day: date, nodes: pl.DataFrame) -> pl.DataFrame:
    """One Usage line per node and hour, with the node's place beside it (``cluster, node``)."""
    hour = _start(day) + pl.col("hour") * HOUR
    month = datetime(day.year, day.month, 1, tzinfo=Window.of_day(day).start.tzinfo)
    hours = pl.select(pl.int_range(24, dtype=pl.Int64).alias("hour"))
    resource = pl.col("provider_id").str.split("/").list.last()
    fixed = {
        "x_Source": BILL,
        "x_Basis": "billed",
        "x_Dimension": "compute",
        "x_Elasticity": "elastic",
        "BillingCurrency": options.currency,
        "ProviderName": "AWS",
        "ChargeCategory": "Usage",
        "ServiceName": "Amazon Elastic Compute Cloud",
        "ServiceCategory": "Compute",
        "RegionId": REGION,
        "SubAccountId": "012345678901",
        "ResourceType": "Instance",
        "ConsumedUnit": "Hours",
        "Tags": "{}",
    }
    return (
        nodes.select("day", "cluster", "node", "provider_id", "gpus")
        .join(hours, how="cross", maintain_order="left")
        .select(
            "day",
            "cluster",
            "node",
            "gpus",
            hour.alias("at"),
            (pl.col("node") + "-" + pl.col("hour").cast(pl.String).str.zfill(2)).alias("x_LineId"),
            pl.lit(0, dtype=pl.Int64).alias("x_Part"),
            resource.alias("ResourceId"),
            _time(hour).alias("ChargePeriodStart"),
            _time(hour + HOUR).alias("ChargePeriodEnd"),
            pl.lit(month, dtype=TIME).alias("BillingPeriodStart"),
            pl.lit(Decimal(1), dtype=MONEY).alias("ConsumedQuantity"),
            *(pl.lit(value).alias(name) for name, value in fixed.items()),
            *(pl.lit(Decimal(price), dtype=MONEY).alias(name) for name, price in _PRICES.items()),
        )
    )


def _costs(charges: pl.DataFrame, pods: pl.DataFrame, options: WorldOptions) -> pl.DataFrame:
    """Each line split over the card-milliseconds of its pods and of idle, exactly."""
    held = _held(pods)
    line = ["node", "at"]
    used = held.group_by(line).agg(pl.col("amount").sum().alias("used"))
    free = (
        charges.join(used, on=line, how="left")
        .with_columns(
            (pl.col("gpus") * HOUR - pl.col("used").fill_null(0)).alias("amount"),
            pl.lit(IDLE).alias("target"),
            *(pl.lit(IDLE).alias(key) for key in IDENTITY_KEYS),
        )
        .filter(pl.col("amount") > 0)
    )
    rows = charges.join(held.drop("cluster"), on=line).with_columns(
        pl.lit("workload").alias("target")
    )
    every = pl.concat([rows, free.drop("used")], how="diagonal").with_columns(
        to_units(pl.col(name)).alias(name) for name in COST_COLUMNS
    )
    parts = split(
        every.lazy(), group=line, amounts=COST_COLUMNS, weight="amount", order=["target", "uid"]
    ).collect()
    working = pl.col("target") == "workload"
    active = pl.when(working).then(pl.col("EffectiveCost") * 7 // 10).otherwise(0)
    return parts.with_columns(
        *(from_units(pl.col(name)).alias(name) for name in COST_COLUMNS),
        from_units(active.cast(pl.Int128)).alias("ActiveCost"),
        from_units(pl.col("amount").cast(pl.Int128) * 10**9).alias("gpu_seconds"),
        pl.lit("gpu").alias("resource"),
        pl.lit("high").alias("confidence"),
    )


def _held(pods: pl.DataFrame) -> pl.DataFrame:
    """Card-milliseconds of each pod per hour (``at``)."""
    at = pl.col("at")
    end = pl.min_horizontal("until", at + HOUR)
    return (
        pods.filter(pl.col("begin") < pl.col("until"))
        .with_columns(
            pl.int_ranges(pl.col("begin") // HOUR, (pl.col("until") - 1) // HOUR + 1).alias("at")
        )
        .explode("at")
        .with_columns(at * HOUR)
        .with_columns(((end - pl.max_horizontal("begin", "at")) * pl.col("cards")).alias("amount"))
        .drop("begin", "until", "cards")
    )


def _daily(costs: pl.DataFrame) -> pl.DataFrame:
    """``costs`` summed over lines, pods and hours; every share is known."""
    unknown = [f"{name}_unknown" for name in COST_COLUMNS]
    keys = [
        name
        for name in COSTS_DAILY.columns
        if name in costs.columns and name not in (*_FIGURES, *unknown)
    ]
    return (
        costs.group_by(keys)
        .agg(pl.col(name).sum() for name in _FIGURES)
        .with_columns(pl.lit(0, dtype=pl.Int64).alias(name) for name in unknown)
        .sort(keys, nulls_last=True)
    )


def _close(day: date, rows: int) -> pl.DataFrame:
    empty = json.dumps([])
    return pl.DataFrame(
        {
            "day": [day],
            "status": ["closed"],
            "required": [True],
            "coverage": [1.0],
            "rows": [rows],
            "quarantined": [0],
            "quarantine": [empty],
            "gaps": [empty],
            "notes": [empty],
            "residue": ["{}"],
            "data_through": [Window.of_day(day).end],
        },
        schema_overrides={"data_through": TIME, "rows": pl.Int64, "quarantined": pl.Int64},
    )
