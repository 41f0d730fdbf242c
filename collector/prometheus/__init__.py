"""Prometheus: nodes, pods and usage from a live server or a Parquet export of its series."""

from __future__ import annotations

from pathlib import Path

from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.sources.source import SampleSource
from ledger.errors import SettingsError
from ledger.settings import Cluster, Identity, resolve_path

__all__ = ["PrometheusCollector", "from_settings"]


def from_settings(
    cluster: Cluster, base: Path, identity: Identity | None = None
) -> PrometheusCollector:
    """The collector of a cluster's series.

    Args:
        cluster: The cluster's block; it must have a ``prometheus`` block.
        base: Folder that relative paths refer to.
        identity: Identity rules; annotations that they name are kept.

    Raises:
        SettingsError: The cluster has no ``prometheus`` block.
    """
    block = cluster.prometheus
    if block is None:
        raise SettingsError(f"cluster {cluster.name} names no prometheus")
    source: SampleSource
    if block.export is not None:
        from collector.prometheus.sources.export import ParquetExport

        source = ParquetExport(Path(resolve_path(block.export, base)))
    else:
        from collector.prometheus.sources.server import Server

        source = Server.from_settings(block, cluster.name, base)
    named = cluster.kubernetes.annotations if cluster.kubernetes else ()
    return PrometheusCollector(
        cluster.name,
        source,
        block.cluster_label,
        block.required,
        (*named, *(identity.named("annotation") if identity else ())),
        api=cluster.kubernetes is not None,
        value=block.cluster_value,
    )
