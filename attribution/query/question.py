"""A question to the books: which rows of a window, by which keys, at which cost, shared how."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from ledger.errors import SettingsError, UsageError
from ledger.money import UNITS
from ledger.schema import IDENTITY_KEYS, IDLE
from ledger.settings import Settings
from ledger.window import Window, iso

Cost = Literal["effective", "billed", "contracted", "list", "active"]
Pool = Literal["node", "cluster"]
Split = Literal["even", "weighted", "none"]
COST_OF: Mapping[str, str] = {
    "effective": "EffectiveCost",
    "billed": "BilledCost",
    "contracted": "ContractedCost",
    "list": "ListCost",
    "active": "ActiveCost",
}
PLACES: Mapping[str, tuple[str, ...]] = {
    "cluster": ("cluster",),
    "node": ("node",),
    "instance_type": ("instance_type",),
}
"""Where something ran. What is special there (idle, not seen) has a place as well."""

NAMES: Mapping[str, tuple[str, ...]] = {
    **{key: (key,) for key in IDENTITY_KEYS},
    "namespace": ("namespace",),
    "pod": ("pod",),
    "kind": ("root_kind",),
    "workload": ("root_kind", "root_name"),
    "path": ("path",),
    "target": ("target",),
}
"""What a row is of. What is special shows the name of its target under such a key."""

KEYS: Mapping[str, tuple[str, ...]] = {
    **NAMES,
    **PLACES,
    "hour": ("ChargePeriodStart",),
    "day": ("day",),
    "month": ("day",),
    "billing_month": ("BillingPeriodStart",),
    "invoice_month": ("x_InvoiceMonth",),
    "provider": ("ProviderName",),
    "service": ("ServiceName",),
    "source": ("x_Source",),
    "resource": ("resource",),
    "line_type": ("x_LineType",),
    "reason": ("reason",),
    "confidence": ("confidence",),
    "dimension": ("x_Dimension",),
    "elasticity": ("x_Elasticity",),
    "basis": ("x_Basis",),
    "price_source": ("x_PriceSource",),
    "currency": ("BillingCurrency",),
    "region": ("RegionId",),
    "account": ("SubAccountId",),
    "category": ("ServiceCategory",),
    "charge": ("ChargeCategory",),
}
"""Grouping keys and the columns that they read; see ``OPEN`` for ``label:KEY`` and its like."""

OPEN = ("label", "tag", "annotation")
"""Prefixes of keys that a user completes, like ``label:team``."""

CLOCK = ("hour", "day", "month")
PERIODS = (*CLOCK, "billing_month", "invoice_month")
"""Keys of time: nothing that is shared moves from one of their values to another."""

FINE = frozenset({"pod", "path", "hour"})
"""Keys that only the hourly rows know."""


@dataclass(frozen=True)
class Match:
    """A condition: the value of a key fits a glob, or (``negated``) does not."""

    key: str
    glob: str
    negated: bool = False

    def __str__(self) -> str:
        """As a flag says it."""
        return f"{self.key}{self.sign}{self.glob}"

    @property
    def sign(self) -> str:
        """How it is written between key and value."""
        return "!=" if self.negated else "="


def matches(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[Match, ...]:
    """Conditions of pairs; a key that ends in ``!`` is negated, as ``owner!=lin`` is cut at =."""
    pairs = given.items() if isinstance(given, Mapping) else given
    return tuple(Match(key.removesuffix("!"), glob, key.endswith("!")) for key, glob in pairs)


@dataclass(frozen=True)
class Share:
    """What is shared among the rest: rows that match all conditions, and how they are split.

    ``even``: the same part for each key; ``weighted``: by their own cost; ``none``: left as it is
    (an exception before wider policies).
    """

    match: tuple[Match, ...]
    split: Split = "weighted"

    @property
    def names_idle(self) -> bool:
        """Whether idle is meant by its name: otherwise it is shared as idle or not at all."""
        return any(each.glob == IDLE and not each.negated for each in self.match)


@dataclass(frozen=True)
class Sharing:
    """What moves between rows at query time; no total ever changes.

    Args:
        idle: Give idle to who holds the rest of its pool, by their cost of the same resource.
        pool: What idle is pooled by.
        policies: What is shared among all other keys; the first that matches a row counts.
        overhead: An amount per hour of the window that is added, in the currency of the answer.
        overhead_split: How it is split.
    """

    idle: bool = False
    pool: Pool = "node"
    policies: tuple[Share, ...] = ()
    overhead: Decimal = Decimal(0)
    overhead_split: Literal["even", "weighted"] = "weighted"


@dataclass(frozen=True)
class Query:
    """A question.

    Args:
        window: Time asked for. Whole days are read from ``costs_daily``; else the shares whose
            period begins inside.
        by: Grouping keys, see ``KEYS``, or ``label:KEY``, ``tag:KEY``, ``annotation:KEY``; empty
            asks for the total alone.
        cost: Which cost.
        tags: Conditions on tags and labels (identity keys also meet the identity). Of several with
            one key, any may fit; negated ones must all hold.
        filters: Conditions on grouping keys, likewise.
        currency: Only this one.
        sharing: What is shared among whom.
        idle_rows: ``pool`` names the pool of each idle row, like ``train-a/gpu-1/__idle__``.
        quota: Show what quotas reserve and nobody asked for at their namespaces, out of idle.
        top: Show that many rows, and the rest as one row ``other``; special rows always stand.
    """

    window: Window
    by: tuple[str, ...] = ("experiment",)
    cost: Cost = "effective"
    tags: tuple[Match, ...] = ()
    filters: tuple[Match, ...] = ()
    currency: str | None = None
    sharing: Sharing = Sharing()
    idle_rows: Literal["keys", "pool"] = "keys"
    quota: bool = False
    top: int | None = None

    @property
    def keys(self) -> list[str]:
        """All keys that are looked at, tags as ``label:KEY``, in a fixed order."""
        tests = [*self.filters, *(m for share in self.sharing.policies for m in share.match)]
        tagged = {f"label:{each.key}" for each in self.tags}
        named = {each.key for each in self.tags} & set(IDENTITY_KEYS)
        return sorted({*self.by, *(each.key for each in tests), *tagged, *named})

    @property
    def opened(self) -> list[str]:
        """Those of ``keys`` that read JSON, like ``label:team``."""
        return [key for key in self.keys if key not in KEYS]

    @property
    def columns(self) -> set[str]:
        """The columns that the other keys read."""
        return {column for key in self.keys if key in KEYS for column in KEYS[key]}

    @property
    def fine(self) -> bool:
        """Whether the hourly rows are needed."""
        return not self.window.whole_days or bool(FINE & set(self.keys))

    @property
    def pool(self) -> list[str]:
        """The columns that tell pools of idle apart; what is pooled never leaves its time."""
        place = ["cluster", "node"] if self.sharing.pool == "node" else ["cluster"]
        extra = {"hour": "ChargePeriodStart", "billing_month": "BillingPeriodStart"}
        extra["invoice_month"] = "x_InvoiceMonth"
        times = [column for key, column in extra.items() if key in self.by]
        return ["BillingCurrency", "day", *place, "resource", *times]

    @property
    def hides_holders(self) -> bool:
        """Whether a condition speaks of what idle has none of: then it shows a part of it."""
        return bool(self.tags) or any(_names(each.key) for each in self.filters)

    @property
    def looks_at_pools(self) -> bool:
        """Whether rows must be read by the pools of idle."""
        return self.sharing.idle or self.hides_holders

    def check(self) -> None:
        """Look at all keys and amounts.

        Raises:
            UsageError: A key is empty or unknown, a policy matches nothing by design, an amount
                is no amount, or the window cuts an hour.
        """
        for key in self.by:
            _check(key)
        for condition in (*self.filters, *(m for p in self.sharing.policies for m in p.match)):
            _check(condition.key)
        if empty := [each for each in self.tags if not each.key.strip()]:
            raise UsageError(f"--tag {empty[0]} has no key", "write --tag owner=lin")
        if any(not policy.match for policy in self.sharing.policies):
            raise UsageError("a shared cost has no condition", "write --share namespace=monitoring")
        if self.top is not None and self.top < 1:
            raise UsageError(f"--top {self.top} shows nothing", "use 1 or more")
        _check_overhead(self.sharing.overhead)
        _check_hours(self.window)


def telling(by: Sequence[str]) -> bool:
    """Whether one of the keys shows what is special by its name."""
    return any(_names(key) for key in by)


def _names(key: str) -> bool:
    return key in NAMES or key not in KEYS


def nameless(key: str) -> bool:
    """Whether idle has no value of its own under a key: whose it is decides."""
    return _names(key) and key != "target"


def _check_overhead(amount: Decimal) -> None:
    if not amount.is_finite() or amount < 0:
        raise UsageError(f"an overhead of {amount} per hour is no amount", "use 0 or more")
    if amount >= UNITS or amount * UNITS != int(amount * UNITS):
        raise UsageError(f"an overhead of {amount} per hour is too large or too fine")


def check_sharing(settings: Settings) -> None:
    """Refuse policies of the settings whose keys are none, before somebody asks.

    Raises:
        SettingsError: A key of `sharing` is no grouping key.
    """
    for position, policy in enumerate(settings.sharing):
        for key in policy.match:
            try:
                _check(key.removesuffix("!"))
            except UsageError as error:
                where = f"sharing.{position}.match"
                raise SettingsError(f"{where}: {error.message}", error.hint) from error


def _check_hours(window: Window) -> None:
    """The books have whole hours: a part of one would be shown whole, or not at all."""
    start = window.start.replace(minute=0, second=0, microsecond=0)
    end = window.end.replace(minute=0, second=0, microsecond=0)
    if (start, end) != (window.start, window.end):
        end += timedelta(hours=1) * (end < window.end)
        raise UsageError(
            f"{iso(window.start)}..{iso(window.end)} cuts an hour, and costs are by the hour",
            f"ask for {iso(start)}..{iso(end)}",
        )


def _check(key: str) -> None:
    kind, colon, name = key.partition(":")
    if (colon and kind in OPEN and name.strip()) or key in KEYS:
        return
    known = [*KEYS, *(f"{kind}:KEY" for kind in OPEN)]
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
    raise UsageError(f"{key!r} is not a grouping key", hint)
