"""Findings of RB102: the evidence, the price and the owner of a node's idle hours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from ledger.money import to_units
from ledger.schema import COSTS, NODES
from ledger.window import Window
from rules import calendar
from rules.fingerprint import fingerprint
from rules.node_hours import KEY, METER
from rules.node_money import NodeCosts, money_of
from rules.rb102_remedy import GUARDRAIL, remedy
from rules.reclaim import reclaim_policies
from rules.rule import (
    Answer,
    Claim,
    Context,
    Evidence,
    Finding,
    Rule,
    RuleTables,
)

ENOUGH_BINS = 0.8
"""Share of the night hours and of the weekend hours of the week that must be known."""
KNOWN = ("idle", "busy", "off")
_OWNER = ("experiment", "model_version", "owner")
_NOT_CHECKED = "token, step and power series; processes outside of pods"
_NO_POLICY = "reclaim policy of the node pool; "


@dataclass(frozen=True)
class Judged:
    """A node's answer, and what it rests on.

    Args:
        answer: The answer.
        rows: States of all its hours.
        bins: Verdicts of its off-hours of the week.
        idle: Its wasted hours of the window.
        recurring: Those among them that come back every week.
        runs: Idle hours of the week in a row, as (first, length).
        always: Every hour of the week is idle, by day as well.
    """

    answer: Answer
    rows: pl.DataFrame
    bins: pl.DataFrame
    idle: frozenset[int] = frozenset()
    recurring: frozenset[int] = frozenset()
    runs: tuple[tuple[int, int], ...] = ()
    always: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Cluster and node."""
        return self.rows["cluster"][0], self.rows["node"][0]

    @property
    def wasted(self) -> pl.DataFrame:
        """States of its wasted hours."""
        return self.rows.filter(pl.col("hour").is_in(sorted(self.idle)))

    @property
    def week(self) -> frozenset[int]:
        """Its idle hours of the week."""
        return frozenset(
            (first + n) % calendar.BINS for first, length in self.runs for n in range(length)
        )


def findings_of(
    rule: Rule, judged: Sequence[Judged], tables: RuleTables, costs: NodeCosts, context: Context
) -> tuple[Finding, ...]:
    """One finding per node that is idle."""
    if not judged:
        return ()
    keys = pl.DataFrame([each.key for each in judged], schema=list(KEY), orient="row")
    wasted = pl.concat(each.wasted.select(*KEY, "hour") for each in judged).join(
        costs.hours, on=[*KEY, "hour"]
    )
    rows = _by_node(wasted)
    payers = _by_node(_payers(tables, wasted))
    labels = _labels(tables, keys)
    policies = reclaim_policies(tables, {each.key: labels.get(each.key, {}) for each in judged})
    empty = costs.hours.clear()
    return tuple(
        _finding(
            rule,
            each,
            rows.get(each.key, empty),
            payers.get(each.key),
            labels.get(each.key, {}),
            policies.get(each.key),
            costs,
            context,
        )
        for each in judged
    )


def _by_node(rows: pl.DataFrame) -> dict[tuple[object, ...], pl.DataFrame]:
    return rows.partition_by(KEY, as_dict=True, maintain_order=True)


def _payers(tables: RuleTables, wasted: pl.DataFrame) -> pl.DataFrame:
    """Who was charged for the wasted hours, the largest first: ``cluster, node, experiment, …``."""
    periods = wasted.lazy().select(*KEY, "start", "end").unique()
    return (
        tables[COSTS]
        .join(
            periods,
            left_on=[*KEY, "ChargePeriodStart", "ChargePeriodEnd"],
            right_on=[*KEY, "start", "end"],
            how="semi",
        )
        .group_by(*KEY, *_OWNER)
        .agg(to_units(pl.col("EffectiveCost").fill_null(0)).sum().alias("units"))
        .sort(
            [*KEY, "units", *_OWNER],
            descending=[False, False, True, False, False, False],
            nulls_last=True,
        )
        .collect()
    )


