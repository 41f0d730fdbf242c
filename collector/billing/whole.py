"""What only the whole bill can tell: line ids, lines in several files, commitments paid twice."""

from __future__ import annotations

import polars as pl

from collector.billing.columns import FOCUS
from collector.billing.content import CONTENT
from collector.billing.reading import FILE, BillRead
from ledger.schema import CHARGES

_COLUMNS = {name: CHARGES.columns[name].dtype for name in (*FOCUS, "x_Other")}


def whole_lines(read: BillRead) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Put the batches of all files together.

    Returns:
        One row per line with the FOCUS columns of ``charges``, ``x_Other`` and ``x_LineId``; and
        alerts. Identical lines all stay: their ids count them.
    """
    if not read.frames:
        return pl.DataFrame(schema={**_COLUMNS, "x_LineId": pl.String}), ()
    lines = pl.concat(read.frames, how="diagonal")
    read.frames.clear()  # a month of a large bill is gigabytes: one copy of it is enough
    missing = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in _COLUMNS.items()
        if name not in lines.columns
    ]
    lines = lines.with_columns(missing).with_columns(_line_ids())
    doubled = _in_several_files(lines) if len(read.tallies) > 1 else ()
    used = set[str]().union(*(tally.used_commitments for tally in read.tallies))
    lines, paid_twice = _without_doubled_commitments(lines.select(*_COLUMNS, "x_LineId"), used)
    return lines, (*doubled, *paid_twice)


def _line_ids() -> pl.Expr:
    """The content hash; the second of two identical lines has ``-2`` behind it, and so on."""
    twin = pl.col(CONTENT).cum_count().over(CONTENT)
    numbered = pl.format("{}-{}", pl.col(CONTENT), twin)
    return pl.when(twin == 1).then(pl.col(CONTENT)).otherwise(numbered).alias("x_LineId")


def _in_several_files(lines: pl.DataFrame) -> tuple[str, ...]:
    """Alert: an export that was delivered again under another name would count twice."""
    twins = (
        lines.filter(pl.col(CONTENT).is_duplicated())
        .group_by(CONTENT)
        .agg(pl.col(FILE).n_unique().alias("files"), pl.len())
    )
    several = twins.filter(pl.col("files") > 1)
    if several.is_empty():
        return ()
    return (
        f"alert repeated_lines: {several.height} lines stand in more than one file; if a file "
        "holds an older state of the same export, leave it out",
    )


def _without_doubled_commitments(
    lines: pl.DataFrame, used: set[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """EffectiveCost of a commitment's purchase is 0 where its usage lines carry it too."""
    doubled = (
        (pl.col("ChargeCategory") == "Purchase")
        & pl.col("CommitmentDiscountId").is_in(sorted(used))
        & (pl.col("EffectiveCost") != 0)
    ).fill_null(False)
    found = lines.filter(doubled)
    if found.is_empty():
        return lines, ()
    sums = (
        found.group_by("BillingCurrency").agg(pl.col("EffectiveCost").sum()).sort("BillingCurrency")
    )
    amounts = ", ".join(f"{amount} {currency}" for currency, amount in sums.iter_rows())
    zero = pl.lit(0).cast(CHARGES.columns["EffectiveCost"].dtype)
    cost = pl.when(doubled).then(zero).otherwise(pl.col("EffectiveCost")).alias("EffectiveCost")
    return lines.with_columns(cost), (
        f"alert effective_cost_on_purchase: {found.height} commitment purchases carry an "
        f"EffectiveCost ({amounts}) that their usage lines carry too: read as 0",
    )
