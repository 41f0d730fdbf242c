"""What allocation has to get right, figure and gap: through the books and a query of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.finality import billing_months
from attribution.query.answer import Query, query
from attribution.run import attribute
from ledger.schema import CLOSES
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.conftest import DAY

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

WINDOW = Window.of_day(DAY)
A, B = {"experiment": "a"}, {"experiment": "b"}
NOVEMBER: dict[str, Any] = {
    "BillingPeriodStart": datetime(2026, 11, 1, tzinfo=UTC),
    "BillingPeriodEnd": datetime(2026, 12, 1, tzinfo=UTC),
}
Close = Callable[..., "Books"]


class Books:
    """A closed day as a reader sees it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def rows(self, currency: str = "USD", **options: Any) -> dict[str, Decimal]:  # noqa: ANN401
        """Cost by experiment in one currency."""
        results = query(self.ledger, Query(WINDOW, by=("experiment",), **options))
        [result] = [each for each in results if each.currency == currency]
        rows = {str(row["experiment"]): Decimal(row["cost"]) for row in result.rows}
        assert sum(rows.values()) == result.total
        return rows

    @property
    def closed(self) -> dict[str, Any]:
        closes = self.ledger.scan(CLOSES, WINDOW).filter(pl.col("stage") == "attribute")
        return closes.collect().row(0, named=True)

    @property
    def gaps(self) -> dict[str, dict[str, Any]]:
        """Gaps of the attribution by reason."""
        return {gap["reason"]: gap for gap in json.loads(self.closed["gaps"])}

    @property
    def coverage(self) -> float:
        return float(self.closed["coverage"])


@pytest.fixture
def close(ledger: Ledger, write_day: Callable[..., None]) -> Close:
    def run(day: DayBuilder, digest: str = "d1") -> Books:
        write_day(ledger, day.pod("elsewhere", node=None), digest=digest)
        attribute(ledger, Settings(), [DAY], version="test")
        return Books(ledger)

    return run


def test_a_refund(new_day: type[DayBuilder], close: Close) -> None:
    """It splits like the hour that it is of; alone it pays for no hour."""
    day = new_day().node(end=2).pod("u", end=2, gpus=6, labels=A)
    day.line("l").line("r", effective="-4", ChargeCategory="Adjustment", ChargeClass="Correction")
    day.line("alone", hour=1, effective="-2", ChargeCategory="Adjustment")
    books = close(day)
    assert books.rows() == {"a": Decimal("1.5"), "__idle__": Decimal("0.5")}
    assert set(books.gaps) == {"unpriced"}
    assert books.gaps["unpriced"]["node_hours"] == 1
    assert books.gaps["unpriced"]["gpu_hours"] == 8


def test_a_credit_at_the_end_of_the_month(
    new_day: type[DayBuilder], close: Close, ledger: Ledger
) -> None:
    """The month is provisional until then; the credit restates the day and never goes below it."""
    day = new_day().node(end=1).pod("u", end=1, gpus=4, labels=A).line("l", **NOVEMBER)
    assert close(day).rows() == {"a": Decimal(4), "__idle__": Decimal(4)}
    assert [each.state for each in billing_months(ledger, WINDOW)] == ["open"]
    day.line("c", until=1, effective="-8", ChargeCategory="Credit", **NOVEMBER)
    books = close(day, digest="d2")
    assert books.rows() == {"a": Decimal(0), "__idle__": Decimal(0)}
    assert books.gaps == {}
    close_notes = json.loads(books.closed["notes"])
    assert "restated (bill, usage): a 4 -> 0 USD, difference -4" in close_notes
    assert [each.why for each in billing_months(ledger, WINDOW)] == [
        "the bill names no invoice and not all of it is delivered"
    ]


def test_two_currencies(new_day: type[DayBuilder], close: Close) -> None:
    """Each has its total; a price in a third is compared with neither."""
    day = new_day().node(end=1).node("n2", end=1).line("l").price("gpu", "1", currency="EUR")
    day.line("m", "i-n2", effective="70", BillingCurrency="CNY")
    day.pod("u", end=1, gpus=4, labels=A).pod("v", node="n2", end=1, gpus=8, labels=A)
    books = close(day)
    assert books.rows("USD") == {"a": Decimal(4), "__idle__": Decimal(4)}
    assert books.rows("CNY") == {"a": Decimal(70)}
    assert set(books.gaps) == {"currency"}


def test_an_unpriced_type(new_day: type[DayBuilder], close: Close) -> None:
    """Its hours are named, and no row of it costs nothing."""
    day = new_day().node(instance_type="p6-b300.48xlarge", gpu_model="B300").node("n2", end=1)
    day.line("l", "i-n2").price("gpu", "2", gpu_model="H100")
    day.pod("u", end=12, gpus=8, labels=A).pod("v", node="n2", end=1, gpus=8, labels=B)
    books = close(day)
    assert books.rows() == {"b": Decimal(8)}
    assert set(books.gaps) == {"unpriced", "unmatched_node"}
    gap = books.gaps["unpriced"]
    assert (gap["type"], gap["gpu_hours"]) == ("p6-b300.48xlarge", 192)


def test_an_over_committed_node(new_day: type[DayBuilder], close: Close) -> None:
    """Everyone pays in proportion, idle is 0, and the excess has its hours."""
    day = new_day().node(end=1).line("l")
    day.pod("u", end=1, gpus=8, labels=A).pod("v", end=1, gpus=2, labels=B)
    books = close(day)
    assert books.rows() == {"a": Decimal("6.4"), "b": Decimal("1.6")}
    assert set(books.gaps) == {"over_commit"}
    assert books.gaps["over_commit"]["gpu_hours"] == 2


def test_a_day_with_six_hours_of_samples_missing(new_day: type[DayBuilder], close: Close) -> None:
    """They are paid and nobody's; the total does not fall."""
    day = new_day()
    for start, end in ((0, 9), (15, 24)):
        day.node(start=start, end=end, interval=60)
        day.pod(f"u{start}", start, end, gpus=4, labels=A, interval=60)
    for hour in range(24):
        day.line(f"l{hour:02}", hour=hour)
    books = close(day)
    assert books.rows() == {
        "a": Decimal(18 * 4),
        "__idle__": Decimal(18 * 4),
        "__unattributed__": Decimal(6 * 8),
    }
    assert books.coverage == 0.75
    gap = books.gaps["no_samples"]
    assert (gap["node_hours"], gap["gpu_hours"]) == (6, 48)
    assert "09:00:00-15:00:00" in gap["detail"]
