"""The values of grouping keys: what a row is called under each of them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.identity import SPECIAL, label, tag
from attribution.query.question import KEYS, PLACES, Query, nameless, telling
from ledger.schema import IDLE, UNATTRIBUTED


def opened_value(key: str) -> pl.Expr:
    """What ``label:KEY``, ``tag:KEY`` or ``annotation:KEY`` reads of a row.

    Labels of pods and tags of bill lines stand in one column, so that one key meets both.
    """
    kind, _, name = key.partition(":")
    if kind == "annotation":
        return label("annotations", name, "annotation")
    readers = (tag, label) if kind == "tag" else (label, tag)
    return pl.coalesce(read("tags", name) for read in readers)


def own_value(key: str) -> pl.Expr:
    """The value of a key as text; null where a row has none."""
    match key:
        case "day":
            return pl.col("day").dt.to_string("iso:strict")
        case "month":
            return pl.col("day").dt.strftime("%Y-%m")
        case "hour":
            return pl.col("ChargePeriodStart").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "billing_month":
            return pl.col("BillingPeriodStart").dt.strftime("%Y-%m")
        case "workload":  # a bare pod has no name of an owner
            return pl.concat_str("root_kind", "root_name", separator="/")
        case _:
            return pl.col(KEYS[key][0] if key in KEYS else key)


def value(key: str) -> pl.Expr:
    """The value of a key; what has none shows its special target, or is unattributed."""
    if key == "reason":
        return pl.col("reason").fill_null("none").alias(key)
    special = pl.when(pl.col("target").is_in(SPECIAL)).then("target")
    return pl.coalesce(own_value(key), special, pl.lit(UNATTRIBUTED)).alias(key)


def group_values(request: Query) -> list[pl.Expr]:
    """The values that rows are grouped by.

    Special rows stay apart: where no key shows their name, the last key of a place does.
    """
    values = {key: value(key) for key in request.by}
    places = [key for key in request.by if key in PLACES]
    if places and not telling(request.by):
        special = pl.col("target").is_in(SPECIAL)
        values[places[-1]] = pl.when(special).then("target").otherwise(values[places[-1]])
        places = places[:-1]
    if request.idle_rows == "pool":
        values |= _pool_names(request, values, places)
    return [value.alias(key) for key, value in values.items()]


def _pool_names(
    request: Query, values: dict[str, pl.Expr], shown: Sequence[str]
) -> dict[str, pl.Expr]:
    """The values of keys under which an idle row shows its name, with its pool before it."""
    place = [name for name in ("cluster", "node") if name in request.pool and name not in shown]
    name = pl.concat_str([*place, pl.lit(IDLE)], separator="/", ignore_nulls=True)
    named = [key for key in request.by if nameless(key)] or [
        key for key in request.by if key in PLACES and key not in shown
    ]
    idle = pl.col("target") == IDLE
    return {key: pl.when(idle).then(name).otherwise(values[key]) for key in named}
