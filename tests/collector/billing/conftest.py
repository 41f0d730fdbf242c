"""Small FOCUS bills, written and read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest

from collector.billing import from_settings
from ledger.facts import Facts
from ledger.settings import Bill
from ledger.window import Window

EVER = Window.of_days(date(2020, 1, 1), date(2029, 12, 31))
LINE = {
    "BillingAccountId": "000123456789",
    "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-05-01T00:00:00Z",
    "BillingPeriodEnd": "2026-06-01T00:00:00Z",
    "ChargePeriodStart": "2026-05-02T00:00:00Z",
    "ChargePeriodEnd": "2026-05-02T01:00:00Z",
    "ChargeCategory": "Usage",
    "ChargeFrequency": "Usage-Based",
    "ServiceCategory": "Compute",
    "ServiceName": "AmazonEC2",
    "ProviderName": "AWS",
    "BilledCost": "1.00",
    "EffectiveCost": "1.00",
    "ListCost": "1.00",
    "ContractedCost": "1.00",
    "ResourceId": "i-0a",
    "Tags": "",
}

Rows = Sequence[Mapping[str, str]]
Collect = Callable[..., Facts]
Text = Callable[..., str]


def as_csv(rows: Rows, columns: Sequence[str] = tuple(LINE)) -> str:
    """Lines as CSV text: ``LINE`` with the cells that a row changes."""
    columns = [*columns, *sorted({name for row in rows for name in row} - set(columns))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([{**LINE, **row}.get(name, "") for name in columns] for row in rows)
    return out.getvalue()


@pytest.fixture(scope="session")
def text() -> Text:
    """``as_csv`` for tests: rows to CSV text."""
    return as_csv


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """Write rows, CSV text or bytes as a bill file, and collect it."""

    def run(
        content: Rows | str | bytes,
        window: Window = EVER,
        *,
        name: str = "bill.csv",
        timezone: str = "UTC",
    ) -> Facts:
        data = content if isinstance(content, str | bytes) else as_csv(content)
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return from_settings(Bill(name="aws", path=name, timezone=timezone), tmp_path).collect(
            window
        )

    return run


@pytest.fixture
def collect_path() -> Collect:
    """Collect whatever stands at a path."""

    def run(path: Path | str, window: Window = EVER) -> Facts:
        return from_settings(Bill(name="aws", path=str(path)), Path("/")).collect(window)

    return run
