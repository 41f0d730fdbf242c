"""Buckets and shared file systems: bytes by what is inventoried, operations by what is counted.

What belongs to whom is a matter of paths: each prefix (or directory) is named by the ``path:``
rules of the settings, then by what the line itself is named by.
"""

from __future__ import annotations

import polars as pl

from attribution.bill.line_words import (
    moved_class,
    operation_class,
    request_class,
    storage_class,
    stored_kind,
    with_words,
)
from attribution.bill.resource_ids import (
    account_of,
    agree,
    provider_cloud,
    resource_id,
    store_cloud,
)
from attribution.facts import DayFacts
from attribution.identity import first_hit, line_rule, name_lines
from attribution.lines.parts import Found, by_rules, in_steps, parts_of, weights
from attribution.ratio import HOUR, milliseconds
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Settings

_RESOURCE = {"bytes": "storage", "objects": "storage", "requests": "requests", "moved": "network"}
_LACKS = {
    "bytes": "inventoried bytes of stores",
    "objects": "inventoried objects of stores",
    "requests": "counted requests of stores",
    "moved": "counted bytes that stores moved",
}
_NAMED = ["Tags", "ResourceId", "ResourceName"]


def place_stored(lines: pl.DataFrame, facts: DayFacts, settings: Settings) -> Found:
    """Parts of the lines whose resource is a bucket or file system with an inventory or counts.

    - A line of stored bytes splits by inventoried bytes per prefix, of the storage class that it
      names if any are; a line per object by their number.
    - A line of requests splits by counted requests of its class, a line of moved bytes by the
      bytes of what was counted, both within its period.
    - Without such evidence the line is lacking: bytes say nothing of requests.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        facts: The day.
        settings: The identity rules.
    """
    mine = _matched(lines, _stores(facts))
    if mine.is_empty():
        return Found()
    found = pl.concat([_stored(mine, facts), _counted(mine, facts)])
    lacks = pl.col("kind").replace_strict(_LACKS, return_dtype=pl.String)
    lacking = mine.join(found, on="line", how="anti").select("line", lacks.alias("lack")).unique()
    kinds = mine.select("line", "kind", *_NAMED).unique("line")
    shares = _named(found, settings).join(_owners(kinds, settings), on="line")
    told = shares.with_columns(
        *(pl.coalesce(key, f"{key}_line").alias(key) for key in IDENTITY_KEYS)
    ).with_columns(by_rules())
    resource = pl.col("kind").replace_strict(_RESOURCE, return_dtype=pl.String)
    told = told.with_columns(resource.alias("resource"), weights("amount").alias("weight"))
    return Found(parts_of(told), lacking.sort("line"))


def _stores(facts: DayFacts) -> pl.DataFrame:
    """``resource, id, cloud``: every store under its own name and that of its account."""
    rows = pl.concat(
        frame.select("resource", "prefix") for frame in (facts.objects, facts.requests)
    )
    cloud = pl.coalesce(store_cloud("resource"), store_cloud("prefix"))
    stores = (
        rows.with_columns(cloud.alias("cloud"))
        .group_by("resource")
        .agg(pl.col("cloud").drop_nulls().min())
        .with_columns(resource_id("resource").alias("id"))
    )
    accounts = stores.with_columns(account_of("id").alias("id")).drop_nulls("id")
    return pl.concat([stores, accounts]).unique()


def _matched(lines: pl.DataFrame, stores: pl.DataFrame) -> pl.DataFrame:
    """Lines with each ``resource`` that they pay for, and what for: ``kind, group, class``."""
    ids = lines.with_columns(
        resource_id("ResourceId").alias("id"),
        pl.coalesce(store_cloud("ResourceId"), provider_cloud()).alias("theirs"),
    )
    met = ids.join(stores, on="id").filter(agree("cloud", "theirs"))
    return (
        with_words(met)
        .with_columns(stored_kind().fill_null("bytes").alias("kind"))
        .select(
            "line",
            "start",
            "end",
            "resource",
            "kind",
            pl.when(pl.col("kind") == "requests")
            .then(request_class())
            .when(pl.col("kind") == "moved")
            .then(moved_class())
            .alias("group"),
            storage_class().alias("class"),
            *_NAMED,
        )
    )


def _stored(mine: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """``line, prefix, amount, confidence`` of lines that pay for what lies there."""
    inside = facts.objects.select(
        "resource",
        "prefix",
        "bytes",
        "count",
        pl.col("storage_class").str.to_uppercase().str.replace_all("[- ]", "_").alias("of_class"),
    )
    amount = pl.when(pl.col("kind") == "bytes").then("bytes").otherwise("count")
    both = (
        mine.filter(pl.col("kind").is_in(["bytes", "objects"]))
        .join(inside, on="resource")
        .with_columns(amount.cast(pl.Int128).alias("amount"))
        .filter(pl.col("amount") > 0)
    )
    fits = (pl.col("class") == pl.col("of_class")).fill_null(value=True)
    # A class that no inventoried object has is no evidence: then all bytes stand in for them.
    none = ~fits.any().over("line")
    low = pl.when(none).then(pl.lit("low")).otherwise(pl.lit("high"))
    chosen = both.with_columns(low.alias("confidence")).filter(fits | none)
    return _summed(chosen)


def _counted(mine: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """The same of lines that pay for operations, or for the bytes that these moved."""
    seen = facts.requests.select(
        "resource",
        "prefix",
        "count",
        "bytes",
        (milliseconds("hour") // HOUR * HOUR).alias("step"),
        operation_class("operation").alias("of_group"),
    )
    amount = pl.when(pl.col("kind") == "requests").then("count").otherwise("bytes")
    both = (
        in_steps(mine.filter(pl.col("kind").is_in(["requests", "moved"])), HOUR)
        .join(seen, on=["resource", "step"])
        .filter(
            (pl.col("of_group") != "free")
            & (pl.col("group") == pl.col("of_group")).fill_null(value=True)
        )
        .with_columns(amount.cast(pl.Int128).alias("amount"), pl.lit("high").alias("confidence"))
    )
    return _summed(both.filter(pl.col("amount") > 0))


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("line", "prefix").agg(
        pl.col("amount").sum(), pl.col("confidence").max().alias("confidence")
    )


def _named(found: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Add ``path`` and what the path rules find in it."""
    return found.rename({"prefix": "path"}).join(
        _path_names(found["prefix"].unique(), settings), on="path", how="left"
    )


def _path_names(paths: pl.Series, settings: Settings) -> pl.DataFrame:
    """What the ``path:`` rules of the settings find in paths: ``path`` and the identity keys."""
    nothing = pl.lit(None, dtype=pl.String)
    frame = pl.DataFrame({"ResourceId": paths}).with_columns(nothing.alias("ResourceName"))
    return frame.select(
        pl.col("ResourceId").alias("path"),
        *(
            first_hit(
                [rule for rule in getattr(settings.identity, key) if rule.startswith("path:")],
                line_rule(key),
            ).alias(key)
            for key in IDENTITY_KEYS
        ),
    )


def _owners(lines: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """``line, kind, Tags`` and what each line itself is named by, as ``<key>_line``."""
    named = name_lines(lines, settings)
    return named.select(
        "line", "kind", "Tags", *(pl.col(key).alias(f"{key}_line") for key in IDENTITY_KEYS)
    )
