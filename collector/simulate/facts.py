"""A day of the world as the collectors would write it into the ledger, straight from the schedule.

Lets ``attribution`` and benchmarks run without collecting. Two sources speak of pods and nodes, as
in a real ledger: ``kubernetes/NAME`` with the API's times, ``prometheus/NAME`` with sampled lives
and sanitised labels. Usage is that of the series' means, without their noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

import polars as pl

from collector.simulate.bills import next_month
from collector.simulate.focus import DIMENSIONS, focus_row
from collector.simulate.meters import usage, visible
from collector.simulate.model import GPU_RESOURCE, REGION, Line, Node, Pod, World
from collector.simulate.options import DAY, milliseconds, moment
from collector.simulate.series import sanitise
from collector.simulate.shares import money, overlap, part_out, units
from ledger.schema import CHARGES, COST_COLUMNS, MONEY, NODES, TIME, WORKLOADS, Table
from ledger.text import canonical_json
from ledger.window import Window

BILL = "aws"
"""Name of the simulated bill in the settings."""

_Row = dict[str, object]


def facts(world: World, day: date) -> dict[str, pl.DataFrame]:
    """The facts of a day of the world.

    Args:
        world: The world.
        day: One of its UTC days; another day has no rows.

    Returns:
        ``nodes``, ``workloads``, ``charges`` and ``usage`` in the ledger's schemas, source columns
        filled, sorted.
    """
    start = milliseconds(Window.of_day(day).start)
    inside = world.options.start_ms <= start < world.options.end_ms
    span = (start, start + DAY if inside else start)
    return {
        "nodes": _frame(NODES, day, _nodes(world, span), ["source", "node", "start"]),
        "workloads": _frame(WORKLOADS, day, _workloads(world, span), ["source", "uid", "start"]),
        "charges": _frame(CHARGES, day, _charges(world, span), ["x_LineId", "x_Part"]),
        "usage": usage(world, day, span, _sources(world)[1]),
    }


def _frame(table: Table, day: date, rows: Iterable[_Row], order: Sequence[str]) -> pl.DataFrame:
    """Rows (text money, times in ms) in the table's schema; what a row lacks is null."""
    given = list(rows)
    raw: dict[str, pl.DataType] = {
        name: pl.String() if dtype == MONEY else pl.Int64() if dtype == TIME else dtype
        for name, dtype in table.schema.items()
        if name != "day"
    }
    columns = {
        name: pl.Series(name, [row.get(name) for row in given], dtype=dtype)
        for name, dtype in raw.items()
    }
    return (
        pl.DataFrame(columns)
        .select(
            pl.lit(day).alias("day")
            if name == "day"
            else pl.col(name).cast(pl.Datetime("ms", "UTC")).cast(dtype)
            if dtype == TIME
            else pl.col(name).cast(dtype)
            for name, dtype in table.schema.items()
        )
        .sort(order)
    )


def _sources(world: World) -> tuple[str, str]:
    name = world.options.cluster
    return f"kubernetes/{name}", f"prometheus/{name}"


def _nodes(world: World, day: tuple[int, int]) -> Iterator[_Row]:
    api, sampled = _sources(world)
    for node in world.nodes:
        start = max(node.created, day[0])
        if start < day[1]:
            yield _node(world, node, api, start, day[1]) | {
                "labels": _json(node.labels),
                "gpus": node.gpus,
            }
        for begin, end in visible(world, start, day[1]):
            yield _node(world, node, sampled, begin, end) | {
                "labels": _json(_sanitised(node.labels)),
                "interval_seconds": float(world.options.interval),
            }


def _node(world: World, node: Node, source: str, start: int, end: int) -> _Row:
    return {
        "source": source,
        "cluster": world.options.cluster,
        "node": node.name,
        "provider_id": node.provider_id,
        "start": start,
        "end": end,
        "created": node.created,
        "instance_type": node.instance_type,
        "region": REGION,
        "zone": node.zone,
        "capacity_type": "reserved" if node.committed else "on-demand",
        "cpu_millicores": node.cpu_millicores,
        "memory_bytes": node.memory_bytes,
        "gpus": node.gpus,
        "gpu_resource": GPU_RESOURCE if node.gpus else None,
        "gpu_model": node.gpu_model,
    }


