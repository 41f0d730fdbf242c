"""A uniform load for benchmarks: a given number of pods a day, spread over all GPU nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.simulate.draw import number, suffix, uid
from collector.simulate.model import Container, Node, Owner, Pod
from collector.simulate.nodes import GIB
from collector.simulate.options import DAY, MINUTE, WorldOptions
from collector.simulate.standing import exporter
from collector.simulate.training import gpu_containers, start_delay

_LANES = 2


def uniform_pods(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Pod]:
    """One exporter a node, and two lanes of jobs that hold half of the cards each, in turn.

    The number of pods that live on a day is ``options.containers`` as near as whole jobs allow.
    """
    gpu_nodes = [node for node in nodes if node.gpus]
    wanted = options.containers or 0
    exporters = min(len(gpu_nodes), max(0, wanted - 1))
    for node in gpu_nodes[:exporters]:
        yield exporter(options, node)
    jobs = (wanted - exporters) * options.days
    lanes = len(gpu_nodes) * _LANES
    for lane in range(lanes):
        count = jobs // lanes + (lane < jobs % lanes)
        if count:
            yield from _lane(options, gpu_nodes[lane // _LANES], lane, count)


def _lane(options: WorldOptions, node: Node, lane: int, count: int) -> Iterator[Pod]:
    slot = options.days * DAY // count
    part = lane % _LANES
    cards = node.gpus // _LANES + (part < node.gpus % _LANES)
    for index in range(count):
        key = f"{lane}-{index}"
        begin = options.start_ms + index * slot
        late = number(options.seed, key, "late", low=0, high=max(0, slot // MINUTE // 8))
        start = options.snap(begin + late * MINUTE)
        end = max(start + options.step, options.snap(begin + slot - options.step))
        yield _job(options, node, key, cards, start, end)


def _job(options: WorldOptions, node: Node, key: str, cards: int, start: int, end: int) -> Pod:
    group = number(options.seed, key, "experiment", low=0, high=options.experiments - 1)
    job = f"exp-{group:04d}-job-{key}"
    containers = gpu_containers(cards) if cards else (Container("worker", 1000, 4 * GIB),)
    return Pod(
        uid=uid(options.seed, job),
        namespace=f"team-{group % 20}",
        name=f"{job}-{suffix(options.seed, job)}",
        node=node.name,
        bound=start,
        started=min(end, start + start_delay(options, job)),
        finished=end,
        containers=containers,
        owners=(Owner("Job", job),),
        experiment=f"exp-{group:04d}",
        phase="unknown",
        labels={
            "experiment": f"exp-{group:04d}",
            "owner": f"user-{group % 40}",
            "batch.kubernetes.io/job-name": job,
        },
        activity=0.7,
    )
