"""The way out of idle nights: schedules and scale-down, as commands that are printed, never run."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping

from rules.calendar import DAYS, runs
from rules.rule import Remedy

GUARDRAIL = (
    "Before a node goes, whatever runs on it must have written a checkpoint; let running steps end "
    "first. Nothing stored is touched."
)
_POOLS = {
    "karpenter.sh/nodepool": "karpenter",
    "eks.amazonaws.com/nodegroup": "eks",
    "cloud.google.com/gke-nodepool": "gke",
    "kubernetes.azure.com/agentpool": "aks",
}


def remedy(node: str, bins: Collection[int], zone: str, labels: Mapping[str, str]) -> Remedy:
    """What to do about a node that is idle in these hours of the local week.

    Args:
        node: Node name.
        bins: Idle hours of the week, Monday 00:00 = 0.
        zone: IANA zone of the hours; schedules are printed in local time with it.
        labels: Labels of the node, to find its pool.
    """
    schedule = downtime(bins, zone)
    pool = next(((kind, labels[key]) for key, kind in _POOLS.items() if labels.get(key)), None)
    target = f"node pool {pool[1]}" if pool else f"node {node}"
    return Remedy(
        f"Let the {target} scale down while it is idle ({schedule}). Checkpoint what runs there "
        "first; look at the dry run before the real one.",
        (
            f"kubectl get pods --all-namespaces --field-selector spec.nodeName={_quoted(node)}",
            "# kube-downscaler, per namespace or workload; kube-green takes the same hours:",
            f"kubectl annotate namespace NAMESPACE {_quoted(f'downscaler/downtime={schedule}')} "
            "--dry-run=server",
            *_scale_down(node, pool),
        ),
    )


def downtime(bins: Collection[int], zone: str) -> str:
    """Hours of the week in kube-downscaler's form: ``Sat-Sun 00:00-24:00 Europe/Berlin``."""
    days_of: dict[tuple[int, int], list[int]] = defaultdict(list)
    for day in range(7):
        hours = {b % 24 for b in bins if b // 24 == day}
        # Hours 0 to 23 of a week are one Monday, so no run of theirs passes midnight.
        for first, length in runs(hours):
            days_of[first, first + length].append(day)
    parts = [
        f"{days} {first:02d}:00-{last:02d}:00 {zone}"
        for (first, last), found in sorted(days_of.items(), key=lambda item: item[1])
        for days in _ranges(found)
    ]
    return ", ".join(parts)


def _ranges(days: list[int]) -> list[str]:
    """Weekdays as ranges: [0, 1, 2, 5] is ``Mon-Wed`` and ``Sat``."""
    texts: list[str] = []
    for first in (day for day in days if day - 1 not in days):
        last = next(day for day in range(first, 7) if day + 1 not in days)
        texts.append(f"{DAYS[first]}-{DAYS[last]}")
    return texts


def _scale_down(node: str, pool: tuple[str, str] | None) -> tuple[str, ...]:
    if pool is None:
        return (
            "# Cluster Autoscaler or your node group: allow a minimum size of 0; until then:",
            f"kubectl drain {_quoted(node)} --ignore-daemonsets --dry-run=server",
        )
    kind, name = pool[0], _quoted(pool[1])
    if kind == "karpenter":
        patch = {
            "spec": {
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": "10m",
                    "budgets": [{"nodes": "20%", "reasons": ["Empty"]}],
                }
            }
        }
        return (
            "# Karpenter: remove nodes that hold no pods, a fifth of the pool at a time:",
            f"kubectl patch nodepool {name} --type merge -p {_quoted(json.dumps(patch))} "
            "--dry-run=server",
        )
    commands = {
        "eks": f"aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name {name} "
        "--scaling-config minSize=0",
        "gke": f"gcloud container clusters update CLUSTER --node-pool {name} "
        "--enable-autoscaling --min-nodes 0 --max-nodes MAX",
        "aks": f"az aks nodepool update --resource-group GROUP --cluster-name CLUSTER "
        f"--name {name} --update-cluster-autoscaler --min-count 0 --max-count MAX",
    }
    return ("# Cluster Autoscaler: allow the pool to go down to nothing:", commands[kind])


def _quoted(text: str) -> str:
    return shlex.quote(text)
