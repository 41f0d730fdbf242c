"""Slurm: jobs by its accounting (``sacct``), whose nodes may be machines or pods (Slinky).

``files`` finds and reads exports; ``decode`` reads JSON, ``text`` lines, both into the one form of
``record``; ``checks`` puts aside what cannot be used; ``runs`` makes one list of all files, each
run once; ``inventory`` reads the list of nodes; ``rows``, ``node_rows`` and ``labels`` make tables.
"""

from __future__ import annotations

from pathlib import Path

from collector.slurm.collect import Slurm
from ledger.errors import SettingsError
from ledger.settings import Cluster, resolve_path

__all__ = ["Slurm", "from_settings"]


def from_settings(cluster: Cluster, base: Path) -> Slurm:
    """The collector of a cluster's ``slurm`` block; relative paths are relative to ``base``.

    Raises:
        SettingsError: The cluster has no such block.
    """
    source = cluster.slurm
    if source is None:
        raise SettingsError(f"the cluster {cluster.name} has no slurm block")
    nodes = resolve_path(source.nodes, base) if source.nodes else None
    pods = source.pods if source.pods is not None else cluster.kubernetes is not None
    return Slurm(cluster.name, source, resolve_path(source.sacct, base), nodes, pods)
