"""Usage of cards and pods per 15-minute slot, as the schedule means it (without noise)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import polars as pl

from collector.simulate.cards import card_spans
from collector.simulate.model import World
from collector.simulate.options import MINUTE
from collector.simulate.series import use_of
from ledger.schema import USAGE

SLOT = 15 * MINUTE


def visible(world: World, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of an interval outside the hole in the monitoring."""
    hole = world.options.outage
    parts = (
        [(start, end)] if hole is None else [(start, min(end, hole[0])), (max(start, hole[1]), end)]
    )
    yield from (part for part in parts if part[0] < part[1])


def usage(world: World, day: date, span: tuple[int, int], source: str) -> pl.DataFrame:
    """The meters per 15-minute slot; slots in which two spans meet are joined by their samples."""
    rows = [*_card_meters(world, span), *_pod_meters(world, span)]
    schema = {
        "node": pl.String(),
        "device": pl.String(),
        "uid": pl.String(),
        "namespace": pl.String(),
        "pod": pl.String(),
        "meter": pl.String(),
        "first": pl.Int64(),
        "last": pl.Int64(),
        "value": pl.Float64(),
    }
    step, key = world.options.step, ["node", "device", "uid", "namespace", "pod", "meter", "slot"]
    value = pl.col("value")
    slots = (
        pl.LazyFrame(rows, schema=schema, orient="row")
        .with_columns(
            ((pl.col("first") + step - 1) // step * step).alias("first"),
            ((pl.col("last") - 1) // step * step).alias("last"),
        )
        .filter(pl.col("first") <= pl.col("last"))
        .with_columns(
            pl.int_ranges(pl.col("first") // SLOT, pl.col("last") // SLOT + 1).alias("slot")
        )
        .explode("slot")
        .with_columns((pl.col("slot") * SLOT).alias("slot"))
        .with_columns(
            (
                (
                    pl.min_horizontal("last", pl.col("slot") + SLOT - step)
                    - pl.max_horizontal("first", "slot")
                )
                // step
                + 1
            ).alias("samples")
        )
        .sort(*key, "first", nulls_last=True)
        .group_by(key, maintain_order=True)
        .agg(
            ((value * pl.col("samples")).sum() / pl.col("samples").sum()).alias("mean"),
            value.min().alias("min"),
            value.max().alias("max"),
            value.median().alias("p50"),
            value.max().alias("p99"),
            value.last().alias("last"),
            pl.col("samples").sum(),
            pl.when(pl.len() > 1).then(pl.col("first").last()).alias("last_change"),
        )
    )
    return slots.select(_columns(world, day, source)).collect()


def _columns(world: World, day: date, source: str) -> list[pl.Expr]:
    given = {
        "day": pl.lit(day),
        "source": pl.lit(source),
        "cluster": pl.lit(world.options.cluster),
        "expected": pl.lit(SLOT // world.options.step),
        **{name: pl.col(name).cast(pl.Datetime("ms", "UTC")) for name in ("slot", "last_change")},
    }
    return [
        given.get(name, pl.col(name)).cast(dtype).alias(name)
        for name, dtype in USAGE.schema.items()
    ]


_Meter = tuple[str, str | None, str | None, str | None, str | None, str, int, int, float]


def _card_meters(world: World, day: tuple[int, int]) -> Iterator[_Meter]:
    exporters = {pod.node for pod in world.pods if pod.namespace == "monitoring"}
    for span in card_spans(world):
        if span.node in exporters:
            pod = span.pod
            uid, namespace, name = (pod.uid, pod.namespace, pod.name) if pod else (None, None, None)
            for start, end in visible(world, max(span.start, day[0]), min(span.end, day[1])):
                yield (
                    span.node,
                    span.uuid,
                    uid,
                    namespace,
                    name,
                    "gpu_activity",
                    start,
                    end,
                    span.activity,
                )


def _pod_meters(world: World, day: tuple[int, int]) -> Iterator[_Meter]:
    for pod in world.pods:
        for start, end in visible(world, max(pod.started, day[0]), min(pod.finished, day[1])):
            uses = [use_of(world, pod, container) for container in pod.containers]
            for meter, value in (
                ("cpu_usage", sum(cores for cores, _ in uses)),
                ("memory_working_set", sum(used for _, used in uses)),
            ):
                yield (pod.node, None, pod.uid, pod.namespace, pod.name, meter, start, end, value)
