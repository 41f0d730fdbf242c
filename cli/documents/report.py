"""The report of a window: where the money went, what was idle, what was found, what is blind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from attribution.finality import OPEN, BillingMonth, in_words
from cli.document import Bars, Cell, Column, Document, Section, Tile, Tone, envelope
from cli.documents.coverage import coverage_tile, gaps_section
from cli.documents.figures import amount, known_sum, ratio, unknown_shares
from cli.render.series import NO_PHASE, SPECIAL, rank
from cli.render.text import money, percent
from ledger.schema import IDLE, UNATTRIBUTED
from ledger.window import Window

_WHERE = (
    Column("experiment", "Experiment"),
    Column("cost", "Cost", "money"),
    Column("share", "Share", "ratio"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("active_cost", "Of it active", "money"),
    Column("basis", "Basis"),
    Column("confidence", "Confidence"),
)
_PHASES = (
    Column("experiment", "Experiment"),
    Column("phase", "Phase"),
    Column("cost", "Cost", "money"),
    Column("gpu_hours", "GPU-hours", "number"),
)
_IDLE = (
    Column("node", "Node"),
    Column("cost", "Cost", "money"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("share", "Of its cost", "ratio"),
)
_REASONS = (
    Column("reason", "Reason"),
    Column("cost", "Cost", "money"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("meaning", "What it means"),
)
_MEANINGS = {
    "no_rule": "no identity rule names it: runbill doctor --identity",
    "no_samples": "the cluster, its pods or their requests were not seen",
    "capacity_unknown": "the node does not say what it holds",
    "unpriced": "no bill line and no price covers it",
}
_BASIS = (
    Column("provider", "Provider"),
    Column("basis", "Basis"),
    Column("cost", "Effective", "money"),
    Column("billed", "Billed", "money"),
)
_RESTATED = (
    Column("day", "Day"),
    Column("experiment", "Experiment"),
    Column("old", "Before", "money"),
    Column("new", "Now", "money"),
    Column("difference", "Difference", "money"),
    Column("why", "Why"),
)
_SURE = ("low", "high")
_UNNAMED = ("reason", "cost", "gpu_hours")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figures:
    """What a report is made of, in one currency.

    Args:
        window: The resolved window.
        currency: ISO 4217.
        total: Sum of the effective cost, as far as it is known; None if nothing of it is.
        billed: Sum of the invoice lines; None if there is none.
        phases: ``experiment, phase, cost, active_cost, gpu_hours, basis, confidence``.
        nodes: ``cluster, node, target, cost, gpu_hours`` of node costs.
        unattributed: ``reason, cost, gpu_hours``.
        basis: ``provider, basis, cost, billed``.
        restated: ``day, experiment, old, new, difference, why``.
        coverage: The coverage block.
        blind: Sources that the settings do not name, and what is blind without them.
        unknown: Shares whose effective cost is not known.
        months: The billing months that the window touches, and whether they are final.
    """

    window: Window
    currency: str
    total: Decimal | None
    billed: Decimal | None
    phases: Sequence[Row]
    nodes: Sequence[Row]
    unattributed: Sequence[Row]
    basis: Sequence[Row]
    restated: Sequence[Row]
    coverage: Sequence[Row]
    blind: Sequence[tuple[str, str]] = ()
    unknown: int = 0
    months: Sequence[BillingMonth] = ()


def report_document(
    figures: Figures, outcomes: Section, findings: Section, checks: Mapping[str, object]
) -> Document:
    """The report from its figures and the checklist's two sections and data."""
    experiments = experiment_rows(figures)
    idle = idle_rows(figures.nodes)
    data = envelope(
        "report",
        window=figures.window.as_dict(),
        currency=figures.currency,
        total=figures.total,
        billed=figures.billed,
        unknown=figures.unknown,
        experiments=experiments,
        idle=idle,
        unattributed=[{k: row[k] for k in _UNNAMED} for row in figures.unattributed],
        basis=list(figures.basis),
        restatements=list(figures.restated),
        billing_months=[month.as_dict() for month in figures.months],
        **checks,
        coverage=list(figures.coverage),
    )
    sections = (
        _where(experiments, figures.currency),
        _idle(idle, figures.currency),
        *_unattributed(figures.unattributed),
        outcomes,
        findings,
        gaps_section(figures.coverage, figures.window, figures.blind),
        *_books(figures),
    )
    title = f"Where the money went, {_span(figures.window)}"
    return Document(
        "report", title, data, tuple(_tiles(figures, experiments)), sections, figures.currency
    )


def _idle(idle: Sequence[Row], currency: str) -> Section:
    return Section(
        "idle",
        "What was idle",
        _IDLE,
        tuple(idle),
        half=True,
        shown=5,
        empty="no node was idle in this window",
        bars=_idle_bars(idle, currency),
    )


def _unattributed(rows: Sequence[Row]) -> Iterator[Section]:
    """Why money went to nobody; no section where all of it went to somebody."""
    if rows:
        shown = tuple({**row, "meaning": _MEANINGS.get(row["reason"])} for row in rows)
        yield Section("unattributed", "What nobody is charged for, and why", _REASONS, shown)


def _books(figures: Figures) -> Iterator[Section]:
    """The tables at the end: what rests on estimates, what changed, and every phase."""
    yield Section(
        "basis",
        "Estimated and billed",
        _BASIS,
        tuple(figures.basis),
        half=True,
        brief=False,
        empty="no cost in this window",
    )
    yield Section(
        "restated",
        "What changed since",
        _RESTATED,
        tuple(figures.restated),
        half=True,
        brief=bool(figures.restated),
        empty="no figure of this window was restated",
    )
    yield Section(
        "phases",
        "By phase",
        _PHASES,
        tuple(figures.phases),
        brief=False,
        empty="no cost in this window",
        shown=15,
    )


