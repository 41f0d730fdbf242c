"""The settings' prices as a source: what prices a node-hour where no bill does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from collector.source import Permissions, Probe
from ledger.facts import Facts
from ledger.schema import PRICES
from ledger.settings import Prices, Settings
from ledger.window import Window

NAME = "prices/settings"
_COLUMNS = [name for name in PRICES.columns if name != PRICES.source_column]


@dataclass(frozen=True)
class SettingsPrices:
    """The ``prices`` block of the settings.

    Args:
        prices: Prices per card-hour, vCPU-hour and GiB-hour.
        currency: ISO 4217 code of all of them.
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
        """One row of ``prices`` per price and day, valid from midnight to midnight UTC.

        Rows: ``gpu`` with ``gpu_model`` (``default`` = any model) for each model, ``vcpu`` and
        ``gib``; what they do not depend on (provider, region, type) is null.
        """
        rows = [self._row(day, *price) for day in window.days() for price in self._prices()]
        frame = pl.DataFrame(rows, schema={name: PRICES.schema[name] for name in _COLUMNS})
        return Facts(window, {PRICES.name: frame})

    def probe(self) -> Sequence[Probe]:
        """What the settings give a price for."""
        models = ", ".join(sorted(self.prices.gpu)) or "no card"
        blind = "" if self.prices.gpu else "card-hours that no bill prices"
        return [Probe("prices per card-hour", not blind, models, blind)]

    def reach(self) -> Window | None:
        """None: the prices hold for any day."""
        return None

    def _prices(self) -> Iterator[tuple[str, str | None, Decimal]]:
        for model in sorted(self.prices.gpu):
            yield "gpu", model, self.prices.gpu[model]
        yield "vcpu", None, self.prices.vcpu
        yield "gib", None, self.prices.gib

    def _row(
        self, day: date, resource: str, model: str | None, price: Decimal
    ) -> dict[str, object]:
        valid = Window.of_day(day)
        return {
            **dict.fromkeys(_COLUMNS),
            "day": day,
            "resource": resource,
            "gpu_model": model,
            "currency": self.currency,
            "start": valid.start,
            "end": valid.end,
            "price_per_hour": price,
        }


def from_settings(settings: Settings) -> SettingsPrices | None:
    """The collector of the settings' prices; None if there is no ``prices`` block."""
    if settings.prices is None:
        return None
    return SettingsPrices(settings.prices, settings.currency)
