"""How hard property tests look: some examples in ``make test``, many in ``make soak``."""

from __future__ import annotations

import os

SOAK = bool(os.environ.get("RUNBILL_SOAK"))
"""Set by ``make soak`` alone."""


def examples(usual: int) -> int:
    """Number of examples of a property whose single example takes a second.

    Args:
        usual: What one would ask for if time did not matter much.
    """
    return usual * 4 if SOAK else max(usual // 5, 3)
