"""The bill: FOCUS 1.2 lines per instance-hour, credits, storage, logs and a support fee.

Per node and hour one Usage line (committed nodes: nothing billed, effective price by the savings
plan); per node and day, from its launch on, a credit that names the node; per hour the savings
plan's fee; per day S3, FSx and CloudWatch, some tagged; per calendar month the support fee.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from collector.simulate.draw import number
from collector.simulate.model import ACCOUNT, Line, Node
from collector.simulate.options import DAY, HOUR, WorldOptions, milliseconds

PLAN = f"arn:aws:savingsplans::{ACCOUNT}:savingsplan/5c0f5c9e"
_GROUP = {"experiment": "grpo-7b", "owner": "lin"}
_DAILY: tuple[tuple[str, str, str, str, Mapping[str, str]], ...] = (
    ("Amazon Simple Storage Service", "rollouts", "0.023", "GB-Mo", _GROUP),
    (
        "Amazon Simple Storage Service",
        "sft-corpus",
        "0.023",
        "GB-Mo",
        {"experiment": "sft-data", "owner": "mei", "pipeline": "sft-corpus"},
    ),
    ("Amazon Simple Storage Service", "scratch", "0.0125", "GB-Mo", {}),
    ("Amazon FSx", "fs-0a1b2c3d4e5f60718", "0.145", "GB-Mo", {}),
    ("AmazonCloudWatch", "/train/grpo", "0.50", "GB", _GROUP),
    ("AmazonCloudWatch", "/eks/system", "0.50", "GB", {}),
)
"""Service, resource, list price of a unit, unit and tags of the daily lines."""

_TYPES = {
    "Amazon Simple Storage Service": "Bucket",
    "Amazon FSx": "File System",
    "AmazonCloudWatch": "Log Group",
}


def build_lines(options: WorldOptions, nodes: Sequence[Node]) -> tuple[Line, ...]:
    """All lines whose charge period touches the world, in a fixed order."""
    lines = [line for node in nodes for line in _node_lines(options, node)]
    lines += _plan_fees(options, nodes)
    for day in range(options.start_ms, options.end_ms, DAY):
        lines += _daily(options, day)
    return (*lines, *_support(options))


def _node_lines(options: WorldOptions, node: Node) -> Iterator[Line]:
    first = max(options.start_ms, node.launched)
    for hour in range(first // HOUR * HOUR, options.end_ms, HOUR):
        yield _instance_hour(node, hour, Decimal(HOUR - max(0, first - hour)) / HOUR)
    for day in range(options.start_ms, options.end_ms, DAY):
        if node.launched < day + DAY:
            yield _credit(options, node, day)


def contracted_rate(node: Node) -> Decimal:
    """List price of a node-hour less the negotiated discount."""
    return node.rate * (100 - node.discount) / 100


def effective_rate(node: Node) -> Decimal:
    """Amortised price of a node-hour: a savings plan takes a third off, cut to 1e-12."""
    rate = contracted_rate(node)
    return (rate * 2 / 3).quantize(Decimal("1e-12")) if node.committed else rate


def _instance_hour(node: Node, hour: int, hours: Decimal) -> Line:
    contracted = contracted_rate(node)
    return Line(
        node=node.name,
        resource_id=node.resource_id,
        resource_type="Instance",
        service="Amazon Elastic Compute Cloud",
        start=hour,
        end=hour + HOUR,
        billed=Decimal(0) if node.committed else contracted * hours,
        effective=(effective_rate(node) * hours).quantize(Decimal("1e-12")),
        contracted=contracted * hours,
        listed=node.rate * hours,
        description=f"${node.rate} per On Demand Linux {node.instance_type} Instance Hour",
        quantity=hours,
        unit="Hours",
        list_price=node.rate,
        contracted_price=contracted,
        commitment=PLAN if node.committed else None,
        tags={"aws:eks:cluster-name": "train-a", "team": "ml-platform"},
    )


def _credit(options: WorldOptions, node: Node, day: int) -> Line:
    per_mille = number(options.seed, "credit", node.name, day, low=1, high=9)
    amount = -node.rate * per_mille * 24 / 1000
    return Line(
        node=node.name,
        resource_id=node.resource_id,
        resource_type="Instance",
        service="Amazon Elastic Compute Cloud",
        start=day,
        end=day + DAY,
        billed=amount,
        effective=amount,
        contracted=amount,
        listed=amount,
        category="Credit",
        description="Migration credit",
    )


def _plan_fees(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Line]:
    """What the savings plan bills per hour: its covered usage carries the effective cost."""
    fee = sum((effective_rate(node) for node in nodes if node.committed), Decimal(0))
    for hour in range(options.start_ms, options.end_ms, HOUR) if fee else ():
        yield Line(
            node=None,
            resource_id=PLAN,
            resource_type="Savings Plan",
            service="Savings Plans for AWS Compute usage",
            start=hour,
            end=hour + HOUR,
            billed=fee,
            effective=Decimal(0),
            contracted=fee,
            listed=fee,
            category="Purchase",
            frequency="Recurring",
            quantity=Decimal(1),
            unit="Hours",
            list_price=fee,
            contracted_price=fee,
            commitment=PLAN,
            description="Savings plan hourly fee",
        )


def _daily(options: WorldOptions, day: int) -> Iterator[Line]:
    age = (day - options.start_ms) // DAY
    for service, resource, price, unit, tags in _DAILY:
        volume = Decimal(number(options.seed, resource, low=20_000, high=60_000) * (100 + age))
        quantity, listed = volume / 100_000, Decimal(price)
        contracted = listed * 95 / 100
        yield Line(
            node=None,
            resource_id=resource,
            resource_type=_TYPES[service],
            service=service,
            start=day,
            end=day + DAY,
            billed=contracted * quantity,
            effective=contracted * quantity,
            contracted=contracted * quantity,
            listed=listed * quantity,
            quantity=quantity,
            unit=unit,
            list_price=listed,
            contracted_price=contracted,
            tags=tags,
            experiment=tags.get("experiment"),
            description=f"{service}: {resource}",
        )


def _support(options: WorldOptions) -> Iterator[Line]:
    month = options.window.start.replace(day=1)
    while month < options.window.end:
        following = next_month(month)
        fee = Decimal(number(options.seed, "support", month, low=400_000, high=900_000)) / 100
        yield Line(
            node=None,
            resource_id=None,
            resource_type=None,
            service="AWS Support (Business)",
            start=milliseconds(month),
            end=milliseconds(following),
            billed=fee,
            effective=fee,
            contracted=fee,
            listed=fee,
            category="Purchase",
            frequency="Recurring",
            quantity=Decimal(1),
            unit="Months",
            list_price=fee,
            contracted_price=fee,
            description="Support fee",
        )
        month = following


def next_month(month: datetime) -> datetime:
    """The first of the following month."""
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
