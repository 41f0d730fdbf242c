"""The runs on the training nodes: GRPO (RayJob), SFT (PyTorchJob and JobSet), back to back.

The nodes are busy at all hours: between two runs of a lane lie 5 to 35 minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collector.simulate.draw import number, suffix, uid
from collector.simulate.model import Container, Node, Owner, Pod
from collector.simulate.nodes import GIB
from collector.simulate.options import HOUR, MINUTE, WorldOptions

_LANES = ("rollout", "trainer", "sft-torch", "sft-jobset")


@dataclass(frozen=True)
class _Lane:
    """A part of a training node that runs of one kind hold in turn."""

    kind: str
    node: Node
    cards: int
    index: int


def training_pods(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Pod]:
    """All pods of the training nodes."""
    lanes = _lanes([node for node in nodes if node.pool == "train"])
    yield from _grpo(options, [lane for lane in lanes if lane.kind in ("rollout", "trainer")])
    for lane in lanes:
        if lane.kind == "sft-torch":
            yield from _sft_torch(options, lane)
        elif lane.kind == "sft-jobset":
            yield from _sft_jobset(options, lane)


def _lanes(nodes: Sequence[Node]) -> list[_Lane]:
    """At least one lane of each kind; lanes of one node share its cards."""
    count = max(len(_LANES), len(nodes))
    lanes = []
    for index in range(count):
        node = nodes[index % len(nodes)]
        tenants = len(range(index % len(nodes), count, len(nodes)))
        cards = _shares(node.gpus, tenants)[index // len(nodes)]
        lanes.append(_Lane(_LANES[index % len(_LANES)], node, cards, index))
    return lanes


def _shares(cards: int, parts: int) -> list[int]:
    """Whole cards for each part, the first ones get what is left over."""
    return [cards // parts + (part < cards % parts) for part in range(parts)]


def _runs(
    options: WorldOptions, key: str, hours: tuple[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of runs back to back, from before the world to after its end."""
    at, index = options.start_ms - 30 * HOUR, 0
    while at < options.end_ms:
        length = number(options.seed, key, index, "length", low=hours[0] * 60, high=hours[1] * 60)
        end = options.snap(at + length * MINUTE)
        yield index, at, end
        gap = number(options.seed, key, index, "gap", low=5, high=35)
        at, index = options.snap(end + gap * MINUTE) + options.step, index + 1


def start_delay(options: WorldOptions, *key: object) -> int:
    """Milliseconds from binding to the first running container, a few scrapes at most."""
    return number(options.seed, *key, "delay", low=0, high=3) * options.step


