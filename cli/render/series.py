"""The parts that bars are made of: one order, in which they are stacked, listed and coloured."""

from __future__ import annotations

from typing import get_args

from ledger.schema import IDLE, SHARED, UNATTRIBUTED
from ledger.settings import Phase

SPECIAL = {IDLE: "idle", SHARED: "shared", UNATTRIBUTED: "unattributed"}
"""How special targets are called among phases."""
NO_PHASE = "no phase"
SERIES: tuple[str, ...] = (*get_args(Phase), "idle", "unattributed", "shared", NO_PHASE)


def rank(name: str) -> int:
    """The place of a part; what is not known stands last."""
    return SERIES.index(name) if name in SERIES else len(SERIES)
