"""AMD's compute partitions: what one is of a card.

Source: AMD SMI, "GPU partitioning". A mode ``cpx_nps4`` cuts the compute of a card into one part
per accelerator die (``cpx``) and its memory into four; the part is that of the compute.
"""

from __future__ import annotations

import re
from fractions import Fraction

_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
_DIES = {"MI300X": 8, "MI325X": 8, "MI350X": 8, "MI355X": 8, "MI300A": 6}
_MODE = re.compile(r"([sdtqc]px)[_-]nps[0-9]", re.I)


def partition(mode: str, product: str) -> Fraction | None:
    """What a partition is of a card.

    Args:
        mode: ``cpx_nps4`` and kin.
        product: Product name of the card, compared word by word.

    Returns:
        None where mode or card are not known.
    """
    match = _MODE.fullmatch(mode)
    if match is None:
        return None
    words = re.split(r"[^A-Z0-9]+", product.upper())
    dies = next((_DIES[word] for word in words if word in _DIES), None)
    parts = dies if match[1].lower() == "cpx" else _PARTS[match[1].lower()]
    return Fraction(1, parts) if parts else None
