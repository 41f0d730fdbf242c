"""Running the checklist of a day: read tables, ask every rule, count once, write the answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from ledger.errors import LedgerError, RunbillError
from ledger.facts import Gap
from ledger.schema import CLOSES, COSTS, FINDINGS, OUTCOMES
from ledger.settings import Settings, named_sources
from ledger.store import Ledger
from ledger.text import canonical_json, short_hash
from ledger.window import Window
from rules.checklist import Checklist, in_order
from rules.exceptions import grant, remarks
from rules.history import MEMORY, newest_sightings, resolved, with_history
from rules.overlap import count_once
from rules.records import Outcome, finding_of, findings_frame, outcome_of, outcomes_frame
from rules.registry import RULES
from rules.rule import Answer, Context, Finding, Rule, RuleTables, Verdict

__all__ = ["Checklist", "read_checklist", "required_sources", "run_checklist", "stale_checklists"]

STAGE, SOURCE = "checklist", "rules"
_ENDED = ("gone",)
_BLAME = ("access_denied", "throttled", "query_failed", "labels_missing", "stale_data")
"""Gaps of a source that explain missing evidence, the plainest first."""

_Close = tuple[date, str, str, str | None, list[str], str | None]


@dataclass(frozen=True)
class _Judged:
    """A rule, the window it looked at, and what it said."""

    rule: Rule
    window: Window
    verdict: Verdict
    gaps: tuple[Gap, ...] = ()


def run_checklist(
    ledger: Ledger, settings: Settings, day: date, *, version: str, rules: Sequence[Rule] = RULES
) -> Checklist:
    """Answer the checklist of a day and write it; a second run replaces the first.

    Args:
        ledger: Where facts and costs are, and where ``outcomes``, ``findings`` and ``closes`` go.
        settings: Thresholds, exceptions and sources.
        day: The UTC day that is closed; rules look back from its end.
        version: Version of runbill, for ``closes``.
        rules: The rules to ask.

    Raises:
        SettingsError: A rule's settings have no meaning.
        RunbillError: The ledger cannot be read or written.
    """
    for rule in rules:
        rule.check(settings)
    judged = [_judge(rule, ledger, settings, day) for rule in rules]
    findings = _findings(judged, ledger, settings, day)
    outcomes = _outcomes(judged, settings)
    notes = [note for each in judged for note in each.verdict.notes]
    known = [text for rule in rules for text in (rule.code, rule.name)]
    notes += remarks(settings.exceptions, known, day)
    frames = outcomes_frame(outcomes, day), findings_frame(findings, day)
    close = _close(judged, outcomes, frames, notes) | {
        "day": day,
        "inputs": _digest_inputs(_judged_closes(ledger), rules, day),
        "settings_hash": settings.digest(),
        "version": version,
    }
    only = Window.of_day(day)
    ledger.replace(OUTCOMES, frames[0], only)
    ledger.replace(FINDINGS, frames[1], only)
    ledger.replace(CLOSES, _closes_frame(close), only, source=SOURCE, stage=STAGE)
    return read_checklist(ledger, day)


def read_checklist(ledger: Ledger, day: date) -> Checklist:
    """The checklist of a day as it was written.

    Raises:
        LedgerError: The checklist of that day has not been run.
    """
    only = Window.of_day(day)
    closes = ledger.scan(CLOSES, only, SOURCE).filter(pl.col("stage") == STAGE).collect()
    if closes.is_empty():
        raise LedgerError(f"the checklist of {day} has not been run", "run: runbill checklist")
    close = closes.row(0, named=True)
    outcomes = _read(ledger.scan(OUTCOMES, only), ["rule", "resource"])
    findings = tuple(
        finding_of(row) for row in ledger.scan(FINDINGS, only).collect().iter_rows(named=True)
    )
    rows = tuple(outcome_of(row) for row in outcomes.iter_rows(named=True))
    windows = [row.window for row in rows] or [only]
    return Checklist(
        day,
        Window(min(w.start for w in windows), max(w.end for w in windows)),
        rows,
        in_order(findings),
        tuple(json.loads(close["notes"])),
        tuple(json.loads(close["gaps"])),
    )


def _read(rows: pl.LazyFrame, order: Sequence[str]) -> pl.DataFrame:
    # The rule's own state (resource null) stands first.
    return rows.sort(order, nulls_last=False).collect()


def _judge(rule: Rule, ledger: Ledger, settings: Settings, day: date) -> _Judged:
    """Ask one rule; a fault in it makes it unknown and leaves the others alone."""
    window = Window.of_days(day - timedelta(days=rule.window_days - 1), day)
    tables = RuleTables({table.name: ledger.scan(table, window) for table in rule.needs})
    context = Context(settings, window, _lacking(ledger, window))
    try:
        return _Judged(rule, window, rule.evaluate(tables, context))
    except RunbillError:
        raise
    except Exception as error:  # noqa: BLE001 - one rule's fault is a gap, not the end of the run
        gap = Gap("error", f"{rule.code}: {type(error).__name__}: {error}")
        return _Judged(rule, window, Verdict((Answer(None, "unknown", "error"),)), (gap,))


def _lacking(ledger: Ledger, window: Window) -> dict[str, str]:
    """Source to the reason why it could not be read on some day of the window."""
    rows = (
        ledger.scan(CLOSES, window)
        .filter(pl.col("stage") == "collect", pl.col("status") != "closed")
        .select("source", "status", "gaps")
        .sort("source")
        .collect()
    )
    found: dict[str, set[str]] = {}
    for source, status, gaps in rows.iter_rows():
        reasons = {gap.get("reason") for gap in json.loads(gaps or "[]")} & set(_BLAME)
        if status == "failed" and not reasons:
            reasons = {"query_failed"}
        found.setdefault(source, set()).update(reasons)
    return {source: min(reasons, key=_BLAME.index) for source, reasons in found.items() if reasons}


def _findings(
    judged: Sequence[_Judged], ledger: Ledger, settings: Settings, day: date
) -> tuple[Finding, ...]:
    """All findings of the day: with history, exceptions and overlaps, and those that are over."""
    found = tuple(finding for each in judged for finding in each.verdict.findings)
    memory = Window.of_days(day - MEMORY, day - timedelta(days=1))
    sightings = newest_sightings(ledger.scan(FINDINGS, memory))
    dated = grant(with_history(found, sightings, day), settings.exceptions, day)
    wide = Window.of_days(day - timedelta(days=max(e.rule.window_days for e in judged) - 1), day)
    counted = count_once(
        [f for f in dated if f.active],
        ledger.scan(COSTS, wide),
        {each.rule.code: each.rule.stage for each in judged},
    )
    over = [
        replace(finding_of(row), status="resolved", saving_per_month=Decimal(0))
        for row in resolved(sightings, {f.fingerprint for f in found}, _ended(judged))
    ]
    return (*counted, *(f for f in dated if not f.active), *over)


def _ended(judged: Sequence[_Judged]) -> set[tuple[str, str]]:
    """(rule, resource) whose waste is over: looked at and clean, or gone."""
    clean = {
        (each.rule.code, answer.resource)
        for each in judged
        for answer in each.verdict.answers
        if answer.status == "clean" and answer.resource
    }
    gone = {
        (each.rule.code, resource)
        for each in judged
        for resource, reason in each.verdict.skipped.items()
        if reason in _ENDED
    }
    return clean | gone


def required_sources(settings: Settings) -> frozenset[str]:
    """Names of the sources whose gaps give exit code 3."""
    return frozenset(name for name, required in named_sources(settings).items() if required)


def _outcomes(judged: Sequence[_Judged], settings: Settings) -> tuple[Outcome, ...]:
    required = required_sources(settings)
    return tuple(outcome for each in judged for outcome in _outcomes_of(each, required))


def _outcomes_of(judged: _Judged, required: frozenset[str]) -> list[Outcome]:
    """The rule's own state, then one outcome per resource."""
    rule = judged.rule
    answers = judged.verdict.answers
    rows = [
        Outcome(
            rule.code,
            rule.name,
            answer.resource,
            answer.status,
            answer.reason,
            0,
            answer.status == "unknown" and (answer.source in required or answer.reason == "error"),
            judged.window,
        )
        for answer in answers
    ]
    own = _own_state(judged.verdict)
    state = Outcome(
        rule.code,
        rule.name,
        None,
        own.status,
        own.reason,
        len(judged.verdict.skipped),
        any(row.required for row in rows),
        judged.window,
    )
    return [state, *(row for row in rows if row.resource is not None)]


