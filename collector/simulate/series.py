"""What Prometheus would have scraped, as series over time; samples are made of them in polars.

A series is a line (``value + slope · seconds``) with a little noise over an interval; all of its
samples lie on the scrape grid. kube-state-metrics shows a pod from its binding to its end, both
ends included, and a finished Job's pod a while longer as Succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from collector.simulate.cards import card_spans
from collector.simulate.draw import number
from collector.simulate.model import GPU_RESOURCE, Container, Node, Pod, World
from collector.simulate.options import DAY
from ledger.text import canonical_json

SAMPLES = {
    "__name__": pl.String(),
    "labels": pl.String(),
    "timestamp": pl.Datetime("ms", "UTC"),
    "value": pl.Float64(),
}
"""Columns of the export, see ``docs/architecture.md``."""

LINGER = 20
"""Scrapes for which a finished Job's pod stays visible."""

_STATE = {"job": "kube-state-metrics", "instance": "10.0.0.11:8080"}


@dataclass(frozen=True)
class Series:
    """One series over ``[start, end]`` (ms, both ends included)."""

    name: str
    labels: Mapping[str, str]
    start: int
    end: int
    value: float = 1.0
    slope: float = 0.0
    noise: float = 0.0


def sanitise(key: str) -> str:
    """A label key as kube-state-metrics writes it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", key)


def all_series(world: World) -> Iterator[Series]:
    """All series of the world, by node, then by pod, then by card."""
    for node in world.nodes:
        yield from _node_series(world, node)
    yield from _owner_series(world)
    for pod in world.pods:
        yield from _pod_series(world, pod)
    yield from _card_series(world)
    yield Series("up", _STATE, world.options.start_ms, world.options.end_ms)


def _node_series(world: World, node: Node) -> Iterator[Series]:
    start, end = max(node.created, world.options.start_ms), world.options.end_ms
    capacity = [
        ("cpu", "core", node.cpu_millicores / 1000),
        ("memory", "byte", float(node.memory_bytes)),
        ("pods", "integer", 110.0),
    ]
    if node.gpus:
        capacity.append((sanitise(GPU_RESOURCE), "integer", float(node.gpus)))
    base = {**_STATE, "node": node.name}
    yield Series(
        "kube_node_info",
        {**base, "provider_id": node.provider_id, "kernel_version": "6.1.0"},
        start,
        end,
    )
    for resource, unit, value in capacity:
        yield Series(
            "kube_node_status_capacity",
            {**base, "resource": resource, "unit": unit},
            start,
            end,
            value,
        )
    labels = {f"label_{sanitise(key)}": value for key, value in node.labels.items()}
    yield Series("kube_node_labels", {**base, **labels}, start, end)
    yield Series("kube_node_created", base, start, end, float(node.created // 1000))


def _owner_series(world: World) -> Iterator[Series]:
    """One series per controller that kube-state-metrics knows, while any of its pods lives."""
    lives: dict[tuple[str, str, str, str, str], tuple[int, int]] = {}
    for pod in world.pods:
        for below, above in zip(pod.owners, pod.owners[1:], strict=False):
            if below.kind in ("Job", "ReplicaSet"):
                key = (below.kind, pod.namespace, below.name, above.kind, above.name)
                first, last = lives.get(key, (pod.bound, pod.finished))
                lives[key] = min(first, pod.bound), max(last, pod.finished)
    for (kind, namespace, name, above_kind, above_name), (first, last) in lives.items():
        label = "job_name" if kind == "Job" else "replicaset"
        yield Series(
            f"kube_{kind.lower()}_owner",
            {
                **_STATE,
                "namespace": namespace,
                label: name,
                "owner_kind": above_kind,
                "owner_name": above_name,
                "owner_is_controller": "true",
            },
            first,
            last,
        )


def _pod_series(world: World, pod: Pod) -> Iterator[Series]:
    step = world.options.step
    base = {**_STATE, "namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}
    last = pod.finished + LINGER * step if pod.lingers else pod.finished
    kind, name = (pod.owners[0].kind, pod.owners[0].name) if pod.owners else ("<none>", "<none>")
    yield Series(
        "kube_pod_info",
        {**base, "node": pod.node, "created_by_kind": kind, "created_by_name": name},
        pod.bound,
        last,
    )
    yield Series(
        "kube_pod_owner",
        {
            **base,
            "owner_kind": kind,
            "owner_name": name,
            "owner_is_controller": "true" if pod.owners else "<none>",
        },
        pod.bound,
        last,
    )
    labels = {f"label_{sanitise(key)}": value for key, value in pod.labels.items()}
    yield Series("kube_pod_labels", {**base, **labels}, pod.bound, last)
    yield from _phases(pod, base, last, step)
    for container in pod.containers:
        yield from _requests(pod, container, base, last)
        yield from _use(world, pod, container)


def _phases(pod: Pod, base: Mapping[str, str], last: int, step: int) -> Iterator[Series]:
    """One series per phase, 1 while it holds and 0 else."""
    name, running = "kube_pod_status_phase", {**base, "phase": "Running"}
    pending, done = {**base, "phase": "Pending"}, {**base, "phase": "Succeeded"}
    if pod.bound < pod.started:
        yield Series(name, pending, pod.bound, pod.started - step, 1.0)
        yield Series(name, running, pod.bound, pod.started - step, 0.0)
    yield Series(name, pending, pod.started, last, 0.0)
    yield Series(name, running, pod.started, pod.finished, 1.0)
    if last > pod.finished:
        yield Series(name, running, pod.finished + step, last, 0.0)
        yield Series(name, done, pod.bound, pod.finished, 0.0)
        yield Series(name, done, pod.finished + step, last, 1.0)


def _requests(
    pod: Pod, container: Container, base: Mapping[str, str], last: int
) -> Iterator[Series]:
    amounts = [
        ("cpu", "core", container.cpu_millicores / 1000),
        ("memory", "byte", float(container.memory_bytes)),
    ]
    if container.gpus:
        amounts.append((sanitise(GPU_RESOURCE), "integer", float(container.gpus)))
    for resource, unit, value in amounts:
        labels = {
            **base,
            "node": pod.node,
            "container": container.name,
            "resource": resource,
            "unit": unit,
        }
        yield Series("kube_pod_container_resource_requests", labels, pod.bound, last, value)


def use_of(world: World, pod: Pod, container: Container) -> tuple[float, float]:
    """Cores and bytes that a running container uses: always below its requests."""
    part = number(world.options.seed, pod.uid, container.name, "use", low=20, high=80) / 100
    cores = round(container.cpu_millicores / 1000 * part, 3)
    return cores, float(int(container.memory_bytes * part))


def _use(world: World, pod: Pod, container: Container) -> Iterator[Series]:
    cores, used = use_of(world, pod, container)
    labels = {
        "job": "kubelet",
        "instance": pod.node,
        "node": pod.node,
        "namespace": pod.namespace,
        "pod": pod.name,
        "container": container.name,
        "image": "registry.example/image:1",
    }
    yield Series(
        "container_cpu_usage_seconds_total",
        labels,
        pod.started,
        pod.finished,
        value=0.0,
        slope=cores,
    )
    yield Series(
        "container_memory_working_set_bytes",
        labels,
        pod.started,
        pod.finished,
        value=used,
        noise=float(container.memory_bytes // 10),
    )


def _card_series(world: World) -> Iterator[Series]:
    """Activity of every card on the nodes with an exporter, with the pod that holds it."""
    hosts = {pod.node: pod for pod in world.pods if not pod.gpus and pod.namespace == "monitoring"}
    nodes = {node.name: node for node in world.nodes}
    for span in card_spans(world):
        host = hosts.get(span.node)
        if host is None:
            continue
        labels = {
            "job": "dcgm-exporter",
            "instance": f"{span.node}:9400",
            "Hostname": span.node,
            "namespace": host.namespace,
            "pod": host.name,
            "gpu": str(span.card),
            "device": f"nvidia{span.card}",
            "UUID": span.uuid,
            "modelName": nodes[span.node].gpu_model or "",
        }
        if span.pod:
            labels |= {
                "exported_namespace": span.pod.namespace,
                "exported_pod": span.pod.name,
                "exported_container": span.pod.containers[0].name,
            }
        yield Series(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            labels,
            span.start,
            span.end - 1,
            span.activity,
            noise=0.05 if span.activity else 0.0,
        )


def series_frame(world: World) -> pl.DataFrame:
    """All series with at least one sample, cut to the world and to its hole.

    Returns:
        ``__name__``, ``labels`` (canonical JSON), ``om`` (the same as OpenMetrics label text),
        ``id``, ``origin`` (ms, where the line starts), ``first``, ``last`` (ms, on the grid),
        ``value``, ``slope``, ``noise``; sorted by name, labels and time.
    """
    rows = []
    for series in all_series(world):
        for piece in _pieces(world, series):
            text = canonical_json(dict(series.labels))
            rows.append(
                (
                    series.name,
                    text,
                    _openmetrics(series.labels),
                    series.start,
                    piece.start,
                    piece.end,
                    series.value,
                    series.slope,
                    series.noise,
                )
            )
    schema = {
        "__name__": pl.String(),
        "labels": pl.String(),
        "om": pl.String(),
        "origin": pl.Int64(),
        "first": pl.Int64(),
        "last": pl.Int64(),
        "value": pl.Float64(),
        "slope": pl.Float64(),
        "noise": pl.Float64(),
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    step = world.options.step
    return (
        frame.with_columns(
            ((pl.col("first") + step - 1) // step * step).alias("first"),
            (pl.col("last") // step * step).alias("last"),
        )
        .filter(pl.col("first") <= pl.col("last"))
        .sort("__name__", "labels", "first")
        .with_row_index("id")
        .with_columns(pl.col("id").cast(pl.Int64))
    )


def _pieces(world: World, series: Series) -> Iterator[Series]:
    """The series inside the world, without the inside of its hole."""
    start = max(series.start, world.options.start_ms)
    end = min(series.end, world.options.end_ms)
    hole = world.options.outage
    for first, last in (
        [(start, end)] if hole is None else [(start, min(end, hole[0])), (max(start, hole[1]), end)]
    ):
        if first <= last:
            yield replace(series, start=first, end=last)


def _openmetrics(labels: Mapping[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{key}="{escaped(labels[key])}"' for key in sorted(labels)) + "}"


def samples(series: pl.LazyFrame, start: int, end: int, step: int) -> pl.LazyFrame:
    """The samples of series at the scrapes of ``[start, end)``.

    Args:
        series: Columns of ``series_frame``.
        start: First millisecond, on the grid.
        end: End, exclusive.
        step: Milliseconds between two scrapes.

    Returns:
        The columns of ``SAMPLES`` and ``om``, in the order of the series, then by time.
    """
    at = pl.col("at")
    # A linear congruence of scrape and series: noise without a random generator.
    noise = ((at // step) * 7919 + pl.col("id") * 104_729) % 1009 / 1009
    value = pl.col("value") + pl.col("slope") * ((at - pl.col("origin")) / 1000)
    return (
        series.filter((pl.col("first") < end) & (pl.col("last") >= start))
        .with_columns(
            pl.int_ranges(
                pl.max_horizontal("first", pl.lit(start)),
                pl.min_horizontal(pl.col("last") + 1, pl.lit(end)),
                step,
            ).alias("at")
        )
        .explode("at")
        .select(
            "__name__",
            "labels",
            "om",
            at.cast(pl.Datetime("ms", "UTC")).alias("timestamp"),
            (value + pl.col("noise") * noise).round(6).alias("value"),
        )
    )


def day_bounds(world: World) -> Iterator[tuple[int, int]]:
    """Start and end of each day's samples; the last day also holds the scrape at its end."""
    for day in range(world.options.start_ms, world.options.end_ms, DAY):
        last = day + DAY == world.options.end_ms
        yield day, day + DAY + (world.options.step if last else 0)
