"""Samples for tests: a seam in memory, and one small cluster-day that every test can bend."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar, NamedTuple

import polars as pl

from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.series.catalogue import Series
from collector.prometheus.sources.source import QueryError, Reading
from ledger.facts import Facts, Quarantine
from ledger.window import Window

DAY = date(2026, 11, 30)
WINDOW = Window.of_day(DAY)
MINUTE = timedelta(minutes=1)
KSM = {"job": "kube-state-metrics", "instance": "10.0.0.1:8080"}
FORM = {
    "__name__": pl.String(),
    "labels": pl.String(),
    "timestamp": pl.Datetime("ms", "UTC"),
    "value": pl.Float64(),
}


class Sample(NamedTuple):
    """A row of the export."""

    name: str
    labels: str
    time: datetime
    value: float


def at(clock: str, day: date = DAY) -> datetime:
    """``10:00`` or ``10:00:30`` of the day; 24:00 is its end."""
    hours, minutes, *rest = (int(part) for part in clock.split(":"))
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start + timedelta(hours=hours, minutes=minutes, seconds=rest[0] if rest else 0)


def canonical(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels), sort_keys=True, separators=(",", ":"))


def line(
    name: str,
    labels: Mapping[str, str],
    start: datetime,
    end: datetime,
    *,
    value: float | Callable[[float], float] = 1.0,
    step: timedelta = MINUTE,
) -> list[Sample]:
    """Samples from start to end, both included; a value may depend on the seconds since start."""
    text, count = canonical(labels), (end - start) // step
    return [
        Sample(
            name,
            text,
            start + step * number,
            value((step * number).total_seconds()) if callable(value) else value,
        )
        for number in range(count + 1)
    ]


def frame(samples: Iterable[Sample]) -> pl.DataFrame:
    return pl.DataFrame(list(samples), schema=FORM, orient="row")


@dataclass(frozen=True)
class MemorySource:
    """The seam over a list of samples; metrics in ``broken`` answer with an error."""

    rows: pl.DataFrame
    broken: frozenset[str] = frozenset()
    push_down: ClassVar[None] = None

    def samples(self, series: Series, window: Window) -> Reading:
        if series.metric in self.broken:
            raise QueryError(f"{series.metric} is broken")
        time = pl.col("timestamp")
        return Reading(
            self.rows.lazy()
            .filter(
                pl.col("__name__") == series.metric,
                time > window.start,
                time <= window.end,
            )
            .select("labels", time.cast(pl.Datetime("us", "UTC")), "value")
        )

    def held(self, metrics: Sequence[str], window: Window) -> frozenset[str]:
        return self.present(metrics) | (self.broken & frozenset(metrics))

    def present(self, metrics: Sequence[str]) -> frozenset[str]:
        return frozenset(metrics) & frozenset(self.rows["__name__"])

    def refused(self) -> tuple[Quarantine, ...]:
        return ()

    def reach(self) -> Window | None:
        low, high = self.rows.select(
            low=pl.col("timestamp").min(), high=pl.col("timestamp").max()
        ).row(0)
        return Window(low.astimezone(UTC), high.astimezone(UTC)) if low else None


def collect(
    samples: Iterable[Sample],
    window: Window = WINDOW,
    *,
    cluster_label: str | None = None,
    broken: frozenset[str] = frozenset(),
) -> Facts:
    source = MemorySource(frame(samples), broken)
    return PrometheusCollector("train-a", source, cluster_label).collect(window)


def write_parquet(samples: Sequence[Sample], folder: Path, files: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        frame(samples[number::files]).write_parquet(folder / f"part-{number}.parquet")
    return folder


def write_openmetrics(samples: Sequence[Sample], path: Path) -> Path:
    """The text that ``promtool tsdb create-blocks-from openmetrics`` reads."""
    lines = []
    for sample in sorted(samples, key=lambda one: (one.name, one.labels, one.time)):
        pairs = json.loads(sample.labels).items()
        labels = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in pairs)
        value = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(
            str(sample.value), repr(sample.value)
        )
        lines.append(f"{sample.name}{{{labels}}} {value} {sample.time.timestamp():.3f}\n")
    path.write_text("".join([*lines, "# EOF\n"]), "utf-8")
    return path


def node(
    name: str,
    start: datetime,
    end: datetime,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
) -> list[Sample]:
    base = {**KSM, "node": name}
    amounts = {"cpu": 192.0, "memory": 2.0 * 2**40, "pods": 110.0}
    if gpus:
        amounts["nvidia_com_gpu"] = float(gpus)
    told = (
        labels
        if labels is not None
        else {
            "label_node_kubernetes_io_instance_type": "p5.48xlarge",
            "label_topology_kubernetes_io_region": "us-east-1",
            "label_karpenter_sh_capacity_type": "spot",
        }
    )
    return [
        *line("kube_node_info", {**base, "provider_id": f"aws:///us-east-1a/i-{name}"}, start, end),
        *(
            sample
            for resource, value in amounts.items()
            for sample in line(
                "kube_node_status_capacity", {**base, "resource": resource}, start, end, value=value
            )
        ),
        *line("kube_node_labels", {**base, **told}, start, end),
    ]


def pod(
    uid: str,
    start: datetime,
    end: datetime,
    *,
    name: str = "",
    on: str = "gpu-0",
    gpus: int = 8,
    running: datetime | None = None,
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
) -> list[Sample]:
    """A pod that is bound from start to end, and running from ``running`` on."""
    base = {**KSM, "namespace": "research", "pod": name or uid, "uid": uid}
    running = running or start
    requests = {"cpu": 16.0, "memory": 64.0 * 2**30} | (
        {"nvidia_com_gpu": float(gpus)} if gpus else {}
    )
    return [
        *line(
            "kube_pod_info",
            {**base, "node": on, "created_by_kind": "RayCluster", "created_by_name": "grpo"},
            start,
            end,
        ),
        *line("kube_pod_status_phase", {**base, "phase": "Pending"}, start, running - MINUTE),
        *line("kube_pod_status_phase", {**base, "phase": phase}, start, running - MINUTE, value=0),
        *line("kube_pod_status_phase", {**base, "phase": phase}, running, end),
        *(
            sample
            for resource, value in requests.items()
            for sample in line(
                "kube_pod_container_resource_requests",
                {**base, "container": "main", "resource": resource},
                start,
                end,
                value=value,
            )
        ),
        *line(
            "kube_pod_labels", {**base, **(labels or {"label_experiment": "grpo-7b"})}, start, end
        ),
    ]


def card(
    start: datetime,
    end: datetime,
    *,
    host: str = "gpu-0",
    uuid: str = "GPU-0",
    tenant: str | None = None,
    value: float = 0.5,
    name: str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
) -> list[Sample]:
    labels = {
        "job": "dcgm",
        "instance": f"{host}:9400",
        "Hostname": host,
        "UUID": uuid,
        "namespace": "monitoring",
        "pod": "dcgm-exporter-x",
        "modelName": "NVIDIA H100 80GB HBM3",
    }
    if tenant:
        labels |= {"exported_namespace": "research", "exported_pod": tenant}
    return line(name, labels, start, end, value=value)


def container(
    name: str, start: datetime, end: datetime, *, cores: float = 4.0, which: str = "main"
) -> list[Sample]:
    labels = {
        "job": "kubelet",
        "instance": "gpu-0",
        "namespace": "research",
        "pod": name,
        "container": which,
    }
    return [
        *line(
            "container_cpu_usage_seconds_total",
            labels,
            start,
            end,
            value=lambda seconds: cores * seconds,
        ),
        *line("container_memory_working_set_bytes", labels, start, end, value=2.0**30),
    ]


def small_day() -> list[Sample]:
    """Two nodes all day, three pods, one card with telemetry."""
    before, after = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
    return [
        *node("gpu-0", before, after),
        *node("gpu-1", before, after),
        *pod("u1", at("10:00"), at("12:00"), running=at("10:05")),
        *pod("u2", at("13:00"), at("15:00"), name="again"),
        *pod("u3", at("18:00"), at("19:00"), name="again", on="gpu-1", gpus=0),
        *card(before, at("9:59")),
        *card(at("10:00"), at("12:00"), tenant="u1", value=0.9),
        *card(at("12:01"), after),
        *container("u1", at("10:05"), at("12:00")),
        *container("again", at("13:00"), at("15:00")),
    ]