def gpu_containers(cards: int, *, sidecar: bool = False) -> tuple[Container, ...]:
    """The containers of a worker: 8 vCPU and 64 GiB a card, one vCPU and 4 GiB without."""
    main = Container("worker", max(1, 8 * cards) * 1000, max(4, 64 * cards) * GIB, cards)
    return (main, Container("log-shipper", 250, GIB // 2)) if sidecar else (main,)


def _grpo(options: WorldOptions, lanes: Sequence[_Lane]) -> Iterator[Pod]:
    for run, start, end in _runs(options, "grpo", (14, 40)):
        job = f"grpo-7b-{run:03d}"
        cluster = f"{job}-raycluster-{suffix(options.seed, job)}"
        labels = {
            "experiment": "grpo-7b",
            "owner": "lin",
            "model-version": f"qwen-7b-grpo-r{run}",
            "pipeline": "math-rl",
            "ray.io/cluster": cluster,
            "ray.io/originated-from-cr-name": job,
            "ray.io/originated-from-crd": "RayJob",
        }
        owners = (Owner("RayCluster", cluster), Owner("RayJob", job, {"experiment": "grpo-7b"}))
        members = [("headgroup", lanes[0].node, 0, 0)]
        for lane in lanes:
            parts = 2 if lane.kind == "rollout" and lane.cards > 1 else 1
            members += [
                (lane.kind, lane.node, cards, 10 * lane.index + part)
                for part, cards in enumerate(_shares(lane.cards, parts))
            ]
        for group, node, cards, number_ in members:
            yield _ray_pod(options, (start, end), owners, labels, group, node, cards, number_)


def _ray_pod(
    options: WorldOptions,
    life: tuple[int, int],
    owners: tuple[Owner, ...],
    labels: Mapping[str, str],
    group: str,
    node: Node,
    cards: int,
    index: int,
) -> Pod:
    head = group == "headgroup"
    cluster = owners[0].name
    kind = "head" if head else f"{group}-worker"
    name = f"{cluster}-{kind}-{suffix(options.seed, cluster, group, index)}"
    containers = (
        (Container("ray-head", 4000, 16 * GIB),) if head else gpu_containers(cards, sidecar=True)
    )
    return Pod(
        uid=uid(options.seed, name),
        namespace="research",
        name=name,
        node=node.name,
        bound=life[0],
        started=life[0] + start_delay(options, name),
        finished=life[1],
        containers=containers,
        owners=owners,
        experiment="grpo-7b",
        phase={"rollout": "rollout", "trainer": "update"}.get(group, "unknown"),
        labels={**labels, "ray.io/group": group, "ray.io/node-type": "head" if head else "worker"},
        role="ray-node-type:head" if head else f"ray-group:{group}",
        activity={"rollout": 0.74, "trainer": 0.9}.get(group, 0.0),
    )


def _sft_torch(options: WorldOptions, lane: _Lane) -> Iterator[Pod]:
    """A PyTorchJob with one master and one worker; its pods carry the labels."""
    for run, start, end in _runs(options, f"torch-{lane.index}", (16, 48)):
        job = f"sft-7b-lora-{lane.index}-{run:03d}"
        for replica, cards in zip(("master", "worker"), _shares(lane.cards, 2), strict=True):
            name = f"{job}-{replica}-0"
            yield Pod(
                uid=uid(options.seed, name),
                namespace="research",
                name=name,
                node=lane.node.name,
                bound=start,
                started=start + start_delay(options, name),
                finished=end,
                containers=gpu_containers(cards),
                experiment="sft-7b-lora",
                phase="update",
                owners=(Owner("PyTorchJob", job, {"experiment": "sft-7b-lora"}),),
                labels={
                    "experiment": "sft-7b-lora",
                    "owner": "mei",
                    "model_version": "qwen-7b-sft",
                    "training.kubeflow.org/job-name": job,
                    "training.kubeflow.org/operator-name": "pytorchjob-controller",
                    "training.kubeflow.org/replica-type": replica,
                    "training.kubeflow.org/replica-index": "0",
                },
                environment={"WANDB_PROJECT": "sft"},
                role=f"replica-type:{replica}",
                activity=0.86,
            )


def _sft_jobset(options: WorldOptions, lane: _Lane) -> Iterator[Pod]:
    """A JobSet whose pods carry no label of ours: only the owner chain names the experiment."""
    for run, start, end in _runs(options, f"jobset-{lane.index}", (40, 90)):
        jobset = f"sft-14b-full-{lane.index}-{run:03d}"
        job = f"{jobset}-trainer-0"
        for index, cards in enumerate(_shares(lane.cards, 2)):
            name = f"{job}-{index}-{suffix(options.seed, job, index)}"
            yield Pod(
                uid=uid(options.seed, name),
                namespace="research",
                name=name,
                node=lane.node.name,
                bound=start,
                started=start + start_delay(options, name),
                finished=end,
                containers=gpu_containers(cards),
                experiment=jobset,
                phase="update",
                owners=(Owner("Job", job), Owner("JobSet", jobset)),
                labels={
                    "jobset.sigs.k8s.io/jobset-name": jobset,
                    "jobset.sigs.k8s.io/replicatedjob-name": "trainer",
                    "batch.kubernetes.io/job-name": job,
                    "batch.kubernetes.io/job-completion-index": str(index),
                },
                role="replicated-job:trainer",
                activity=0.81,
            )
