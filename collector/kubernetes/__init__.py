"""Kubernetes: pods, nodes and owners, from the live API or from `kubectl get -o json` dumps."""

from __future__ import annotations

from pathlib import Path

from collector.kubernetes.collect import KubernetesCollector
from collector.kubernetes.dump import DumpReader
from collector.kubernetes.environment import allowed
from collector.kubernetes.live import LiveReader
from ledger.errors import SettingsError
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Cluster, Identity, resolve_path

__all__ = ["KubernetesCollector", "from_settings"]


def from_settings(
    cluster: Cluster, base: Path, identity: Identity | None = None
) -> KubernetesCollector:
    """The collector of a cluster.

    Args:
        cluster: Its block of the settings, with a ``kubernetes`` source.
        base: Folder that relative paths refer to.
        identity: Identity rules; variables and annotations that they name are kept.

    Raises:
        SettingsError: The cluster has no ``kubernetes`` block, its dump is no local path, or a
            rule names a variable that sounds like a secret.
    """
    source = cluster.kubernetes
    if source is None:
        raise SettingsError(f"cluster {cluster.name} has no kubernetes block")
    rules = identity or Identity()
    variables = allowed(rule for key in IDENTITY_KEYS for rule in getattr(rules, key))
    annotations = (*source.annotations, *rules.named("annotation"))
    if source.dump is None:
        return KubernetesCollector(
            cluster.name,
            LiveReader(source, base),
            snapshot=True,
            annotations=annotations,
            variables=variables,
            required=source.required,
            alone=cluster.prometheus is None,
        )
    path = resolve_path(source.dump, base)
    if "://" in path:
        raise SettingsError(
            f"cluster {cluster.name}: the dump {path} is no local path",
            "copy the dump to this machine",
        )
    return KubernetesCollector(
        cluster.name,
        DumpReader(Path(path)),
        snapshot=False,
        annotations=annotations,
        variables=variables,
        required=source.required,
        alone=cluster.prometheus is None,
    )
