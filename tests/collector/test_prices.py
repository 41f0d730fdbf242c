"""The settings' prices as rows of ``prices``."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from pydantic import ValidationError

from collector.prices import from_settings
from ledger.schema import PRICES
from ledger.settings import Prices, Settings
from ledger.window import Window

NODE: dict[str, object] = {"resource": "node"}
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


def listed(*entries: dict[str, object], **block: object) -> pl.DataFrame:
    """The rows of price-list entries, as a settings file has them, without the unit prices."""
    settings = Settings.model_validate({"prices": {"list": list(entries), **block}})
    source = from_settings(settings)
    assert source is not None
    rows = source.collect(TWO_DAYS).tables["prices"]
    return rows.filter(~pl.col("resource").is_in(["vcpu", "gib"]))


def test_an_entry_keeps_its_keys_and_time() -> None:
    entry = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "operating_system": "Linux",
        "capacity_type": "PREEMPTIBLE",
        "currency": "CNY",
        "price": "98.32",
        "kind": "spot",
        "from": "2026-05-01T06:00:00+02:00",
        "until": date(2026, 5, 2),
    }
    [row] = listed(entry).to_dicts()
    assert (row["resource"], row["price_per_hour"], row["kind"]) == (
        "node",
        Decimal("98.32"),
        "spot",
    )
    keys = ("provider", "region", "operating_system", "capacity_type", "currency", "zone")
    assert [row[key] for key in keys] == ["aws", "us-east-1", "linux", "spot", "CNY", None]
    assert row["start"] == datetime(2026, 5, 1, 4, tzinfo=UTC)
    assert row["end"] == datetime(2026, 5, 2, tzinfo=UTC)


def test_the_month_of_price_lists_has_730_hours() -> None:
    frame = listed(
        NODE | {"price": 1, "per": "month"}, gpu={"H100": 20}, per="month", storage_gib="0.1"
    )
    prices = dict(
        frame.filter(day=TWO_DAYS.start.date()).select("resource", "price_per_hour").rows()
    )
    assert prices == {
        "gpu": Decimal("0.027397260274"),
        "node": Decimal("0.001369863014"),
        "storage_gib": Decimal("0.000136986301"),
    }
    # The built-in rates are per hour whatever the unit of the others is.
    source = from_settings(Settings.model_validate({"prices": {"per": "month", "vcpu": 730}}))
    assert source is not None
    rows = source.collect(TWO_DAYS).tables["prices"].select("resource", "price_per_hour", "kind")
    assert set(rows.rows()) == {
        ("vcpu", Decimal(1), "settings"),
        ("gib", Decimal("0.004237"), "reference"),
    }


@pytest.mark.parametrize(
    ("discounts", "price"),
    [
        (["40%", "20%"], "48"),
        ("10%", "90"),
        ([0.1], "90"),
        (["0.1"], "90"),
        ([0], "100"),
        (["0.5 %"], "99.5"),
    ],
)
def test_discounts_compound(discounts: object, price: str) -> None:
    frame = listed({"resource": "node", "price": 100, "discounts": discounts})
    assert set(frame["price_per_hour"]) == {Decimal(price)}


@pytest.mark.parametrize("discount", [10, "10", 1, "100%", "110 %", -0.1, True, "ten", "nan"])
def test_a_discount_that_can_be_read_in_two_ways_is_refused(discount: object) -> None:
    with pytest.raises(ValidationError, match="a discount is '10%' in quotes, or a fraction"):
        listed({"resource": "node", "price": 100, "discounts": [discount]})


def test_a_fee_in_advance_is_spread_over_its_node_hours() -> None:
    fee = {"fee": 1152, "hours": 48, "nodes": 2}
    frame = listed({"upfront": fee, "discounts": "50%"}, {"upfront": fee | {"fee": None}})
    assert set(frame.select("price_per_hour", "kind").rows()) == {
        (Decimal(6), "upfront"),
        (None, "upfront"),
    }


def test_a_fee_in_advance_pays_for_no_longer_than_its_hours() -> None:
    fee: dict[str, object] = {"upfront": {"fee": 24, "hours": 6}, "from": "2026-05-01T20:00:00Z"}
    frame = listed(fee)
    assert (frame["end"] - frame["start"]).sum() == timedelta(hours=6)
    with pytest.raises(ValidationError, match="further apart than the hours"):
        listed(fee | {"until": "2026-05-02T03:00:00Z"})


def test_an_unknown_price_and_a_free_node_are_told_apart() -> None:
    frame = listed(NODE | {"price": None}, NODE | {"free": True})
    assert set(frame.select("price_per_hour", "kind").rows()) == {
        (None, "settings"),
        (Decimal(0), "free"),
    }


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"price": 1},
        {"price": 1, "gpu_model": "H100"},
        NODE | {"price": 1, "free": True},
        NODE | {"price": 1, "upfront": {"fee": 1, "hours": 1}},
        {"resource": "gpu", "upfront": {"fee": 1, "hours": 1}},
        NODE | {"price": 1, "from": "2026-05-02", "until": "2026-05-01"},
        NODE | {"price": -1},
        NODE | {"price": 1, "instance": "p5"},
    ],
)
def test_an_entry_that_says_nothing_or_two_things_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        listed(entry)


def test_settings_with_a_list_survive_being_written_out() -> None:
    entries = [
        {"instance_type": "x", "price": 1, "from": "2026-05-01"},
        {"resource": "gpu", "free": True},
        {"upfront": {"fee": 2, "hours": 3}},
        NODE | {"price": None},
    ]
    settings = Settings.model_validate({"prices": {"list": entries}})
    assert Settings.model_validate(settings.model_dump(mode="json")) == settings


def test_a_card_apart_from_its_host_is_another_resource() -> None:
    entry = {"resource": "gpu", "gpu_model": "L4", "price": 1}
    frame = listed(entry, gpu={"H100": 2}, host="apart")
    assert set(frame["resource"]) == {"gpu_alone"}
