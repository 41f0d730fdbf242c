"""Usage: how busy cards, cores and memory were, per quarter of an hour."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus import above
from collector.prometheus import series as s
from collector.prometheus.activity import read_activity
from collector.prometheus.cards import activity
from collector.prometheus.clean import Cleaned
from collector.prometheus.metric import Series
from collector.prometheus.nodes import Nodes
from collector.prometheus.reader import Reader
from collector.prometheus.slots import SLOT, STATISTICS, expected, rates, statistics
from collector.prometheus.tenants import expected_in_life, numbered, uids, with_life
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


@dataclass(frozen=True)
class _Meter:
    """A meter of pods.

    Args:
        name: Its name in the table.
        series: The series.
        counter: Whether its rate is meant.
        sandbox: Whether the pod has it as a whole, by network interface.
    """

    name: str
    series: Series
    counter: bool = False
    sandbox: bool = False


_METERS = (
    _Meter("cpu_usage", s.CPU_USAGE, counter=True),
    _Meter("memory_working_set", s.MEMORY),
    _Meter("network_receive", s.NETWORK_RECEIVE, counter=True, sandbox=True),
    _Meter("network_transmit", s.NETWORK_TRANSMIT, counter=True, sandbox=True),
)


def read_usage(
    reader: Reader,
    nodes: Nodes | None,
    lives: pl.DataFrame,
    host_network: pl.DataFrame,
    requests: pl.DataFrame,
) -> Usage | None:
    """All meters of the reader's window; None if there is none.

    Args:
        reader: Where the series are read.
        nodes: Nodes, if any are known.
        lives: ``uid``, ``namespace``, ``pod``, ``node``, ``start``, ``end`` of pods.
        host_network: ``uid``: pods that share the network of their node; their counters are its.
        requests: ``uid``, ``start``, ``cpu_millicores``, ``memory_bytes``: what each asked for.
    """
    lives = numbered(lives)
    parts = [] if nodes is None else [_up(nodes.up, reader.window)]
    for meter in _METERS:
        cleaned = reader.read(meter.series)
        if cleaned is not None:
            told = _pods(cleaned, meter, lives, reader.window, requests)
            if meter.sandbox:
                told = told.join(host_network, on="uid", how="anti", maintain_order="left")
            parts.append(told)
    models = pl.DataFrame(schema={"node": pl.String, "model": pl.String})
    slot = ["node", "device", "slot"]
    seen = pl.DataFrame(schema={name: USAGE.schema[name] for name in slot})
    for found in read_activity(reader, nodes):
        models = pl.concat([models, found.placed.select("node", model="modelName")])
        active = activity(found.cleaned, found.placed, lives, reader.window)
        active = active.join(seen, on=slot, how="anti", nulls_equal=True, maintain_order="left")
        seen = pl.concat([seen, active.select(slot).unique()])
        parts.append(active)
        if count := active["node"].n_unique():
            reader.notes.append(f"how busy the cards of {count} nodes were is {found.metric}")
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


def _pods(
    cleaned: Cleaned, meter: _Meter, lives: pl.DataFrame, window: Window, requests: pl.DataFrame
) -> pl.DataFrame:
    """A meter of pods: the sum over their containers, or over their network interfaces.

    Containers are sampled at different times, so statistics are taken per container and summed:
    mean and last are exact; with several containers, min and max are outer bounds. What crosses the
    pod's request has rows of its own beside (``above``).
    """
    chosen = (_interfaces if meter.sandbox else _named_containers)(cleaned.meanings)
    samples = cleaned.samples.join(
        chosen.select("meaning"), on="meaning", how="semi", maintain_order="left"
    )
    if meter.counter:
        samples = rates(samples, cleaned.interval)
    tenants = chosen.select("ident", "namespace", "pod").unique(
        "ident", keep="first", maintain_order=True
    )
    samples = with_life(samples, tenants, lives, cleaned.interval)
    slots = (
        statistics(samples, ["ident", "life"], window)
        .join(tenants, on="ident", how="left")
        .join(uids(lives), on="life", how="left")
    )
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
    rows = expected_in_life(placed, lives, cleaned.interval).with_columns(
        meter=pl.lit(meter.name), device=pl.lit(None, pl.String)
    )
    if meter.name not in above.METERS:
        return rows
    crossing = above.Crossing(meter.name, requests, uids(lives), cleaned.interval)
    return pl.concat([rows, above.above(samples, rows, crossing)])


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


def _interfaces(meanings: pl.DataFrame) -> pl.DataFrame:
    """A pod's network interfaces: counted once for its sandbox, which may bear the name POD."""
    rows = meanings.filter(
        pl.col("pod").is_not_null(),
        pl.col("namespace").is_not_null(),
        pl.col("container").fill_null("POD") == "POD",
    )
    once = rows.sort("container", "meaning", nulls_last=False).unique(
        ["namespace", "pod", "interface"], keep="first", maintain_order=True
    )
    idents = once.select("ident")
    return rows.join(idents, on="ident", how="semi").sort("meaning")
