"""What RB102 says of the reclaim policy of an idle node."""

from __future__ import annotations

import json
from datetime import date

import pytest

from rules.rule import Finding
from tests.rules.conftest import CLUSTER, World

KARPENTER = {"karpenter.sh/nodepool": "gpu"}
EKS = {"eks.amazonaws.com/nodegroup": "gpu"}


def told(world: World, kind: str, name: str, data: object, **more: object) -> None:
    row = {
        "day": date(2026, 3, 15),
        "source": "kubernetes/c",
        "cluster": CLUSTER,
        "kind": kind,
        "name": name,
        "configuration": json.dumps(data),
    }
    world.rows["resources"].append({**row, **more})


def labelled(world: World, labels: dict[str, str]) -> World:
    for row in world.rows["nodes"]:
        row["labels"] = json.dumps(labels)
    return world.cost("7").pod()


def policy(world: World) -> str | None:
    finding: Finding
    (finding,) = world.judge().findings
    found = {each.metric: str(each.value) for each in finding.evidence}
    known = found.get("reclaim_policy")
    assert ("reclaim policy" in found["not_checked"]) == (known is None)
    return known


@pytest.mark.parametrize(
    ("disruption", "sentence"),
    [
        (
            {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"},
            "Karpenter NodePool gpu consolidates WhenEmpty after 5m",
        ),
        (
            {"budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "@daily"}]},
            "Karpenter NodePool gpu consolidates WhenEmptyOrUnderutilized after 0s",
        ),
        ({"consolidateAfter": "Never"}, "Karpenter NodePool gpu never consolidates"),
        (
            {"consolidateAfter": "5m", "budgets": [{"nodes": "0%"}]},
            "Karpenter NodePool gpu consolidates WhenEmptyOrUnderutilized after 5m; a disruption "
            "budget of it lets no node go",
        ),
    ],
)
def test_karpenter(weekends: World, disruption: object, sentence: str) -> None:
    told(weekends, "NodePool", "gpu", {"disruption": disruption})
    told(weekends, "NodePool", "gpu", {"limits": {"cpu": 1}}, source="prometheus/c")
    told(weekends, "NodePool", "other", {"disruption": {"consolidateAfter": "9m"}})
    told(weekends, "ClusterAutoscaler", "ca", {"flags": {}})
    assert policy(labelled(weekends, KARPENTER)) == sentence


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"flags": {}}, "Cluster Autoscaler removes nodes that are unneeded for 10m"),
        (
            {"flags": {"scale-down-unneeded-time": "1h"}},
            "Cluster Autoscaler removes nodes that are unneeded for 1h",
        ),
        (
            {"flags": {"scale-down-enabled": "false"}},
            "Cluster Autoscaler runs with scale-down off",
        ),
        ({"flags": {}, "replicas": 0}, "Cluster Autoscaler is scaled to 0"),
    ],
)
def test_cluster_autoscaler(weekends: World, data: object, sentence: str) -> None:
    told(weekends, "ClusterAutoscaler", "ca", data)
    told(weekends, "NodeGroup", "gpu", {"manager": "eks", "minSize": 2})
    told(weekends, "Node", "n1", {"kept": ["a/scale-down-disabled"]})
    kept = "the node is kept by a/scale-down-disabled; node group gpu keeps at least 2 nodes; "
    assert policy(labelled(weekends, EKS)) == kept + sentence


def test_what_is_not_known_is_not_said(weekends: World) -> None:
    told(weekends, "NodePool", "gpu", {"limits": {}})
    told(weekends, "NodePool", "gpu", {"disruption": {}}, cluster="another")
    told(weekends, "Job", "gpu", {"state": "running"})
    assert policy(labelled(weekends, KARPENTER)) is None
