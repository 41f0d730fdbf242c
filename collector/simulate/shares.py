"""The truth's arithmetic: whole units of 1e-12, whole milliseconds, and plain exact splits.

Written for itself with Python's integers: nothing here is shared with ``attribution`` or with
``ledger.money``, so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

SCALE = 12


def units(amount: Decimal) -> int:
    """An amount of money in units of 1e-12.

    Raises:
        ValueError: The amount has more than 12 decimals.
    """
    with localcontext() as context:
        context.prec = 60
        scaled = amount.scaleb(SCALE)
        if scaled != scaled.to_integral_value():
            raise ValueError(f"{amount} has more than {SCALE} decimals")
        return int(scaled)


def money(amount: int) -> str:
    """Units of 1e-12 as a decimal text with 12 decimals."""
    whole, part = divmod(abs(amount), 10**SCALE)
    return f"{'-' if amount < 0 else ''}{whole}.{part:0{SCALE}d}"


def part_out(amount: int, weights: Sequence[int]) -> list[int]:
    """Split by largest remainder; ties go to the first; a negative amount mirrors the positive.

    Weights that are all zero count as equal. The parts add up to the amount.
    """
    size, total = abs(amount), sum(weights)
    if total == 0:
        weights, total = [1] * len(weights), len(weights)
    parts = [size * weight // total for weight in weights]
    rests = [size * weight % total for weight in weights]
    order = sorted(range(len(weights)), key=lambda index: (-rests[index], index))
    for index in order[: size - sum(parts)]:
        parts[index] += 1
    return [-part for part in parts] if amount < 0 else parts


def half_even(numerator: int, denominator: int) -> int:
    """``numerator / denominator`` rounded to the nearest integer, halves to the even one."""
    whole, rest = divmod(numerator, denominator)
    up = 2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1)
    return whole + up


def overlap(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Length that two half-open intervals have in common."""
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))
