"""Coverage per node and meter: samples seen over samples expected.

What is expected follows from what was there, not from what was sampled: of pods, the time that they
ran on a node; of engines, that of the pods with any sample of it; of cards, those of the node for
as long as it was up. A node whose exporter is down has rows with nothing seen, so that nobody takes
its silence for idleness.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus.meters.engines import ENGINE_METERS
from collector.prometheus.meters.slots import SLOT
from ledger.schema import COVERAGE

POD_METERS = ("cpu_usage", "memory_working_set", "network_receive", "network_transmit")
ENGINES = tuple(meter.name for meter in ENGINE_METERS)
CARD_METER = "gpu_activity"
LOW = 0.9
"""Below this share of a meter on a node, a note names the node."""
_NAMED = 3
_US = 1e6


@dataclass(frozen=True)
class Present:
    """What was there on the day, so that samples of it could be expected.

    Args:
        nodes: ``node``, ``start``, ``end``, ``gpus``, clipped to the day.
        pods: ``uid``, ``node``, ``start``, ``end``, ``state``, clipped to the day.
        host_network: ``uid`` of pods that have no network of their own.
    """

    nodes: pl.DataFrame
    pods: pl.DataFrame
    host_network: pl.DataFrame


def coverage(usage: pl.DataFrame, present: Present) -> pl.DataFrame:
    """Rows of the table ``coverage``, without ``day``, ``source`` and ``cluster``.

    Meters that nothing was seen of on any node have no rows: their absence is a gap of its own.

    Args:
        usage: Rows of ``usage``: ``node``, ``device``, ``uid``, ``meter``, ``samples``,
            ``expected``.
        present: What was there.
    """
    # The usual slot is a whole one; the largest may hold a sample too many.
    usual = pl.col("expected").filter(pl.col("expected") > 0).mode().max()
    whole = usage.group_by("meter").agg(full=usual)
    full = dict(whole.filter(pl.col("full") > 0).iter_rows())
    found = [_nodes(usage, full["up"], present)] if "up" in full else []
    found += [
        _pods(usage.filter(pl.col("meter") == meter), meter, full[meter], present)
        for meter in (*POD_METERS, *ENGINES)
        if meter in full
    ]
    if CARD_METER in full:
        found.append(_cards(usage.filter(pl.col("meter") == CARD_METER), full[CARD_METER], present))
    columns = [name for name in COVERAGE.columns if name not in ("day", "source", "cluster")]
    schema = pl.Schema({name: COVERAGE.schema[name] for name in columns})
    rows = [part.select(columns).cast(schema) for part in found]
    return pl.concat([pl.DataFrame(schema=schema), *rows]).sort("meter", "node")


def notes(rows: pl.DataFrame) -> list[str]:
    """A sentence per meter of which some nodes showed less than ``LOW``."""
    seen = pl.col("seen") / pl.col("expected")
    low = rows.filter(pl.col("node").is_not_null(), pl.col("expected") > 0, seen < LOW).sort(
        "meter", seen, "node"
    )
    told = []
    for (meter,), thin in low.group_by("meter", maintain_order=True):
        names = thin["node"].to_list()
        blind = thin.filter(pl.col("seen") == 0).height
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        told.append(
            f"{meter}: less than {LOW:.0%} of the samples expected were seen on {len(names)} "
            f"{'node' if len(names) == 1 else 'nodes'} (none on {blind}): {shown}"
        )
    return told


def _ratio(rows: pl.DataFrame, meter: str, full: int) -> pl.DataFrame:
    """The rest of the columns: no more can be seen than is expected."""
    return rows.with_columns(
        meter=pl.lit(meter),
        seen=pl.min_horizontal("seen", "expected"),
        interval_seconds=pl.lit(SLOT.total_seconds() / full),
    )


def _samples(seconds: pl.Expr, full: int) -> pl.Expr:
    """Samples to expect in a time, if a quarter of an hour has ``full``."""
    return (seconds * full / SLOT.total_seconds()).round().cast(pl.Int64)


def _seconds() -> pl.Expr:
    return (pl.col("end") - pl.col("start")).dt.total_microseconds() / _US


def _nodes(usage: pl.DataFrame, full: int, present: Present) -> pl.DataFrame:
    """Scrapes of nodes, from the first to the last time that each was seen."""
    seen = usage.filter(pl.col("meter") == "up").group_by("node").agg(seen=pl.col("samples").sum())
    spans = present.nodes.group_by("node").agg(pl.col("start").min(), pl.col("end").max())
    rows = spans.join(seen, on="node", how="left").select(
        "node",
        pl.col("seen").fill_null(0),
        expected=pl.max_horizontal(_samples(_seconds(), full), pl.col("seen").fill_null(0)),
        things=pl.lit(1),
        silent=pl.col("seen").is_null().cast(pl.Int64),
    )
    return _ratio(rows, "up", full)


def _pods(usage: pl.DataFrame, meter: str, full: int, present: Present) -> pl.DataFrame:
    """A meter of the pods that ran on a node."""
    ran = present.pods.filter(pl.col("state") == "running", pl.col("node").is_not_null())
    if meter.startswith("network"):
        ran = ran.join(present.host_network, on="uid", how="anti")
    if meter in ENGINES:  # which pods serve is known only by what they say
        ran = ran.join(usage.select("uid").unique(), on="uid", how="semi")
    expected = ran.group_by("node", "uid").agg(seconds=_seconds().sum())
    seen = usage.group_by("uid").agg(seen=pl.col("samples").sum())
    placed = expected.join(seen, on="uid", how="left").with_columns(
        expected=_samples(pl.col("seconds"), full)
    )
    # One that ran for less than the distance of two samples need not have been seen.
    due = placed.filter(pl.col("expected") > 0)
    rows = due.group_by("node").agg(
        seen=pl.min_horizontal(pl.col("seen").fill_null(0), "expected").sum(),
        expected=pl.col("expected").sum(),
        things=pl.len(),
        silent=pl.col("seen").is_null().sum(),
    )
    return _ratio(rows, meter, full)


def _cards(usage: pl.DataFrame, full: int, present: Present) -> pl.DataFrame:
    """How busy cards were; a card cut into devices has samples of each of them."""
    up = (
        present.nodes.filter(pl.col("gpus") > 0)
        .group_by("node")
        .agg(
            due=_samples((_seconds() * pl.col("gpus")).sum(), full),
            cards=pl.col("gpus").max(),
        )
    )
    seen = usage.group_by("node").agg(
        pl.col("samples").sum(),
        pl.col("expected").sum(),
        devices=pl.col("device").n_unique(),
    )
    both = up.join(seen, on="node", how="full", coalesce=True, nulls_equal=True)
    things = pl.max_horizontal(pl.col("cards").fill_null(0), pl.col("devices").fill_null(0))
    rows = both.select(
        "node",
        seen=pl.col("samples").fill_null(0),
        expected=pl.max_horizontal(pl.col("due").fill_null(0), pl.col("expected").fill_null(0)),
        things=things,
        silent=things - pl.col("devices").fill_null(0),
    )
    return _ratio(rows, CARD_METER, full)
