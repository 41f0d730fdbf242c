"""Pods that stand: card exporters on GPU nodes, and services and data jobs on CPU nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.simulate.draw import number, suffix, uid
from collector.simulate.model import Container, Node, Owner, Pod
from collector.simulate.nodes import GIB
from collector.simulate.options import DAY, MINUTE, WorldOptions
from collector.simulate.training import start_delay

EXPORTER = "dcgm-exporter"


def standing_pods(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Pod]:
    """Exporters (not on the spare node), the judge, the Ray operator and the data jobs."""
    for node in nodes:
        if node.gpus and node.pool != "spare":
            yield exporter(options, node)
    cpu = [node for node in nodes if not node.gpus]
    yield _service(
        options,
        cpu[0],
        "judge-rm",
        Container("judge", 6000, 24 * GIB),
        {"owner": "zoe", "phase": "reward"},
        "reward",
    )
    yield _service(
        options, cpu[-1], "kuberay-operator", Container("operator", 500, GIB), {}, "unknown"
    )
    for node in cpu:
        yield from _data_jobs(options, node)


def exporter(options: WorldOptions, node: Node) -> Pod:
    """A DaemonSet pod without cards on a GPU node (a rider), there for the whole world."""
    name = f"{EXPORTER}-{suffix(options.seed, EXPORTER, node.name)}"
    return Pod(
        uid=uid(options.seed, EXPORTER, node.name),  # names may repeat among thousands
        namespace="monitoring",
        name=name,
        node=node.name,
        bound=options.start_ms - 10 * DAY,
        started=options.start_ms - 10 * DAY,
        finished=options.end_ms + DAY,
        containers=(Container("exporter", 500, GIB),),
        owners=(Owner("DaemonSet", EXPORTER),),
        labels={"app": EXPORTER},
        experiment=EXPORTER,
        phase="unknown",
    )


def _service(
    options: WorldOptions,
    node: Node,
    name: str,
    container: Container,
    labels: dict[str, str],
    phase: str,
) -> Pod:
    """A Deployment with one replica; the Deployment's name is the experiment."""
    replica_set = f"{name}-{suffix(options.seed, name, length=9)}"
    return Pod(
        uid=uid(options.seed, name),
        namespace="serving",
        name=f"{replica_set}-{suffix(options.seed, replica_set)}",
        node=node.name,
        bound=options.start_ms - 5 * DAY,
        started=options.start_ms - 5 * DAY + 2 * options.step,
        finished=options.end_ms + DAY,
        containers=(container,),
        owners=(Owner("ReplicaSet", replica_set), Owner("Deployment", name)),
        labels={"app": name, **labels},
        experiment=name,
        phase=phase,
    )


def _data_jobs(options: WorldOptions, node: Node) -> Iterator[Pod]:
    at, index = options.start_ms - DAY // 2, 0
    while at < options.end_ms:
        job = f"prepare-{node.name}-{index:03d}"
        length = number(options.seed, job, "length", low=120, high=600)
        end = options.snap(at + length * MINUTE)
        yield Pod(
            uid=uid(options.seed, job),
            namespace="data",
            name=f"{job}-{suffix(options.seed, job)}",
            node=node.name,
            bound=at,
            started=at + start_delay(options, job),
            finished=end,
            containers=(Container("prepare", 12_000, 40 * GIB),),
            owners=(Owner("Job", job),),
            labels={
                "experiment": "sft-data",
                "owner": "mei",
                "pipeline": "sft-corpus",
                "phase": "data",
                "batch.kubernetes.io/job-name": job,
            },
            experiment="sft-data",
            phase="data",
        )
        gap = number(options.seed, job, "gap", low=10, high=120)
        at, index = options.snap(end + gap * MINUTE) + options.step, index + 1
