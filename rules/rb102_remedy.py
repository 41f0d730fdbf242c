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


def remedy(
    node: str, bins: Collection[int], zone: str, labels: Mapping[str, str], *, always: bool = False
) -> Remedy:
    """What to do about a node that is idle in these hours of the local week.

    Args:
        node: Node name.
        bins: Idle hours of the week, Monday 00:00 = 0.
        zone: IANA zone of the hours; schedules are printed in local time with it.
        labels: Labels of the node, to find its pool.
        always: It is idle by day as well: it needs no schedule, but an end.
    """
    pool = next(((kind, labels[key]) for key, kind in _POOLS.items() if labels.get(key)), None)
    target = f"node pool {pool[1]}" if pool else f"node {node}"
    look = f"kubectl get pods --all-namespaces --field-selector spec.nodeName={_quoted(node)}"
    if always:
        group = f"node pool {pool[1]}" if pool else "its group"
        return Remedy(
            f"Remove the node {node} or let {group} scale to zero: it had no work at any hour, not "
            "even by day. Look first at what is placed there.",
            (look, *_scale_down(node, pool)),
        )
    schedule = downtime(bins, zone)
    return Remedy(
        f"Let the {target} scale down while it is idle ({in_words(bins)}, {zone} time). Checkpoint "
        "what runs there first; look at the dry run before the real one.",
        (
            look,
            "# kube-downscaler, per namespace or workload; kube-green takes the same hours:",
            f"kubectl annotate namespace NAMESPACE {_quoted(f'downscaler/downtime={schedule}')} "
            "--dry-run=server",
            *_scale_down(node, pool),
        ),
    )


def downtime(bins: Collection[int], zone: str) -> str:
    """Hours of the week in kube-downscaler's form: ``Sat-Sun 00:00-24:00 Europe/Berlin``.

    A single day is a range there as well: ``Mon-Mon 04:00-06:00 Europe/Berlin``.
    """
    return ", ".join(
        f"{DAYS[first]}-{DAYS[last]} {hours} {zone}"
        for hours, days in _spans(bins)
        for first, last in days
    )


def in_words(bins: Collection[int]) -> str:
    """Hours of the week for a reader: ``Mon 04:00-06:00; Tue-Thu, Sat 00:00-06:00``."""
    return "; ".join(
        ", ".join(
            DAYS[first] if first == last else f"{DAYS[first]}-{DAYS[last]}" for first, last in days
        )
        + (" all day" if hours == "00:00-24:00" else f" {hours}")
        for hours, days in _spans(bins)
    )


def _spans(bins: Collection[int]) -> list[tuple[str, list[tuple[int, int]]]]:
    """Hours of a day, like ``04:00-06:00``, and the ranges of weekdays on which they are meant."""
    days_of: dict[tuple[int, int], list[int]] = defaultdict(list)
    for day in range(7):
        hours = {b % 24 for b in bins if b // 24 == day}
        # Hours 0 to 23 of a week are one Monday, so no run of theirs passes midnight.
        for first, length in runs(hours):
            days_of[first, first + length].append(day)
    return [
        (f"{first:02d}:00-{last:02d}:00", _ranges(found))
        for (first, last), found in sorted(days_of.items(), key=lambda item: item[1])
    ]


def _ranges(days: list[int]) -> list[tuple[int, int]]:
    """Weekdays as ranges of first and last: [0, 1, 2, 5] is (0, 2) and (5, 5)."""
    return [
        (first, next(day for day in range(first, 7) if day + 1 not in days))
        for first in days
        if first - 1 not in days
    ]


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
