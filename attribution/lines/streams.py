"""Log groups: what is written by the bytes of each stream, what is kept by the bytes it keeps."""

from __future__ import annotations

import polars as pl

from attribution.bill.line_words import keeps_logs, with_words
from attribution.bill.resource_ids import agree, log_place, resource_id
from attribution.facts import DayFacts
from attribution.identity import first_hit, line_rule, name_lines, pod_rule
from attribution.lines.parts import Found, by_rules, in_steps, moments, parts_of, weights
from attribution.ratio import HOUR, milliseconds
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Settings

_LACK = "bytes of log streams"
_NAMED = ["Tags", "ResourceId", "ResourceName"]


def place_streams(
    lines: pl.DataFrame, lives: pl.DataFrame, facts: DayFacts, settings: Settings
) -> Found:
    """Parts of the lines whose resource is a log group or store with known streams.

    A line that pays for what is kept splits by ``stored_bytes``; a stream that does not tell them
    counts with its bytes of the day, and the line has low confidence. Any other line splits by the
    bytes of the hours of its period. A stream belongs to its pod; if that is not known, to what
    the label rules find in its labels, then the path rules in its path, then to what the line
    itself is named by.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        lives: Pod lives with ``who``.
        facts: The day.
        settings: The identity rules.
    """
    mine = _matched(lines, facts)
    if mine.is_empty():
        return Found()
    volume = facts.log_volume.join(mine.select("resource").unique(), on="resource", how="semi")
    volume = volume.with_columns((milliseconds("hour") // HOUR * HOUR).alias("hour"))
    whose = _writers(volume, lives)
    found = pl.concat([_written(mine, volume, whose), _kept(mine, volume, whose)])
    lacking = mine.join(found, on="line", how="anti").select("line", pl.lit(_LACK).alias("lack"))
    rules = name_lines(mine.select("line", *_NAMED).unique("line"), settings)
    told = (
        found.join(_stream_names(volume, settings), on=["resource", "stream"], how="left")
        .join(rules, on="line", suffix="_line")
        .with_columns(pl.coalesce(key, f"{key}_line").alias(key) for key in IDENTITY_KEYS)
        .with_columns(by_rules())
        .with_columns(
            # The labels of a stream are what it can be looked for by.
            pl.coalesce(pl.when(pl.col("labels") != "{}").then("labels"), "tags").alias("tags"),
            weights("amount").alias("weight"),
        )
        .drop("resource")
    )
    parts = parts_of(told.rename({"stream": "path"}), resource="logs")
    return Found(parts, lacking.unique().sort("line"))


def _matched(lines: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """Lines with the ``resource`` that they pay for, and whether they pay for what is kept."""
    groups = (
        facts.log_volume.select("resource")
        .unique()
        .with_columns(resource_id("resource").alias("id"), log_place("resource").alias("place"))
    )
    ids = lines.with_columns(
        resource_id("ResourceId").alias("id"), log_place("ResourceId").alias("theirs")
    )
    met = ids.join(groups, on="id").filter(agree("place", "theirs"))
    keeps = keeps_logs().fill_null(value=False)
    return with_words(met).select("line", "start", "end", "resource", keeps.alias("keeps"), *_NAMED)


def _writers(volume: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """Which pod wrote: ``cluster, uid, hour, who``."""
    hours = (
        volume.filter(pl.col("uid").is_not_null())
        .select("cluster", "uid", "hour")
        .unique()
        .sort("cluster", "uid", "hour")
        .with_row_index("moment")
        .with_columns(pl.col("hour").alias("start"), (pl.col("hour") + HOUR).alias("end"))
    )
    pods = hours.select("cluster", "uid").unique()
    who = moments(hours, lives.join(pods, on=["cluster", "uid"], how="semi"), ["cluster", "uid"])
    return hours.join(who, on="moment").select("cluster", "uid", "hour", "who")


def _written(mine: pl.DataFrame, volume: pl.DataFrame, whose: pl.DataFrame) -> pl.DataFrame:
    """``line, resource, stream, who, amount, confidence, from, until`` of lines of ingestion."""
    rows = volume.join(whose, on=["cluster", "uid", "hour"], how="left")
    written = rows.select("resource", "stream", "who", "bytes", step=pl.col("hour"))
    both = (
        in_steps(mine.filter(~pl.col("keeps")), HOUR)
        .join(written, on=["resource", "step"])
        .with_columns(
            pl.max_horizontal("start", "step").alias("from"),
            pl.min_horizontal("end", pl.col("step") + HOUR).alias("until"),
            pl.col("bytes").cast(pl.Int128).alias("amount"),
        )
        .filter(pl.col("amount") > 0)
    )
    sums = both.group_by("line", "resource", "stream", "who").agg(
        pl.col("amount").sum(), pl.col("from").min(), pl.col("until").max()
    )
    return sums.select(
        "line", "resource", "stream", "who", "amount", pl.lit("high").alias("confidence"),
        "from", "until",
    )  # fmt: skip


def _kept(mine: pl.DataFrame, volume: pl.DataFrame, whose: pl.DataFrame) -> pl.DataFrame:
    """The same of lines of storage; a stream belongs to what its pod was at last."""
    rows = volume.join(whose, on=["cluster", "uid", "hour"], how="left").sort("hour")
    streams = rows.group_by("resource", "stream").agg(
        pl.col("stored_bytes").max(),
        pl.col("bytes").sum(),
        pl.col("who").drop_nulls().last(),
    )
    both = (
        mine.filter("keeps")
        .join(streams, on="resource")
        .with_columns(pl.coalesce("stored_bytes", "bytes").cast(pl.Int128).alias("amount"))
        .filter(pl.col("amount") > 0)
    )
    unknown = pl.col("stored_bytes").is_null().any().over("line")
    nothing = pl.lit(None, dtype=pl.Int64)
    return both.select(
        "line",
        "resource",
        "stream",
        "who",
        "amount",
        pl.when(unknown).then(pl.lit("low")).otherwise(pl.lit("high")).alias("confidence"),
        nothing.alias("from"),
        nothing.alias("until"),
    )


def _stream_names(volume: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """What the labels of each stream, then its path, are named by: ``resource, stream, labels``.

    A stream is tried as it is and below its group: ``/train/a/worker-0``.
    """
    empty = pl.lit(None, dtype=pl.String)
    streams = (
        volume.group_by("resource", "stream")
        .agg(pl.col("labels").drop_nulls().min())
        .with_columns(
            pl.col("stream").alias("ResourceId"),
            pl.concat_str(resource_id("resource"), pl.lit("/"), "stream").alias("ResourceName"),
            empty.alias("Tags"),
        )
    )

    def named(key: str, kind: str) -> pl.Expr:
        read = pod_rule if kind == "label:" else line_rule(key)
        rules = getattr(settings.identity, key)
        return first_hit([rule for rule in rules if rule.startswith(kind)], read)

    return streams.select(
        "resource",
        "stream",
        "labels",
        *(
            pl.coalesce(named(key, "label:"), named(key, "path:")).alias(key)
            for key in IDENTITY_KEYS
        ),
    )
