"""The rule seam: what a rule declares, what it may look at, and what it answers.

A rule is one file with one class. Its docstring is its documentation page (``runbill rules
explain``). ``evaluate`` is a pure function of ledger tables and settings, so that every finding can
be worked out again from the evidence stored with it. It answers per resource, in three states:
*finding* and *clean* both need evidence; everything else is *unknown* with a reason.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import ClassVar, Literal

import polars as pl

from ledger.schema import Table
from ledger.settings import Settings
from ledger.window import Window, iso

Severity = Literal["high", "medium", "low"]
Confidence = Literal["high", "medium", "low"]
State = Literal["finding", "clean", "unknown"]
Status = Literal["new", "ongoing", "resolved", "excepted"]
MoneyReason = Literal["no_price", "price_ambiguous"]
Scalar = str | int | float | None

SECTIONS = ("What it asks", "Evidence", "Thresholds", "Money", "Guardrail", "Remedy")
"""Sections that the docstring of every rule has, in this order."""


class Stage(IntEnum):
    """The order in which findings claim costs: each takes from what the earlier ones left."""

    REMOVE = 1
    STOP = 2
    TIME_SLICES = 3
    RESIZE = 4
    CHEAPER = 5


@dataclass(frozen=True)
class Answer:
    """What a rule says of one resource; ``resource`` None speaks of the rule as a whole.

    Args:
        resource: ``kind/name``.
        status: finding, clean or unknown.
        reason: Why unknown: no_series, low_coverage, short_history, capacity_unknown, ...
        source: The source that was lacking, e.g. ``prometheus/train-a``.
    """

    resource: str | None
    status: State
    reason: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Evidence:
    """A figure that a finding rests on."""

    metric: str
    source: str
    window: Window
    value: Scalar
    threshold: Scalar = None
    samples: int | None = None
    expected: int | None = None

    def as_dict(self) -> dict[str, object]:
        """The evidence as JSON data."""
        return {
            "metric": self.metric,
            "source": self.source,
            "window": self.window.as_dict(),
            "samples": self.samples,
            "expected": self.expected,
            "value": self.value,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, order=True)
class Claim:
    """The ``costs`` rows of a node inside a half-open interval of UTC time."""

    cluster: str
    node: str
    start: datetime
    end: datetime

    def as_dict(self) -> dict[str, str]:
        """The claim as JSON data."""
        return {
            "cluster": self.cluster,
            "node": self.node,
            "start": iso(self.start),
            "end": iso(self.end),
        }


@dataclass(frozen=True)
class Remedy:
    """The way out: a sentence, and commands or patches that are printed and never run."""

    summary: str
    commands: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The remedy as JSON data."""
        return {"summary": self.summary, "commands": list(self.commands)}


@dataclass(frozen=True)
class Granted:
    """An exception that applies to a finding."""

    reason: str
    until: date

    def as_dict(self) -> dict[str, str]:
        """The exception as JSON data."""
        return {"reason": self.reason, "until": self.until.isoformat()}


@dataclass(frozen=True)
class Money:
    """What waste cost and what its end would save, in one currency.

    Args:
        method: How it was worked out, in one line.
        spent: Cost of the wasted part inside the window; None = see ``reason``.
        saving_per_month: Saved in 30 days if this were the only finding; None = see ``reason``.
        currency: ISO 4217.
        basis: billed or estimated.
        reason: Why there is no figure.
    """

    method: str
    spent: Decimal | None = None
    saving_per_month: Decimal | None = None
    currency: str | None = None
    basis: str | None = None
    reason: MoneyReason | None = None


@dataclass(frozen=True)
class Finding:
    """Waste, with its evidence, price, owner and way out.

    A rule fills everything above the line; the engine fills what depends on other findings, on
    earlier days and on exceptions.

    Args:
        proportion: Part of the claimed costs that would be saved; 1 = all of it. Not stored.
        saving_per_month: The own saving after overlaps; 0 when resolved or excepted.
    """

    rule: str
    name: str
    severity: Severity
    fingerprint: str
    resource: str
    title: str
    window: Window
    money: Money
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    claims: tuple[Claim, ...]
    remedy: Remedy
    guardrail: str
    proportion: Fraction = Fraction(1)
    experiment: str | None = None
    model_version: str | None = None
    owner: str | None = None
    # ---
    saving_per_month: Decimal | None = None
    first_seen: date | None = None
    status: Status = "new"
    exception: Granted | None = None

    @property
    def active(self) -> bool:
        """Whether it counts in sums."""
        return self.status in ("new", "ongoing")


@dataclass(frozen=True)
class Verdict:
    """All that a rule says of a window.

    Args:
        answers: One per resource in scope.
        findings: One per answer ``finding`` at least.
        skipped: Resources out of scope, and why.
        notes: What a reader should know.
    """

    answers: tuple[Answer, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """What a rule knows besides the tables.

    Args:
        settings: All settings; thresholds stand in ``settings.rules``.
        window: The window to judge, whole UTC days.
        lacking: Source name to the reason why it could not be read in the window.
    """

    settings: Settings
    window: Window
    lacking: Mapping[str, str] = field(default_factory=dict)

    def why(self, source: str, otherwise: str) -> str:
        """The reason to give for missing evidence of a source: what kept it from being read."""
        return self.lacking.get(source, otherwise)


@dataclass(frozen=True)
class RuleTables:
    """The tables that a rule declared in ``needs``, as lazy frames of its window's days."""

    frames: Mapping[str, pl.LazyFrame]

    def __getitem__(self, table: Table) -> pl.LazyFrame:
        """Rows of a table, in its schema."""
        return self.frames[table.name]


class Rule(ABC):
    """A question of the waste checklist.

    Attributes:
        code: Fixed code, e.g. ``RB102``.
        name: Dotted name, e.g. ``gpu.idle-nodes``.
        title: The question that it answers.
        severity: Severity of its findings.
        needs: Tables that it reads.
        window_days: Days that it looks back over, the closed day included.
        stage: Its place in the order of claims.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    title: ClassVar[str]
    severity: ClassVar[Severity]
    needs: ClassVar[tuple[Table, ...]]
    window_days: ClassVar[int]
    stage: ClassVar[Stage]

    @abstractmethod
    def evaluate(self, tables: RuleTables, context: Context) -> Verdict:
        """Judge every resource in scope; no side effects, no reading of anything else."""

    def check(self, settings: Settings) -> None:  # noqa: B027 - most rules need no check
        """Refuse settings that have no meaning for this rule.

        Raises:
            SettingsError: A value has no meaning; the message names it.
        """

    @classmethod
    def sections(cls) -> dict[str, str]:
        """The documentation page: section title to text, from the class docstring."""
        text = inspect.cleandoc(cls.__doc__ or "")
        parts = re.split(rf"^({'|'.join(SECTIONS)}):$", text, flags=re.MULTILINE)
        return {
            title: inspect.cleandoc("\n" + body).strip()
            for title, body in zip(parts[1::2], parts[2::2], strict=True)
        }
