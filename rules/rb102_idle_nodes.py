"""RB102: nodes that stay paid without work at night and on weekends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import polars as pl

from ledger.schema import CHARGES, COSTS, NODES, RESOURCES, USAGE, WORKLOADS
from ledger.settings import IdleNodes, Settings
from rules import calendar
from rules.calendar import WeeklyWindow
from rules.node_hours import KEY, Hours, node_list, states
from rules.node_money import node_costs
from rules.rb102_findings import ENOUGH_BINS, KNOWN, Judged, findings_of
from rules.rule import Answer, Context, Rule, RuleTables, Severity, Stage, Verdict

_FULL = timedelta(days=14)
_GONE = timedelta(days=7)


@dataclass(frozen=True)
class _Scope:
    """Nodes to judge, and the answers that need no look at their hours."""

    nodes: pl.DataFrame
    answers: tuple[Answer, ...]
    skipped: Mapping[str, str]


class IdleNodesRule(Rule):
    """RB102 gpu.idle-nodes.

    What it asks:
        Do GPU nodes stay paid without work at night and on weekends, with no reclaim policy?

    Evidence:
        Of each GPU node, over two full weeks: the hours in which it was up and billed; the pods
        that held a card on it; the highest activity of all its devices. An hour of the local week
        is idle when in every week seen either no pod held a card or all devices stayed at or below
        the threshold. A single busy sample ends the claim. No samples are never idle: an hour
        counts only with enough samples of every card, or, where no pod held a card, with a sampled
        view of the cluster's pods (an API snapshot alone is blind to pods deleted before it).
        At least 80 % of the night hours and of the weekend hours must be known, or the answer is
        unknown. Clean means that not even the hours that were not seen could hide an idle interval.
        Beside a finding stands what is known of the reclaim policy of its node: Karpenter's
        consolidation and budgets, Cluster Autoscaler's flags, what keeps the node.

    Thresholds:
        night (22:00-08:00), weekend (Sat-Sun) and holidays, local in the settings' timezone; only
        whole local hours inside them count. min_idle_hours (2): idle hours in a row that make an
        interval. min_coverage (0.9): samples seen / expected in an hour. idle_activity (0.01): a
        card at or below it is idle.

    Money:
        Recurring. spent = effective cost of that very node, as it stands in costs, in its idle
        hours, up to the end of the bill. A month is 30 days: the mean of each weekday with bill
        data × 30 / 7, which is spent / days × 30 when each weekday is billed equally often. Idle
        holidays count as spent, not as saving. Hours under a commitment count and are marked.
        Without a bill line and a price the finding stands without money. Node-hours that the bill
        does not have (a node group that scales down) never appear.

    Guardrail:
        Only nodes and times are named, never data. What runs there must have written a checkpoint
        before the node goes; nodes without an interval of idle hours are not touched.

    Remedy:
        A schedule in local time with its zone (kube-downscaler, kube-green), Karpenter
        consolidation with a disruption budget, or Cluster Autoscaler scale-down; printed, never
        run. A node that is idle in every hour of the week, by day as well, needs no schedule:
        remove it, or let its group scale to zero.
    """

    code: ClassVar[str] = "RB102"
    name: ClassVar[str] = "gpu.idle-nodes"
    title: ClassVar[str] = (
        "Do nodes stay paid without work at night and on weekends, with no reclaim policy?"
    )
    severity: ClassVar[Severity] = "high"
    needs = (NODES, WORKLOADS, USAGE, COSTS, CHARGES, RESOURCES)
    window_days: ClassVar[int] = 14
    stage: ClassVar[Stage] = Stage.TIME_SLICES

    def check(self, settings: Settings) -> None:
        """Refuse a night, weekend or zone that has no meaning.

        Raises:
            SettingsError: It names the value.
        """
        calendar.zone_of(settings.timezone)
        for text in (settings.rules.RB102.night, settings.rules.RB102.weekend):
            WeeklyWindow.parse(text)

    def evaluate(self, tables: RuleTables, context: Context) -> Verdict:
        """Judge every GPU node of the window."""
        thresholds = context.settings.rules.RB102
        scope = _scope(node_list(tables), context)
        if scope.nodes.is_empty():
            return Verdict(scope.answers, skipped=scope.skipped)
        hours = _off_hours(thresholds, context)
        costs = node_costs(tables, scope.nodes, hours)
        known = states(tables, scope.nodes, hours, costs.billing(hours).lazy(), thresholds)
        judged = [
            _judge(rows, thresholds, context)
            for rows in known.partition_by(KEY, maintain_order=True)
        ]
        found = [each for each in judged if each.answer.status == "finding"]
        findings = findings_of(self, found, tables, costs, context)
        answers = (*scope.answers, *(each.answer for each in judged))
        return Verdict(
            tuple(sorted(answers, key=lambda a: a.resource or "")), findings, scope.skipped
        )


def _resource(cluster: str, node: str) -> str:
    return f"node/{cluster}/{node}"


def _source(cluster: str) -> str:
    return f"prometheus/{cluster}"


def _scope(nodes: pl.DataFrame, context: Context) -> _Scope:
    """Who is judged: nodes with cards that are still there."""
    answers: list[Answer] = []
    skipped: dict[str, str] = {}
    keep: list[bool] = []
    for node in nodes.iter_rows(named=True):
        resource, source = _resource(node["cluster"], node["node"]), _source(node["cluster"])
        keep.append(False)
        if not node["gpus"] and not node["traces"]:
            skipped[resource] = "no_gpus"
        elif node["last_seen"] is None:
            answers.append(Answer(resource, "unknown", context.why(source, "no_series"), source))
        elif not node["gpus"]:
            answers.append(Answer(resource, "unknown", "capacity_unknown"))
        elif node["last_seen"] <= context.window.end - _GONE:
            skipped[resource] = "gone"
        else:
            keep[-1] = True
    if nodes.is_empty():
        answers.append(_nothing_seen(context))
    return _Scope(nodes.filter(pl.Series(keep, dtype=pl.Boolean)), tuple(answers), skipped)


def _nothing_seen(context: Context) -> Answer:
    """No node in any table: the rule as a whole is unknown, for want of a cluster's series."""
    known = [
        (each.prometheus.required, _source(each.name))
        for each in context.settings.clusters
        if each.prometheus
    ]
    if not known:
        return Answer(None, "unknown", "no_series")
    # A required source comes first, so that its absence shows in the exit code.
    source = max(known, key=lambda pair: pair[0])[1]
    return Answer(None, "unknown", context.why(source, "no_series"), source)


