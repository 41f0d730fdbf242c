"""Days in plain values, for hypothesis: devices of all kinds, overlaps, holes and refunds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ledger.schema import COST_COLUMNS
from ledger.settings import NodePool, PoolMatch, Settings

if TYPE_CHECKING:
    from attribution.facts import DayFacts
    from tests.attribution.conftest import DayBuilder

GIB = 2**30
DEVICES = json.dumps(
    {
        "nvidia.com/gpu": "1",
        "nvidia.com/gpu.shared": "1/4",
        "nvidia.com/mig-1g.5gb": "1/7",
        "nvidia.com/mig-3g.20gb": "3/7",
    }
)
"""What a unit is of a card, on a node that offers cards in all ways at once."""
NAMES = ("n1", "n2")
hours = st.integers(0, 96).map(lambda quarter: quarter / 4)
money = st.none() | st.integers(-(10**15), 10**17).map(lambda units: Decimal(units).scaleb(-12))
POOLS = Settings(
    node_pools=(
        NodePool(match=PoolMatch(label="pool=aws"), split="aws-split"),
        NodePool(match=PoolMatch(label="pool=oc"), split="opencost"),
    )
)


def _asks(units: int, resource: str = "gpu", **beside: int) -> dict[str, Any]:
    """A pod that asks for units of a device, and for ``beside`` of each."""
    asked = {f"nvidia.com/{resource}": units}
    asked |= {f"nvidia.com/{name}": amount for name, amount in beside.items()}
    return {"gpus": units, "gpu_request": json.dumps(asked)}


KINDS: tuple[dict[str, Any], ...] = (
    *({"gpus": cards} for cards in (None, 0, 1, 3, 8)),
    _asks(2),
    _asks(3, "gpu.shared"),
    _asks(1, "mig-1g.5gb"),
    _asks(2, "mig-3g.20gb"),
    _asks(1, "mig-9g.80gb"),
    _asks(1, gpucores=37, gpumem=1000),
    {"gpus": 0, "annotations": '{"gpu-fraction":"0.3"}'},
    {"gpus": 0, "annotations": '{"gpu-memory":"3333"}'},
    {"gpus": 1, "namespace": "kai-resource-reservation"},
)
"""Whole cards, shared ones, slices, virtual ones, fractions and what reserves a card for them."""


@dataclass(frozen=True)
class Plan:
    """A day in plain values; hypothesis shrinks these."""

    nodes: list[dict[str, Any]]
    pods: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    hole: bool


@st.composite
def spans(draw: st.DrawFn) -> tuple[float, float]:
    start, end = sorted((draw(hours), draw(hours)))
    return (start, end) if start < end else (min(start, 23.75), min(start, 23.75) + 0.25)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    nodes = [
        {
            "gpus": draw(st.sampled_from([None, 0, 1, 8])),
            "cpu_millicores": draw(st.sampled_from([None, 4000, 192_000])),
            "memory_bytes": draw(st.sampled_from([16 * GIB, 2048 * GIB])),
            "gpu_units": draw(st.sampled_from([None, DEVICES])),
            "gpu_memory_mib": draw(st.sampled_from([None, 40_960])),
            "labels": draw(st.sampled_from(["{}", '{"pool":"aws"}', '{"label_pool":"oc"}'])),
        }
        for _ in NAMES
    ]
    pods = [
        {
            "span": draw(spans()),
            "node": draw(st.sampled_from([*NAMES, "n3"])),
            **draw(st.sampled_from(KINDS)),
            "cpu_millicores": draw(st.sampled_from([None, 0, 500, 100_000])),
            "memory_bytes": draw(st.sampled_from([None, 3, 7 * GIB])),
            "state": draw(st.sampled_from(["held", "running"])),
            "interval": draw(st.sampled_from([None, 60.0])),
            "labels": draw(st.sampled_from([{}, {"experiment": "a"}, {"experiment": "b"}])),
        }
        for _ in range(draw(st.integers(0, 5)))
    ]
    lines = [
        {
            "span": draw(spans()),
            "resource": draw(st.sampled_from(["i-n1", "i-n2", "s3", None])),
            **{name: draw(money) for name in COST_COLUMNS},
            "BillingCurrency": draw(st.sampled_from(["USD", "CNY"])),
        }
        for _ in range(draw(st.integers(0, 5)))
    ]
    claims = [
        {
            "span": draw(spans()),
            "node": draw(st.sampled_from(NAMES)),
            "cards": draw(st.sampled_from([None, "1/2", "1", "2"])),
            "pods": draw(st.lists(st.sampled_from(["u0", "u1", "gone"]), unique=True)),
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    return Plan(nodes, pods, lines, claims, draw(st.booleans()))


def build(new_day: type[DayBuilder], plan: Plan) -> DayFacts:
    """The facts of a plan."""
    return builder(new_day, plan).facts()


def builder(new_day: type[DayBuilder], plan: Plan) -> DayBuilder:
    """The day of a plan, which a test may still add to."""
    day = new_day().price("gpu", "2.5")
    for name, fields in zip(NAMES, plan.nodes, strict=True):
        day.node(name, **fields)
        if plan.hole:
            day.node(name, 0, 9, interval=60, **fields).node(name, 12, 24, interval=60, **fields)
    for index, pod in enumerate(plan.pods):
        fields = {key: pod[key] for key in pod if key not in ("span", "interval", "labels")}
        day.pod(f"u{index}", *pod["span"], interval=pod["interval"], labels=pod["labels"], **fields)
        day.use(f"u{index}", "cpu_usage", 8, 0.3 + index).use(f"u{index}", "gpu_activity", 8, 0.7)
    for index, line in enumerate(plan.lines):
        fields = {key: line[key] for key in line if key not in ("span", "resource")}
        day.line(f"l{index}", line["resource"], line["span"][0], line["span"][1], **fields)
    for index, claim in enumerate(plan.claims):
        fields = {key: claim[key] for key in claim if key != "span"}
        day.claim(f"c{index}", *claim["span"], **fields)
    return day
