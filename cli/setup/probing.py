"""What ``init`` finds out by itself: contexts, a Prometheus, the models of the GPUs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

_LOCAL = ("http://localhost:9090",)
_SERVICES = tuple(
    f"http://{service}.{namespace}.svc:{port}"
    for service, namespace, port in (
        ("prometheus-operated", "monitoring", 9090),
        ("prometheus-k8s", "monitoring", 9090),
        ("kube-prometheus-stack-prometheus", "monitoring", 9090),
        ("prometheus-server", "monitoring", 80),
        ("prometheus-server", "prometheus", 80),
    )
)
_SECONDS = 2.0


@dataclass(frozen=True)
class Contexts:
    """The contexts of the kubeconfig, and the current one."""

    names: tuple[str, ...] = ()
    current: str | None = None


def in_cluster() -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def contexts() -> Contexts:
    """Read the names of the kubeconfig's contexts; no cluster is called."""
    import yaml

    text = os.environ.get("KUBECONFIG") or "~/.kube/config"
    names: list[str] = []
    current = None
    for part in text.split(os.pathsep):
        path = Path(part).expanduser()
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        if isinstance(data, dict):
            entries = data.get("contexts") or ()
            names += [
                str(entry["name"])
                for entry in entries
                if isinstance(entry, dict) and entry.get("name")
            ]
            current = current or data.get("current-context") or None
    return Contexts(tuple(dict.fromkeys(names)), str(current) if current else None)


def prometheus_candidates() -> Sequence[str]:
    """URLs worth a try: the usual services inside a cluster, else this machine's own port."""
    return _SERVICES if in_cluster() else _LOCAL


def gpu_models(kubernetes: Mapping[str, str | bool], base: Path) -> tuple[str, ...]:
    """The card models that the nodes of a cluster name; none if it cannot be read now.

    Args:
        kubernetes: The block of its source, as it will stand in the settings.
        base: Folder that relative paths refer to.
    """
    from cli.clock import now
    from collector.kubernetes import from_settings
    from ledger.errors import RunbillError
    from ledger.settings import Cluster
    from ledger.window import Window

    cluster = Cluster.model_validate({"name": "cluster", "kubernetes": dict(kubernetes)})
    try:
        facts = from_settings(cluster, base).collect(Window.of_day(now().date()))
    except RunbillError:
        return ()
    nodes = facts.tables.get("nodes")
    if nodes is None:
        return ()
    return tuple(nodes["gpu_model"].drop_nulls().unique().sort())


def is_prometheus(url: str) -> bool:
    """Whether a Prometheus API answers there within two seconds."""
    if urlsplit(url).scheme not in ("http", "https"):
        return False
    asked = f"{url.rstrip('/')}/api/v1/query?query=vector(1)"
    request = Request(asked, headers={"User-Agent": "runbill"})  # noqa: S310  checked above
    try:
        with urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310  checked above
            return bool(json.load(reply).get("status") == "success")
    except (URLError, OSError, HTTPException, ValueError, AttributeError):
        return False
