"""Sums of figures of which some are not known: unknown is no zero, and no part of a sum."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from cli.render.text import DASH, money


def known_sum(values: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of the values that are known; None if there are values and none of them is."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known, Decimal(0)) if known or not found else None


def amount(value: Decimal | None) -> str:
    """Money for people; what is not known is a dash."""
    return DASH if value is None else money(value)


def ratio(part: Decimal | None, whole: Decimal | None) -> float | None:
    """The share of a part; None if it, or the whole, is not known or the whole is zero."""
    return None if part is None or not whole else float(part / whole)


def unknown_shares(count: int) -> str:
    """How many shares have no known cost, in words; empty if there are none."""
    return f"{count:,} share{'' if count == 1 else 's'} of unknown cost" if count else ""
