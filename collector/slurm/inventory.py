"""The nodes of a cluster: ``scontrol show node`` (also ``-o``, ``--json``) or ``sinfo -N -o``.

A file knows the nodes as they were when it was written; their sizes are taken to hold for the days
that are read. Nodes that are down, drained or powered off count only while jobs ran on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import msgspec
import polars as pl

from collector.slurm.files import Export
from collector.slurm.hostlist import HostListError, expand, is_none
from collector.slurm.labels import of_node
from collector.slurm.numbers import Number, whole, words
from collector.slurm.tres import CARD, Tres, TresError, parse
from ledger.errors import BadInputError
from ledger.text import canonical_json

SCHEMA: dict[str, pl.DataType] = {
    "node": pl.String(),
    "cpus": pl.Int64(),
    "memory": pl.Int64(),
    "cards": pl.Int64(),
    "model": pl.String(),
    "units": pl.String(),  # what a unit of each device resource is of a card, JSON
    "up": pl.Boolean(),
    "counted": pl.Boolean(),  # whether accounting counts its cards
    "labels": pl.String(),
    "provider_id": pl.String(),
    "instance_type": pl.String(),
}
_MIB = 1 << 20
_AWAY = frozenset(
    "DOWN FAIL FAILING FUTURE UNKNOWN POWERED_DOWN POWERING_DOWN POWER_DOWN NOT_RESPONDING "
    "INVAL INVALID_REG ERROR DRAINED PERFCTRS DELETED".split()
)
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "ALLOC", "MIX", "COMP"})
_PAIR = re.compile(r"(?:^|\s)([A-Z][A-Za-z]+)=")
_GRES = re.compile(r"^(?P<name>\w+)(?::(?P<type>[^:()]+))?:(?P<count>\d+)$")
_MIG = re.compile(r"\dg\.\d+gb", re.I)
_SINFO = {
    "NODELIST": "NodeName",
    "HOSTNAMES": "NodeName",
    "CPUS": "CPUTot",
    "MEMORY": "RealMemory",
    "GRES": "Gres",
    "AVAIL_FEATURES": "AvailableFeatures",
    "ACTIVE_FEATURES": "ActiveFeatures",
    "STATE": "State",
    "PARTITION": "Partitions",
}


@dataclass(frozen=True)
class Node:
    """A node as Slurm knows it.

    Args:
        name: NodeName.
        cpus: CPUs; None = not told.
        memory: Bytes; None = not told.
        gres: Generic resources: (name, type, count).
        tres: What accounting counts of it.
        state: Words of its state.
        features: Its features.
        partitions: Its partitions.
        instance: The provider's id of its machine.
        instance_type: The provider's type of machine.
    """

    name: str
    cpus: int | None = None
    memory: int | None = None
    gres: tuple[tuple[str, str | None, int], ...] = ()
    tres: Tres = field(default_factory=Tres)
    state: frozenset[str] = frozenset()
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    instance: str | None = None
    instance_type: str | None = None

    @property
    def types(self) -> dict[str, int]:
        """Types of its cards, with their number."""
        if self.tres.types:
            return dict(self.tres.types)
        found: dict[str, int] = {}
        for name, kind, count in self.gres:
            if name == "gpu" and kind:
                found[kind] = found.get(kind, 0) + count
        return found

    @property
    def cards(self) -> int | None:
        """Physical cards; None where they are cut into instances (MIG), which nobody counts."""
        if any(map(_MIG.search, self.types)):
            return None
        by_gres = sum(count for name, _, count in self.gres if name == "gpu")
        return self.tres.cards if self.tres.cards is not None else by_gres

    @property
    def up(self) -> bool:
        """Whether it could take jobs when the file was written."""
        drained = "DRAIN" in self.state and not self.state & _BUSY
        return not (self.state & _AWAY or drained)

    def units(self) -> str | None:
        """``gpu_units``: parts of cards (shards, MPS) are told by how many of them the node has."""
        cards = self.cards
        if not cards:
            return None
        named = {f"gres/{name}": count for name, _, count in self.gres if name in ("shard", "mps")}
        parts = {**named, **self.tres.parts}
        found = {name: str(Fraction(cards, count)) for name, count in parts.items() if count}
        return canonical_json({CARD: "1", **found})

    def row(self) -> tuple[object, ...]:
        """In the form of ``SCHEMA``."""
        cards = self.cards
        model = " and ".join(sorted(self.types)) if len(self.types) == 1 or cards is None else None
        return (
            self.name,
            self.cpus,
            self.memory,
            cards,
            model,
            self.units(),
            self.up,
            not (cards and self.tres.cards is None and self.tres != Tres()),
            of_node(self.partitions, self.features),
            self.instance,
            self.instance_type,
        )


def frame(nodes: Iterable[Node]) -> pl.DataFrame:
    """Nodes in the form of ``SCHEMA``; of two of one name the last counts, partitions of both."""
    found: dict[str, Node] = {}
    for node in nodes:
        if before := found.get(node.name):
            both = dict.fromkeys((*before.partitions, *node.partitions))
            node = replace(node, partitions=tuple(both))
        found[node.name] = node
    return pl.DataFrame([n.row() for n in found.values()], schema=SCHEMA, orient="row")


def read(export: Export) -> Iterator[Node]:
    """The nodes of a file.

    Raises:
        BadInputError: It is none of the formats, or a node cannot be read.
    """
    try:
        yield from _read(export)
    except (HostListError, TresError) as error:
        raise BadInputError(f"{export.where}: {error.message}") from error


def _read(export: Export) -> Iterator[Node]:
    if export.is_json:
        yield from _json(export)
        return
    text, _ = export.text()
    if re.search(r"(?m)^\s*NodeName=", text):
        for block in re.split(r"(?m)^(?=\s*NodeName=)", text):
            if "NodeName=" in block:
                yield from _nodes(_pairs(block))
        return
    yield from _sinfo(text, export.where)


def _pairs(block: str) -> dict[str, str]:
    """``Key=value`` of a node; a value ends where the next key begins (OS holds blanks).

    Of a key that stands twice the first counts: free texts come last.
    """
    parts = _PAIR.split(block)
    pairs = list(zip(parts[1::2], parts[2::2], strict=True))
    return {key: value.strip() for key, value in reversed(pairs)}


def _nodes(told: Mapping[str, str]) -> Iterator[Node]:
    """The nodes that one entry speaks of: nearly always one."""
    memory = whole(told.get("RealMemory", "").rstrip("+"))
    tres = parse(told.get("CfgTRES") or "")
    instance = told.get("InstanceId")
    cpus = whole((told.get("CPUTot") or told.get("CPUs") or "").rstrip("+"))
    node = Node(
        "",
        cpus if cpus is not None else tres.cpus,
        memory * _MIB if memory is not None else tres.memory,
        _gres(told.get("Gres", "")),
        tres,
        _state(told.get("State", "")),
        _names(told.get("ActiveFeatures") or told.get("AvailableFeatures") or ""),
        _names(told.get("Partitions", "").replace("*", "")),
        None if is_none(instance or "") else instance,
        None if is_none(told.get("InstanceType", "")) else told["InstanceType"],
    )
    for name in expand(told.get("NodeName", "")):
        yield replace(node, name=name)


def _state(text: str) -> frozenset[str]:
    """Words of ``MIXED+DRAIN``, ``idle~``, ``down*``; a sign behind a state stands for a word."""
    signs = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "%": "POWERING_DOWN", "!": "POWER_DOWN"}
    found = set(re.split(r"[^A-Z_]+", text.upper())) - {""}
    return frozenset(found | {word for sign, word in signs.items() if sign in text})


def _gres(text: str) -> tuple[tuple[str, str | None, int], ...]:
    """``gpu:a100:8(S:0-1),shard:32`` as (name, type, count)."""
    found = []
    for piece in re.sub(r"\([^)]*\)", "", text).split(","):
        if match := _GRES.fullmatch(piece.strip()):
            found.append((match["name"], match["type"], int(match["count"])))
    return tuple(found)


def _names(text: str) -> tuple[str, ...]:
    return () if is_none(text) else tuple(filter(None, (part.strip() for part in text.split(","))))


def _sinfo(text: str, where: str) -> Iterator[Node]:
    lines = [line for line in text.splitlines() if line.strip()]
    mark = "|" if lines and "|" in lines[0] else None
    header = [_SINFO.get(name.strip().upper()) for name in lines[0].split(mark)] if lines else []
    if "NodeName" not in header:
        raise BadInputError(
            f"{where} is no list of Slurm's nodes",
            "write it with `scontrol show node`, or sinfo -N -o '%N|%c|%m|%G|%f|%T|%P'",
        )
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.split(mark)]
        if len(cells) != len(header):
            raise BadInputError(
                f"{where}: {line[:60]!r} has {len(cells)} cells, not {len(header)}",
                "write it with sinfo -N -o '%N|%c|%m|%G|%f|%T|%P'",
            )
        yield from _nodes({key: cell for key, cell in zip(header, cells, strict=True) if key})


class _Json(msgspec.Struct):
    name: str = ""
    cpus: Number = None
    real_memory: Number = None
    gres: str | None = None
    tres: str | None = None
    state: Any = None
    state_flags: Any = None
    features: Any = None
    active_features: Any = None
    partitions: Any = None
    instance_id: str | None = None
    instance_type: str | None = None


class _JsonNodes(msgspec.Struct):
    nodes: list[_Json] | None = None


def _json(export: Export) -> Iterator[Node]:
    try:
        document = msgspec.json.decode(
            export.data.removeprefix(b"\xef\xbb\xbf"), type=_JsonNodes, strict=False
        )
    except msgspec.MsgspecError as error:
        raise BadInputError(f"{export.where} is no list of Slurm's nodes: {error}") from error
    if document.nodes is None:
        raise BadInputError(
            f"{export.where} holds no nodes", "write it with `scontrol show node --json`"
        )
    for each in document.nodes:
        told = {
            "NodeName": each.name,
            "CPUTot": str(whole(each.cpus) or ""),
            "RealMemory": str(whole(each.real_memory) or ""),
            "Gres": each.gres or "",
            "CfgTRES": each.tres or "",
            "State": f"{words(each.state)} {words(each.state_flags)}",
            "ActiveFeatures": _joined(each.active_features) or _joined(each.features),
            "Partitions": _joined(each.partitions),
            "InstanceId": each.instance_id or "",
            "InstanceType": each.instance_type or "",
        }
        yield from _nodes(told)


def _joined(value: Sequence[str] | str | None) -> str:
    return value if isinstance(value, str) else ",".join(map(str, value or ()))
