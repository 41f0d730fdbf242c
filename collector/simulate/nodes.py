"""The nodes: GPU nodes to train on, for research and one that stays empty; CPU nodes."""

from __future__ import annotations

from decimal import Decimal

from collector.simulate.draw import hexadecimal, number
from collector.simulate.model import REGION, Node
from collector.simulate.options import DAY, HOUR, MINUTE, WorldOptions

GIB = 2**30
GPU_MODEL = "NVIDIA-H100-80GB-HBM3"
_CARD_HOUR = Decimal("12.29")
_TYPES = {1: "p5.4xlarge", 8: "p5.48xlarge"}


def build_nodes(options: WorldOptions) -> tuple[Node, ...]:
    """All nodes, by pool: ``train``, ``research`` (a quarter), ``spare`` (one) and ``cpu``."""
    if options.containers is not None:
        pools = ["train"] * options.nodes
    else:
        research = max(1, (options.nodes - 1) // 4)
        pools = ["train"] * (options.nodes - 1 - research) + ["research"] * research + ["spare"]
    gpu_nodes = [_gpu_node(options, index, pool) for index, pool in enumerate(pools)]
    return (*gpu_nodes, *(_cpu_node(options, index) for index in range(options.cpu_nodes)))


def _gpu_node(options: WorldOptions, index: int, pool: str) -> Node:
    cards = options.gpus_per_node
    launched, created = _birth(options, pool)
    return Node(
        name=f"gpu-{index:04d}",
        pool=pool,
        instance_type=_TYPES.get(cards, f"p5.{cards}gpu"),
        instance_id=f"i-{hexadecimal(options.seed, 'gpu-node', index)}",
        zone=f"{REGION}{'ab'[index % 2]}",
        cpu_millicores=cards * 24_000,
        memory_bytes=cards * 256 * GIB,
        gpus=cards,
        gpu_model=GPU_MODEL,
        launched=launched,
        created=created,
        rate=_CARD_HOUR * cards,
        discount=number(options.seed, "discount", low=6, high=14),
        committed=pool == "train" and index % 2 == 1,
    )


def _birth(options: WorldOptions, pool: str) -> tuple[int, int]:
    """Launch and registration; the spare node joins on the second day, in the middle of an hour."""
    if pool == "spare" and options.days > 1:
        launched = options.start_ms + DAY + 6 * HOUR + 30 * MINUTE
        return launched, options.snap(launched + 3 * MINUTE + options.step - 1)
    age = 40 * DAY
    return options.start_ms - age, options.start_ms - age + 2 * MINUTE


def _cpu_node(options: WorldOptions, index: int) -> Node:
    launched, created = _birth(options, "cpu")
    return Node(
        name=f"cpu-{index:04d}",
        pool="cpu",
        instance_type="m6i.8xlarge",
        instance_id=f"i-{hexadecimal(options.seed, 'cpu-node', index)}",
        zone=f"{REGION}a",
        cpu_millicores=32_000,
        memory_bytes=128 * GIB,
        gpus=0,
        gpu_model=None,
        launched=launched,
        created=created,
        rate=Decimal("1.536"),
        discount=0,
    )
