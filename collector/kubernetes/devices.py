"""Devices of dynamic resource allocation: which are cards, what a device is of one, whose it is.

A driver is one of cards if a word of its name says so (``gpu.nvidia.com``, ``tpu.google.com``), or
if its device's attribute ``type`` does; network cards and compute domains are none.

What a device is of a card:

- a MIG device (attribute ``profile``): its share, as ``collector.mig`` has it;
- another partition (``type`` ends in ``partition``): an equal part of the partitions of its card;
- a device of which a claim consumes a capacity (``consumedCapacity``): the largest part of a
  capacity that it takes, times the above;
- any other device: a whole card, unless it consumes only some counters of its card.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from collector.kubernetes.device_objects import Capacity, Description, ResourceSlice, Result
from collector.kubernetes.quantities import parse
from collector.mig import model, profile, share

V = TypeVar("V")

_CARD_WORDS = frozenset(
    "gpu gpus vgpu igpu tpu tpus npu npus hpu gaudi neuron neuroncore neurondevice mlu dcu hcu gcu "
    "xpu ipu lpu spyre ascend tenstorrent accelerator accelerators".split()
)
_CARD_TYPES = frozenset("gpu mig vfio amdgpu amdgpu-partition tpu npu accelerator".split())
_WHOLE = re.compile(r"(gpu|gpu-vfio|tpu|npu|neuron)-?[0-9]+")  # as drivers name whole devices
_LARGEST = 1 << 22  # MiB of one card


@dataclass(frozen=True)
class NodeCards:
    """The cards that slices list for a node.

    Args:
        count: Physical cards.
        model: Their product name; None if they differ or do not say.
        memory_mib: Memory of one whole card; None likewise.
    """

    count: int = 0
    model: str | None = None
    memory_mib: int | None = None


@dataclass
class _Card:
    """A physical card: its names, and what is offered of it."""

    partitions: int = 0
    models: set[str] = field(default_factory=set)
    memories: set[int | None] = field(default_factory=set)


class Devices:
    """All devices of a cluster's slices; of each pool the newest generation counts."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        slices = list(slices)
        newest: dict[tuple[str, str], int] = {}
        for item in slices:
            key = (item.spec.driver, item.spec.pool.name)
            newest[key] = max(newest.get(key, 0), item.spec.pool.generation)
        self._devices: dict[tuple[str, str, str], Description] = {}
        self._nodes: dict[tuple[str, str], str] = {}
        self._counters: dict[tuple[str, str, str], Mapping[str, Capacity]] = {}
        for item in slices:
            spec = item.spec
            key = (spec.driver, spec.pool.name)
            if spec.pool.generation != newest[key]:
                continue
            if spec.node_name:
                self._nodes[key] = spec.node_name
            for counters in spec.shared_counters or ():
                self._counters[*key, counters.name] = counters.counters or {}
            for device in spec.devices or ():
                self._devices[*key, device.name] = device.description
        self._cards = self._physical()
        self._of_node = self._per_node()

    def of_node(self, name: str) -> NodeCards:
        """The cards that slices list for a node."""
        return self._of_node.get(name, NodeCards())

    def node_of(self, driver: str, pool: str) -> str | None:
        """The node whose devices a pool has, by its slices."""
        return self._nodes.get((driver, pool))

    def is_card(self, result: Result) -> bool:
        """Whether an allocated device is a card or a part of one."""
        found = self._devices.get((result.driver, result.pool, result.device))
        return _of_cards(result.driver, found)

    def part(self, result: Result) -> Fraction | None:
        """What an allocated device is of a physical card; None = not known.

        Raises:
            ValueError: A quantity cannot be read.
        """
        if result.admin_access:
            return Fraction(0)
        key = (result.driver, result.pool, result.device)
        found = self._devices.get(key)
        if found is None:
            # Without its slice only the name can say that a device is whole.
            whole = _WHOLE.fullmatch(result.device) and not result.consumed_capacity
            return Fraction(1) if whole else None
        return _times(self._offered(key, found), _consumed(result, found))

    def _offered(self, key: tuple[str, str, str], found: Description) -> Fraction | None:
        """What the whole device is of a card."""
        if mig := _text(found, "profile"):
            return share(profile(mig), model(_text(found, "productName") or ""))
        if (_text(found, "type") or "").endswith("partition"):
            if "partitions" in _capacities(found):
                return Fraction(1)  # the card in partitions, of which a claim consumes some
            return Fraction(1, max(1, self._cards[self._card_of[key]].partitions))
        return Fraction(1) if self._takes_all(key, found) else None

    def _takes_all(self, key: tuple[str, str, str], found: Description) -> bool:
        """Whether a device leaves nothing of its card's counters, or has none."""
        for taken in found.consumes_counters or ():
            there = self._counters.get((*key[:2], taken.counter_set), {})
            counters = taken.counters or {}
            if any(_value(total) > _value(counters.get(name)) for name, total in there.items()):
                return False
        return True

    def _physical(self) -> dict[int, _Card]:
        """Cards behind the devices: those with a common PCI address or id are one."""
        self._card_of: dict[tuple[str, str, str], int] = {}
        by_name: dict[tuple[str, str], int] = {}
        cards: dict[int, _Card] = {}
        for key, found in sorted(self._devices.items(), key=lambda item: item[0]):
            if not _of_cards(key[0], found):
                continue
            names = [(key[1], name) for name in _names(found)] or [(key[1], f"device {key[2]}")]
            number = next((by_name[name] for name in names if name in by_name), len(cards))
            by_name.update(dict.fromkeys(names, number))
            card = cards.setdefault(number, _Card())
            self._card_of[key] = number
            kind = _text(found, "type") or ""
            card.partitions += kind.endswith("partition")
            card.models.add(_text(found, "productName") or "")
            if not kind.endswith("partition") and not _text(found, "profile"):
                card.memories.add(_memory(found))
        return cards

    def _per_node(self) -> dict[str, NodeCards]:
        of_node: dict[str, set[int]] = defaultdict(set)
        for key, number in self._card_of.items():
            node = self._devices[key].node_name or self._nodes.get(key[:2])
            if node:
                of_node[node].add(number)
        return {
            node: NodeCards(
                len(numbers),
                _only(name for number in numbers for name in self._cards[number].models),
                _only(size for number in numbers for size in self._cards[number].memories),
            )
            for node, numbers in of_node.items()
        }


