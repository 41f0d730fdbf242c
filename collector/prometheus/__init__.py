"""Prometheus: nodes, pods and usage from a live server or a Parquet export of its series."""

from __future__ import annotations

from pathlib import Path

from collector.prometheus.collect import PrometheusCollector
from ledger.errors import SettingsError
from ledger.settings import Cluster, resolve_path

__all__ = ["PrometheusCollector", "from_settings"]


def from_settings(cluster: Cluster, base: Path) -> PrometheusCollector:
    """The collector of a cluster's series.

    Args:
        cluster: The cluster's block; it must have a ``prometheus`` block.
        base: Folder that relative paths refer to.

    Raises:
        SettingsError: The cluster has no ``prometheus`` block.
    """
    block = cluster.prometheus
    if block is None:
        raise SettingsError(f"cluster {cluster.name} names no prometheus")
    if block.export is not None:
        from collector.prometheus.export import ParquetExport

        return PrometheusCollector(
            cluster.name,
            ParquetExport(Path(resolve_path(block.export, base))),
            block.cluster_label,
            block.required,
        )
    from collector.prometheus.server import Server

    return PrometheusCollector(
        cluster.name,
        Server.from_settings(block, cluster.name, base),
        block.cluster_label,
        block.required,
    )
