"""What removes idle nodes by itself, as far as the ledger tells: a sentence per node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ledger.schema import RESOURCES
from rules.rule import RuleTables

_KINDS = ("NodePool", "NodeGroup", "ClusterAutoscaler", "Node")
_KARPENTER = "karpenter.sh/nodepool"
_GROUPS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
_UNNEEDED = "10m"  # default of --scale-down-unneeded-time
Told = dict[tuple[str, str, str], dict[str, Any]]


def reclaim_policies(
    tables: RuleTables, labels: Mapping[tuple[str, str], Mapping[str, str]]
) -> dict[tuple[str, str], str]:
    """What is known of the reclaim policy of nodes; a node of which nothing is known is absent.

    Args:
        tables: Where ``resources`` are.
        labels: Labels of each (cluster, node), with original keys.
    """
    told = _newest(tables)
    found = {
        (cluster, node): "; ".join(_sentences(told, cluster, node, mine))
        for (cluster, node), mine in labels.items()
    }
    return {key: text for key, text in found.items() if text}


def _newest(tables: RuleTables) -> Told:
    """The newest configuration by cluster, kind and name; the API goes before series."""
    rows = (
        tables[RESOURCES]
        .filter(pl.col("kind").is_in(_KINDS), pl.col("cluster").is_not_null())
        .sort("day", pl.col("source").str.starts_with("kubernetes/"), "seen_at", "configuration")
        .group_by("cluster", "kind", "name")
        .agg(pl.col("configuration").last())
        .collect()
    )
    return {(cluster, kind, name): _data(text) for cluster, kind, name, text in rows.iter_rows()}


def _data(text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(text or "")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _sentences(told: Told, cluster: str, node: str, labels: Mapping[str, str]) -> Iterator[str]:
    kept = told.get((cluster, "Node", node), {}).get("kept")
    if kept:
        yield f"the node is kept by {', '.join(map(str, kept))}"
    if pool := labels.get(_KARPENTER):
        yield from _karpenter(pool, told.get((cluster, "NodePool", pool), {}))
        return
    group = next((labels[key] for key in _GROUPS if labels.get(key)), None)
    size = told.get((cluster, "NodeGroup", group), {}).get("minSize") if group else None
    if size is not None:
        yield f"node group {group} keeps at least {size} nodes"
    for (where, kind, _), data in sorted(told.items(), key=lambda item: item[0]):
        if (where, kind) == (cluster, "ClusterAutoscaler"):
            yield from _autoscaler(data)


def _karpenter(pool: str, data: Mapping[str, Any]) -> Iterator[str]:
    disruption = data.get("disruption")
    if not isinstance(disruption, dict):
        return
    after = str(disruption.get("consolidateAfter", "0s"))
    policy = disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized")
    if after == "Never":
        yield f"Karpenter NodePool {pool} never consolidates"
    else:
        yield f"Karpenter NodePool {pool} consolidates {policy} after {after}"
    if any(_closed(budget) for budget in disruption.get("budgets") or ()):
        yield "a disruption budget of it lets no node go"


def _closed(budget: object) -> bool:
    """Whether a budget lets no node go at any time, whatever the reason or because it is empty."""
    if not isinstance(budget, dict) or budget.get("schedule"):
        return False
    reasons = budget.get("reasons") or ["Empty"]
    return str(budget.get("nodes")).rstrip("%") == "0" and "Empty" in reasons


def _autoscaler(data: Mapping[str, Any]) -> Iterator[str]:
    flags = data.get("flags")
    if not isinstance(flags, dict):
        return
    if data.get("replicas") == 0:
        yield "Cluster Autoscaler is scaled to 0"
    elif str(flags.get("scale-down-enabled", "true")).lower() == "false":
        yield "Cluster Autoscaler runs with scale-down off"
    else:
        after = flags.get("scale-down-unneeded-time", _UNNEEDED)
        yield f"Cluster Autoscaler removes nodes that are unneeded for {after}"
