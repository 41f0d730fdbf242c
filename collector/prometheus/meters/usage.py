"""Usage: how busy cards, cores and memory were, per quarter of an hour."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import polars as pl

from collector.prometheus.cluster.nodes import Nodes
from collector.prometheus.meters.activity import Activity, Gauges, by_samples, read_activity
from collector.prometheus.meters.cards import card_rows
from collector.prometheus.meters.engines import ENGINE_METERS, engine_rows
from collector.prometheus.meters.pods import METERS, Known, Meter, pod_rows
from collector.prometheus.meters.pushed.asking import NotPushedError
from collector.prometheus.meters.pushed.cards import Cards
from collector.prometheus.meters.pushed.pods import pushed_rows
from collector.prometheus.meters.slots import SLOT, expected, statistics
from collector.prometheus.meters.tenants import numbered
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series.card_series import Measure
from collector.prometheus.sources.source import QueryError
from ledger.order import ordered
from ledger.schema import USAGE
from ledger.window import Window

_COLUMNS = [name for name in USAGE.columns if name not in ("day", "source", "cluster")]


@dataclass(frozen=True)
class Usage:
    """What was read of usage.

    Args:
        rows: Rows of the table ``usage``, without ``day``, ``source`` and ``cluster``.
        models: ``node``, ``model``: card models that DCGM names.
    """

    rows: pl.DataFrame
    models: pl.DataFrame


_ORDER = ("meter", "node", "device", "namespace", "pod", "uid")


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
    known = Known(numbered(lives), requests)
    parts = [] if nodes is None else [_up(nodes.up, reader.window)]
    for meter in METERS:
        told = _pods(reader, meter, known)
        if told is not None:
            if meter.sandbox:
                told = told.join(host_network, on="uid", how="anti", maintain_order="left")
            parts.append(told)
    for engine in ENGINE_METERS:
        told = engine_rows(reader, engine, lambda it: _pods(reader, it, known))
        if told is not None:
            parts.append(told)
    models = pl.DataFrame(schema={"node": pl.String, "model": pl.String})
    slot = ["node", "device", "slot"]
    seen = pl.DataFrame(schema={name: USAGE.schema[name] for name in slot})
    for found in _cards(reader, nodes, known.lives):
        models = pl.concat([models, found.placed.select("node", model="modelName")])
        active = card_rows(found.slots, known.lives, found.interval)
        active = active.join(seen, on=slot, how="anti", nulls_equal=True, maintain_order="left")
        seen = pl.concat([seen, active.select(slot).unique()])
        parts.append(active)
        if count := active["node"].n_unique():
            reader.notes.append(f"how busy the cards of {count} nodes were is {found.metric}")
    if not parts:
        return None
    rows = pl.concat([_formed(part) for part in parts], rechunk=False)
    parts.clear()  # they are as large as the whole
    return Usage(ordered(rows, _ORDER, ["slot"]), models.unique())


def _formed(part: pl.DataFrame) -> pl.DataFrame:
    """The columns of the table; what a meter does not tell is null."""
    return part.select(
        (pl.col(name) if name in part.columns else pl.lit(None))
        .cast(USAGE.schema[name])
        .alias(name)
        for name in _COLUMNS
    )


def _up(up: Cleaned, window: Window) -> pl.DataFrame:
    ones = up.frame.filter(pl.col("node").is_not_null()).with_columns(value=pl.lit(1.0))
    return statistics(ones, ["ident", "node"], window).with_columns(
        expected=expected(pl.lit(SLOT.total_seconds()), up.interval), meter=pl.lit("up")
    )


def _pods(reader: Reader, meter: Meter, known: Known) -> pl.DataFrame | None:
    """The rows of a meter of pods; None if nothing is read of it."""
    push = reader.source.push_down
    if push is not None:
        with suppress(NotPushedError, QueryError):
            return pushed_rows(reader, push, meter, known)
    cleaned = reader.read(meter.series)
    if cleaned is None:
        return None
    reader.notes += meter.loose(cleaned.meanings)
    return pod_rows(cleaned, meter, known, reader.window)


def _cards(reader: Reader, nodes: Nodes | None, lives: pl.DataFrame) -> list[Activity]:
    """How busy cards are, of the server where it can tell."""
    push = reader.source.push_down
    if push is None:
        return read_activity(reader, nodes, lives)
    cards = Cards(push, lives)

    def measured(measure: Measure, gauges: Gauges) -> Activity | None:
        with suppress(NotPushedError, QueryError):
            return cards.measured(measure, gauges)
        return by_samples(measure, gauges, lives)

    return read_activity(reader, nodes, lives, measured)
