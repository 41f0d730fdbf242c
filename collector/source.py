"""The collector seam: what a source is, what it may read, and how it says what it can see.

A source is a small object built from its block of the settings. ``collect`` has no side effects
in the ledger: it returns ``Facts`` and the caller writes them. It raises a ``SourceError`` or
``BadInputError`` only when nothing at all could be read; anything less is a gap inside the facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.errors import RunbillError
from ledger.facts import Facts
from ledger.window import Window


@dataclass(frozen=True)
class KubernetesAccess:
    """One rule of a ClusterRole: get and list; the agent's alone may also watch.

    Args:
        group: API group, empty for the core.
        resources: Plural names.
        names: The only objects that are read, by name; empty for all.
        namespace: Where those stand, so that a Role in it is enough; empty: everywhere.
        verbs: What may be done.
    """

    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()
    namespace: str = ""
    verbs: tuple[str, ...] = ("get", "list")


@dataclass(frozen=True)
class Permissions:
    """What a collector reads: the source of the generated roles, and of ``runbill doctor``."""

    kubernetes: tuple[KubernetesAccess, ...] = ()
    series: tuple[str, ...] = ()
    iam: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Whether one need of a source can be met right now.

    Args:
        need: What was looked for, e.g. "list pods" or a series name.
        ok: Whether it was found.
        detail: What was seen, or why not; one line.
        blind: What cannot be answered without it; empty if ok.
        reach: The time span that the source still holds, if it can tell.
        failure: What ``collect`` raises, if it can do nothing at all without it.
    """

    need: str
    ok: bool
    detail: str
    blind: str = ""
    reach: Window | None = None
    failure: type[RunbillError] | None = None


class Collector(Protocol):
    """A source of facts.

    Attributes:
        name: ``kind/name``, e.g. ``prometheus/train-a``; stands in the source column of its rows.
        required: Whether a gap here makes the run end with exit code 3.
        snapshot: Whether it only knows the present. Rows that an earlier run of the same day saw
            and this one does not are then kept (a deleted pod did exist).
        permissions: What it reads.
    """

    @property
    def name(self) -> str:
        """``kind/name``, as the rows name their source."""
        ...

    @property
    def required(self) -> bool:
        """Whether a gap here makes the run end with exit code 3."""
        ...

    @property
    def snapshot(self) -> bool:
        """Whether it only knows the present."""
        ...

    @property
    def permissions(self) -> Permissions:
        """What it reads."""
        ...

    def collect(self, window: Window) -> Facts:
        """Read the facts of a window of whole UTC days."""
        ...

    def probe(self) -> Sequence[Probe]:
        """Try each need once, cheaply, and say what would be blind."""
        ...

    def reach(self) -> Window | None:
        """The span of time that the source still holds; None if it cannot tell."""
        ...
