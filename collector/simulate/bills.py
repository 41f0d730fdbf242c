"""The bill: FOCUS 1.2 lines per instance-hour, credits, storage, logs and a support fee.

Per node and hour one Usage line (committed nodes: nothing billed, effective price by the savings
plan); per node and whole day a credit that names the node; per hour the savings plan's fee; per day
S3, FSx and CloudWatch, some tagged; per calendar month the support fee.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from collector.simulate.draw import number
from collector.simulate.model import ACCOUNT, REGION, Line, Node
from collector.simulate.options import DAY, HOUR, WorldOptions, moment

PLAN = f"arn:aws:savingsplans::{ACCOUNT}:savingsplan/5c0f5c9e"
_GROUP = {"experiment": "grpo-7b", "owner": "lin"}
_DAILY: tuple[tuple[str, str, str, str, Mapping[str, str]], ...] = (
    ("Amazon Simple Storage Service", "rollouts", "0.023", "GB-Mo", _GROUP),
    ("Amazon Simple Storage Service", "sft-corpus", "0.023", "GB-Mo",
     {"experiment": "sft-data", "owner": "mei", "pipeline": "sft-corpus"}),
    ("Amazon Simple Storage Service", "scratch", "0.0125", "GB-Mo", {}),
    ("Amazon FSx", "fs-0a1b2c3d4e5f60718", "0.145", "GB-Mo", {}),
    ("AmazonCloudWatch", "/train/grpo", "0.50", "GB", _GROUP),
    ("AmazonCloudWatch", "/eks/system", "0.50", "GB", {}),
)
"""Service, resource, list price of a unit, unit and tags of the daily lines."""

DIMENSIONS = {
    "Amazon Elastic Compute Cloud": "compute", "Savings Plans for AWS Compute usage": "compute",
    "Amazon Simple Storage Service": "storage_logs", "Amazon FSx": "storage_logs",
    "AmazonCloudWatch": "storage_logs", "AWS Support (Business)": "other",
}
"""What a service's lines pay for, in the words of the ledger."""

_CATEGORIES = {
    "Amazon Elastic Compute Cloud": ("Compute", "Virtual Machines"),
    "Savings Plans for AWS Compute usage": ("Compute", "Other (Compute)"),
    "Amazon Simple Storage Service": ("Storage", "Object Storage"),
    "Amazon FSx": ("Storage", "File Storage"),
    "AmazonCloudWatch": ("Management and Governance", "Observability"),
    "AWS Support (Business)": ("Other", "Other (Other)"),
}
_TYPES = {"Amazon Simple Storage Service": "Bucket", "Amazon FSx": "File System",
          "AmazonCloudWatch": "Log Group"}


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
        if node.launched <= day:
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
        node=node.name, resource_id=node.resource_id, resource_type="Instance",
        service="Amazon Elastic Compute Cloud", start=hour, end=hour + HOUR,
        billed=Decimal(0) if node.committed else contracted * hours,
        effective=(effective_rate(node) * hours).quantize(Decimal("1e-12")),
        contracted=contracted * hours, listed=node.rate * hours,
        description=f"${node.rate} per On Demand Linux {node.instance_type} Instance Hour",
        quantity=hours, unit="Hours", list_price=node.rate, contracted_price=contracted,
        commitment=PLAN if node.committed else None,
        tags={"aws:eks:cluster-name": "train-a", "team": "ml-platform"},
    )


def _credit(options: WorldOptions, node: Node, day: int) -> Line:
    per_mille = number(options.seed, "credit", node.name, day, low=1, high=9)
    amount = -node.rate * per_mille * 24 / 1000
    return Line(
        node=node.name, resource_id=node.resource_id, resource_type="Instance",
        service="Amazon Elastic Compute Cloud", start=day, end=day + DAY, billed=amount,
        effective=amount, contracted=amount, listed=amount, category="Credit",
        description="Migration credit",
    )


def _plan_fees(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Line]:
    """What the savings plan bills per hour: its covered usage carries the effective cost."""
    fee = sum((effective_rate(node) for node in nodes if node.committed), Decimal(0))
    for hour in range(options.start_ms, options.end_ms, HOUR) if fee else ():
        yield Line(
            node=None, resource_id=PLAN, resource_type="Savings Plan",
            service="Savings Plans for AWS Compute usage", start=hour, end=hour + HOUR,
            billed=fee, effective=Decimal(0), contracted=fee, listed=fee, category="Purchase",
            frequency="Recurring", quantity=Decimal(1), unit="Hours", list_price=fee,
            contracted_price=fee, commitment=PLAN, description="Savings plan hourly fee",
        )


