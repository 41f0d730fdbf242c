"""A world from its options: nodes, the schedule of pods and the bill."""

from __future__ import annotations

from itertools import chain

from collector.simulate.bills import build_lines
from collector.simulate.model import World
from collector.simulate.nodes import build_nodes
from collector.simulate.options import WorldOptions
from collector.simulate.research import research_pods
from collector.simulate.standing import standing_pods
from collector.simulate.training import training_pods
from collector.simulate.uniform import uniform_pods


def simulate(options: WorldOptions) -> World:
    """Work out a world; the same options give the same world.

    Pods that start before the world or outlive it are part of it; whoever reads clips them. They
    are sorted by binding time and uid.
    """
    nodes = build_nodes(options)
    pods = (
        uniform_pods(options, nodes)
        if options.containers is not None
        else chain(
            training_pods(options, nodes),
            research_pods(options, nodes),
            standing_pods(options, nodes),
        )
    )
    alive = [pod for pod in pods if pod.bound < options.end_ms and pod.finished > options.start_ms]
    return World(
        options=options,
        nodes=nodes,
        pods=tuple(sorted(alive, key=lambda pod: (pod.bound, pod.uid))),
        lines=build_lines(options, nodes),
    )