def experiment_rows(figures: Figures) -> list[dict[str, Any]]:
    """One row per experiment and special target, dearest first; phases inside."""
    found: dict[str, dict[str, Any]] = {}
    for row in figures.phases:
        name = row["experiment"] or UNATTRIBUTED
        known = found.setdefault(
            name,
            {
                "experiment": name,
                "cost": None,
                "share": None,
                "active_cost": Decimal(0),
                "gpu_hours": 0.0,
                "basis": row["basis"],
                "confidence": row["confidence"],
                "phases": {},
            },
        )
        known["cost"] = _with(known["cost"], row["cost"])
        known["gpu_hours"] += row["gpu_hours"] or 0.0
        known["active_cost"] = _plus(known["active_cost"], row["active_cost"])
        known["confidence"] = min(known["confidence"], row["confidence"], key=_SURE.index)
        known["basis"] = known["basis"] if known["basis"] == row["basis"] else "mixed"
        phase = SPECIAL.get(name) or row["phase"] or NO_PHASE
        if row["cost"] is not None:
            known["phases"][phase] = known["phases"].get(phase, Decimal(0)) + row["cost"]
    for row_ in found.values():
        row_["share"] = ratio(row_["cost"], figures.total)
    return sorted(found.values(), key=lambda row: (*_dearest(row["cost"]), row["experiment"]))


def _with(sum_: Decimal | None, more: Decimal | None) -> Decimal | None:
    """A sum of what is known; unknown as long as no part of it is known."""
    return more if sum_ is None else sum_ + (more or 0)


def _dearest(cost: Decimal | None) -> tuple[bool, Decimal]:
    """Sorts dear rows first, and unknown ones last."""
    return cost is None, -(cost or Decimal(0))


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """A sum is unknown as soon as a part of it is."""
    return None if one is None or other is None else one + other


def idle_rows(nodes: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per node that was idle at all, dearest first."""
    paid: dict[str, Decimal | None] = {}
    idle: dict[str, list[Any]] = {}
    for row in nodes:
        name = "/".join(part for part in (row["cluster"], row["node"]) if part)
        paid[name] = _with(paid.get(name), row["cost"])
        if row["target"] == IDLE:
            known = idle.setdefault(name, [None, 0.0])
            known[0] = _with(known[0], row["cost"])
            known[1] += row["gpu_hours"] or 0.0
    rows = [
        {"node": name, "cost": cost, "gpu_hours": hours, "share": ratio(cost, paid[name])}
        for name, (cost, hours) in idle.items()
        if cost or cost is None
    ]
    return sorted(rows, key=lambda row: (*_dearest(row["cost"]), row["node"]))


def _where(experiments: Sequence[Row], currency: str) -> Section:
    names = dict.fromkeys(phase for row in experiments for phase in row["phases"])
    series = tuple(sorted(names, key=rank))
    values = tuple(
        tuple(_positive(row["phases"].get(name)) for name in series) for row in experiments
    )
    return Section(
        "experiments",
        "Where it went",
        _WHERE,
        tuple(experiments),
        empty="no cost in this window",
        shown=8,
        bars=Bars("By phase", series, values, currency) if series else None,
    )


def _idle_bars(idle: Sequence[Row], currency: str) -> Bars | None:
    values = tuple((_positive(row["cost"]),) for row in idle)
    return Bars("Idle", ("idle",), values, currency) if values else None


def _positive(value: Cell) -> float:
    """A length for a bar; credits have none."""
    return max(0.0, float(value)) if isinstance(value, Decimal) else 0.0


def _tiles(figures: Figures, experiments: Sequence[Row]) -> list[Tile]:
    costs = {row["experiment"]: row["cost"] for row in experiments}
    none = None if figures.total is None else Decimal(0)
    special = {name: costs.get(name, none) for name in SPECIAL}
    own = [cost for name, cost in costs.items() if name not in SPECIAL]
    named = known_sum(own) if own else none
    return [
        Tile("Window", str(figures.window)),
        Tile("Cost", amount(figures.total), _against_bill(figures), unit=figures.currency),
        _part("To experiments", named, figures, "good"),
        _part("Idle", special[IDLE], figures, "warn"),
        _part("Unattributed", special[UNATTRIBUTED], figures, "warn"),
        *_finality(figures.months),
        coverage_tile(figures.coverage),
    ]


def _against_bill(figures: Figures) -> str:
    """How the total stands to the bill: amortised cost and invoice lines may differ."""
    estimated = known_sum(row["cost"] for row in figures.basis if row["basis"] == "estimated")
    if estimated and not figures.billed:
        said = "all estimated from prices: no bill yet"
    elif figures.billed is None:
        said = "no cost is known"
    else:
        said = f"{money(figures.billed)} on the invoice"
        said += f"; {money(estimated)} estimated" if estimated else ""
    return "; ".join(filter(None, (said, unknown_shares(figures.unknown))))


def _finality(months: Sequence[BillingMonth]) -> Iterator[Tile]:
    """Whether the bill is final; no tile where no bill is in."""
    if months:
        still = any(month.state == OPEN for month in months)
        value = "open, provisional" if still else "final"
        yield Tile("Bill", value, "; ".join(in_words(months)), "warn" if still else "good")


def _part(label: str, value: Decimal | None, figures: Figures, tone: Tone) -> Tile:
    share = ratio(value, figures.total)
    detail = "" if share is None else f"{percent(share)} of the cost"
    return Tile(label, amount(value), detail, tone if value else "plain", figures.currency)


def _span(window: Window) -> str:
    days = list(window.days())
    if not window.whole_days:
        return str(window)
    return str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"
