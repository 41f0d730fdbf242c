"""Runs and nodes as rows of the ledger.

A job on several nodes is one pod on each of them, with its part of what was allocated: ``sacct``
tells the sum alone, so it is split evenly, and what does not divide goes to the first nodes.
Accounting is no sample: it knows when a job began and ended to the second. Its rows have an
``interval_seconds`` of 0.
"""

from __future__ import annotations

import polars as pl

from collector.slurm.labels import with_labels
from collector.slurm.record import BOOTING
from collector.slurm.spans import bounds, by_day, clip, moment
from collector.slurm.tres import CARD
from ledger.schema import EVENTS, WORKLOADS, Table
from ledger.window import Window

KIND = "SlurmJob"
"""Kind of the root of a job's owners."""

EXACT = 0.0
"""``interval_seconds`` of a record that is complete by itself."""

_AMOUNTS = ("cpus", "memory", "cards", "shard", "mps")
_EVENTS = {
    "OUT_OF_MEMORY": "out_of_memory",
    "PREEMPTED": "preemption",
    "REQUEUED": "restart",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "DEADLINE": "failed",
    "NODE_FAIL": "failed",
    "BOOT_FAIL": "failed",
    "LAUNCH_FAILED": "failed",
    "CANCELLED": "killed",
}


def on_nodes(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per run and node, with ``node`` and its part of each amount.

    Args:
        runs: With ``hosts`` (not empty) and the amounts of ``checks.TRES_SCHEMA``.
    """
    count = pl.col("hosts").list.len().cast(pl.Int64)
    spread = runs.with_columns(
        count.alias("count"), pl.int_ranges(count, dtype=pl.Int64).alias("place")
    ).explode("hosts", "place")
    size, place = pl.col("count"), pl.col("place")
    parts = [
        (pl.col(name) // size + (place < pl.col(name) % size).cast(pl.Int64)).alias(name)
        for name in _AMOUNTS
    ]
    return spread.with_columns(*parts).rename({"hosts": "node"})


def uneven(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs whose cards or CPUs do not divide evenly by their nodes."""
    count = pl.col("hosts").list.len().cast(pl.Int64)
    return runs.filter((count > 1) & ((pl.col("cpus") % count > 0) | (pl.col("cards") % count > 0)))


def held(runs: pl.DataFrame, window: Window) -> pl.DataFrame:
    """The runs inside a window, one row per node, with ``began`` and ``ended`` as told.

    Args:
        runs: Rows of ``runs.Runs``.
        window: Whole UTC days.
    """
    ran = runs.filter(pl.col("until").is_not_null()).with_columns(
        pl.col("start").alias("began"), pl.col("end").alias("ended"), pl.col("until").alias("end")
    )
    return on_nodes(with_labels(clip(ran, window)))


def workloads(pieces: pl.DataFrame, runs: pl.DataFrame, window: Window, name: str) -> pl.DataFrame:
    """Rows of ``workloads``: jobs on their nodes, and jobs that wait without one.

    Args:
        pieces: ``held``; ``cards`` is null where accounting does not count them.
        runs: Rows of ``runs.Runs``.
        window: Whole UTC days.
        name: Name of the cluster in the settings.
    """
    booting = pl.col("state").is_in(sorted(BOOTING))
    ran = by_day(pieces).with_columns(
        pl.format("slurm/{}/{}/{}/{}", "cluster", "job", "began", "node").alias("uid"),
        pl.when(booting).then(pl.lit("held")).otherwise(pl.lit("running")).alias("now"),
        pl.when(booting).then("state").alias("reason"),
    )
    waits = runs.filter(pl.col("until").is_null() & pl.col("submit").is_not_null()).with_columns(
        pl.col("submit").alias("start"),
        pl.coalesce("end", "exported").alias("end"),
    )
    waits = by_day(clip(with_labels(waits), window)).with_columns(
        pl.format("slurm/{}/{}/waits", "cluster", "job").alias("uid"),
        pl.lit("held").alias("now"),
        pl.lit("Pending").alias("reason"),
        pl.lit(None, dtype=pl.String).alias("node"),
        *(pl.lit(None, dtype=pl.Int64).alias(each) for each in ("began", "ended")),
    )
    names = [each for each in ran.columns if each in waits.columns]
    return _table(WORKLOADS, pl.concat([ran.select(names), waits.select(names)]), _pod(name))


def _pod(name: str) -> dict[str, pl.Expr]:
    """A run on a node as a pod."""
    requests = [
        pl.when(pl.col(column) > 0).then(pl.format('"{}":{}', pl.lit(resource), column))
        for resource, column in ((CARD, "cards"), ("gres/mps", "mps"), ("gres/shard", "shard"))
    ]
    body = pl.concat_str(requests, separator=",", ignore_nulls=True)
    chain = pl.struct(pl.lit(KIND).alias("kind"), pl.col("name")).struct.json_encode()
    nothing = pl.lit("{}")
    return {
        "cluster": pl.lit(name),
        "namespace": pl.coalesce("account", pl.lit("slurm")),
        "pod": pl.col("job"),
        "state": pl.col("now"),
        "bound_at": moment(pl.col("began")),
        "finished_at": moment(pl.col("ended")),
        "owners": pl.when(pl.col("name").is_null())
        .then(pl.lit("[]"))
        .otherwise(pl.concat_str(pl.lit("["), chain, pl.lit("]"))),
        "root_kind": pl.lit(KIND),
        "root_name": pl.col("name"),
        "owner_labels": nothing,
        "annotations": nothing,
        "environment": nothing,
        "cpu_millicores": pl.col("cpus") * 1000,
        "memory_bytes": pl.col("memory"),
        "gpus": pl.col("cards"),
        "gpu_resource": pl.when(pl.col("cards") > 0).then(pl.lit(CARD)),
        "gpu_request": pl.when(pl.col("cards").is_not_null()).then(
            pl.concat_str(pl.lit("{"), body, pl.lit("}"))
        ),
        "interval_seconds": pl.lit(EXACT),
    }


def events(runs: pl.DataFrame, window: Window, name: str) -> pl.DataFrame:
    """Rows of ``events``: runs that ended otherwise than well.

    Args:
        runs: Rows of ``runs.Runs``.
        window: Whole UTC days.
        name: Name of the cluster in the settings.
    """
    first, last = bounds(window)
    ended = runs.filter(
        pl.col("end").is_between(first, last, closed="left"),
        pl.col("state").is_in(list(_EVENTS)),
    ).with_columns(
        pl.format("slurm/{}/{}/{}", "cluster", "job", pl.coalesce("start", "submit", "end")).alias(
            "id"
        )
    )
    code = pl.concat_str(pl.lit('{"exitCode":'), "exit_code", pl.lit("}"))
    return _table(
        EVENTS,
        ended.with_columns(pl.from_epoch("end", time_unit="s").dt.date().alias("day")),
        {
            "cluster": pl.lit(name),
            "time": moment(pl.col("end")),
            "kind": pl.col("state").replace_strict(_EVENTS, return_dtype=pl.String),
            "object_kind": pl.lit(KIND),
            "namespace": pl.coalesce("account", pl.lit("slurm")),
            "name": pl.col("job"),
            "node": pl.col("hosts").list.first(),
            "reason": pl.col("state"),
            "count": pl.lit(1, dtype=pl.Int64),
            "attributes": pl.when(pl.col("exit_code").is_not_null()).then(code),
        },
    )


def _table(table: Table, rows: pl.DataFrame, made: dict[str, pl.Expr]) -> pl.DataFrame:
    """Rows in the form of a table, without its source, in the order of its key.

    Columns that are neither made nor in the rows are null.
    """
    columns = [
        (made[each] if each in made else pl.col(each) if each in rows.columns else pl.lit(None))
        .cast(dtype)
        .alias(each)
        for each, dtype in table.schema.items()
        if each != table.source_column
    ]
    return rows.select(columns).sort("day", *table.key)
