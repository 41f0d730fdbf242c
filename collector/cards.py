"""Cards: which resources are cards, which of several counts, and how many cards a node really has.

Both collectors of a cluster read this one table, so that they say the same of one node.

Sources: the device plugins' documentation; for sharing, the labels of NVIDIA's GPU feature
discovery and of GKE. Device plugins offer the *parts* of a card (MIG devices, time-sliced
replicas) as resources; ``gpus`` of a node is the number of physical cards all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache

from collector.labels import MODEL

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
)
_NVIDIA = "nvidia.com/"


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
    """A card resource as kube-state-metrics writes it, in its own spelling; None = no card.

    Dots, dashes and slashes all become ``_`` there, so the way back is this table.
    """
    text = sanitised.lower()
    for resource in _RESOURCES:
        if fnmatchcase(text, resource.sanitised):
            head, star, _ = resource.name.partition("*")
            return head + sanitised[len(head) :].replace("_", resource.joint) if star else head
    return None


def choose(amounts: Mapping[str, Fraction | int]) -> Cards:
    """The card resource that counts, of amounts by resource name."""
    ranked = sorted((place, name) for name in amounts if (place := rank(name)) is not None)
    if not ranked:
        return Cards()
    used = [name for _, name in ranked if amounts[name] > 0]
    first = used[0] if used else ranked[0][1]
    return Cards(first, amounts[first], tuple(used[1:]))


def shares(found: Cards, label: Label) -> bool:
    """Whether a node offers parts of cards: by its resources, or by its labels.

    ``mig.strategy=single`` alone says nothing: it stands on every node of an operator that is set
    up so, cards without MIG included. Where MIG is in force the product says so.
    """
    if not found.units:
        return False
    used = (found.resource or "", *(name for name in found.others if name.startswith(_NVIDIA)))
    product = (label("nvidia.com/gpu.product") or "").upper()
    return (
        any(is_part(name) for name in used)
        or (label("nvidia.com/gpu.sharing-strategy") or "none") != "none"
        or (_number(label("nvidia.com/gpu.replicas")) or 0) > 1
        or product.endswith("-SHARED")
        or label("nvidia.com/mig.strategy") == "mixed"
        or _counts_mig_devices(product, label)
        or bool(label("cloud.google.com/gke-gpu-sharing-strategy"))
    )


def physical(found: Cards, label: Label, *, sized: bool = True) -> int | None:
    """Physical cards of a node; None where it does not say how many there are.

    Args:
        found: Its card resource with whole units.
        label: Its labels.
        sized: Whether the node says what it has at all; if it does and neither a resource nor a
            label speaks of cards, it has none.
    """
    if found.units is None:
        return 0 if sized and not any(map(label, MODEL)) else None
    if not shares(found, label):
        return int(found.units)
    if _counts_mig_devices((label("nvidia.com/gpu.product") or "").upper(), label):
        return None
    return _number(label("nvidia.com/gpu.count"))


def of_other_makers(found: Cards) -> tuple[str, ...]:
    """Further card resources that are no parts or other units of the same maker's cards."""
    maker = (found.resource or "").partition("/")[0]
    return tuple(name for name in found.others if name.partition("/")[0] != maker)


def _counts_mig_devices(product: str, label: Label) -> bool:
    """Whether ``nvidia.com/gpu`` and ``gpu.count`` count MIG devices (strategy ``single``)."""
    if label("cloud.google.com/gke-gpu-partition-size") or "-MIG-" in product:
        return True
    unclear = label("nvidia.com/mig.strategy") == "single" and not product
    return unclear and (label("nvidia.com/mig.config") or "all-disabled") != "all-disabled"


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,4}", text) else None
