"""Filters and the values of grouping keys; a filter hides rows and never changes one."""

from __future__ import annotations

import polars as pl

from attribution.identity import SPECIAL
from attribution.phases import glob_regex
from attribution.question import KEYS, Query
from ledger.schema import IDENTITY_KEYS, UNATTRIBUTED


def key_value(key: str) -> pl.Expr:
    """The value of a grouping key as text; what has none is a special target."""
    if key.startswith("label:"):
        value = pl.col(key)
    elif key == "day":
        value = pl.col("day").dt.to_string("iso:strict")
    elif key == "hour":
        value = pl.col("ChargePeriodStart").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    else:
        value = pl.col(KEYS[key])
    if key == "reason":
        return value.fill_null("none").alias(key)
    special = pl.when(pl.col("target").is_in(SPECIAL)).then("target")
    return pl.coalesce(value, special, pl.lit(UNATTRIBUTED)).alias(key)


def _tagged(key: str, glob: str) -> pl.Expr:
    """Whether a row has a value that fits; what has none is found by its special name alone."""
    value = key_value(key)
    special = value.is_in([*SPECIAL, UNATTRIBUTED])
    return pl.when(special).then(value == glob).otherwise(value.str.contains(glob_regex(glob)))


def shown(request: Query) -> pl.Expr:
    """Whether a row passes all filters; an identity key given as a tag also meets the identity."""
    tests = [key_value(key).str.contains(glob_regex(glob)) for key, glob in request.filters.items()]
    for key, glob in request.tags.items():
        keys = [f"label:{key}", *([key] if key in IDENTITY_KEYS else [])]
        tests.append(pl.any_horizontal(_tagged(name, glob) for name in keys))
    return pl.all_horizontal(pl.lit(True), *tests)