def _own_state(verdict: Verdict) -> Answer:
    """The first of finding, unknown, clean that occurs; nothing in scope at all is clean."""
    for status in ("finding", "unknown", "clean"):
        found = [answer for answer in verdict.answers if answer.status == status]
        if found:
            reasons = Counter(answer.reason for answer in found if answer.reason)
            ranked = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
            return Answer(None, found[0].status, ranked[0] if ranked else None)
    if verdict.skipped:
        return Answer(None, "clean")
    return Answer(None, "unknown", "no_series")


def _close(
    judged: Sequence[_Judged],
    outcomes: Sequence[Outcome],
    frames: tuple[pl.DataFrame, pl.DataFrame],
    notes: Sequence[str],
) -> dict[str, Any]:
    resources = [outcome for outcome in outcomes if outcome.resource is not None]
    unknown = [outcome for outcome in outcomes if outcome.status == "unknown"]
    gaps = [gap.as_dict() for each in judged for gap in each.gaps] + _unknown_gaps(unknown)
    answered = sum(outcome.status != "unknown" for outcome in resources)
    return {
        "status": "gaps" if unknown else "closed",
        "required": any(outcome.required for outcome in outcomes),
        "coverage": answered / len(resources) if resources else None,
        "rows": sum(frame.height for frame in frames),
        "quarantined": 0,
        "quarantine": "[]",
        "gaps": canonical_json(gaps),
        "notes": canonical_json(list(notes)),
        "residue": "{}",
        "digest": short_hash("".join(frame.write_json() for frame in frames)),
    }


