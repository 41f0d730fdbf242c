"""Rows of sources that left the settings are not counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from attribution.run import attribute
from ledger.schema import CHARGES, COSTS
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

DAY = date(2026, 11, 30)


def total(ledger: Ledger) -> Decimal:
    return Decimal(ledger.scan(COSTS).collect()["EffectiveCost"].sum() or 0)


def test_a_renamed_bill_is_paid_once(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Callable[..., None]
) -> None:
    write_day(ledger, new_day().node(end=1).line("l", effective="8"))
    lines = ledger.scan(CHARGES).collect().drop("x_Source")
    ledger.replace(CHARGES, lines, Window.of_day(DAY), "renamed")
    for names, expected in ((["aws", "renamed"], 16), (["renamed"], 8), (["other"], 0)):
        settings = Settings.model_validate(
            {"billing": [{"name": n, "path": f"/{n}"} for n in names]}
        )
        attribute(ledger, settings, [DAY], version="1")
        assert total(ledger) == expected
