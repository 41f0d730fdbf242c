"""A question to the books: which rows of a window, by which keys, at which cost."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ledger.errors import UsageError
from ledger.schema import IDENTITY_KEYS
from ledger.window import Window

Cost = Literal["effective", "billed", "contracted", "list", "active"]
COST_OF: Mapping[str, str] = {
    "effective": "EffectiveCost",
    "billed": "BilledCost",
    "contracted": "ContractedCost",
    "list": "ListCost",
    "active": "ActiveCost",
}
KEYS: Mapping[str, str] = {
    **{key: key for key in IDENTITY_KEYS},
    "day": "day",
    "provider": "ProviderName",
    "service": "ServiceName",
    "source": "x_Source",
    "cluster": "cluster",
    "node": "node",
    "namespace": "namespace",
    "resource": "resource",
    "target": "target",
    "reason": "reason",
    "confidence": "confidence",
    "dimension": "x_Dimension",
    "elasticity": "x_Elasticity",
    "basis": "x_Basis",
    "currency": "BillingCurrency",
    "region": "RegionId",
    "account": "SubAccountId",
    "category": "ServiceCategory",
    "charge": "ChargeCategory",
    "pod": "pod",
    "hour": "ChargePeriodStart",
}
"""Grouping keys and the columns that they read; ``label:KEY`` reads the tags."""

FINE = frozenset({"pod", "hour"})
"""Keys that only the hourly rows know."""


@dataclass(frozen=True)
class Query:
    """A question.

    Args:
        window: Time asked for. Whole days are read from ``costs_daily``; else the shares whose
            period begins inside.
        by: Grouping keys, see ``KEYS``, or ``label:KEY``; empty asks for the total alone.
        cost: Which cost.
        tags: Tag or label to glob; a row is shown if all match.
        filters: Grouping key to glob, likewise.
        currency: Only this one.
        idle: ``share`` gives the idle of a node and resource to its holders, by their cost.
    """

    window: Window
    by: tuple[str, ...] = ("experiment",)
    cost: Cost = "effective"
    tags: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    currency: str | None = None
    idle: Literal["separate", "share"] = "separate"

    @property
    def labels(self) -> list[str]:
        """The ``label:KEY`` columns that the question looks at."""
        keys = {key for key in (*self.by, *self.filters) if key.startswith("label:")}
        return sorted(keys | {f"label:{key}" for key in self.tags})

    @property
    def fine(self) -> bool:
        """Whether the hourly rows are needed."""
        return not self.window.whole_days or bool({*self.by, *self.filters} & FINE)

    def check(self) -> None:
        """Look at all keys.

        Raises:
            UsageError: A key is empty or unknown.
        """
        for key in (*self.by, *self.filters):
            _check(key)
        if empty := [key for key in self.tags if not key.strip()]:
            raise UsageError(f"--tag {empty[0]!r}= has no key", "write --tag owner=lin")


def _check(key: str) -> None:
    if key.startswith("label:") and key.removeprefix("label:").strip():
        return
    if key in KEYS:
        return
    near = difflib.get_close_matches(key, [*KEYS, "label:KEY"], n=1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(KEYS)} or label:KEY"
    raise UsageError(f"{key!r} is not a grouping key", hint)
