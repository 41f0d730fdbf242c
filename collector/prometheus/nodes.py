"""Nodes: when they were up, what they have and what they are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import polars as pl

from collector.prometheus import series as s
from collector.prometheus.amounts import AMOUNTS, amounts
from collector.prometheus.chains import changes, clip, cut, find_runs, fuse, look_up, union
from collector.prometheus.clean import Cleaned
from collector.prometheus.reader import Reader
from ledger.schema import TIME

# Sanitised label keys per column, the first present wins.
_LABEL_COLUMNS = {
    "instance_type": (
        "label_node_kubernetes_io_instance_type",
        "label_beta_kubernetes_io_instance_type",
    ),
    "region": (
        "label_topology_kubernetes_io_region",
        "label_failure_domain_beta_kubernetes_io_region",
    ),
    "zone": ("label_topology_kubernetes_io_zone", "label_failure_domain_beta_kubernetes_io_zone"),
    "capacity_text": (
        "label_karpenter_sh_capacity_type",
        "label_eks_amazonaws_com_capacity_type",
        "label_kubernetes_azure_com_scalesetpriority",
    ),
    "gke_spot": ("label_cloud_google_com_gke_spot", "label_cloud_google_com_gke_preemptible"),
    "product": (
        "label_nvidia_com_gpu_product",
        "label_cloud_google_com_gke_accelerator",
        "label_amd_com_gpu_product_name",
    ),
    "count_text": ("label_nvidia_com_gpu_count",),
    "sharing": ("label_nvidia_com_gpu_sharing_strategy",),
}
_CAPACITY_TYPES = {
    "capacity-block": "reserved",
    "reserved": "reserved",
    "spot": "spot",
    "on-demand": "on-demand",
    "regular": "on-demand",
}


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


def read_nodes(reader: Reader) -> Nodes | None:
    """Nodes in the reader's window; None if nothing says when nodes were up."""
    up = reader.read(s.NODE_INFO)
    if up is None:
        return None
    frame = up.frame.filter(pl.col("node").is_not_null())
    if "provider_id" not in frame.columns:
        frame = frame.with_columns(provider_id=pl.lit(None, pl.String))
    steps = {
        "provider_id": changes(frame, ["node"], ["provider_id"]),
        "labels": _labels(reader.read(s.NODE_LABELS), frame),
        "capacity": _capacity(reader.read(s.NODE_CAPACITY), frame),
        "created": _created(reader.read(s.NODE_CREATED), frame),
    }
    runs = find_runs(frame, "node", up.interval)
    segments = cut(runs, "node", list(steps.values()))
    for step in steps.values():
        segments = look_up(segments, "node", step)
    segments = fuse(segments.drop("at"), "node", ["provider_id", "labels", "created", *AMOUNTS])
    rows = _describe(clip(segments, reader.window))
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


def _describe(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what the labels say; count physical cards."""
    told = _label_columns(rows["labels"].unique().drop_nulls().sort())
    rows = rows.join(told, on="labels", how="left", maintain_order="left")
    shared = pl.col("sharing").is_in(["time-slicing", "mps"]).fill_null(value=False)
    physical = pl.when(shared).then(pl.col("count_text").cast(pl.Int64, strict=False))
    counted = (
        pl.when(pl.col("gpu_resource").str.starts_with("nvidia.com/mig-"))
        .then(pl.col("count_text").cast(pl.Int64, strict=False))
        .otherwise(
            pl.coalesce(physical, "gpus", pl.when(pl.col("cpu_millicores").is_not_null()).then(0))
        )
    )
    return rows.with_columns(
        gpus=counted,
        gpu_model="product",
        interval_seconds=pl.col("interval").dt.total_microseconds() / 1e6,
    ).sort("node", "start")


def _label_columns(texts: Iterable[str]) -> pl.DataFrame:
    """One row per distinct label set: the columns that its labels fill."""
    rows = []
    for text in texts:
        labels = msgspec.json.decode(text, type=dict[str, str])
        row = {
            column: next((labels[key] for key in keys if labels.get(key)), None)
            for column, keys in _LABEL_COLUMNS.items()
        }
        word = (row["capacity_text"] or "").lower().replace("_", "-")
        spot = "spot" if row["gke_spot"] == "true" else None
        rows.append({"labels": text, **row, "capacity_type": spot or _CAPACITY_TYPES.get(word)})
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("labels", *_LABEL_COLUMNS, "capacity_type"), pl.String)
    )


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