def _unknown_gaps(unknown: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Unknown outcomes of resources, counted by rule and reason."""
    counts = Counter(
        (outcome.rule, outcome.reason or "error")
        for outcome in unknown
        if outcome.resource is not None
    )
    return [
        Gap(reason, f"{rule}: unknown for {count} resource{'s' if count != 1 else ''}").as_dict()
        for (rule, reason), count in sorted(counts.items())
    ]


def stale_checklists(
    ledger: Ledger, settings: Settings, *, rules: Sequence[Rule] = RULES
) -> list[date]:
    """Attributed days whose checklist is missing, or was asked of other closes than there are now.

    To ask the first of them again may make later ones stale: what a finding was on earlier days
    is part of what is judged.

    Args:
        ledger: The ledger.
        settings: As ``run_checklist``.
        rules: The rules that are asked.

    Returns:
        The days in order.
    """
    rows = _judged_closes(ledger)
    asked = {day: inputs for day, stage, _, _, _, inputs in rows if stage == STAGE}
    attributed = sorted({day for day, stage, *_ in rows if stage == "attribute"})
    return [day for day in attributed if asked.get(day) != _digest_inputs(rows, rules, day)]


def _judged_closes(ledger: Ledger) -> list[_Close]:
    """``day, stage, source, digest, status and reasons, inputs`` of closes, in order."""
    columns = ("day", "stage", "source", "digest", "status", "gaps", "inputs")
    rows = ledger.scan(CLOSES).select(columns).sort("day", "stage", "source").collect()
    return [
        (day, stage, source, digest, _reasons(status, gaps), inputs)
        for day, stage, source, digest, status, gaps, inputs in rows.iter_rows()
    ]


def _reasons(status: str, gaps: str | None) -> list[str]:
    """What a close says of missing evidence, as far as a rule can hear of it."""
    reasons = {gap.get("reason") for gap in json.loads(gaps or "[]")}
    return [status, *sorted(reasons & set(_BLAME))]


def _digest_inputs(rows: Sequence[_Close], rules: Sequence[Rule], day: date) -> str:
    """Digest of what is judged on a day: closes in the rules' window, and earlier checklists."""
    start = day - timedelta(days=max(rule.window_days for rule in rules) - 1)
    seen = [
        (str(at), stage, source, digest, reasons if stage == "collect" else [])
        for at, stage, source, digest, reasons, _ in rows
        if (day - MEMORY <= at < day if stage == STAGE else start <= at <= day)
    ]
    return short_hash(canonical_json(seen))


def _closes_frame(close: Mapping[str, Any]) -> pl.DataFrame:
    row = {"stage": STAGE, "source": SOURCE, "data_through": None, **close}
    return pl.DataFrame([row], schema=CLOSES.schema)
