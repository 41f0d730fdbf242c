"""Kubernetes quantities, read exactly.

Form: ``k8s.io/apimachinery/pkg/api/resource`` (signed number, then a decimal exponent, a binary
suffix ``Ki``..``Ei`` or a decimal suffix ``n``..``E``). ``1E`` is 10^18, ``1E3`` is 1000.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(
    r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]))?",
    re.ASCII,
)
_FACTORS = {
    **{
        suffix: Fraction(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


@lru_cache(maxsize=4096)
def parse(text: str) -> Fraction:
    """The exact value of a quantity.

    Raises:
        ValueError: The text is no quantity.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    number, exponent, suffix = match.groups()
    factor = Fraction(10) ** int(exponent) if exponent else _FACTORS.get(suffix, Fraction(1))
    return Fraction(number) * factor
