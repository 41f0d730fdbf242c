"""Prices for volumes that no bill line pays for; what has no price is a gap, never 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from attribution.bill.line_words import may_be_disk, with_words
from attribution.bill.resource_ids import DISK, provider_cloud, resource_id, volume_ids
from attribution.facts import DayFacts
from attribution.ratio import HOUR, divide, milliseconds
from attribution.spans import clip, complement, flatten, intersect, union
from ledger.facts import Gap
from ledger.money import from_units, to_units
from ledger.schema import COST_COLUMNS
from ledger.text import counted

SOURCE = "prices"
RESOURCE = "storage_gib"
"""``prices.resource`` of a GiB-hour of a volume; ``instance_type`` is its storage class."""

_GIB_HOUR = 2**30 * HOUR
_TRUST = ("contract", "settings", "spot", "list", "metric")
_CLOUDS = {"s3": r"^(vol-|fs-|fsvol-)", "gs": r"^(disk/|filestore/)", "az": r"^/subscriptions/"}


@dataclass(frozen=True)
class VolumeEstimates:
    """Lines made up for volumes, and what could not be priced.

    Args:
        lines: ``match.bill_lines``; one row per volume and stretch that no line pays for.
        gaps: ``unpriced``, with GiB-hours.
        notes: That some are estimated.
    """

    lines: pl.DataFrame
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()


def estimate_volumes(lines: pl.DataFrame, facts: DayFacts) -> VolumeEstimates:
    """Price volumes for the time in which no line pays for them.

    A volume is not priced while the bill has a line for storage that may pay for it under a name
    that we do not know: one of the same cloud (or of none that is told), unless both bear an id in
    a form that tells disks apart.

    Args:
        lines: ``match.bill_lines``.
        facts: The day.
    """
    nothing = lines.clear()
    if facts.volumes.is_empty():
        return VolumeEstimates(nothing)
    every = clip(volume_ids(facts), facts.start, facts.end)
    paying = lines.filter(
        (pl.col("ChargeCategory") == "Usage")
        & pl.any_horizontal((pl.col(name) > 0).fill_null(value=False) for name in COST_COLUMNS)
    ).with_columns(resource_id("ResourceId").alias("id"))
    open_ = _uncovered(every, paying, facts)
    doubtful = _may_pay(open_, paying.join(every, on="id", how="anti"))
    rated = _rated(open_.join(doubtful, on="id", how="anti"), facts.prices)
    known = pl.col("rate").is_not_null() & pl.col("bytes").is_not_null()
    made = _lines(rated.filter(known), facts, lines)
    return VolumeEstimates(
        made,
        (
            *_unpriced(rated.filter(~known), "have no bill line and no price of their GiB-hours"),
            *_unpriced(
                open_.join(doubtful, on="id", how="semi"),
                "are not estimated: lines of the bill for storage meet no volume and may pay for "
                "them",
            ),
        ),
        tuple(_told(rated.filter(known)["key"].n_unique())),
    )


def _told(volumes: int) -> Iterator[str]:
    if volumes:
        yield f"{counted(volumes, 'volume')} without a bill line: priced from `prices`, estimated"


def _uncovered(every: pl.DataFrame, paying: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """Stretches of volumes of constant size that no line pays for, by ``key``.

    One disk counts once, however many name it; any other handle may be that of a server.
    """
    names = ("id", "own", "start", "end", "cluster", "volume", "storage_class", "bytes", "handle")
    disk = pl.col("id").str.contains(DISK)
    rows = every.select(*names, pl.when(disk).then("id").otherwise("own").alias("key"))
    whole = flatten(rows, ["key"])
    lines = paying.select("id", "start", "end")
    paid = union(lines.join(rows.select("id", "key").unique(), on="id"), ["key"])
    rest = complement(paid, "key", facts.start, facts.end)
    never = whole.join(paid, on="key", how="anti")
    return pl.concat([never, intersect(whole, rest, ["key"]).select(never.columns)])


def _may_pay(volumes: pl.DataFrame, loose: pl.DataFrame) -> pl.DataFrame:
    """``id`` of volumes that a line which meets none may pay for."""
    lines = with_words(loose).filter(may_be_disk().fill_null(value=False))
    theirs = lines.select(
        provider_cloud().alias("theirs"),
        pl.col("id").str.contains(DISK).fill_null(value=False).alias("named"),
    ).unique()
    clouds = (pl.when(pl.col("id").str.contains(p)).then(pl.lit(c)) for c, p in _CLOUDS.items())
    ours = volumes.select(
        "id",
        pl.coalesce(*clouds).alias("ours"),
        pl.col("id").str.contains(DISK).alias("known"),
    ).unique()
    same = (pl.col("ours") == pl.col("theirs")).fill_null(value=True)
    both = ours.join(theirs, how="cross")
    return both.filter(same & ~(pl.col("named") & pl.col("known"))).select("id").unique()


def _rated(volumes: pl.DataFrame, prices: pl.DataFrame) -> pl.DataFrame:
    """Add ``rate`` (units per GiB-hour), ``currency`` and ``kind``; null without a single best.

    The price of the volume's storage class wins over that of any, a contract over the settings and
    so on; two prices of one key are none.
    """
    trust = (
        pl.col("kind")
        .fill_null("settings")
        .replace_strict({kind: rank for rank, kind in enumerate(_TRUST)}, default=len(_TRUST))
    )
    book = prices.filter(
        (pl.col("resource") == RESOURCE)
        & pl.col("price_per_hour").is_not_null()
        & pl.all_horizontal(pl.col(key).is_null() for key in ("provider", "region", "zone", "node"))
    ).select(
        pl.col("instance_type").alias("of_class"),
        milliseconds("start").alias("valid"),
        milliseconds("end").alias("expires"),
        to_units(pl.col("price_per_hour")).alias("rate"),
        "currency",
        "kind",
        trust.alias("trust"),
    )
    kinds = volumes.select("storage_class", "start").unique()
    any_class = pl.col("of_class").is_null()
    fits = (any_class | (pl.col("of_class") == pl.col("storage_class"))).fill_null(value=False)
    valid = pl.col("start").is_between(pl.col("valid"), pl.col("expires"), closed="left")
    key = ["storage_class", "start"]
    best = (
        kinds.join(book.unique(), how="cross")
        .filter(fits & valid)
        .with_columns(any_class.alias("any"))
        .filter(pl.col("any") == pl.col("any").min().over(key))
        .filter(pl.col("trust") == pl.col("trust").min().over(key))
        .select(*key, "rate", "currency", "kind")
        .unique()
        .filter(pl.len().over(key) == 1)
    )
    return volumes.join(best, on=key, how="left", nulls_equal=True)


def _lines(rated: pl.DataFrame, facts: DayFacts, like: pl.DataFrame) -> pl.DataFrame:
    length = (pl.col("end") - pl.col("start")).cast(pl.Int128)
    amount = pl.col("bytes").cast(pl.Int128) * length * pl.col("rate")
    begins, ends = (
        pl.from_epoch(edge, time_unit="ms").dt.replace_time_zone("UTC") for edge in ("start", "end")
    )
    given = {
        "day": pl.lit(facts.day),
        "x_Source": pl.lit(SOURCE),
        "x_Part": pl.lit(0),
        "x_LineId": pl.format(
            "estimate/{}/volume/{}/{}",
            "cluster",
            "volume",
            begins.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        ),
        "x_Basis": pl.lit("estimated"),
        "x_PriceSource": pl.col("kind").fill_null("settings"),
        "x_Dimension": pl.lit("storage_logs"),
        "x_Elasticity": pl.lit("elastic"),
        "BillingCurrency": pl.col("currency"),
        "ChargeCategory": pl.lit("Usage"),
        "ServiceCategory": pl.lit("Storage"),
        "ResourceId": pl.when(pl.col("key") == pl.col("id"))
        .then(pl.coalesce("handle", "own"))
        .otherwise("own"),
        "ConsumedUnit": pl.lit("GiB-Hours"),
        "ChargePeriodStart": begins,
        "ChargePeriodEnd": ends,
        "EffectiveCost": from_units(pl.col("units")),
        "start": pl.col("start"),
        "end": pl.col("end"),
        "length": pl.col("end") - pl.col("start"),
        "units_EffectiveCost": pl.col("units"),
    }
    priced = rated.with_columns(
        divide(amount, pl.lit(_GIB_HOUR, dtype=pl.Int128)).alias("units")
    ).sort("cluster", "volume", "start")
    rows = priced.select(
        given.get(name, pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in like.schema.items()
        if name != "line"
    )
    return rows.with_row_index("line", offset=like.height).select(like.columns)


def _unpriced(rest: pl.DataFrame, what: str) -> tuple[Gap, ...]:
    """The gap of each cluster's volumes, with the GiB-hours that are known."""
    sums = (
        rest.with_columns(((pl.col("end") - pl.col("start")) / HOUR).alias("hours"))
        .group_by("cluster")
        .agg(
            pl.col("volume").n_unique().alias("volumes"),
            pl.col("volume").min().alias("first"),
            pl.col("hours").sum(),
            (pl.col("hours") * pl.col("bytes") / 2**30).sum().alias("gib_hours"),
        )
        .sort("cluster")
    )
    return tuple(
        Gap(
            "unpriced",
            f"{cluster}: {counted(volumes, 'volume')} {what}, e.g. {first}",
            {"volume_hours": hours, "gib_hours": gib_hours},
        )
        for cluster, volumes, first, hours, gib_hours in sums.iter_rows()
    )