def _off_hours(thresholds: IdleNodes, context: Context) -> Hours:
    """The local hours of the window, and which are night, weekend or holiday."""
    zone = calendar.zone_of(context.settings.timezone)
    local = calendar.local_hours(context.window, zone)
    # Ends are clipped with a margin, so that an hour at the window's end lies inside its night.
    wide = context.window.widened(timedelta(days=1))
    night, weekend = (
        WeeklyWindow.parse(text).intervals(wide, zone)
        for text in (thresholds.night, thresholds.weekend)
    )
    in_night = [calendar.covers(night, hour.span) for hour in local]
    in_weekend = [calendar.covers(weekend, hour.span) for hour in local]
    holiday = [
        hour.day in thresholds.holidays and not (n or w)
        for hour, n, w in zip(local, in_night, in_weekend, strict=True)
    ]
    return Hours.of(
        local, bin=[hour.bin for hour in local], night=in_night, weekend=in_weekend, holiday=holiday
    )


def _judge(rows: pl.DataFrame, thresholds: IdleNodes, context: Context) -> Judged:
    """The answer for one node from the states of its hours."""
    off = rows.filter(pl.col("night") | pl.col("weekend") | pl.col("holiday"))
    bins = _bins(off)
    weekly, holidays = bins.filter(~pl.col("holiday")), bins.filter("holiday")
    idle_runs = _runs(weekly, ["idle"], thresholds.min_idle_hours)
    answer = _answer(rows, weekly, bool(idle_runs), thresholds, context)
    if answer.status != "finding":
        return Judged(answer, rows, weekly)
    recurring = _in_runs(off, idle_runs, holiday=False)
    once = _in_runs(off, _runs(holidays, ["idle"], thresholds.min_idle_hours), holiday=True)
    week = _bins(rows.with_columns(pl.lit(value=False).alias("holiday")))
    always = week.height == calendar.BINS and bool((week["verdict"] == "idle").all())
    return Judged(answer, rows, weekly, recurring | once, recurring, tuple(idle_runs), always)


