"""Cards: how busy each was in the hands of which pod."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.meters.slots import SLOT, statistics
from collector.prometheus.meters.tenants import expected_in_life, uids, with_life
from collector.prometheus.samples.clean import Cleaned
from ledger.window import Window

_DIGITS = 9

KEPT = ("mean", "min", "max")
"""The statistics that are kept of a slot."""


def card_slots(
    cleaned: Cleaned, placed: pl.DataFrame, lives: pl.DataFrame, window: Window
) -> pl.DataFrame:
    """Activity of cards per slot, 0 to 1, with the pod that held them; stale labels are cut off.

    Args:
        cleaned: Activity of cards.
        placed: Its meanings, of ``place``.
        lives: Of ``tenants.numbered``.
        window: The day.

    Returns:
        ``node``, ``device``, ``namespace``, ``pod``, ``life``, ``slot``, ``KEPT``, ``samples``.
    """
    things, whose = number_things(placed, lives)
    tenants = placed.select("ident", "namespace", "pod").unique(
        "ident", keep="first", maintain_order=True
    )
    samples = with_life(cleaned.samples, tenants, lives, cleaned.interval).join(
        whose, on="meaning", how="left", maintain_order="left"
    )
    stale = pl.col("life").is_null() & pl.col("known")
    samples = samples.with_columns(thing=pl.when(stale).then("bare").otherwise("thing")).unique(
        ["thing", "life", "time"], keep="first", maintain_order=True
    )
    slots = statistics(samples, ["thing", "life"], window)
    slots = slots.select("thing", "life", "slot", *KEPT, "samples")
    return slots.join(things, on="thing", how="left").drop("thing")


def card_rows(slots: pl.DataFrame, lives: pl.DataFrame, interval: timedelta) -> pl.DataFrame:
    """Rows of the table ``usage``; over the pods of a card, ``expected`` adds up to its slot.

    Args:
        slots: Of ``card_slots``.
        lives: Of ``tenants.numbered``.
        interval: Usual distance of the samples.
    """
    where = lives.drop_nulls(["uid", "node"]).unique("uid", keep="last", maintain_order=True)
    rows = (
        # Whoever adds up, the sum of ratios has another last digit.
        slots.with_columns(pl.col("mean").round(_DIGITS))
        .join(uids(lives), on="life", how="left")
        .join(where.select("uid", home="node"), on="uid", how="left")
        .with_columns(node=pl.coalesce("node", "home"))
        .drop("home", "life")
    )
    own = expected_in_life(rows.filter(pl.col("uid").is_not_null()), lives, interval)
    free = rows.filter(pl.col("uid").is_null()).join(
        own.group_by("node", "device", "slot").agg(taken=pl.col("expected").sum()),
        on=["node", "device", "slot"],
        how="left",
        nulls_equal=True,
    )
    full = round(SLOT / interval)
    rest = pl.max_horizontal(full - pl.col("taken").fill_null(0), pl.col("samples"))
    return pl.concat([own, free.with_columns(expected=rest).drop("taken")]).with_columns(
        meter=pl.lit("gpu_activity")
    )


def number_things(placed: pl.DataFrame, lives: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Numbers of card and tenant, and per ``meaning`` its ``thing`` with and without the tenant.

    ``known`` says whether anything is known of a pod of that name, so that its absence at a time
    means that the label is stale.
    """
    card, tenant = ["node", "device"], ["namespace", "pod"]
    rows = placed.select("meaning", *card, *tenant)
    without = rows.with_columns(pl.lit(None, pl.String).alias(name) for name in tenant)
    things = (
        pl.concat([rows, without])
        .select(*card, *tenant)
        .unique()
        .sort(*card, *tenant)
        .with_row_index("thing")
    )
    bare = things.filter(pl.col("namespace").is_null() & pl.col("pod").is_null())
    known = lives.select(*tenant, known=pl.lit(value=True)).unique()
    whose = (
        rows.join(things, on=[*card, *tenant], nulls_equal=True)
        .join(bare.select(*card, bare="thing"), on=card, nulls_equal=True)
        .join(known, on=tenant, how="left")
        .select("meaning", "thing", "bare", pl.col("known").fill_null(value=False))
    )
    return things, whose
