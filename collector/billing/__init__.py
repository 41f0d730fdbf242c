"""Bills: FOCUS Cost and Usage files (1.0 to 1.4) become rows of the table ``charges``.

The path of a line: ``files`` (and ``s3``) finds and fetches, ``sheet`` opens a file as text cells,
``columns`` matches its headers, ``lines`` cleans a batch of rows with ``numbers``, ``times``,
``objects`` and ``content``, ``reading`` does so for all files, ``whole`` gives the lines their ids,
``days`` splits what spans several days, ``kinds`` names dimension and elasticity, and ``focus`` is
the collector that puts them together. ``report`` keeps count of everything odd. ``declared`` reads
costs that no cloud bills.
"""

from __future__ import annotations

from pathlib import Path

from collector.billing.declared import DeclaredCosts
from collector.billing.focus import FocusBill
from ledger.settings import Bill, resolve_path

__all__ = ["DeclaredCosts", "FocusBill", "from_settings"]


def from_settings(bill: Bill, base: Path) -> FocusBill | DeclaredCosts:
    """The collector of one bill of the settings; relative paths are relative to ``base``."""
    path = resolve_path(bill.path, base)
    return DeclaredCosts(bill, path) if bill.kind == "declared" else FocusBill(bill, path)
