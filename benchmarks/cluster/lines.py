"""All series of a cluster-day, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.cluster.clock import COUNT, Clock, Course, Courses, clock
from benchmarks.cluster.line import Line
from benchmarks.cluster.options import MINUTE, Options
from benchmarks.cluster.state import node_series, pod_series, scraped
from benchmarks.cluster.usage import card_series, container_series
from benchmarks.cluster.world import Node, Pod, World

_LATE = 4
"""Milliseconds by which a scrape is late."""

_UNEVEN = 9_000
"""By which the kubelet's own time stamps of a container's usage are."""


class Clocks:
    """When each target of a world is scraped; the same ones whoever asks."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def state(self, shard: int) -> Clock:
        """Of a shard of kube-state-metrics."""
        draw = random.Random(f"state {self.options.seed} {shard}")  # noqa: S311 - no secret
        return clock(self.options, draw.randrange(MINUTE), _LATE, draw)

    def cards(self, node: Node) -> Clock:
        """Of the dcgm-exporter of a node."""
        draw = random.Random(f"cards {self.options.seed} {node.number}")  # noqa: S311 - no secret
        return clock(self.options, node.phase, _LATE, draw)

    def container(self, pod: Pod) -> Clock:
        """Of a pod's containers: the kubelet tells when it looked at each."""
        draw = random.Random(f"container {self.options.seed} {pod.number}")  # noqa: S311 - no secret
        return clock(self.options, pod.node.phase, _UNEVEN, draw)


def all_lines(world: World) -> Iterator[Line]:
    """Every series of the world; those of a target follow each other."""
    options = world.options
    clocks, courses = Clocks(options), Courses(options.seed)
    draw = random.Random(f"oddities {options.seed}")  # noqa: S311 - no secret
    by_node: dict[int, list[Pod]] = {}
    for pod in world.pods:
        by_node.setdefault(pod.node.number, []).append(pod)
    state = [clocks.state(shard) for shard in range(options.shards)]
    for node in world.nodes:
        shard = node.number % options.shards
        yield from _seen(node_series(node, state[shard], scraped(shard)), options)
        pods = by_node.get(node.number, [])
        yield from _odd(
            card_series(node, pods, clocks.cards(node), courses, sm_active=options.sm_active),
            options,
            draw,
        )
        for pod in pods:
            shard = pod.number % options.shards
            yield from _seen(pod_series(pod, state[shard], scraped(shard)), options)
            yield from _odd(container_series(pod, clocks.container(pod), courses), options, draw)


def _seen(lines: Iterator[Line], options: Options) -> Iterator[Line]:
    """The series of kube-state-metrics as one Prometheus saw them, or as each of a pair did."""
    for line in lines:
        if not options.pair:
            yield line
            continue
        other = Clock([time + 29_000 for time in line.clock.times])
        for replica, its in (("prometheus-0", line.clock), ("prometheus-1", other)):
            yield replace(line, clock=its, labels={**line.labels, "prometheus_replica": replica})


def _odd(lines: Iterator[Line], options: Options, draw: random.Random) -> Iterator[Line]:
    """Few series with a hole, a counter that starts again, NaN, and one absurd value."""
    if not options.oddities:
        yield from lines
        return
    for number, line in enumerate(lines):
        chance = draw.random()
        if number == 0 and options.seed and draw.random() < 2 / options.nodes:
            place = draw.randrange(COUNT)
            yield replace(line, instead={place: b"-1.97e25"})
        elif chance < 0.01:
            first = draw.randrange(COUNT)
            yield replace(line, lost=range(first, first + draw.randrange(2, 25)))
        elif chance < 0.013:
            yield replace(line, instead={draw.randrange(COUNT): b"-1"})
        elif chance < 0.02 and line.metric.endswith("_total") and isinstance(line.value, Course):
            yield replace(line, value=_again(line.value, draw.randrange(COUNT)))
        else:
            yield line


def _again(course: Course, place: int) -> Course:
    """A counter that starts again at a scrape."""
    base = course.values[place]
    rest = [round(value - base, 6) for value in course.values[place:]]
    texts = [repr(value).encode() for value in rest]
    return Course([*course.values[:place], *rest], [*course.texts[:place], *texts])
