"""Trackable resources as Slurm writes them: ``billing=64,cpu=64,gres/gpu=8,mem=512G,node=2``.

``gres/gpu=8`` and ``gres/gpu:a100=8`` are the same eight cards, once without and once with their
type. Memory counts in MiB unless a unit stands behind it (``K``, ``M``, ``G``, ``T``, ``P``, of
1024); a trailing ``n`` or ``c`` of old releases is refused, as it says "per node" or "per core".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from collector.slurm.numbers import Number, whole
from ledger.errors import BadInputError

CARD = "gres/gpu"
"""Resource of whole cards."""

PARTS = ("gres/shard", "gres/mps")
"""Resources whose unit is a part of a card; how many a card has, its node says."""

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)B?", re.I)
_MOST = 1 << 60


class TresError(BadInputError):
    """A text is no list of trackable resources."""


@dataclass(frozen=True)
class Tres:
    """What a job holds, or a node has.

    Args:
        cpus: CPUs as Slurm counts them; None = not told.
        memory: Bytes; None = not told.
        cards: Cards; None where no generic resource is named at all.
        types: Types of the cards, with their number.
        parts: Units of ``PARTS``.
        nodes: Number of nodes; None = not told.
    """

    cpus: int | None = None
    memory: int | None = None
    cards: int | None = None
    types: dict[str, int] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    nodes: int | None = None

    @property
    def model(self) -> str | None:
        """The type of the cards, if all are of one."""
        return next(iter(self.types)) if len(self.types) == 1 else None


@lru_cache(maxsize=65536)
def parse(text: str) -> Tres:
    """Read a list of resources; those that runbill has no use for are passed over.

    Raises:
        TresError: It is none, was cut off, or an amount is no number.
    """
    amounts: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = pair.partition("=")
        if not equals or not name:
            raise TresError(f"{text[:80]!r} holds {pair[:40]!r}, which is no name=amount")
        known = name.lower() in ("cpu", "mem", "node") or name.lower().startswith("gres/")
        if known:
            amounts[name] = _amount(amount, text, memory=name.lower() == "mem")
    return _of(amounts)


def _of(amounts: dict[str, int]) -> Tres:
    plain = {name.lower(): amount for name, amount in amounts.items()}
    head = f"{CARD}:"
    types = {n[len(head) :]: a for n, a in amounts.items() if n.lower().startswith(head) and a}
    return Tres(
        cpus=plain.get("cpu"),
        memory=plain.get("mem"),
        cards=plain.get(CARD, sum(types.values()) if types else None),
        types=types,
        parts={name: plain[name] for name in PARTS if plain.get(name)},
        nodes=plain.get("node"),
    )


def _amount(text: str, whole_text: str, *, memory: bool) -> int:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise TresError(f"{whole_text[:80]!r} holds {text[:40]!r}, which is no amount")
    try:
        number = Decimal(found[1])
    except InvalidOperation as error:  # pragma: no cover - the pattern admits numbers only
        raise TresError(str(error)) from error
    unit = found[2].upper()
    scale = 1024 ** (_UNITS[unit] if unit or not memory else 2)
    amount = int(number * scale)
    if amount > _MOST:
        raise TresError(f"{whole_text[:80]!r} holds {text[:40]!r}, more than any machine has")
    return amount


def as_text(entries: Iterable[tuple[str, str | None, Number]]) -> str:
    """The list as text, from the entries of ``sacct --json``, whose memory counts in MiB.

    Args:
        entries: Type (``cpu``, ``mem``, ``gres``), name (``gpu:a100``) and count.
    """
    found = []
    for kind, name, count in entries:
        amount = whole(count)
        if amount is None or amount < 0:
            continue  # a limit that is not set
        found.append(f"{kind}/{name}={amount}" if name else f"{kind}={amount}")
    return ",".join(found)
