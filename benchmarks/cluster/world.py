"""Nodes, experiments and pods of the benchmark's cluster, and what is true of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from benchmarks.cluster.options import HOUR, MINUTE, Options

LAYOUTS = ((8,), (8,), (4, 4), (1,) * 8, (8,), (2, 2, 4), (8,), (4, 4), (8,), ())
"""Cards of the pods that share a node side by side, node after node."""

SYSTEMS = ("ray", "jobset", "pytorch", "volcano", "deployment")
_WEIGHTS = (35, 20, 25, 10, 10)
_TEAMS = ("alignment", "reasoning", "code", "vision", "safety", "infra")
_KINDS = ("grpo", "ppo", "sft", "dpo", "opd", "rm")
_SIZES = ("1b", "7b", "14b", "32b", "70b")


@dataclass(frozen=True)
class Node:
    """A node, its phase in the minute when it is scraped, and its cards."""

    name: str
    number: int
    address: str
    machine: str
    phase: int
    cards: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """Whose pods they are, and which system made them."""

    name: str
    number: int
    system: str
    team: str
    namespace: str
    workload: str


@dataclass(frozen=True)
class Pod:
    """A pod; times in milliseconds since 1970.

    Args:
        name: Its name.
        uid: Its uid.
        number: Its number among all pods.
        node: Where it runs.
        experiment: Whose it is.
        role: What it does there.
        cards: Numbers of the node's cards that it holds.
        created: When it was made.
        bound: When it was bound to its node, and waits for its image.
        started: When its containers started.
        finished: When they ended.
        deleted: When nobody saw it any longer.
        failed: Whether it ended badly.
    """

    name: str
    uid: str
    number: int
    node: Node
    experiment: Experiment
    role: str
    cards: tuple[int, ...]
    created: int
    bound: int
    started: int
    finished: int
    deleted: int
    failed: bool


@dataclass(frozen=True)
class World:
    """A cluster-day."""

    options: Options
    nodes: tuple[Node, ...]
    experiments: tuple[Experiment, ...]
    pods: tuple[Pod, ...]


def make_world(options: Options) -> World:
    """The cluster-day of some options; the same ones give the same."""
    draw = random.Random(options.seed)  # noqa: S311 - no secret
    nodes = tuple(_node(number, options, draw) for number in range(options.nodes))
    experiments = tuple(_experiment(number, draw) for number in range(options.experiments))
    lanes = list(_lanes(options, nodes))
    pods: list[Pod] = []
    for number, (node, cards) in enumerate(lanes):
        first, last = (options.pods * edge // len(lanes) for edge in (number, number + 1))
        for spans in _lives(last - first, options, draw):
            experiment = draw.choice(experiments)
            pods.append(_pod(len(pods), node, experiment, cards, spans, draw))
    return World(options, nodes, experiments, tuple(pods))


def _uuid(draw: random.Random) -> str:
    return str(UUID(int=draw.getrandbits(128), version=4))


def _node(number: int, options: Options, draw: random.Random) -> Node:
    return Node(
        name=f"ip-10-{64 + number // 250}-{number % 250}-17.us-east-2.compute.internal",
        number=number,
        address=f"10.{64 + number // 250}.{number % 250}.17",
        machine=f"i-{draw.getrandbits(68):017x}",
        phase=draw.randrange(MINUTE),
        cards=tuple(f"GPU-{_uuid(draw)}" for _ in range(options.cards)),
    )


def _experiment(number: int, draw: random.Random) -> Experiment:
    team = draw.choice(_TEAMS)
    name = f"{draw.choice(_KINDS)}-{draw.choice(_SIZES)}-{team}-{number:04d}"
    system = draw.choices(SYSTEMS, _WEIGHTS)[0]
    return Experiment(name, number, system, team, f"research-{team}", f"{name}-{system[:3]}")


def _lanes(options: Options, nodes: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """Places that one pod after another holds: those with cards first, then those without."""
    wanted = min(options.pods, max(1, round(options.pods * options.life_hours / 24)))
    given = 0
    for node in nodes:
        taken = 0
        for cards in LAYOUTS[node.number % len(LAYOUTS)]:
            if taken + cards > options.cards or given == wanted:
                break
            yield node, tuple(range(taken, taken + cards))
            taken, given = taken + cards, given + 1
    for number in range(wanted - given):
        yield nodes[number % len(nodes)], ()


def _lives(
    count: int, options: Options, draw: random.Random
) -> Iterator[tuple[int, int, int, int, int]]:
    """Lives of the pods of one place, from an hour before the day to an hour after it."""
    gaps = [draw.randrange(2 * MINUTE, 25 * MINUTE) for _ in range(count)]
    weights = [draw.gammavariate(3.0, 1.0) for _ in range(count)]
    free = 26 * HOUR - sum(gaps)
    bound = options.start - HOUR
    for gap, weight in zip(gaps, weights, strict=True):
        finished = bound + round(free * weight / sum(weights))
        waited = draw.choice((300, 300, 800, 40_000, 170_000))
        started = min(bound + draw.randrange(4_000, 110_000), finished)
        seen = draw.choice((2_000, 20_000, 35_000, 12 * MINUTE, 35 * MINUTE))
        yield bound - waited, bound, started, finished, finished + min(seen, gap - MINUTE)
        bound = finished + gap


def _pod(
    number: int,
    node: Node,
    experiment: Experiment,
    cards: tuple[int, ...],
    life: tuple[int, int, int, int, int],
    draw: random.Random,
) -> Pod:
    roles = ("rollout", "trainer", "judge") if cards else ("head", "loader", "evaluator")
    role = draw.choice(roles)
    suffix = "".join(draw.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
    return Pod(
        f"{experiment.workload}-{role}-{number % 1000}-{suffix}",
        _uuid(draw),
        number,
        node,
        experiment,
        role,
        cards,
        *life,
        failed=draw.random() < 0.08,
    )
