"""Kubernetes quantities as whole numbers: a part of the smallest unit counts as a whole one."""

from __future__ import annotations

import math
from fractions import Fraction

from ledger.quantity import parse as parse

_LARGEST = 2**46
"""64 TiB, or 70 billion cores: more than any node has. Amount × milliseconds stays in 64 bits."""


def whole(amount: Fraction) -> int:
    """An amount in whole units (bytes, cards), rounded up.

    Raises:
        ValueError: It is negative or more than any node has.
    """
    value = math.ceil(amount)
    if not 0 <= amount or value > _LARGEST:
        raise ValueError(f"{float(amount):g} is no amount of a resource")
    return value


def milli(amount: Fraction) -> int:
    """An amount in thousandths (millicores), rounded up.

    Raises:
        ValueError: It is negative or more than any node has.
    """
    return whole(amount * 1000)
