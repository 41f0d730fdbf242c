"""Usage: how busy cards, cores and memory were, per quarter of an hour."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus import series as s
from collector.prometheus.clean import Cleaned
from collector.prometheus.nodes import Nodes
from collector.prometheus.reader import Reader, no_series
from collector.prometheus.slots import SLOT, STATISTICS, expected, rates, statistics
from ledger.schema import USAGE
from ledger.window import Window

_ROW = (
    "node",
    "device",
    "uid",
    "namespace",
    "pod",
    "meter",
    "slot",
    *STATISTICS,
    "last_change",
    "samples",
    "expected",
)


@dataclass(frozen=True)
class Usage:
    """What was read of usage.

    Args:
        rows: Rows of the table ``usage``, without ``day``, ``source`` and ``cluster``.
        models: ``node``, ``model``: card models that DCGM names.
    """

    rows: pl.DataFrame
    models: pl.DataFrame


def read_usage(reader: Reader, nodes: Nodes | None, lives: pl.DataFrame) -> Usage | None:
    """All meters of the reader's window; None if there is none.

    Args:
        reader: Where the series are read.
        nodes: Nodes, if any are known.
        lives: ``uid``, ``namespace``, ``pod``, ``node``, ``start``, ``end`` of pods.
    """
    parts = [] if nodes is None else [_up(nodes.up, reader.window)]
    for series, meter in ((s.CPU_USAGE, "cpu_usage"), (s.MEMORY, "memory_working_set")):
        cleaned = reader.read(series)
        if cleaned is not None:
            parts.append(_containers(cleaned, meter, lives, reader.window))
    cards = _cards(reader, nodes)
    models = pl.DataFrame(schema={"node": pl.String, "model": pl.String})
    seen = pl.DataFrame(schema={"node": pl.String, "device": pl.String})
    for cleaned in cards:
        frame = _place_cards(cleaned.meanings, nodes)
        models = pl.concat([models, frame.select("node", model="modelName")])
        active = _activity(cleaned, frame, lives, reader.window).join(
            seen, on=["node", "device"], how="anti", nulls_equal=True, maintain_order="left"
        )
        seen = pl.concat([seen, active.select("node", "device").unique()])
        parts.append(active)
    if not parts:
        return None
    rows = [part.select(_ROW).cast({name: USAGE.schema[name] for name in _ROW}) for part in parts]
    order = ("meter", "node", "device", "namespace", "pod", "uid", "slot")
    return Usage(pl.concat(rows).sort(order), models.unique())


def _up(up: Cleaned, window: Window) -> pl.DataFrame:
    ones = up.frame.filter(pl.col("node").is_not_null()).with_columns(value=pl.lit(1.0))
    return statistics(ones, ["ident", "node"], window).with_columns(
        expected=expected(pl.lit(SLOT.total_seconds()), up.interval),
        meter=pl.lit("up"),
        device=pl.lit(None, pl.String),
        uid=pl.lit(None, pl.String),
        namespace=pl.lit(None, pl.String),
        pod=pl.lit(None, pl.String),
    )


def _containers(cleaned: Cleaned, meter: str, lives: pl.DataFrame, window: Window) -> pl.DataFrame:
    """A meter of pods: the sum over their containers.

    Containers are sampled at different times, so statistics are taken per container and summed:
    mean and last are exact; with several containers, min and max are outer bounds.
    """
    chosen = _named_containers(cleaned.meanings)
    samples = cleaned.samples.join(
        chosen.select("meaning"), on="meaning", how="semi", maintain_order="left"
    )
    if meter == "cpu_usage":
        samples = rates(samples, cleaned.interval)
    tenants = chosen.select("ident", "namespace", "pod").unique(
        "ident", keep="first", maintain_order=True
    )
    samples = _with_tenant(samples, tenants, lives, cleaned)
    slots = statistics(samples, ["ident", "uid"], window).join(tenants, on="ident", how="left")
    pods = (
        slots.sort("namespace", "pod", "uid", "slot", "ident")
        .group_by("namespace", "pod", "uid", "slot", maintain_order=True)
        .agg(
            pl.col(*STATISTICS).sum(),
            pl.col("last_change").max(),
            pl.col("samples").max(),
            containers=pl.len(),
        )
    )
    places = lives.drop_nulls(["uid", "node"]).unique("uid", keep="last", maintain_order=True)
    placed = pods.join(places.select("uid", "node"), on="uid", how="left", maintain_order="left")
    return _expected_in_life(placed, lives, cleaned).with_columns(
        meter=pl.lit(meter), device=pl.lit(None, pl.String)
    )


def _named_containers(meanings: pl.DataFrame) -> pl.DataFrame:
    """Containers of pods; the pod's own control group only where no container is named."""
    rows = meanings.filter(pl.col("pod").is_not_null(), pl.col("namespace").is_not_null())
    rows = rows.with_columns(
        named=pl.col("container").is_not_null()
        & (pl.col("container") != "POD").fill_null(value=False)
    )
    group = rows.filter(
        pl.col("container").is_null() & ~pl.col("named").any().over("namespace", "pod")
    )
    return pl.concat([rows.filter("named"), group]).sort("meaning")