def _answer(
    rows: pl.DataFrame, weekly: pl.DataFrame, idle: bool, thresholds: IdleNodes, context: Context
) -> Answer:
    """Finding and clean, each with the evidence that it asks for; else unknown."""
    resource = _resource(rows["cluster"][0], rows["node"][0])
    hidden = _runs(weekly, ["idle", "unknown", "early"], thresholds.min_idle_hours)
    enough = context.window.end - context.window.start >= _FULL and all(
        _known_share(weekly.filter(kind)) >= ENOUGH_BINS for kind in ("night", "weekend")
    )
    if not enough or _off_scale(rows) or (hidden and not idle):
        return _unknown(rows, weekly, context)
    return Answer(resource, "finding" if idle else "clean")


def _off_scale(rows: pl.DataFrame) -> bool:
    """Whether an activity above 1 shows that the source speaks in another unit."""
    return bool((rows["peak"] > 1 + 1e-9).any())


def _bins(rows: pl.DataFrame) -> pl.DataFrame:
    """What is known of each hour of the week: busy, early, unknown, idle or off.

    One busy hour decides; one hour that was not seen leaves the rest open; an hour that was off in
    one week is not idle in *every* week.
    """
    any_of = {name: (pl.col("state") == name).any() for name in ("busy", "early", "unknown", "off")}
    verdict = (
        pl.when(any_of["busy"])
        .then(pl.lit("busy"))
        .when(any_of["early"])
        .then(pl.lit("early"))
        .when(any_of["unknown"])
        .then(pl.lit("unknown"))
        .when(any_of["off"])
        .then(pl.lit("off"))
        .otherwise(pl.lit("idle"))
    )
    return (
        rows.group_by("bin", "holiday")
        .agg(verdict.alias("verdict"), pl.col("night", "weekend").any())
        .sort("bin", "holiday")
    )


def _runs(bins: pl.DataFrame, verdicts: Sequence[str], at_least: int) -> list[tuple[int, int]]:
    """Hours of the week in a row whose verdict is one of the given."""
    fitting = set(bins.filter(pl.col("verdict").is_in(verdicts))["bin"].to_list())
    return [run for run in calendar.runs(fitting) if run[1] >= at_least]


def _in_runs(
    rows: pl.DataFrame, runs: Iterable[tuple[int, int]], *, holiday: bool
) -> frozenset[int]:
    """The hours of the window that lie in the runs."""
    bins = {(first + n) % calendar.BINS for first, length in runs for n in range(length)}
    wanted = rows.filter(pl.col("holiday") == holiday, pl.col("bin").is_in(sorted(bins)))
    return frozenset(wanted["hour"].to_list())


def _known_share(bins: pl.DataFrame) -> float:
    """Known hours of the week over those in which the node may have been paid."""
    verdict = pl.col("verdict")
    open_bins = bins.filter(verdict != "off")
    if open_bins.is_empty():
        return 1.0
    return open_bins.filter(verdict.is_in(KNOWN)).height / open_bins.height


def _unknown(rows: pl.DataFrame, bins: pl.DataFrame, context: Context) -> Answer:
    """Why the hours are not known: the history, the whole series, or holes in it."""
    cluster, node = rows["cluster"][0], rows["node"][0]
    resource, source = _resource(cluster, node), _source(cluster)
    early, holes = ((bins["verdict"] == name).sum() for name in ("early", "unknown"))
    if context.window.end - context.window.start < _FULL or early > holes:
        return Answer(resource, "unknown", "short_history")
    if _off_scale(rows):
        return Answer(resource, "unknown", "unit_mismatch", source)
    reason = "low_coverage" if rows["samples"].sum() else "no_series"
    return Answer(resource, "unknown", context.why(source, reason), source)
