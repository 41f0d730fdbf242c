"""The settings' prices as rows of ``prices``."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl

from collector.prices import from_settings
from ledger.schema import PRICES
from ledger.settings import Prices, Settings
from ledger.window import Window

TWO_DAYS = Window.of_days(date(2026, 5, 1), date(2026, 5, 2))


def collect(prices: Prices, currency: str = "USD") -> pl.DataFrame:
    source = from_settings(Settings(prices=prices, currency=currency))
    assert source is not None
    return source.collect(TWO_DAYS).tables["prices"]


def test_no_block_is_no_source() -> None:
    assert from_settings(Settings()) is None


def test_a_row_per_price_and_day() -> None:
    frame = collect(Prices(gpu={"H100": Decimal("2.50"), "default": Decimal(1)}), "EUR")
    assert frame.schema == {name: dtype for name, dtype in PRICES.schema.items()
                            if name != PRICES.source_column}  # fmt: skip
    assert frame.height == 8
    first = frame.filter(pl.col("day") == date(2026, 5, 1))
    assert first.select("resource", "gpu_model", "price_per_hour", "currency").rows() == [
        ("gpu", "H100", Decimal("2.50"), "EUR"),
        ("gpu", "default", Decimal(1), "EUR"),
        ("vcpu", None, Decimal("0.031611"), "EUR"),
        ("gib", None, Decimal("0.004237"), "EUR"),
    ]
    spans = first.select("start", "end").unique().rows()
    assert spans == [(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC))]


def test_a_price_keeps_its_twelve_decimals() -> None:
    frame = collect(Prices(vcpu=Decimal("0.000000000001"), gib=Decimal(0)))
    assert set(frame["price_per_hour"]) == {Decimal("0.000000000001"), Decimal(0)}


def test_what_the_source_says_of_itself() -> None:
    source = from_settings(Settings(prices=Prices(gpu={"H100": Decimal(2)})))
    assert source is not None
    assert (source.name, source.required, source.snapshot) == ("prices/settings", True, False)
    assert source.reach() is None
    [probe] = source.probe()
    assert (probe.ok, probe.detail) == (True, "H100")
    bare = from_settings(Settings(prices=Prices()))
    assert bare is not None
    assert [(probe.ok, bool(probe.blind)) for probe in bare.probe()] == [(False, True)]
