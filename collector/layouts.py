"""Layouts: how the cards of a node are offered, so how many it has and what one unit is of a card.

Device plugins offer whole cards, MIG devices, replicas of either (time-slicing, MPS) or virtual
cards (HAMi). Sources: the labels of NVIDIA's GPU feature discovery, of GKE and of Karpenter; the
node annotations of HAMi's protocol. A number that a label cannot mean counts as not said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from collector.amd import partition
from collector.cards import Cards, Label, choose, is_part, maker, rank
from collector.labels import MODEL
from collector.mig import Model, card_name, model, per_card, product_parts, profile, share
from ledger.text import canonical_json

_NVIDIA = "nvidia.com"
_PLAIN = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG = "nvidia.com/mig-"
_SHARED = ".shared"
# Two names of the same whole cards, and units into which all of a maker's cards are cut.
_SAME = ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice")
_FINER = ("aws.amazon.com/neuroncore", "k8s.amazonaws.com/vgpu")
# Virtual cards, each of them a whole one unless a pod measures it.
_VIRTUAL = "volcano.sh/vgpu-number"
_AMD = "amd.com/"
_AMD_MODE = ("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition")
_MOST_CARDS = 128  # in one machine; a label that says more is wrong
_MOST_MIB = 1 << 22  # 4 TiB on one card
REGISTERS = ("hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register")
"""Annotations in which HAMi and Volcano register a node's NVIDIA cards."""


@dataclass(frozen=True)
class Layout:
    """The cards of a node.

    Args:
        found: The card resource that counts, in units, and further ones.
        cards: Physical cards; None = the node does not say.
        units: What one unit of each card resource is of a physical card; None = not known.
        memory_mib: Memory of one physical card in MiB; None = not known.
        unknown: What is not known, for a reader; each text names card and profile.
    """

    found: Cards = field(default_factory=Cards)
    cards: int | None = None
    units: Mapping[str, Fraction | None] = field(default_factory=dict)
    memory_mib: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def schedulable(self) -> int:
        """Units of the card resource that pods can ask for."""
        return int(self.found.units or 0)

    @property
    def units_json(self) -> str | None:
        """The column ``nodes.gpu_units``: ``{"nvidia.com/gpu":"1/4"}``; None without resources."""
        if not self.units:
            return None
        return canonical_json(
            {name: None if unit is None else str(unit) for name, unit in self.units.items()}
        )


def layout(
    capacity: Mapping[str, int],
    label: Label,
    *,
    sized: bool = True,
    register: str | None = None,
    devices: int = 0,
) -> Layout:
    """Read the layout of a node.

    Args:
        capacity: Whole units by resource, as the node offers them; what is no card is skipped.
        label: Its labels.
        sized: Whether the node says what it has at all; if it does and neither a resource nor a
            label speaks of cards, it has none.
        register: Its annotation of ``REGISTERS``.
        devices: Physical cards that ResourceSlices list for it.
    """
    offered = {name: units for name, units in capacity.items() if rank(name) is not None}
    found = choose(offered)
    node = _Node(offered, label, register)
    units = {name: node.unit(name) for name in sorted(offered)}
    cards = node.cards(found, units, sized=sized)
    if devices and (cards or 0) < devices:
        cards = devices
    if cards:
        units |= node.by_count(found, units, cards)
    unsaid = sized and cards is None
    return Layout(found, cards, units, node.memory(), tuple(node.lacking(units, unsaid=unsaid)))


