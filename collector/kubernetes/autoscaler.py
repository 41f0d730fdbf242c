"""Cluster Autoscaler: the state that it writes into a ConfigMap, and the flags it was started with.

Since 1.30 the state is YAML; before, it is text with a line per figure:

    Cluster-wide:
      ScaleDown:   NoCandidates (candidates=0)
    NodeGroups:
      Name:        eks-gpu-1
      Health:      Healthy (ready=2 ... cloudProviderTarget=2 (minSize=0, maxSize=8))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from collector.kubernetes.scaling_objects import AutoscalerStatus, Deployment, Program
from collector.kubernetes.states import Configuration

NAME, NAMESPACE = "cluster-autoscaler-status", "kube-system"
PROGRAM = "cluster-autoscaler"
_FLAGS = frozenset(
    "scale-down-enabled scale-down-unneeded-time scale-down-unready-time "
    "scale-down-delay-after-add scale-down-delay-after-delete scale-down-delay-after-failure "
    "scale-down-utilization-threshold scale-down-gpu-utilization-threshold "
    "scale-down-non-empty-candidates-count max-empty-bulk-delete max-scale-down-parallelism "
    "max-graceful-termination-sec skip-nodes-with-local-storage skip-nodes-with-system-pods "
    "skip-nodes-with-custom-controller-pods min-replica-count expander balance-similar-node-groups "
    "max-node-provision-time max-nodes-total scan-interval cloud-provider nodes "
    "node-group-auto-discovery new-pod-scale-up-delay".split()
)
_REPEATED = frozenset({"nodes", "node-group-auto-discovery"})
_LINE = re.compile(r"^\s*(?P<key>[A-Za-z]+):\s*(?P<value>\S*)(?P<rest>.*)$")
_COUNT = re.compile(r"(\w+)=(\d+)")
_TIME = re.compile(r"status at (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def flags(deployment: Deployment) -> Configuration | None:
    """The flags of a Deployment that runs Cluster Autoscaler; None if it runs something else."""
    template = deployment.spec.template
    programs = (template.spec.containers if template and template.spec else None) or ()
    found = next(filter(_runs_it, programs), None)
    if found is None:
        return None
    said: Configuration = {}
    for name, value in _arguments([*(found.command or ()), *(found.args or ())]):
        if name in _REPEATED:
            said.setdefault(name, []).append(value)
        elif name in _FLAGS:
            said[name] = value
    return {"flags": said, "replicas": deployment.spec.replicas}


def _runs_it(program: Program) -> bool:
    image = (program.image or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    return image == PROGRAM or program.name == PROGRAM


def _arguments(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """``--name=value`` and ``--name``; the parser of its flags takes no value after a blank."""
    for word in words:
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            yield name, value or "true"


def status(item: AutoscalerStatus) -> tuple[Configuration, dict[str, Configuration]]:
    """What Cluster Autoscaler tells of itself, and of each of its node groups by name.

    Both are empty where the ConfigMap holds nothing that can be read.
    """
    text = (item.data.status if item.data else None) or ""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        data = None
    if isinstance(data, dict) and "autoscalerStatus" in data:
        return _from_yaml(data)
    return _from_text(text)


def _from_yaml(data: dict[str, Any]) -> tuple[Configuration, dict[str, Configuration]]:
    groups = {}
    for group in _list(data.get("nodeGroups")):
        health = _map(group.get("health"))
        ready = _map(_map(health.get("nodeCounts")).get("registered")).get("ready")
        groups[str(group.get("name"))] = _group(
            _states(group),
            {**health, "ready": ready},
        )
    time = data.get("time")
    told = {"status": data.get("autoscalerStatus"), "statusTime": str(time) if time else None}
    return _known({**told, **_states(_map(data.get("clusterWide")))}), groups


def _states(part: dict[str, Any]) -> Configuration:
    """Health, scaleUp and scaleDown of the cluster or of a group."""
    down = _map(part.get("scaleDown"))
    return {
        "health": _map(part.get("health")).get("status"),
        "scaleUp": _map(part.get("scaleUp")).get("status"),
        "scaleDown": down.get("status"),
        "scaleDownCandidates": down.get("candidates"),
    }


def _group(states: Configuration, counts: dict[str, Any]) -> Configuration:
    sizes = {
        "targetSize": counts.get("cloudProviderTarget"),
        "minSize": counts.get("minSize"),
        "maxSize": counts.get("maxSize"),
        "ready": counts.get("ready"),
    }
    return {"manager": PROGRAM, **_known(states), **_known(sizes)}


def _from_text(text: str) -> tuple[Configuration, dict[str, Configuration]]:
    """The form before 1.30."""
    head, _, tail = text.partition("NodeGroups:")
    cluster, _ = _section(head.splitlines())
    time = _TIME.search(head)
    told = {"statusTime": time["time"] + "Z" if time else None}
    groups = {}
    for block in re.split(r"^\s*Name:", tail, flags=re.MULTILINE)[1:]:
        name, *lines = block.splitlines() or [""]
        states, counts = _section(lines)
        groups[name.strip()] = _group(states, counts)
    return _known({**told, **cluster}), groups


def _section(lines: Iterable[str]) -> tuple[Configuration, dict[str, int]]:
    names = {"Health": "health", "ScaleUp": "scaleUp", "ScaleDown": "scaleDown"}
    states: Configuration = {}
    counts: dict[str, int] = {}
    for line in lines:
        found = _LINE.match(line)
        if found and found["key"] in names:
            states[names[found["key"]]] = found["value"]
            here = {name: int(count) for name, count in _COUNT.findall(found["rest"])}
            if found["key"] == "ScaleDown" and "candidates" in here:
                states["scaleDownCandidates"] = here["candidates"]
            elif found["key"] == "Health":
                counts = here
    return states, counts


def _map(data: object) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def _list(data: object) -> list[dict[str, Any]]:
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def _known(data: Configuration) -> Configuration:
    return {key: value for key, value in data.items() if value is not None}