def _of_cards(driver: str, found: Description | None) -> bool:
    if _CARD_WORDS & set(re.split(r"[^a-z0-9]+", driver.lower())):
        return True
    return found is not None and (_text(found, "type") or "").lower() in _CARD_TYPES


def _consumed(result: Result, found: Description) -> Fraction | None:
    """The part of a device that a claim takes: of its capacities the largest part.

    None where the device is shared and the claim names no amount above 0.
    """
    amounts = {_bare(name): parse(str(n)) for name, n in (result.consumed_capacity or {}).items()}
    if not amounts:
        return None if result.share_id else Fraction(1)
    there = _capacities(found)
    parts = [amounts[name] / there[name] for name in amounts if there.get(name, 0) > 0]
    largest = max(parts, default=Fraction(0))
    return min(largest, Fraction(1)) if largest > 0 else None


def _names(found: Description) -> list[str]:
    """What tells the physical card of a device: its PCI address, and the card's own id."""
    card = _text(found, "parentUUID") or _text(found, "uuid")
    address = _text(found, "pciBusID") or _text(found, "pciAddr")
    return [name for name in (address, card) if name]


def _text(found: Description, name: str) -> str | None:
    for key, attribute in (found.attributes or {}).items():
        if _bare(key) == name:
            return attribute.string
    return None


def _capacities(found: Description) -> dict[str, Fraction]:
    return {_bare(name): _value(capacity) for name, capacity in (found.capacity or {}).items()}


def _memory(found: Description) -> int | None:
    mib = int(_capacities(found).get("memory", 0) / 2**20)
    return mib if 0 < mib <= _LARGEST else None


def _value(capacity: Capacity | None) -> Fraction:
    if capacity is None or capacity.value is None:
        return Fraction(0)
    try:
        return parse(str(capacity.value))
    except ValueError:
        return Fraction(0)


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


def _times(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one * other


def _only(values: Iterable[V | None]) -> V | None:
    """The value that all have in common; None if they differ, or say nothing."""
    found = set(values)
    return (found.pop() or None) if len(found) == 1 else None
