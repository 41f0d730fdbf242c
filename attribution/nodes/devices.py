"""What a pod holds of a physical card, in exact parts.

Requests count in units of a device resource: cards, MIG devices, replicas of a shared card, virtual
cards. What a unit is of a card the node says (``nodes.gpu_units``). Fractions of KAI and Run:ai
stand in annotations, without a request. Claims of devices are in ``attribution.nodes.claims``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import msgspec
import polars as pl

from attribution.lives.reservations import is_reservation
from attribution.nodes.node_hours import told_at
from attribution.spans import clip

FINE = 10**6
CARD = 720_720 * FINE
"""Parts of one card. 720720 is the least common multiple of 1 to 16, so that sevenths of MIG and
replicas are whole multiples of ``FINE``; ``FINE`` makes decimal fractions whole parts. Finer shares
are rounded down, so that equal shares of a card never add up to more than it."""

MOST = 10**6
"""Cards of one pod at most, so that parts stay inside 64 bits; no node has as many."""

_FOREVER = 2**62
_LAYOUT = ("gpu_units", "gpu_memory_mib")
_ASKED = ("gpu_request", "gpus", "gpu_resource", "fraction", "memory_mib", "devices")
# HAMi and Volcano: the resource that counts virtual cards, and what it has of each.
_VIRTUAL = {
    "gpu": ("gpucores", "gpumem", "gpumem-percentage"),
    "vgpu-number": ("vgpu-cores", "vgpu-memory", "vgpu-memory-percentage"),
}
_ASIDE = {*(name for names in _VIRTUAL.values() for name in names), "priority"}


@dataclass(frozen=True)
class Share:
    """What a pod holds.

    Args:
        cards: Cards and parts of cards; None = not known.
        devices: How many cards it touches at least.
        unsized: What is not known of the node's cards; None if ``cards`` is, or if the request
            itself is not known.
    """

    cards: Fraction | None
    devices: int = 0
    unsized: str | None = None

    @classmethod
    def of(cls, cards: Fraction, devices: int | None = None) -> Share:
        """A known share; the fewest cards that it fits on, unless told."""
        cards = min(cards, Fraction(MOST))
        return cls(cards, math.ceil(cards) if devices is None else min(devices, MOST))

    @property
    def parts(self) -> int | None:
        """The cards in units of ``1 / CARD``, rounded down."""
        return None if self.cards is None else math.floor(self.cards * CARD)


@dataclass(frozen=True)
class Asked:
    """What a pod asks for, as its rows of ``workloads`` and its annotations say.

    Args:
        gpu_request: Units by resource, JSON.
        gpus: Units of ``gpu_resource``, where ``gpu_request`` is null.
        gpu_resource: Its name.
        fraction: Annotation ``gpu-fraction``.
        memory_mib: Annotation ``gpu-memory``.
        devices: Annotation ``gpu-fraction-num-devices``.
    """

    gpu_request: str | None = None
    gpus: int | None = None
    gpu_resource: str | None = None
    fraction: str | None = None
    memory_mib: str | None = None
    devices: str | None = None

    @property
    def units(self) -> dict[str | None, int] | None:
        """Units above 0 by resource; None = not known."""
        if self.gpu_request is not None:
            try:
                found = msgspec.json.decode(self.gpu_request, type=dict[str, int])
            except msgspec.MsgspecError:
                return None
            return {name: units for name, units in found.items() if units > 0}
        if self.gpus is None:
            return None
        return {self.gpu_resource: self.gpus} if self.gpus > 0 else {}


@dataclass(frozen=True)
class Offered:
    """How a node offers its cards.

    Args:
        gpu_units: What a unit of each resource is of a card, JSON; null = units are cards.
        gpu_memory_mib: Memory of one card.
    """

    gpu_units: str | None = None
    gpu_memory_mib: int | None = None

    def unit(self, name: str | None) -> Fraction | None:
        """What one unit of a resource is of a card; None = not known."""
        if self.gpu_units is None:
            return None if "/mig-" in (name or "") else Fraction(1)
        try:
            units = msgspec.json.decode(self.gpu_units, type=dict[str, str | None])
        except msgspec.MsgspecError:
            return None
        if name is None and len(units) == 1:
            name = next(iter(units))
        return fraction(units.get(name or ""))


def share(asked: Asked, offered: Offered) -> Share:
    """What a pod holds of the cards of its node, but for claims."""
    units = asked.units
    if units:
        return _requested(units, offered)
    if asked.fraction is not None or asked.memory_mib is not None:
        return _annotated(asked, offered)
    return Share(None) if units is None else Share(Fraction(0))


def _requested(units: Mapping[str | None, int], offered: Offered) -> Share:
    """The sum over all resources that a pod asks for."""
    cards, devices = Fraction(0), 0
    for name, amount in _counted(units).items():
        virtual = _virtual(name, units, offered)
        if virtual is None:
            unit = offered.unit(name)
            one = Share(None) if unit is None else Share.of(unit * amount)
            what = name or "a device"
        else:
            part, what = virtual
            one = Share(None) if part is None else Share.of(part * amount, amount)
        if one.cards is None:
            return Share(None, unsized=what)
        cards, devices = cards + one.cards, devices + one.devices
    return Share.of(cards, devices)


def _counted(units: Mapping[str | None, int]) -> dict[str | None, int]:
    """The resources that count devices; what is asked of each stands aside.

    Cores or memory without a number of virtual cards are those of one.
    """
    counted = {name: n for name, n in units.items() if _kind(name) not in _ASIDE}
    for name in units:
        for counter, parts in _VIRTUAL.items():
            if _kind(name) in parts:
                counted.setdefault(f"{_maker(name)}/{counter}", 1)
    return counted


def _virtual(
    name: str | None, units: Mapping[str | None, int], offered: Offered
) -> tuple[Fraction | None, str] | None:
    """What a virtual card is of a card, and its name; None if the pod asks for whole units."""
    names = [f"{_maker(name)}/{part}" for part in _VIRTUAL.get(_kind(name), ())]
    told = [units.get(part) for part in names]
    if not any(told):
        return None
    cores, memory, percentage = told
    found = [Fraction(percent, 100) for percent in (cores, percentage) if percent]
    if memory:
        if not offered.gpu_memory_mib:
            return None, f"{names[1]} (memory of a card)"
        found.append(Fraction(memory, offered.gpu_memory_mib))
    return min(max(found), Fraction(1)), name or ""


def _annotated(asked: Asked, offered: Offered) -> Share:
    """A fraction of each of a number of cards, by annotations."""
    told = asked.devices or ""
    devices = int(told) if told.isdecimal() and len(told) < 9 and int(told) else 1
    if asked.fraction is not None:
        part = fraction(asked.fraction)
        what = f"gpu-fraction {asked.fraction}"
    else:
        memory, whole = fraction(asked.memory_mib), offered.gpu_memory_mib
        part = memory / whole if memory and whole else None
        what = f"gpu-memory {asked.memory_mib}" if whole else "gpu-memory (memory of a card)"
    if part is None or part <= 0:
        return Share(None, unsized=what)
    return Share.of(min(part, Fraction(1)) * devices, devices)


def _kind(name: str | None) -> str:
    return (name or "").rpartition("/")[2]


def _maker(name: str | None) -> str:
    return (name or "").rpartition("/")[0]


def fraction(text: str | None) -> Fraction | None:
    """A number such as ``1/7`` or ``0.25``; None if it is none."""
    try:
        return None if text is None or len(text) > 40 else Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        return None


def layouts(nodes: pl.DataFrame) -> pl.DataFrame:
    """How each node offers its cards, from when until when.

    The API's rows are a snapshot of the last layout; where samples show that it changed, they win.

    Args:
        nodes: Rows of ``nodes``.

    Returns:
        ``cluster, node, start, end, gpu_units, gpu_memory_mib``, without holes, in milliseconds.
    """
    place = ["cluster", "node"]
    sampled = pl.col("interval_seconds").is_not_null()
    seen = nodes.filter(sampled).group_by(place)
    moving = seen.agg((pl.col("gpu_units").drop_nulls().n_unique() > 1).alias("moving"))
    rows = nodes.join(moving.filter("moving"), on=place, how="left").filter(
        sampled | pl.col("moving").is_null()
    )
    points = rows.select(*place, pl.col("start").dt.timestamp("ms").alias("at")).unique()
    known = told_at(points, rows, _LAYOUT).sort(*place, "at")
    same = pl.struct(_LAYOUT)
    changes = known.filter((same != same.shift(1)).over(place).fill_null(value=True))
    first = pl.col("at") == pl.col("at").min().over(place)
    return changes.select(
        *place,
        pl.when(first).then(0).otherwise("at").alias("start"),
        pl.col("at").shift(-1).over(place).fill_null(_FOREVER).alias("end"),
        *_LAYOUT,
    )


def add_cards(lives: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """What each pod holds of cards by its request and annotations.

    Args:
        lives: ``lives.pod_lives``.
        nodes: Rows of ``nodes``.

    Returns:
        The lives without reservation pods (``reservations``), cut where the layout of their node
        changes, with ``cards`` (parts of a card; null = not known), ``devices`` (cards that it
        touches at least) and ``unsized`` (what is not known of the node's cards).
    """
    pods = lives.filter(~is_reservation())
    spans = layouts(nodes).rename({"start": "from", "end": "until"})
    cut = pods.join(spans, on=["cluster", "node"], how="left").with_columns(
        _annotation("gpu-fraction").alias("fraction"),
        _annotation("gpu-memory").alias("memory_mib"),
        _annotation("gpu-fraction-num-devices").alias("devices"),
    )
    cut = clip(cut, pl.col("from").fill_null(0), pl.col("until").fill_null(_FOREVER))
    keys = [*_ASKED, *_LAYOUT]
    distinct = cut.select(keys).unique()
    found = distinct.with_columns(_shares(distinct)).rename({"devices": "asked_devices"})
    right = ["asked_devices" if key == "devices" else key for key in keys]
    joined = cut.join(found, left_on=keys, right_on=right, how="left", nulls_equal=True)
    return joined.select(
        *lives.columns, "cards", pl.col("touched").alias("devices"), "unsized"
    ).sort("cluster", "uid", "start")


def _shares(distinct: pl.DataFrame) -> pl.DataFrame:
    """``cards``, ``touched`` and ``unsized`` of each combination of ``_ASKED`` and ``_LAYOUT``."""

    def rows() -> Iterator[tuple[int | None, int, str | None]]:
        for row in distinct.select(*_ASKED, *_LAYOUT).iter_rows():
            found = share(Asked(*row[: len(_ASKED)]), Offered(*row[len(_ASKED) :]))
            yield found.parts, found.devices, found.unsized

    schema = {"cards": pl.Int64(), "touched": pl.Int64(), "unsized": pl.String()}
    return pl.DataFrame(list(rows()), schema=schema, orient="row")


def _annotation(key: str) -> pl.Expr:
    """The value of an annotation under any prefix, in the original or a sanitised form."""
    name = key.replace("-", "[-_]")
    return pl.col("annotations").str.extract(rf'"(?:[^"]*[/_])?{name}"\s*:\s*"([^"]*)"', 1)