def _workloads(world: World, day: tuple[int, int]) -> Iterator[_Row]:
    api, sampled = _sources(world)
    step = world.options.step
    for pod in world.pods:
        if pod.finished <= day[0] or pod.bound >= day[1]:
            continue
        told = _told(world, pod) | {"source": api} if pod.in_api else None
        seen = (
            _seen(world, pod) | {"source": sampled, "finished_at": _last_seen(world, pod, day[1])}
            if pod.finished // step * step >= pod.bound
            else None
        )
        for state, first, last in (
            ("held", pod.bound, pod.started),
            ("running", pod.started, pod.finished),
        ):
            start, end = max(first, day[0]), min(last, day[1])
            life: _Row = {"state": state, "reason": pod.reason if state == "held" else None}
            if told and start < end:
                yield {**told, **life, "start": start, "end": end}
            for begin, until in visible(world, start, end) if seen else ():
                yield {**(seen or {}), **life, "start": begin, "end": until}


def _told(world: World, pod: Pod) -> _Row:
    """What the API says of a pod."""
    finished = pod.finished if pod.finished < world.options.end_ms else None
    above: dict[str, str] = {}
    for owner in reversed(pod.owners):
        above |= owner.labels
    return _common(world, pod) | {
        "bound_at": pod.bound,
        "finished_at": finished,
        "labels": _json(pod.labels),
        "owners": _owners(pod, len(pod.owners)),
        "owner_labels": _json(above),
        "annotations": "{}",
        "environment": _json(pod.environment),
        "root_kind": pod.owners[-1].kind if pod.owners else None,
        "root_name": pod.owners[-1].name if pod.owners else None,
    }


def _seen(world: World, pod: Pod) -> _Row:
    """What the series say of a pod: of what is above its owner, what its labels tell, and Jobs'."""
    named = "ray.io/originated-from-cr-name" in pod.labels
    depth = 2 if named or (pod.owners and pod.owners[0].kind in ("Job", "ReplicaSet")) else 1
    known = pod.owners[:depth]
    return _common(world, pod) | {
        "labels": _json(_sanitised(pod.labels)),
        "owners": _owners(pod, depth),
        "root_kind": known[-1].kind if known else None,
        "root_name": known[-1].name if known else None,
        "interval_seconds": float(world.options.interval),
    }


def _last_seen(world: World, pod: Pod, day_end: int) -> int | None:
    """The last sample of a pod, if before the day's end and the cluster was sampled after it."""
    last = max((end for _, end in visible(world, pod.bound, pod.finished)), default=None)
    if last is None or last >= day_end:
        return None
    spans = visible(world, world.options.start_ms, world.options.end_ms)
    goes_on = any(start <= last and last + world.options.step <= end for start, end in spans)
    return last if goes_on else None


def _common(world: World, pod: Pod) -> _Row:
    return {
        "cluster": world.options.cluster,
        "uid": pod.uid,
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.node,
        "role": pod.role,
        "cpu_millicores": pod.cpu_millicores,
        "memory_bytes": pod.memory_bytes,
        "gpus": pod.gpus,
        "gpu_resource": GPU_RESOURCE if pod.gpus else None,
    }


def _owners(pod: Pod, depth: int) -> str:
    return canonical_json(
        [{"kind": owner.kind, "name": owner.name} for owner in pod.owners[:depth]]
    )


def _sanitised(labels: Mapping[str, str]) -> dict[str, str]:
    return {f"label_{sanitise(key)}": value for key, value in labels.items()}


def _json(values: Mapping[str, str]) -> str:
    return canonical_json(dict(values))


def _charges(world: World, day: tuple[int, int]) -> Iterator[_Row]:
    for number, line in enumerate(world.lines):
        if line.start < day[1] and line.end > day[0]:
            yield _charge(world, number, line, day)


def _charge(world: World, number: int, line: Line, day: tuple[int, int]) -> _Row:
    """A line, or the day's part of one that spans several: all amounts split by seconds."""
    text: _Row = {name: value or None for name, value in focus_row(world.options, line).items()}
    days = range(line.start // DAY * DAY, line.end, DAY)
    seconds = [overlap((first, first + DAY), (line.start, line.end)) // 1000 for first in days]
    part = days.index(day[0])
    if len(days) > 1:
        for name, cost in zip(
            COST_COLUMNS, (line.billed, line.effective, line.contracted, line.listed), strict=True
        ):
            text[name] = money(part_out(units(cost), seconds)[part])
        if line.quantity is not None:
            text["PricingQuantity"] = money(part_out(units(line.quantity), seconds)[part])
    month = moment(line.start).replace(day=1, hour=0, minute=0)
    return text | {
        "x_Source": BILL,
        "x_LineId": f"{number:07d}",
        "x_Part": part,
        "x_Basis": "billed",
        "x_Dimension": DIMENSIONS[line.service],
        "x_Elasticity": "fixed" if line.frequency == "Recurring" else "elastic",
        "BillingPeriodStart": milliseconds(month),
        "BillingPeriodEnd": milliseconds(next_month(month)),
        "ChargePeriodStart": max(line.start, day[0]),
        "ChargePeriodEnd": min(line.end, day[1]),
    }
