"""The bill as FOCUS 1.2 text: one row per line, written as gzip'd CSV."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from collector.simulate.bills import next_month
from collector.simulate.model import ACCOUNT, REGION, Line
from collector.simulate.options import WorldOptions, milliseconds, moment
from ledger.text import canonical_json

DIMENSIONS = {
    "Amazon Elastic Compute Cloud": "compute",
    "Savings Plans for AWS Compute usage": "compute",
    "Amazon Simple Storage Service": "storage_logs",
    "Amazon FSx": "storage_logs",
    "AmazonCloudWatch": "storage_logs",
    "AWS Support (Business)": "other",
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
        "AvailabilityZone": "",
        "BilledCost": _plain(line.billed),
        "BillingAccountId": ACCOUNT,
        "BillingAccountName": "research",
        "BillingAccountType": "Management Account",
        "BillingCurrency": options.currency,
        "BillingPeriodEnd": _time(milliseconds(next_month(month))),
        "BillingPeriodStart": _time(milliseconds(month)),
        "CapacityReservationId": "",
        "CapacityReservationStatus": "",
        "ChargeCategory": line.category,
        "ChargeClass": "",
        "ChargeDescription": line.description,
        "ChargeFrequency": "One-Time" if line.category == "Credit" else line.frequency,
        "ChargePeriodEnd": _time(line.end),
        "ChargePeriodStart": _time(line.start),
        "CommitmentDiscountCategory": "Spend" if committed else "",
        "CommitmentDiscountId": line.commitment or "",
        "CommitmentDiscountName": "",
        "CommitmentDiscountQuantity": "",
        "CommitmentDiscountStatus": "Used" if committed and usage else "",
        "CommitmentDiscountType": "Compute Savings Plan" if committed else "",
        "CommitmentDiscountUnit": "",
        "ConsumedQuantity": _plain(line.quantity) if usage else "",
        "ConsumedUnit": (line.unit or "") if usage else "",
        "ContractedCost": _plain(line.contracted),
        "ContractedUnitPrice": _plain(line.contracted_price),
        "EffectiveCost": _plain(line.effective),
        "InvoiceId": f"inv-{month:%Y-%m}",
        "InvoiceIssuerName": "Amazon Web Services, Inc.",
        "ListCost": _plain(line.listed),
        "ListUnitPrice": _plain(line.list_price),
        "PricingCategory": _pricing(line),
        "PricingCurrency": "",
        "PricingCurrencyContractedUnitPrice": "",
        "PricingCurrencyEffectiveCost": "",
        "PricingCurrencyListUnitPrice": "",
        "PricingQuantity": _plain(line.quantity),
        "PricingUnit": line.unit or "",
        "ProviderName": "AWS",
        "PublisherName": "Amazon Web Services, Inc.",
        "RegionId": REGION,
        "RegionName": "US East (N. Virginia)",
        "ResourceId": line.resource_id or "",
        "ResourceName": "",
        "ResourceType": line.resource_type or "",
        "ServiceCategory": category,
        "ServiceName": line.service,
        "ServiceSubcategory": subcategory,
        "SkuId": _sku(line),
        "SkuMeter": "",
        "SkuPriceDetails": "",
        "SkuPriceId": _sku(line),
        "SubAccountId": ACCOUNT,
        "SubAccountName": "research",
        "SubAccountType": "Account",
        "Tags": tags_json(line),
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
    return canonical_json(dict(line.tags))


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
