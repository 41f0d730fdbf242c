"""Which pod holds which card when: what a GPU exporter can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from collector.simulate.draw import uid
from collector.simulate.model import Node, Pod, World


@dataclass(frozen=True)
class CardSpan:
    """A card of a node over ``[start, end)`` (ms), with its holder and its activity."""

    node: str
    card: int
    uuid: str
    start: int
    end: int
    pod: Pod | None
    activity: float


def card_spans(world: World) -> Iterator[CardSpan]:
    """Every card of every node from the node's start to the end of the world, without a hole."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in world.pods:
        if pod.gpus:
            pods[pod.node].append(pod)
    for node in world.nodes:
        for card, holders in enumerate(_holders(node, pods[node.name])):
            yield from _spans(world, node, card, holders)


def _holders(node: Node, pods: list[Pod]) -> list[list[Pod]]:
    """The pods of each card in time order; a pod takes the first free cards at its binding."""
    cards: list[list[Pod]] = [[] for _ in range(node.gpus)]
    for pod in sorted(pods, key=lambda pod: (pod.bound, pod.uid)):
        free = [card for card in cards if not card or card[-1].finished <= pod.bound]
        for card in free[: pod.gpus]:
            card.append(pod)
    return cards


def _spans(world: World, node: Node, card: int, holders: list[Pod]) -> Iterator[CardSpan]:
    uuid = f"GPU-{uid(world.options.seed, 'card', node.name, card)}"
    at, end = max(node.created, world.options.start_ms), world.options.end_ms + world.options.step

    def span(until: int, pod: Pod | None, activity: float) -> Iterator[CardSpan]:
        nonlocal at
        if at < min(until, end):
            yield CardSpan(node.name, card, uuid, at, min(until, end), pod, activity)
        at = max(at, min(until, end))

    for pod in holders:
        yield from span(pod.bound, None, 0.0)
        yield from span(pod.started, pod, 0.0)
        yield from span(pod.finished, pod, pod.activity)
    yield from span(end, None, 0.0)
