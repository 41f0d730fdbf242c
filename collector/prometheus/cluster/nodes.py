"""Nodes: when they were up, what they have and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec
import polars as pl

from collector.gaps import of_layouts
from collector.labels import NodeLabels, sanitised
from collector.layouts import Layout, layout
from collector.prometheus.cluster.amounts import AMOUNTS, amounts
from collector.prometheus.samples.chains import changes, clip, cut, find_runs, fuse, look_up, union
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s
from ledger.facts import Gap
from ledger.schema import TIME

_SAID = ("labels", "devices", "sized")  # what cards are counted from
_TOLD = ("instance_type", "region", "zone", "capacity_type", "gpu_model")


@dataclass(frozen=True)
class Nodes:
    """What was read of nodes.

    Args:
        rows: Rows of the table ``nodes``, without ``day``, ``source`` and ``cluster``.
        seen: ``start``, ``end``: disjoint spans in which any node was seen, not clipped.
        up: The samples that show nodes up, with their ``node``.
    """

    rows: pl.DataFrame
    seen: pl.DataFrame
    up: Cleaned

    @property
    def names(self) -> pl.Series:
        """Names of all nodes, sorted."""
        return self.rows["node"].unique().sort()

    @property
    def with_cards(self) -> pl.Series:
        """Names of the nodes that have cards, sorted."""
        return self.rows.filter(pl.col("gpus") > 0)["node"].unique().sort()

    @property
    def with_mig(self) -> pl.Series:
        """Names of the nodes that offer MIG devices, sorted."""
        mig = pl.col("gpu_units").str.contains("/mig-", literal=True) | pl.col(
            "labels"
        ).str.contains("-MIG-", literal=True)
        return self.rows.filter(mig)["node"].unique().sort()

    @property
    def machines(self) -> pl.DataFrame:
        """``machine`` (the last part of a provider id) and the ``node`` that has it alone."""
        return (
            self.rows.select(machine=pl.col("provider_id").str.extract("([^/]+)$"), node="node")
            .unique()
            .drop_nulls()
            .filter(pl.len().over("machine") == 1)
            .sort("machine")
        )


def read_nodes(reader: Reader) -> Nodes | None:
    """Nodes in the reader's window; None if nothing says when nodes were up."""
    up = reader.read(s.NODE_INFO)
    if up is None:
        return None
    reader.interval = up.interval
    frame = up.frame.filter(pl.col("node").is_not_null())
    if "provider_id" not in frame.columns:
        frame = frame.with_columns(provider_id=pl.lit(None, pl.String))
    steps = {
        "provider_id": changes(frame, ["node"], ["provider_id"]),
        "labels": _labels(reader.read_states(s.NODE_LABELS), frame),
        "capacity": _capacity(reader.read_states(s.NODE_CAPACITY), frame),
        "created": _created(reader.read_states(s.NODE_CREATED), frame),
    }
    runs = find_runs(frame, "node", up.interval)
    segments = cut(runs, "node", list(steps.values()))
    for step in steps.values():
        segments = look_up(segments, "node", step)
    segments = fuse(segments.drop("at"), "node", ["provider_id", "labels", "created", *AMOUNTS])
    rows, gaps = _describe(clip(segments, reader.window))
    reader.gaps.extend(gaps)
    return Nodes(rows, union(runs), up)


def _empty(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.clear().select("node", "time")


def _labels(cleaned: Cleaned | None, frame: pl.DataFrame) -> pl.DataFrame:
    if cleaned is None:
        return _empty(frame).with_columns(labels=pl.lit(None, pl.String))
    return changes(cleaned.frame.filter(pl.col("node").is_not_null()), ["node"], ["labels"])


def _capacity(cleaned: Cleaned | None, frame: pl.DataFrame) -> pl.DataFrame:
    known = (
        frame.clear().select("node", "time", resource=pl.lit(""), value=pl.lit(0.0))
        if cleaned is None
        else cleaned.frame
    )
    return amounts(known.filter(pl.col("node").is_not_null()), "node", [])


def _created(cleaned: Cleaned | None, frame: pl.DataFrame) -> pl.DataFrame:
    if cleaned is None:
        return _empty(frame).with_columns(created=pl.lit(None, TIME))
    moment = (pl.col("value") * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us"))
    told = cleaned.frame.filter(pl.col("node").is_not_null()).with_columns(
        created=moment.dt.replace_time_zone("UTC")
    )
    return changes(told, ["node"], ["created"])


def _describe(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Gap]]:
    """Add what the labels say and the layout of cards; and what cannot be told of it."""
    rows = rows.with_columns(sized=pl.col("cpu_millicores").is_not_null())
    known = rows.select("node", *_SAID).unique().sort("node", *_SAID)
    kinds = {key: _layout(*key) for key in known.select(_SAID).unique().iter_rows()}
    found = [(kinds[row], _labels_of(row[0])) for row in known.select(_SAID).iter_rows()]
    told = known.with_columns(
        pl.Series("gpus", [cards.cards for cards, _ in found], pl.Int64),
        pl.Series("gpu_resource", [cards.found.resource for cards, _ in found], pl.String),
        pl.Series("gpu_units", [cards.units_json for cards, _ in found], pl.String),
        pl.Series("gpu_memory_mib", [cards.memory_mib for cards, _ in found], pl.Int64),
        *(
            pl.Series(name, [getattr(labels, name) for _, labels in found], pl.String)
            for name in _TOLD
        ),
    )
    seconds = pl.col("interval").dt.total_microseconds() / 1e6
    described = (
        rows.join(told, on=["node", *_SAID], how="left", nulls_equal=True)
        .with_columns(interval_seconds=seconds)
        .sort("node", "start")
    )
    named = zip(known["node"], (cards for cards, _ in found), strict=True)
    return described, list(of_layouts(list(named)))


def _layout(labels: str | None, devices: str | None, sized: object) -> Layout:
    capacity = msgspec.json.decode(devices or "{}", type=dict[str, int])
    return layout(capacity, _labels_of(labels).get, sized=bool(sized))


@lru_cache(maxsize=4096)
def _labels_of(text: str | None) -> NodeLabels:
    return NodeLabels(msgspec.json.decode(text or "{}", type=dict[str, str]), sanitised)


def with_models(rows: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """Fill the card model of nodes whose labels name none.

    Args:
        rows: Of ``Nodes``.
        models: ``node``, ``model`` as DCGM spells it ("NVIDIA H100 80GB HBM3").
    """
    one = (
        models.drop_nulls()
        .sort("node", "model")
        .unique("node", keep="first")
        .select("node", model=pl.col("model").str.replace_all(" ", "-", literal=True))
    )
    return (
        rows.join(one, on="node", how="left", maintain_order="left")
        .with_columns(gpu_model=pl.coalesce("gpu_model", "model"))
        .drop("model")
    )
