"""Lines whose resource is no node: whole, to the identity of their own tags."""

from __future__ import annotations

import polars as pl

from attribution.facts import DayFacts
from attribution.identity import name_lines
from ledger.schema import IDENTITY_KEYS, SHARED, UNATTRIBUTED
from ledger.settings import Settings


def place_lines(
    lines: pl.DataFrame,
    lives: pl.DataFrame,
    who: pl.DataFrame,
    facts: DayFacts,
    settings: Settings,
) -> pl.DataFrame:
    """Add target, reason and identity to bill lines.

    A line that no rule names for any key is ``__unattributed__``; a commitment that nobody used is
    ``__shared__``.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        lives: Pod lives while their cluster was seen, with ``who``.
        who: What each pod is, by ``who`` (``day.WHO``).
        facts: The day.
        settings: The identity rules.

    Returns:
        The lines with ``target``, ``reason``, the identity keys, ``tags`` and ``confidence``.
    """
    named = name_lines(lines, settings)
    unused = (pl.col("CommitmentDiscountStatus") == "Unused").fill_null(False)
    nameless = pl.all_horizontal(pl.col(key).is_null() for key in IDENTITY_KEYS)
    rule_less = ~unused & pl.col("experiment").is_null()
    otherwise = {key: "unknown" if key == "phase" else UNATTRIBUTED for key in IDENTITY_KEYS}
    return named.with_columns(
        pl.when(unused)
        .then(pl.lit(SHARED))
        .when(nameless)
        .then(pl.lit(UNATTRIBUTED))
        .otherwise(pl.lit("charge"))
        .alias("target"),
        pl.when(rule_less).then(pl.lit("no_rule")).alias("reason"),
        *(
            pl.when(unused)
            .then(pl.lit(SHARED))
            .when(nameless)
            .then(pl.lit(UNATTRIBUTED))
            .otherwise(pl.col(key).fill_null(pl.lit(otherwise[key])))
            .alias(key)
            for key in IDENTITY_KEYS
        ),
        pl.when(~unused & ~nameless).then("Tags").alias("tags"),
        pl.lit("high").alias("confidence"),
    )