@dataclass(frozen=True)
class _Node:
    """What a node says of its cards."""

    offered: Mapping[str, int]
    label: Label
    register: str | None

    @property
    def product(self) -> str:
        return self.label("nvidia.com/gpu.product") or ""

    @property
    def card(self) -> str:
        """The card by its model, without what the product says of the layout."""
        return card_name(self.product) or next(filter(None, map(self.label, MODEL)), "")

    @property
    def model(self) -> Model | None:
        return model(self.card)

    @property
    def single(self) -> str | None:
        """Profile of the MIG devices that plain resources count (strategy ``single``), if so.

        ``mig.strategy=single`` alone says nothing: it stands on every node of an operator that is
        set up so, cards without MIG included. Where MIG is in force the product says so.
        """
        if size := self.label("cloud.google.com/gke-gpu-partition-size"):
            return size
        if parts := product_parts(self.product):
            return parts[1]
        config = self.label("nvidia.com/mig.config") or "all-disabled"
        if self.label("nvidia.com/mig.strategy") != "single" or self.product:
            return None
        return None if config == "all-disabled" else config.removeprefix("all-")

    @property
    def replicas(self) -> int | None:
        """Tenants per card or MIG device of the plain resources; 1 = not shared, None = unknown."""
        clients = self.label("cloud.google.com/gke-max-shared-clients-per-gpu")
        told = _number(clients or self.label("nvidia.com/gpu.replicas"), 1 << 20)
        if told and told > 1:
            return told
        strategy = self.label("nvidia.com/gpu.sharing-strategy") or "none"
        shared = (
            strategy != "none"
            or self.product.upper().endswith("-SHARED")
            or bool(self.label("cloud.google.com/gke-gpu-sharing-strategy"))
            or self.offered.get("nvidia.com/gpu.shared", 0) > 0
        )
        return None if shared and not (told and clients) else 1

    @property
    def registered(self) -> list[tuple[str, str]]:
        """Id and memory of each card that HAMi registers, in both forms of its protocol."""
        text = (self.register or "").strip()
        if not text.startswith("["):
            every = [card.split(",") for card in text.split(":")]
            return [(fields[0], fields[2]) for fields in every if len(fields) >= 4 and fields[0]]
        try:
            listed = msgspec.json.decode(text, type=list[_Registered])
        except msgspec.MsgspecError:
            return []
        return [(card.id, str(card.devmem)) for card in listed if card.id]

    @property
    def count(self) -> int | None:
        """Physical NVIDIA cards by a label (or HAMi's list) that counts nothing else."""
        told = _number(self.label("karpenter.k8s.aws/instance-gpu-count"), _MOST_CARDS)
        if self.single is None:
            told = _number(self.label("nvidia.com/gpu.count"), _MOST_CARDS) or told
        return told or len(dict(self.registered)) or None

    def memory(self) -> int | None:
        """MiB of one card; those that HAMi shares are measured by what it registers."""
        listed = {_number(memory, _MOST_MIB) for _, memory in self.registered}
        if len(listed) == 1 and (only := next(iter(listed))):
            return only
        karpenter = _number(self.label("karpenter.k8s.aws/instance-gpu-memory"), _MOST_MIB)
        if self.single is None:
            return _number(self.label("nvidia.com/gpu.memory"), _MOST_MIB) or karpenter
        # Here the label tells the memory of a slice.
        nominal = self.model.gb if self.model else None
        return karpenter or (nominal * 1024 if nominal else None)

    def unit(self, name: str) -> Fraction | None:
        """What one unit is of a card, by what is known of it alone."""
        if name.startswith(_MIG):
            text = name.removeprefix(_MIG)
            bare = text.removesuffix(_SHARED)
            each = _number(self.label(f"{_MIG}{bare}.replicas"), 1 << 20)
            replicas = each or (None if bare != text else 1)
            return _over(share(profile(bare), self.model), replicas)
        if name in _PLAIN:
            whole = share(profile(self.single), self.model) if self.single else Fraction(1)
            return _over(whole, self.replicas)
        if name.startswith(_AMD):
            modes = filter(None, map(self.label, _AMD_MODE))
            mode = next(modes, "spx_nps1") if name == "amd.com/gpu" else name.removeprefix(_AMD)
            return partition(mode, self.card)
        return None if is_part(name) and name != _VIRTUAL else Fraction(1)

    def family(self, found: Cards) -> dict[str, int]:
        """Resources that speak of the cards of the same maker, with an amount."""
        return {
            name: units
            for name, units in self.offered.items()
            if units > 0 and maker(name) == maker(found.resource or "")
        }

    def cards(
        self, found: Cards, units: Mapping[str, Fraction | None], *, sized: bool
    ) -> int | None:
        """Physical cards; None if the node does not say."""
        mine = self.family(found)
        of_nvidia = maker(found.resource or _NVIDIA) == _NVIDIA
        if of_nvidia and (count := self.count):
            cut = [n * (units[name] or 0) for name, n in mine.items() if name.startswith(_MIG)]
            return max(count, math.ceil(sum(cut)))  # there are no more slices than cards have
        if not mine:
            silent = not self.offered and (not sized or any(map(self.label, MODEL)))
            return None if silent else 0
        if self.single and set(mine) <= set(_PLAIN):
            return self._single(sum(mine.values()))
        if same := max((mine.get(name, 0) for name in _SAME), default=0):
            return same
        if len(mine) > 1:  # the others count the same cards once more
            mine = {name: amount for name, amount in mine.items() if name not in _FINER}
        if _VIRTUAL in mine:  # more of them than cards, nobody says how many more
            return None
        if set(mine) == {"aws.amazon.com/neuroncore"}:
            return _number(self.label("karpenter.k8s.aws/instance-accelerator-count"), _MOST_CARDS)
        known = [unit * n for name, n in mine.items() if (unit := units[name]) is not None]
        return math.ceil(sum(known)) if len(known) == len(mine) else None

    def _single(self, offered: int) -> int | None:
        """Cards under strategy ``single``: devices ÷ instances per card, rounded up."""
        devices = _number(self.label("nvidia.com/gpu.count"), _MOST_CARDS * 7)
        if not devices and self.replicas:
            devices = -(-offered // self.replicas)
        each = per_card(profile(self.single or ""), self.model)
        return -(-devices // each) if devices and each else None

    def by_count(
        self, found: Cards, units: Mapping[str, Fraction | None], cards: int
    ) -> dict[str, Fraction | None]:
        """Units that only the count tells, where all of the cards are cut into them.

        So Neuron cores, AWS's virtual GPUs, and replicas whose number no label tells.
        """
        mine = self.family(found)
        cut = _PLAIN if len(mine) == 1 and not self.single else ()
        return {
            name: Fraction(cards, amount)
            for name, amount in mine.items()
            if units[name] is None and name in (*_FINER, *cut) and amount >= cards
        }

    def lacking(self, units: Mapping[str, Fraction | None], *, unsaid: bool) -> Iterator[str]:
        """What is not known, for a reader."""
        card = self.card or "a card without a name"
        for name, unit in units.items():
            if unit is None and self.offered[name] > 0:
                cut = f" (profile {self.single})" if name in _PLAIN and self.single else ""
                yield f"what {name}{cut} is of {card}"
        if unsaid:
            yield f"how many cards there are ({card})"


class _Registered(msgspec.Struct):
    """A card in HAMi's list, in its later form."""

    id: str = ""
    devmem: int = 0


def _over(part: Fraction | None, replicas: int | None) -> Fraction | None:
    return None if part is None or replicas is None else part / replicas


def _number(text: str | None, most: int) -> int | None:
    """A count in a label; None if it is none, 0 or more than there can be."""
    if not text or not re.fullmatch(r"[0-9]{1,7}", text):
        return None
    return int(text) if 0 < int(text) <= most else None
