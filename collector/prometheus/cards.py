"""Cards: which node they sit in, which pod holds them, and how busy they are (DCGM)."""

from __future__ import annotations

import polars as pl

from collector.prometheus import series as s
from collector.prometheus.clean import Cleaned
from collector.prometheus.nodes import Nodes
from collector.prometheus.reader import Reader, no_series
from collector.prometheus.slots import SLOT, statistics
from collector.prometheus.tenants import expected_in_life, uids, with_life
from ledger.window import Window


def read_cards(reader: Reader, nodes: Nodes | None) -> list[Cleaned]:
    """Card activity, best evidence first; silence is a gap only where there are cards."""
    equipped = set() if nodes is None else set(nodes.with_cards)
    found = [cleaned for cleaned in [reader.read_one(s.GPU_ACTIVE)] if cleaned is not None]
    hosts = {
        host for cleaned in found for host in place(cleaned.meanings, nodes)["node"].drop_nulls()
    }
    if not found or equipped - hosts:
        plain = reader.read_one(s.GPU_UTIL)
        if plain is not None:
            share = plain.samples.with_columns(value=pl.col("value") / 100)
            found.append(Cleaned(share, plain.meanings, plain.interval))
    failed = any("DCGM" in error.message for error in reader.failures)
    if equipped and not found and not failed:
        reader.gaps.append(no_series(s.GPU_ACTIVE, reader.window))
    return found


def place(meanings: pl.DataFrame, nodes: Nodes | None) -> pl.DataFrame:
    """Add ``node``, ``device`` and the tenant that is not the exporter itself.

    The host name may be the node's, its fully qualified name, or the exporter pod's: the first
    that is a known node wins.
    """
    known = nodes.names.to_list() if nodes is not None else []
    bare = pl.col("host").str.split(".").list.first()
    candidates = [
        pl.when(name.is_in(known)).then(name) for name in (pl.col("host"), bare, pl.col("place"))
    ]
    exporter = pl.any_horizontal(
        pl.col(name).str.contains("(?i)dcgm|^exporter$").fill_null(value=False)
        for name in ("pod", "container")
    )
    return meanings.with_columns(
        node=pl.coalesce(*candidates, "host", "place"),
        device=pl.concat_str("device", "instance", separator="/", ignore_nulls=True),
        namespace=pl.when(~exporter).then("namespace"),
        pod=pl.when(~exporter).then("pod"),
    )


def activity(
    cleaned: Cleaned, placed: pl.DataFrame, lives: pl.DataFrame, window: Window
) -> pl.DataFrame:
    """Activity of cards, 0 to 1, with the pod that held them; stale pod labels are cut off.

    Args:
        cleaned: Activity of cards.
        placed: Its meanings, of ``place``.
        lives: Of ``tenants.numbered``.
        window: The day.

    Returns:
        Rows of the table ``usage``; over the pods of a card, ``expected`` adds up to its slot.
    """
    things, whose = _number_things(placed, lives)
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
    slots = (
        statistics(samples, ["thing", "life"], window)
        .join(things, on="thing", how="left")
        .join(uids(lives), on="life", how="left")
    )
    own = expected_in_life(slots.filter(pl.col("uid").is_not_null()), lives, cleaned.interval)
    free = slots.filter(pl.col("uid").is_null()).join(
        own.group_by("node", "device", "slot").agg(taken=pl.col("expected").sum()),
        on=["node", "device", "slot"],
        how="left",
        nulls_equal=True,
    )
    full = round(SLOT / cleaned.interval)
    rest = pl.max_horizontal(full - pl.col("taken").fill_null(0), pl.col("samples"))
    return pl.concat([own, free.with_columns(expected=rest).drop("taken")]).with_columns(
        meter=pl.lit("gpu_activity")
    )


def _number_things(placed: pl.DataFrame, lives: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
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