def _daily(options: WorldOptions, day: int) -> Iterator[Line]:
    age = (day - options.start_ms) // DAY
    for service, resource, price, unit, tags in _DAILY:
        volume = Decimal(number(options.seed, resource, low=20_000, high=60_000) * (100 + age))
        quantity, listed = volume / 100_000, Decimal(price)
        contracted = listed * 95 / 100
        yield Line(
            node=None, resource_id=resource, resource_type=_TYPES[service], service=service,
            start=day, end=day + DAY, billed=contracted * quantity,
            effective=contracted * quantity, contracted=contracted * quantity,
            listed=listed * quantity, quantity=quantity, unit=unit, list_price=listed,
            contracted_price=contracted, tags=tags, experiment=tags.get("experiment"),
            description=f"{service}: {resource}",
        )


def _support(options: WorldOptions) -> Iterator[Line]:
    month = options.window.start.replace(day=1)
    while month < options.window.end:
        following = next_month(month)
        fee = Decimal(number(options.seed, "support", month, low=400_000, high=900_000)) / 100
        yield Line(
            node=None, resource_id=None, resource_type=None, service="AWS Support (Business)",
            start=_ms(month), end=_ms(following), billed=fee, effective=fee, contracted=fee,
            listed=fee, category="Purchase", frequency="Recurring", quantity=Decimal(1),
            unit="Months", list_price=fee, contracted_price=fee, description="Support fee",
        )
        month = following


def next_month(month: datetime) -> datetime:
    """The first of the following month."""
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000


def _plain(value: Decimal | None) -> str:
    return "" if value is None else f"{value.normalize():f}"


def focus_row(options: WorldOptions, line: Line) -> dict[str, str]:
    """A line as FOCUS 1.2 text cells; null is the empty cell.

    Source: FinOps Open Cost and Usage Specification 1.2, Cost and Usage columns.
    """
    month = moment(line.start).replace(day=1, hour=0, minute=0)
    category, subcategory = _CATEGORIES[line.service]
    usage = line.category == "Usage"
    committed = line.commitment is not None
    return {
        "AvailabilityZone": "", "BilledCost": _plain(line.billed), "BillingAccountId": ACCOUNT,
        "BillingAccountName": "research", "BillingAccountType": "Management Account",
        "BillingCurrency": options.currency,
        "BillingPeriodEnd": _time(_ms(next_month(month))), "BillingPeriodStart": _time(_ms(month)),
        "CapacityReservationId": "", "CapacityReservationStatus": "",
        "ChargeCategory": line.category, "ChargeClass": "", "ChargeDescription": line.description,
        "ChargeFrequency": "One-Time" if line.category == "Credit" else line.frequency,
        "ChargePeriodEnd": _time(line.end), "ChargePeriodStart": _time(line.start),
        "CommitmentDiscountCategory": "Spend" if committed else "",
        "CommitmentDiscountId": line.commitment or "", "CommitmentDiscountName": "",
        "CommitmentDiscountQuantity": "",
        "CommitmentDiscountStatus": "Used" if committed and usage else "",
        "CommitmentDiscountType": "Compute Savings Plan" if committed else "",
        "CommitmentDiscountUnit": "",
        "ConsumedQuantity": _plain(line.quantity) if usage else "",
        "ConsumedUnit": (line.unit or "") if usage else "",
        "ContractedCost": _plain(line.contracted),
        "ContractedUnitPrice": _plain(line.contracted_price),
        "EffectiveCost": _plain(line.effective), "InvoiceId": f"inv-{month:%Y-%m}",
        "InvoiceIssuerName": "Amazon Web Services, Inc.", "ListCost": _plain(line.listed),
        "ListUnitPrice": _plain(line.list_price),
        "PricingCategory": _pricing(line), "PricingCurrency": "",
        "PricingCurrencyContractedUnitPrice": "", "PricingCurrencyEffectiveCost": "",
        "PricingCurrencyListUnitPrice": "", "PricingQuantity": _plain(line.quantity),
        "PricingUnit": line.unit or "", "ProviderName": "AWS",
        "PublisherName": "Amazon Web Services, Inc.", "RegionId": REGION,
        "RegionName": "US East (N. Virginia)", "ResourceId": line.resource_id or "",
        "ResourceName": "", "ResourceType": line.resource_type or "",
        "ServiceCategory": category, "ServiceName": line.service,
        "ServiceSubcategory": subcategory, "SkuId": _sku(line), "SkuMeter": "",
        "SkuPriceDetails": "", "SkuPriceId": _sku(line), "SubAccountId": ACCOUNT,
        "SubAccountName": "research", "SubAccountType": "Account", "Tags": tags_json(line),
    }


def _time(at: int) -> str:
    return moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pricing(line: Line) -> str:
    if line.category == "Credit":
        return ""
    return "Committed" if line.commitment and line.category == "Usage" else "Standard"


def _sku(line: Line) -> str:
    return "" if line.category == "Credit" else line.service.replace(" ", "")[:20].upper()


def tags_json(line: Line) -> str:
    """Tags as canonical JSON."""
    return json.dumps(dict(line.tags), sort_keys=True, separators=(",", ":"))


def write_focus(options: WorldOptions, lines: Iterable[Line], path: Path) -> None:
    """Write the lines as gzip'd FOCUS 1.2 CSV; the bytes depend on the lines only."""
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for line in lines:
        row = focus_row(options, line)
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