def _labels(tables: RuleTables, keys: pl.DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """The newest labels of each node; original keys before sanitised ones."""
    newest = (
        tables[NODES]
        .filter(pl.col("labels").is_not_null())
        .join(keys.lazy(), on=KEY, how="semi")
        .sort("end", pl.col("interval_seconds").is_null(), "labels")
        .group_by(KEY)
        .agg(pl.col("labels").last())
        .collect()
    )
    return {(cluster, node): _text_values(labels) for cluster, node, labels in newest.iter_rows()}


def _text_values(labels: str) -> dict[str, str]:
    """Labels out of their JSON text; what is no object of texts counts as none."""
    try:
        data = json.loads(labels)
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def _finding(
    rule: Rule,
    judged: Judged,
    rows: pl.DataFrame,
    payers: pl.DataFrame | None,
    labels: Mapping[str, str],
    policy: str | None,
    costs: NodeCosts,
    context: Context,
) -> Finding:
    cluster, node = judged.key
    resource = str(judged.answer.resource)
    basis = costs.basis.get(judged.key)
    days = costs.days.get((cluster, basis), frozenset()) if basis else frozenset()
    zone = context.settings.timezone
    payer = payers.row(0, named=True) if payers is not None and not payers.is_empty() else {}
    intervals = ", ".join(calendar.run_text(*run) for run in judged.runs)
    return Finding(
        rule=rule.code,
        name=rule.name,
        severity=rule.severity,
        fingerprint=fingerprint(rule.code, resource, "idle_hours"),
        resource=resource,
        title=f"{node} is paid and has no work at any hour, not even by day"
        if judged.always
        else f"{node} stays paid without work: {intervals} ({zone})",
        window=context.window,
        money=money_of(rows, judged.recurring, basis, days),
        confidence="medium" if _doubts(judged) else "high",
        evidence=_evidence(judged, intervals, rows, policy, context),
        claims=_claims(judged),
        remedy=remedy(node, judged.week, zone, labels, always=judged.always),
        guardrail=GUARDRAIL,
        experiment=payer.get("experiment"),
        model_version=payer.get("model_version"),
        owner=payer.get("owner"),
    )


def _doubts(judged: Judged) -> str:
    """What was missing: hours of the week, or samples of a card; empty if nothing was."""
    known, every = _known_bins(judged), judged.bins.height
    bare = judged.wasted.filter((pl.col("covered") >= pl.col("gpus")).fill_null(False).not_())
    doubts = [
        f"{every - known} of {every} off-hours of the week are not known" if known < every else "",
        f"in {bare.height} of {judged.wasted.height} idle hours not every card has samples of its "
        "activity, only no pod held one"
        if bare.height
        else "",
    ]
    return "; ".join(filter(None, doubts))


def _known_bins(judged: Judged) -> int:
    return judged.bins.filter(pl.col("verdict").is_in(KNOWN)).height


def _claims(judged: Judged) -> tuple[Claim, ...]:
    cluster, node = judged.key
    spans = judged.wasted.select("hour_start", "hour_end").iter_rows()
    whole = calendar.merged(Window(start, end) for start, end in spans)
    return tuple(Claim(cluster, node, each.start, each.end) for each in whole)


def _hours(milliseconds: int) -> str:
    """Hours as an exact decimal text without trailing zeros."""
    hours = (Decimal(milliseconds) / 3_600_000).quantize(Decimal("0.001"))
    return f"{hours:f}".rstrip("0").rstrip(".")


def _evidence(
    judged: Judged, intervals: str, rows: pl.DataFrame, policy: str | None, context: Context
) -> tuple[Evidence, ...]:
    cluster, _ = judged.key
    thresholds, window = context.settings.rules.RB102, context.window
    off_hours = (
        f"night {thresholds.night}, weekend {thresholds.weekend}, {context.settings.timezone}"
    )
    wasted, all_rows = judged.wasted, judged.rows
    day = pl.col("night") | pl.col("weekend") | pl.col("holiday")
    idle_days = all_rows.filter(~day, pl.col("state") == "idle")
    known = _known_bins(judged)
    activity = _activity(wasted, f"prometheus/{cluster}", thresholds.idle_activity, window)
    unseen = "" if activity else "activity of the cards (no samples: no pod held one); "
    unseen += "" if policy else _NO_POLICY
    found = [
        *activity,
        Evidence(
            "idle_hours",
            "ledger/nodes",
            window,
            _hours(int(wasted["up"].sum())),
            thresholds.min_idle_hours,
        ),
        Evidence("idle_intervals", "ledger/nodes", window, intervals, off_hours),
        Evidence(
            "gpu_pods_held_hours", "ledger/workloads", window, _hours(int(wasted["held"].sum()))
        ),
        Evidence(
            "hours_of_week_known",
            "ledger/usage",
            window,
            round(known / judged.bins.height, 4),
            ENOUGH_BINS,
            known,
            judged.bins.height,
        ),
        Evidence(
            "idle_hours_by_day_not_counted",
            "ledger/nodes",
            window,
            _hours(int(idle_days["up"].sum())),
        ),
        Evidence("not_checked", "runbill", window, unseen + _NOT_CHECKED),
    ]
    if policy:
        found.append(Evidence("reclaim_policy", "ledger/resources", window, policy))
    if doubts := _doubts(judged):
        found.append(Evidence("why_confidence_is_medium", "runbill", window, doubts))
    if rows["committed"].any():
        found.append(Evidence("realisable", "ledger/charges", window, "after_commitment"))
    return tuple(found)


def _activity(
    wasted: pl.DataFrame, source: str, threshold: float, window: Window
) -> tuple[Evidence, ...]:
    """The highest activity of any card in the wasted hours; nothing if there are no samples."""
    peak = wasted["peak"].max()
    if not isinstance(peak, float):
        return ()
    samples, expected = int(wasted["samples"].sum()), int(wasted["expected"].sum())
    return (Evidence(METER, source, window, peak, threshold, samples, expected),)
