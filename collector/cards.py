"""Cards: which resources are cards, and which of several counts.

Both collectors of a cluster read this one table, so that they say the same of one node. How many
cards a node has, and what a unit is of one, is the subject of ``collector.layouts``.

Source: the device plugins' documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache

from ledger.text import canonical_json

Label = Callable[[str], str | None]
"""The value of a node's label by its original key; None if it has none."""


@dataclass(frozen=True)
class _Resource:
    """A resource whose unit is a card, or a part of one.

    Args:
        name: Its name; a ``*`` at the end or within stands for what differs from card to card.
        part: Whether the unit may be less than a whole card.
        joint: What stands between the parts of the ``*``, where a sanitised name has ``_``.
    """

    name: str
    part: bool = False
    joint: str = "-"

    @property
    def sanitised(self) -> str:
        return re.sub(r"[^a-z0-9*]", "_", self.name.lower())


# The first that fits a name says what it is. Of several that a node or pod names, whole cards win
# over parts, then the first here: never the largest number, which would be that of the parts.
_RESOURCES = (
    _Resource("nvidia.com/gpu"),
    _Resource("nvidia.com/pgpu"),
    _Resource("nvidia.com/gpu.shared", part=True),
    _Resource("nvidia.com/mig-*", part=True, joint="."),
    _Resource("amd.com/gpu"),
    _Resource("amd.com/*px_nps*", part=True, joint="_"),
    _Resource("aws.amazon.com/neuron"),
    _Resource("aws.amazon.com/neurondevice"),
    _Resource("aws.amazon.com/neuroncore", part=True),
    _Resource("google.com/tpu"),
    _Resource("k8s.amazonaws.com/vgpu", part=True),
    _Resource("gpu.intel.com/i915"),
    _Resource("gpu.intel.com/xe"),
    _Resource("habana.ai/gaudi"),
    _Resource("huawei.com/Ascend*-*c*", part=True),
    _Resource("huawei.com/Ascend*"),
    _Resource("cambricon.com/mlu*.*", part=True, joint="."),
    _Resource("cambricon.com/mlu*"),
    _Resource("metax-tech.com/gpu"),
    _Resource("mthreads.com/gpu"),
    _Resource("volcano.sh/vgpu-number", part=True),
)
# Resources that measure a part of the cards asked for beside them (HAMi, Volcano): percent of a
# card's cores, MiB of its memory, percent of it; per card.
_MEASURES = (
    "nvidia.com/gpucores",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "volcano.sh/vgpu-cores",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-memory-percentage",
)
# Plugins that offer another maker's cards under a name of their own.
_MAKERS = {"k8s.amazonaws.com": "nvidia.com", "volcano.sh": "nvidia.com"}


@dataclass(frozen=True)
class Cards:
    """The card resource of a request or capacity.

    Args:
        resource: Its name; None where no card resource is named.
        units: Its amount, in units of the resource.
        others: Further card resources with an amount, which one row cannot hold.
    """

    resource: str | None = None
    units: Fraction | int | None = None
    others: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def rank(name: str) -> int | None:
    """Place of a resource among those that name cards; None if it is no card."""
    for number, resource in enumerate(_RESOURCES):
        if fnmatchcase(name, resource.name):
            return number + (len(_RESOURCES) if resource.part else 0)
    return None


def is_part(name: str) -> bool:
    """Whether the unit of a card resource may be less than a card."""
    return (rank(name) or 0) >= len(_RESOURCES)


@lru_cache(maxsize=4096)
def original(sanitised: str) -> str | None:
    """A device resource as kube-state-metrics writes it, in its own spelling; None = no device.

    Dots, dashes and slashes all become ``_`` there, so the way back is this table.
    """
    text = sanitised.lower()
    for measure in _MEASURES:
        if text == _Resource(measure).sanitised:
            return measure
    for resource in _RESOURCES:
        if fnmatchcase(text, resource.sanitised):
            head, star, _ = resource.name.partition("*")
            return head + sanitised[len(head) :].replace("_", resource.joint) if star else head
    return None


def is_device(name: str) -> bool:
    """Whether a resource is a card, a part of one, or measures a part of one."""
    return name in _MEASURES or rank(name) is not None


def maker(name: str) -> str:
    """Who makes the cards that a resource speaks of, by the domain of its name."""
    domain = name.partition("/")[0]
    return _MAKERS.get(domain, domain)


def request_json(amounts: Mapping[str, int]) -> str:
    """The column ``workloads.gpu_request``: what is asked for of every device resource.

    Args:
        amounts: Whole units by resource name; what is no device is skipped, and so is 0.

    Returns:
        ``{"nvidia.com/gpu":1,"nvidia.com/gpumem":8000}``; ``{}`` where no device is asked for.
    """
    return canonical_json({name: n for name, n in amounts.items() if n > 0 and is_device(name)})


def choose(amounts: Mapping[str, Fraction | int]) -> Cards:
    """The card resource that counts, of amounts by resource name."""
    ranked = sorted((place, name) for name in amounts if (place := rank(name)) is not None)
    if not ranked:
        return Cards()
    used = [name for _, name in ranked if amounts[name] > 0]
    first = used[0] if used else ranked[0][1]
    return Cards(first, amounts[first], tuple(used[1:]))


def of_other_makers(found: Cards) -> tuple[str, ...]:
    """Further card resources that are no parts or other units of the same maker's cards."""
    first = maker(found.resource or "")
    return tuple(name for name in found.others if maker(name) != first)
