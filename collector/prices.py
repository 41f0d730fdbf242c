"""The settings' prices as a source: what prices a node-hour where no bill does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from collector.labels import capacity_word
from collector.source import Permissions, Probe
from ledger.facts import Facts
from ledger.pricing import ListedPrice, Prices
from ledger.schema import PRICES
from ledger.settings import Settings
from ledger.window import Window

NAME = "prices/settings"
_COLUMNS = [name for name in PRICES.columns if name != PRICES.source_column]
_KEYS = ("provider", "region", "zone", "instance_type", "gpu_model")
_LOWER = ("operating_system", "tenancy")
Row = dict[str, Any]


@dataclass(frozen=True)
class SettingsPrices:
    """The ``prices`` block of the settings.

    Args:
        prices: Unit prices, and a list of prices by key and time.
        currency: ISO 4217 code of those that name none.
    """

    prices: Prices
    currency: str

    @property
    def name(self) -> str:
        """``prices/settings``."""
        return NAME

    @property
    def required(self) -> bool:
        """The settings are always at hand, so nothing of them can be missing."""
        return True

    @property
    def snapshot(self) -> bool:
        """Today's settings price any day."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Nothing is read but the settings."""
        return Permissions()

    def collect(self, window: Window) -> Facts:
        """One row of ``prices`` per price and day, valid as long as the price is on that day.

        Rows of the unit prices: ``gpu`` (``gpu_alone`` where the host is priced apart) with
        ``gpu_model`` (``default`` = any model) for each model, ``vcpu`` and ``gib``, and
        ``storage_gib`` if it is named; their keys are null. Then one per entry of the list. Prices
        are per hour, after discounts; ``kind`` says where they come from.
        """
        prices = [*self._units(), *(self._listed(entry) for entry in self.prices.list)]
        rows = [
            row for day in window.days() for price in prices for row in self._on_day(day, price)
        ]
        frame = pl.DataFrame(rows, schema={name: PRICES.schema[name] for name in _COLUMNS})
        return Facts(window, {PRICES.name: frame})

    def probe(self) -> Sequence[Probe]:
        """What the settings give a price for."""
        listed = {entry.instance_type or entry.gpu_model for entry in self.prices.list}
        known = sorted({*self.prices.gpu, *filter(None, listed)})
        models = ", ".join(known) or "no card"
        blind = "" if known else "card-hours that no bill prices"
        return [Probe("prices per card-hour", not blind, models, blind)]

    def reach(self) -> Window | None:
        """None: the prices hold for any day."""
        return None

    def _units(self) -> Iterator[Row]:
        prices = self.prices
        card = "gpu" if prices.host == "included" else "gpu_alone"
        for model in sorted(prices.gpu):
            price = prices.each_hour(prices.gpu[model])
            yield self._row(card, price, "settings", gpu_model=model)
        for name in ("vcpu", "gib"):
            kind = "reference" if name in prices.built_in else "settings"
            yield self._row(name, prices.hourly(name), kind)
        if prices.storage_gib is not None:
            yield self._row("storage_gib", prices.each_hour(prices.storage_gib), "settings")

    def _listed(self, entry: ListedPrice) -> Row:
        keys: Row = {name: getattr(entry, name) for name in _KEYS}
        lower = {name: getattr(entry, name) for name in _LOWER}
        keys |= {name: word.lower() for name, word in lower.items() if word}
        keys |= {"capacity_type": capacity_word(entry.capacity_type)}
        keys |= {"start": entry.since, "end": entry.ends}
        if entry.currency:
            keys["currency"] = entry.currency
        card = entry.resource == "gpu" and self.prices.host == "apart"
        return self._row(
            "gpu_alone" if card else entry.resource, entry.hourly, entry.source, **keys
        )

    def _row(self, resource: str, price: object, kind: str, **keys: object) -> Row:
        row = dict.fromkeys(_COLUMNS) | {"currency": self.currency, **keys}
        return row | {"resource": resource, "price_per_hour": price, "kind": kind}

    def _on_day(self, day: date, row: Row) -> Iterator[Row]:
        """The row of a day; none if the price does not hold on it."""
        valid = Window.of_day(day)
        start = max(valid.start, row["start"] or valid.start)
        end = min(valid.end, row["end"] or valid.end)
        if start < end:
            yield {**row, "day": day, "start": start, "end": end}


def from_settings(settings: Settings) -> SettingsPrices | None:
    """The collector of the settings' prices; None if there is no ``prices`` block."""
    if settings.prices is None:
        return None
    return SettingsPrices(settings.prices, settings.currency)
