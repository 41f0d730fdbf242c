"""Parts of bill lines that pay for no node: who gets how much of a line, before any money moves.

Each kind of line (volumes, stores, logs, network) finds the parts of its lines; here they get the
identity of their pod, and each line is split over its parts exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from attribution.costs import NOTHING
from attribution.split import UNITS
from ledger.facts import Gap
from ledger.money import split
from ledger.schema import IDENTITY_KEYS, TIME, UNATTRIBUTED

_TOLD = (*NOTHING, "target", "reason", *IDENTITY_KEYS, "tags", "confidence")
PART: Mapping[str, pl.DataType] = {
    "line": pl.UInt32(),
    "weight": pl.Int64(),
    "who": pl.UInt32(),
    "from": pl.Int64(),
    "until": pl.Int64(),
    **{name: pl.String() for name in _TOLD},
}
"""A part of a line: its weight (at least 0), the pod it is of, if any, its time in milliseconds
(null = that of the line), and what a row of ``costs`` says of it."""

LINE = ("line", "ChargePeriodStart", "ChargePeriodEnd", "ServiceCategory", *UNITS)
"""What a row needs of its line."""

_OF_POD = ("namespace", "uid", "pod", "root_kind", "root_name", "annotations", *IDENTITY_KEYS)
_MOST = 2**62


@dataclass(frozen=True)
class Found:
    """What one kind of line came to.

    Args:
        parts: Columns of ``PART``; the lines that are split.
        lacking: ``line`` and ``lack``: lines of this kind whose evidence is missing, and what is.
        gaps: What could not be seen.
    """

    parts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PART))
    lacking: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"line": pl.UInt32, "lack": pl.String})
    )
    gaps: tuple[Gap, ...] = ()


def parts_of(frame: pl.DataFrame, **given: str | None) -> pl.DataFrame:
    """Rows in the form of ``PART``; columns that are neither in the frame nor given are null."""
    told = frame.with_columns(pl.lit(value).alias(name) for name, value in given.items())
    return told.select(
        (pl.col(name) if name in told.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in PART.items()
    )


def weights(amount: str, by: str = "line") -> pl.Expr:
    """An amount (``Int128``) as weights whose sum in a group stays far below 2^63."""
    total = pl.col(amount).cast(pl.Int128).sum().over(by)
    return (pl.col(amount).cast(pl.Int128) // (total // _MOST + 1)).cast(pl.Int64)


def in_steps(lines: pl.DataFrame, length: int) -> pl.DataFrame:
    """Lines once for each ``step`` (its start, ms) of a length that their period meets."""
    first, last = pl.col("start") // length, (pl.col("end") - 1) // length
    steps = lines.with_columns(pl.int_ranges(first, last + 1).alias("step")).explode("step")
    return steps.with_columns(pl.col("step") * length)


def moments(spans: pl.DataFrame, lives: pl.DataFrame, pod: Sequence[str]) -> pl.DataFrame:
    """Add ``who`` to moments of pods: what the pod was for most of that time, running first.

    Args:
        spans: ``moment`` (unique), ``pod``, ``start``, ``end``.
        lives: Pod lives with ``who`` and ``pod``.
        pod: Columns that name a pod.

    Returns:
        ``moment, who`` in no order; moments of pods without a life are left out.
    """
    told = lives.select(
        *pod,
        "who",
        (pl.col("phase") == "wait").alias("waits"),
        born="start",
        died="end",
    )
    overlap = pl.min_horizontal("end", "died") - pl.max_horizontal("start", "born")
    # One number to sort by: together at all, running, long; a day is less than 2^28 ms.
    rank = (overlap <= 0) * 2**30 + pl.col("waits") * 2**29 + (2**28 - overlap)
    both = spans.join(told, on=list(pod)).select("moment", rank.alias("rank"), "who")
    return both.sort("moment", "rank", "who").unique("moment", keep="first").drop("rank")


def with_identity(parts: pl.DataFrame, who: pl.DataFrame) -> pl.DataFrame:
    """Parts of pods get what their pod is; the others keep what they say.

    A pod's doubt stays: confidence is low if that of the pod or of the part is.
    """
    pods = who.rename({"labels": "tags"})
    names = ["cluster", "reason", "tags", "confidence", *_OF_POD]
    both = parts.join(pods.select("who", *names), on="who", how="left", suffix="_pod")
    of_pod = pl.col("who").is_not_null()
    low = (pl.col("confidence") == "low") | (pl.col("confidence_pod") == "low")
    return both.with_columns(
        *(
            pl.when(of_pod).then(f"{name}_pod").otherwise(name).alias(name)
            for name in names
            if name != "confidence"
        ),
        pl.when(of_pod).then(pl.lit("workload")).otherwise("target").alias("target"),
        pl.when(low.fill_null(value=False))
        .then(pl.lit("low"))
        .otherwise(pl.lit("high"))
        .alias("confidence"),
    ).select(parts.columns)


def unattributed() -> list[pl.Expr]:
    """Target and identity of a part that belongs to nobody; its reason is its own."""
    return [pl.lit(UNATTRIBUTED).alias(name) for name in ("target", *IDENTITY_KEYS)]


def divide(lines: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Split each line over its parts, exactly, in every cost column.

    Args:
        lines: ``LINE``.
        parts: ``with_identity``; each line that has parts is split over all of them.

    Returns:
        ``LINE`` with the parts' amounts and times, and what ``costs.line_rows`` reads of a share.
    """
    rows = split(
        parts.join(lines.select(LINE), on="line").lazy(),
        group=["line"],
        amounts=UNITS,
        weight="weight",
        order=["target", "cluster", "uid", "who", "path", "reason", "tags", "weight"],
    ).collect()
    return rows.with_columns(
        pl.coalesce(
            pl.from_epoch(edge, time_unit="ms").dt.replace_time_zone("UTC").cast(TIME),
            f"ChargePeriod{name}",
        ).alias(f"ChargePeriod{name}")
        for edge, name in (("from", "Start"), ("until", "End"))
    ).drop("who", "weight", "from", "until")


def by_rules() -> list[pl.Expr]:
    """Target, reason, identity and tags of rows whose identity keys are what rules found, or null.

    Without any key a row is ``__unattributed__``; a phase that no rule tells is unknown. Reads the
    identity keys and ``Tags``.
    """
    nameless = pl.all_horizontal(pl.col(key).is_null() for key in IDENTITY_KEYS)
    otherwise = {key: "unknown" if key == "phase" else UNATTRIBUTED for key in IDENTITY_KEYS}
    lost = pl.lit(UNATTRIBUTED)
    return [
        pl.when(nameless).then(lost).otherwise(pl.lit("charge")).alias("target"),
        pl.when(pl.col("experiment").is_null()).then(pl.lit("no_rule")).alias("reason"),
        *(
            pl.when(nameless)
            .then(lost)
            .otherwise(pl.col(key).fill_null(pl.lit(otherwise[key])))
            .alias(key)
            for key in IDENTITY_KEYS
        ),
        pl.when(~nameless).then("Tags").alias("tags"),
    ]