def _with_tenant(
    samples: pl.DataFrame, tenants: pl.DataFrame, lives: pl.DataFrame, cleaned: Cleaned
) -> pl.DataFrame:
    """Add ``uid``: the pod of that name that lived at the time, give or take one interval."""
    slack = cleaned.interval
    spans = (
        lives.join(tenants, on=["namespace", "pod"])
        .select("ident", "uid", begin="start", until="end")
        .sort("begin", "ident", "uid")
    )
    ordered = samples.sort("time", "ident")
    back = ordered.join_asof(
        spans, left_on="time", right_on="begin", by="ident", check_sortedness=False
    )
    ahead = back.join_asof(
        spans.select("ident", "begin", next_uid="uid"),
        left_on="time",
        right_on="begin",
        by="ident",
        strategy="forward",
        tolerance=slack,
        check_sortedness=False,
        suffix="_next",
    )
    alive = pl.col("time") <= pl.col("until") + slack
    return (
        ahead.with_columns(
            uid=pl.when(alive).then("uid").otherwise("next_uid"),
        )
        .drop("begin", "until", "next_uid", "begin_next", strict=False)
        .sort("ident", "time")
    )


def _expected_in_life(rows: pl.DataFrame, lives: pl.DataFrame, cleaned: Cleaned) -> pl.DataFrame:
    """Samples to expect in each slot, in which the pod may have lived only for a part."""
    slots = rows.select("uid", "slot").unique().drop_nulls()
    overlap = (
        slots.join(lives.select("uid", "start", "end"), on="uid")
        .with_columns(
            low=pl.max_horizontal("slot", "start"),
            high=pl.min_horizontal(pl.col("slot") + SLOT, "end"),
        )
        .filter(pl.col("low") < pl.col("high"))
        .group_by("uid", "slot")
        .agg(lived=(pl.col("high") - pl.col("low")).dt.total_microseconds().sum() / 1e6)
    )
    unknown = pl.when(pl.col("uid").is_null()).then(SLOT.total_seconds()).otherwise(0.0)
    lived = pl.coalesce("lived", unknown)
    return (
        rows.join(overlap, on=["uid", "slot"], how="left", maintain_order="left")
        .with_columns(expected=expected(lived, cleaned.interval))
        .drop("lived")
    )


def _cards(reader: Reader, nodes: Nodes | None) -> list[Cleaned]:
    """Card activity, best evidence first; silence is a gap only where there are cards."""
    equipped = set() if nodes is None else set(nodes.with_cards)
    found = [cleaned for cleaned in [reader.read_one(s.GPU_ACTIVE)] if cleaned is not None]
    hosts = {
        host
        for cleaned in found
        for host in _place_cards(cleaned.meanings, nodes)["node"].drop_nulls()
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


def _place_cards(meanings: pl.DataFrame, nodes: Nodes | None) -> pl.DataFrame:
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


def _activity(
    cleaned: Cleaned, frame: pl.DataFrame, lives: pl.DataFrame, window: Window
) -> pl.DataFrame:
    """Activity of cards, 0 to 1, with the pod that held them; stale pod labels are cut off."""
    whose = frame.select("meaning", "node", "device", "namespace", "pod").unique(
        "meaning", keep="first", maintain_order=True
    )
    tenants = frame.select("ident", "namespace", "pod").unique(
        "ident", keep="first", maintain_order=True
    )
    samples = _with_tenant(cleaned.samples, tenants, lives, cleaned).join(
        whose, on="meaning", how="left", maintain_order="left"
    )
    known = lives.select("namespace", "pod", known=pl.lit(value=True)).unique()
    samples = samples.join(known, on=["namespace", "pod"], how="left", maintain_order="left")
    stale = pl.col("uid").is_null() & pl.col("known").fill_null(value=False)
    samples = samples.with_columns(pl.when(~stale).then(pl.col("namespace", "pod"))).sort(
        "ident", "time"
    )
    keys = ["node", "device", "uid", "namespace", "pod"]
    slots = statistics(
        samples.unique([*keys, "time"], keep="first", maintain_order=True), keys, window
    )
    own = _expected_in_life(slots.filter(pl.col("uid").is_not_null()), lives, cleaned)
    free = slots.filter(pl.col("uid").is_null()).join(
        own.group_by("node", "device", "slot").agg(taken=pl.col("expected").sum()),
        on=["node", "device", "slot"],
        how="left",
        maintain_order="left",
    )
    full = round(SLOT / cleaned.interval)
    rest = pl.max_horizontal(full - pl.col("taken").fill_null(0), pl.col("samples"))
    return pl.concat([own, free.with_columns(expected=rest).drop("taken")]).with_columns(
        meter=pl.lit("gpu_activity")
    )
