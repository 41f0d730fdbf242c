"""What was collected, held against what is true of the world."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.cluster.clock import Clock, Course, Courses
from benchmarks.cluster.lines import Clocks
from benchmarks.cluster.options import MINUTE, Options
from benchmarks.cluster.usage import card_number
from benchmarks.cluster.world import Pod, World

SLOT = 15 * MINUTE
EDGE = 2 * MINUTE
"""How far off a start or an end may be that a scrape a minute saw: one of either side, and late."""

DRAWN = 2_000
"""Slots of each meter that are compared."""

ODD = 0.03
"""Of them that may be off where some series have holes, resets and NaN."""

SPINS = 0.01
"""Tensor and memory activity below which a card counts as idle (``docs/series.md``)."""


@dataclass(frozen=True)
class _Slot:
    """A quarter of an hour of a meter: who, when, and what it was on average."""

    meter: str
    thing: str
    start: int
    mean: float
    samples: int


def check(world: World, ledger: Path) -> dict[str, Any]:
    """Compare nodes, pods, lives, card-seconds and meters.

    Returns:
        What is off: ``nodes_off``, ``pods_missing``, ``pods_strange``, ``pods_off`` (other node,
        cards, experiment or workload, or an edge of life more than two minutes away),
        ``card_seconds_off`` (relative), and for each meter ``slots_off`` of ``DRAWN``; and whether
        the facts are ``true`` within the bounds.
    """
    if not (ledger / "workloads").exists():
        return {"true": False}
    nodes, pods = _nodes(world, ledger), _pods(world, ledger)
    slots = {meter: _slots_off(world, ledger, meter, make) for meter, make in _METERS.items()}
    allowed = round(DRAWN * ODD) if world.options.oddities else 0
    good = not nodes and max(slots.values()) <= allowed
    good = good and not any(pods[name] for name in ("pods_missing", "pods_strange", "pods_off"))
    good = good and abs(pods["card_seconds_off"]) < 1e-3
    return {"nodes_off": nodes, **pods, "slots_off": slots, "true": good}


def _read(ledger: Path, table: str) -> pl.LazyFrame:
    return pl.scan_delta(str(ledger / table))


def _ms(name: str) -> pl.Expr:
    return pl.col(name).dt.timestamp("ms")


def _nodes(world: World, ledger: Path) -> int:
    """Nodes that are missing, strange, were not up all day or have other cards."""
    found = (
        _read(ledger, "nodes")
        .group_by("node")
        .agg(
            up=(_ms("end") - _ms("start")).sum(),
            gpus=pl.col("gpus").max(),
            provider=pl.col("provider_id").max(),
        )
        .collect()
    )
    told = {row["node"]: row for row in found.iter_rows(named=True)}
    day = world.options.end - world.options.start
    off = len(told.keys() - {node.name for node in world.nodes})
    for node in world.nodes:
        row = told.get(node.name)
        off += (
            row is None
            or abs(row["up"] - day) > EDGE
            or row["gpus"] != len(node.cards)
            or not row["provider"].endswith(node.machine)
        )
    return off


def _life(pod: Pod, options: Options) -> tuple[int, int]:
    return max(pod.bound, options.start), min(pod.finished, options.end)


def _pods(world: World, ledger: Path) -> dict[str, Any]:
    found = (
        _read(ledger, "workloads")
        .filter(pl.col("node").is_not_null())
        .group_by("uid")
        .agg(
            start=_ms("start").min(),
            end=_ms("end").max(),
            node=pl.col("node").last(),
            gpus=pl.col("gpus").max(),
            labels=pl.col("labels").drop_nulls().last(),
            owners=pl.col("owners").drop_nulls().last(),
            card_ms=((_ms("end") - _ms("start")) * pl.col("gpus")).sum(),
            held_ms=(_ms("end") - _ms("start")).filter(pl.col("state") == "held").sum(),
        )
        .collect()
    )
    told = {row["uid"]: row for row in found.iter_rows(named=True)}
    missing = off = true_ms = true_held = 0
    for pod in world.pods:
        start, end = _life(pod, world.options)
        if start >= end:
            continue
        true_ms += (end - start) * len(pod.cards)
        true_held += max(0, min(pod.started, end) - start)
        row = told.get(pod.uid)
        missing += row is None and end - start > EDGE
        off += row is not None and _is_off(pod, row, start, end)
    known = {pod.uid for pod in world.pods}
    return {
        "pods_missing": missing,
        "pods_strange": len(told.keys() - known),
        "pods_off": off,
        "card_seconds": true_ms // 1000,
        "card_seconds_off": round(found["card_ms"].sum() / max(true_ms, 1) - 1, 6),
        "held_seconds_off": round(found["held_ms"].sum() / max(true_held, 1) - 1, 3),
    }


def _is_off(pod: Pod, row: dict[str, Any], start: int, end: int) -> bool:
    labels = json.loads(row["labels"] or "{}")
    return (
        abs(row["start"] - start) > EDGE
        or abs(row["end"] - end) > EDGE
        or row["node"] != pod.node.name
        or row["gpus"] != len(pod.cards)
        or labels.get("label_experiment") != pod.experiment.name
        or pod.experiment.workload not in (row["owners"] or "")
    )


def _slots_off(
    world: World, ledger: Path, meter: str, make: Callable[[World, Pod, random.Random], _Slot]
) -> int:
    """How many of some slots have another mean or number of samples than is true."""
    draw = random.Random(f"slots {meter}")  # noqa: S311 - no secret
    options = world.options
    whole = [
        pod
        for pod in world.pods
        if _inside(pod, options) and (pod.cards or meter != "gpu_activity")
    ]
    wanted = [make(world, draw.choice(whole), draw) for _ in range(DRAWN)] if whole else []
    asked = pl.DataFrame(
        [(one.thing, one.start, one.mean, one.samples) for one in wanted],
        schema={"thing": pl.String, "at": pl.Int64, "true": pl.Float64, "count": pl.Int64},
        orient="row",
    ).with_columns(at=(pl.col("at") * 1000).cast(pl.Datetime("us", "UTC")))
    thing = "device" if meter == "gpu_activity" else "uid"
    rows = (
        _read(ledger, "usage")
        .filter(pl.col("meter") == meter, pl.col(thing).is_in(asked["thing"].to_list()))
        .select(pl.col(thing).alias("thing"), pl.col("slot").alias("at"), "mean", "samples")
        .collect()
    )
    both = asked.join(rows, on=["thing", "at"], how="left")
    far = (pl.col("mean") - pl.col("true")).abs() > _NEAR[meter] * pl.col("true").abs() + 1e-6
    lost = (pl.col("samples") - pl.col("count")).abs() > 1
    return both.filter((far | lost).fill_null(value=True)).height


def _inside(pod: Pod, options: Options) -> bool:
    start, end = _life(pod, options)
    return end - max(start, pod.started) > 3 * SLOT


def _slot(pod: Pod, options: Options, draw: random.Random) -> int:
    """The start of a slot in which the pod runs all the time."""
    start = max(pod.started, options.start) - options.start
    end = min(pod.finished, options.end) - options.start
    return options.start + SLOT * draw.randrange(-(-start // SLOT), end // SLOT)


def _within(clock: Clock, start: int) -> tuple[int, int]:
    """Positions of the scrapes in (start, start + slot]."""
    return clock.span(start + 1, start + SLOT + 1)


def _activity(world: World, pod: Pod, draw: random.Random) -> _Slot:
    clocks, courses = Clocks(world.options), _courses(world.options)
    start = _slot(pod, world.options, draw)
    first, last = _within(clocks.cards(pod.node), start)
    place = draw.choice(pod.cards)
    number = card_number(pod.node, place)
    busy, tensor, dram = (courses.of(name, number).values for name in ("ratio", "tensor", "dram"))
    values = [
        0.0 if tensor[at] < SPINS and dram[at] < SPINS else busy[at] for at in range(first, last)
    ]
    mean = sum(values) / len(values)
    return _Slot("gpu_activity", pod.node.cards[place], start, mean, len(values))


def _gauge(meter: str, shape: str) -> Callable[[World, Pod, random.Random], _Slot]:
    def make(world: World, pod: Pod, draw: random.Random) -> _Slot:
        course, clock, start = _course(world, pod, shape, draw)
        first, last = _within(clock, start)
        mean = sum(course.values[first:last]) / (last - first)
        return _Slot(meter, pod.uid, start, mean, last - first)

    return make


def _rate(meter: str, shape: str) -> Callable[[World, Pod, random.Random], _Slot]:
    def make(world: World, pod: Pod, draw: random.Random) -> _Slot:
        course, clock, start = _course(world, pod, shape, draw)
        first, last = _within(clock, start)
        before = first - (clock.times[first - 1] >= pod.started)
        rise = course.values[last - 1] - course.values[before]
        seconds = (clock.times[last - 1] - clock.times[before]) / 1000
        return _Slot(meter, pod.uid, start, rise / seconds, last - first)

    return make


def _course(world: World, pod: Pod, shape: str, draw: random.Random) -> tuple[Course, Clock, int]:
    course = _courses(world.options).of(shape, pod.number)
    return course, Clocks(world.options).container(pod), _slot(pod, world.options, draw)


@cache
def _courses(options: Options) -> Courses:
    return Courses(options.seed)


_METERS = {
    "gpu_activity": _activity,
    "memory_working_set": _gauge("memory_working_set", "memory"),
    "cpu_usage": _rate("cpu_usage", "cpu"),
    "network_receive": _rate("network_receive", "received"),
}
_NEAR = {
    "gpu_activity": 1e-4,
    "memory_working_set": 1e-4,
    "cpu_usage": 0.05,
    "network_receive": 0.05,
}
"""How far a mean may be from the truth; a rate is told from neighbours by each server's own way."""
