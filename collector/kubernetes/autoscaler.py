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

from collector.kubernetes import yaml_text
from collector.kubernetes.scaling_objects import AutoscalerStatus, Deployment, Program
from collector.kubernetes.states import Clock, Configuration, known
from collector.kubernetes.yaml_text import entries, number, plain_text

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
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)", re.ASCII)


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


def status(item: AutoscalerStatus, clock: Clock) -> tuple[Configuration, dict[str, Configuration]]:
    """What Cluster Autoscaler tells of itself, and of each of its node groups by name.

    Both are empty where the ConfigMap holds nothing that can be read.
    """
    text = (item.data.status if item.data else None) or ""
    data = entries(yaml_text.read(text))
    if "autoscalerStatus" in data:
        return _from_yaml(data, clock)
    return _from_text(text, clock)


def _from_yaml(
    data: dict[str, Any], clock: Clock
) -> tuple[Configuration, dict[str, Configuration]]:
    groups = {}
    listed = data.get("nodeGroups")
    for group in map(entries, listed if isinstance(listed, list) else ()):
        health = entries(group.get("health"))
        registered = entries(entries(health.get("nodeCounts")).get("registered"))
        counts = {**health, "ready": registered.get("ready")}
        if name := plain_text(group.get("name")):
            groups[name] = _group(_states(group), {key: number(n) for key, n in counts.items()})
    told = {
        "status": plain_text(data["autoscalerStatus"]),
        "statusTime": _time(data.get("time"), clock),
    }
    return known({**told, **_states(entries(data.get("clusterWide")))}), groups


def _states(part: dict[str, Any]) -> Configuration:
    """Health, scaleUp and scaleDown of the cluster or of a group."""
    up, down = entries(part.get("scaleUp")), entries(part.get("scaleDown"))
    return {
        "health": plain_text(entries(part.get("health")).get("status")),
        "scaleUp": plain_text(up.get("status")),
        "scaleDown": plain_text(down.get("status")),
        "scaleDownCandidates": number(down.get("candidates")),
    }


def _group(states: Configuration, counts: dict[str, int | None]) -> Configuration:
    sizes = {
        "targetSize": counts.get("cloudProviderTarget"),
        "minSize": counts.get("minSize"),
        "maxSize": counts.get("maxSize"),
        "ready": counts.get("ready"),
    }
    return {"manager": PROGRAM, **known(states), **known(sizes)}


def _from_text(text: str, clock: Clock) -> tuple[Configuration, dict[str, Configuration]]:
    """The form before 1.30."""
    head, _, tail = text.partition("NodeGroups:")
    cluster, _ = _section(head.splitlines())
    told = {"statusTime": _time(head, clock)}
    groups = {}
    for block in re.split(r"^\s*Name:", tail, flags=re.MULTILINE)[1:]:
        name, *lines = block.splitlines() or [""]
        states, counts = _section(lines)
        groups[name.strip()] = _group(states, counts)
    return known({**told, **cluster}), groups


def _section(lines: Iterable[str]) -> tuple[Configuration, dict[str, int | None]]:
    names = {"Health": "health", "ScaleUp": "scaleUp", "ScaleDown": "scaleDown"}
    states: Configuration = {}
    counts: dict[str, int | None] = {}
    for line in lines:
        found = _LINE.match(line)
        if found and found["key"] in names:
            states[names[found["key"]]] = found["value"]
            here = {name: number(count) for name, count in _COUNT.findall(found["rest"])}
            if found["key"] == "ScaleDown" and "candidates" in here:
                states["scaleDownCandidates"] = here["candidates"]
            elif found["key"] == "Health":
                counts = here
    return states, counts


def _time(text: object, clock: Clock) -> str | None:
    """The first time in a text, as Go prints it: ``2026-11-30 09:00:01.5 +0000 UTC``."""
    found = _TIME.search(text) if isinstance(text, str) else None
    return clock.read(f"{found[1]}T{found[2]}Z") if found else None
