"""Attribution of one day: a pure function from facts and settings to costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from attribution import gaps, notes, rows
from attribution.bill.laid_over import LaidOver, lay_over
from attribution.bill.match import bill_lines, match_lines, node_ids
from attribution.bill.paying import (
    compute_lines,
    covered_hours,
    machine_lines,
    may_double,
    may_pay_all,
    named_part,
    paid_time,
)
from attribution.facts import DayFacts
from attribution.identity import name_pods
from attribution.lines import credits
from attribution.lines.place import place
from attribution.lives import claims
from attribution.lives.evidence import dark_spans, darken, seen_spans, weigh_clusters, while_seen
from attribution.lives.lives import (
    node_holes,
    node_spans,
    pod_lives,
    sampled_pod_spans,
    there_spans,
)
from attribution.lives.names import meet_by_name
from attribution.lives.reservations import tell_tenants
from attribution.nodes import aws_splits, contradictions
from attribution.nodes.devices import add_cards
from attribution.nodes.methods import classify
from attribution.nodes.node_hours import NODE_HOUR, held_amounts, node_hours, up_hours
from attribution.nodes.pools import Rates
from attribution.nodes.usage import POD, PodUsage, read_usage
from attribution.phases import add_phase
from attribution.prices import steps as price_steps
from attribution.prices.against_bill import currencies, foreign_prices, rescaled
from attribution.prices.estimate import estimate
from attribution.prices.quote import quote
from attribution.prices.volumes import estimate_volumes
from attribution.shards import SHARDS, Shards, each, ranges
from attribution.split import hour_parts, weigh_pools
from ledger.facts import Gap
from ledger.schema import COST_COLUMNS, COSTS, IDENTITY_KEYS, UNATTRIBUTED
from ledger.settings import Settings

WHO = (
    "cluster",
    "uid",
    "namespace",
    "pod",
    "root_kind",
    "root_name",
    "annotations",
    "reason",
    *IDENTITY_KEYS,
    "labels",
    "confidence",
)


@dataclass(frozen=True)
class DayCosts:
    """A day's books.

    Args:
        costs: Rows of ``costs``.
        daily: Rows of ``costs_daily``.
        gaps: What could not be attributed, with hours.
        coverage: Part of the paid node time in which the cluster was seen; None without nodes.
        notes: What a reader should know and cannot change.
        rows: How many rows of ``costs`` there are.
    """

    costs: pl.DataFrame
    daily: pl.DataFrame
    gaps: tuple[Gap, ...]
    coverage: float | None
    notes: tuple[str, ...] = ()
    rows: int = 0


def attribute_day(facts: DayFacts, settings: Settings, shards: Shards = SHARDS) -> DayCosts:
    """``close_day`` with all rows in memory."""
    kept: list[pl.DataFrame] = []
    books = close_day(facts, settings, kept.append, shards)
    return replace(books, costs=pl.concat(kept))


def close_day(
    facts: DayFacts,
    settings: Settings,
    sink: Callable[[pl.DataFrame], object],
    shards: Shards = SHARDS,
) -> DayCosts:
    """Give every charge of a day to somebody.

    What is small (nodes, lives, lines and their hours) is worked out for the whole day; usage and
    shares in parts (``shards``), whose rows do not depend on where the day is cut.

    Args:
        facts: The day.
        settings: Identity rules, roles, node pools, prices.
        sink: Takes the rows of ``costs``, part by part, at least one. They balance only once this
            function has returned.
        shards: How large the parts are.

    Returns:
        The books without the rows of ``costs``.

    Raises:
        ReconcileError: Shares do not add up to their charge.
        SettingsError: A rule cannot be used.
    """
    facts = meet_by_name(facts)
    up = node_spans(facts)
    clusters = weigh_clusters(facts, settings)
    seen = seen_spans(up, sampled_pod_spans(facts))
    holes = node_holes(facts)
    unwatched = dark_spans(facts, seen, holes)
    every_life = pod_lives(facts)
    pods = add_cards(while_seen(every_life, seen, unwatched), facts.nodes)
    held_claims = claims.add(pods, while_seen(claims.spans(facts), seen, unwatched))
    lives, who = _who(held_claims.lives, settings)
    there, maybe = there_spans(facts, up, lives, seen, holes)
    usage = read_usage(tell_tenants(facts.usage, every_life), _by_place(lives))
    held = _held(lives, usage, shards)
    billed = bill_lines(facts.charges, facts.start, facts.end)
    disks = estimate_volumes(billed, facts)
    lines = pl.concat([billed, disks.lines])
    paying, ids = _splittable(lines), node_ids(facts.nodes)
    line_hours = match_lines(paying, ids, maybe)
    covered = covered_hours(paying, ids)
    keys = _keys(up_hours(there, seen), paying, line_hours, covered)
    hours = darken(node_hours(facts.nodes, keys, seen, clusters, settings), unwatched)
    held = held.join(hours.select("nh", *NODE_HOUR), on=list(NODE_HOUR))
    open_hours = hours.join(covered, on=list(NODE_HOUR), how="anti")
    compute = compute_lines(
        paying.select("line", "ChargeCategory", "ServiceCategory", *COST_COLUMNS)
    )
    unmet = machine_lines(paying.join(line_hours, on="line", how="anti"))
    doubtful = may_double(open_hours, unmet)
    quotes = quote(hours, there, facts.prices, settings.currency)
    made = estimate(open_hours.join(doubtful, on="nh", how="anti"), quotes)
    dark = open_hours.join(doubtful, on="nh", how="semi").filter(pl.col("up") > 0)
    laid = lay_over(may_pay_all(unmet, dark), dark, quotes, settings)
    paid_hours = hours.join(covered, on=list(NODE_HOUR), how="semi")
    bills = currencies(paying, line_hours, paid_hours, unmet, dark)
    foreign = foreign_prices(quotes, hours, bills)
    times = price_steps.Times(there, while_seen(there, seen, unwatched), lives, usage)
    hours, held, estimated = price_steps.cut(hours, held, made.lines, made.steps, times)
    hours = classify(hours, held)
    split_told = aws_splits.read(facts.pod_splits, ids, lives, hours)
    hours = split_told.split_whole(hours)
    every, numbered = _all_lines(lines, line_hours, hours, estimated, laid)
    rates = Rates.of(settings)
    parts = credits.over_nodes(every, hour_parts(every, numbered), hours, settings)
    loose = lines.join(parts.select("line").unique(), on="line", how="anti")
    parts, rest = laid.apart(parts, every)
    loose = pl.concat([loose, rest.select(lines.columns)])
    others = place(loose, lives, who, facts, settings)
    weights, split_told = split_told.over(weigh_pools(parts, hours, rates), parts, hours)
    work = rows.Day(every, hours, held, who, weights, rates, split_told)
    found = (
        *gaps.find(facts, settings, hours, every_life, seen),
        *gaps.unmatched(hours, line_hours, compute),
        *gaps.withheld(dark.join(laid.nodes, on="nh", how="anti")),
        *foreign,
        *disks.gaps,
        *others.gaps,
        *claims.gaps(held_claims.lost),
        *contradictions.find(lives, usage, facts.usage, hours),
    )
    del usage, times  # the largest of all, and not needed any more
    sums = rows.write(work, parts, others.rows, sink, shards)
    told = (
        *notes.snapshots(clusters),
        *notes.doubts(sums.doubts),
        *notes.built_in_rates(made.by_size, settings),
        *laid.notes,
        *rescaled(quotes, paid_hours, parts),
        *sums.foreign,
        *disks.notes,
        *others.notes,
    )
    return DayCosts(
        COSTS.empty(), sums.daily, (*found, *made.gaps), gaps.coverage(hours), told, sums.rows
    )


def _by_place(lives: pl.DataFrame) -> pl.DataFrame:
    """Number the pods (``id``) so that those of a node are beside each other."""
    places = lives.group_by(POD).agg(pl.col("node").min())
    return places.sort("cluster", "node", "uid").select(POD).with_row_index("id")


def _held(lives: pl.DataFrame, usage: PodUsage, shards: Shards) -> pl.DataFrame:
    """``held_amounts``, for some pods at a time."""
    rows = usage.rows.group_by("id").agg(pl.len().cast(pl.Int64).alias("rows"))
    weights = usage.pods.join(rows, on="id", how="left", maintain_order="left")["rows"]
    numbered = lives.join(usage.pods, on=list(POD), how="left", maintain_order="left")

    def held(some: tuple[int, int]) -> pl.DataFrame:
        inside = pl.col("id").is_between(*some, closed="left")
        return held_amounts(numbered.filter(inside).drop("id"), usage.part(*some))

    parts = ranges(weights.fill_null(0) + 1, shards.slots)
    return pl.concat(each(held, parts or [(0, 0)], shards.threads))


def _splittable(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines that may pay for a node: not the part of a commitment that nobody used."""
    used = (lines["CommitmentDiscountStatus"] != "Unused").fill_null(True)
    return lines if used.all() else lines.filter(used)  # wide: no copy without need


def _who(lives: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the pods by uid and start; a pod whose labels or phase change is several.

    Returns:
        The lives with ``who``, and the table of ``WHO`` by that number.
    """
    named = add_phase(name_pods(lives, settings), settings)
    nameless = pl.col("experiment").is_null()
    named = named.with_columns(
        pl.when(nameless).then(pl.lit("no_rule")).alias("reason"),
        *(pl.col(key).fill_null(UNATTRIBUTED) for key in IDENTITY_KEYS),
    ).sort("uid", "cluster", "start")
    who = named.select(WHO).unique(maintain_order=True, keep="first").with_row_index("who")
    return named.join(who, on=list(WHO), nulls_equal=True), who


def _all_lines(
    lines: pl.DataFrame,
    line_hours: pl.DataFrame,
    hours: pl.DataFrame,
    made: pl.DataFrame,
    laid: LaidOver,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines of the bill and the estimated ones, and ``line, nh, hour, ms`` of both."""
    made = made.with_row_index("line", offset=lines.height)
    numbered = line_hours.join(hours.select("nh", *NODE_HOUR, "up"), on=list(NODE_HOUR))
    # Only hours without a paying line are cut, by the steps of their price.
    hour = ["line", *NODE_HOUR]
    part = (
        pl.col("ms") * pl.col("up") // pl.max_horizontal(pl.col("up").sum().over(hour), 1)
    ).clip(1)
    cut = pl.len().over(hour) > 1
    numbered = numbered.with_columns(pl.when(cut).then(part).otherwise("ms").alias("ms"))
    estimated = made.select("line", "nh", hour="start", ms="length")
    return (
        pl.concat([laid.marked(lines), made.select(lines.columns)]),
        pl.concat([numbered.select(estimated.columns), estimated, laid.parts]),
    )


def _keys(
    up: pl.DataFrame, lines: pl.DataFrame, line_hours: pl.DataFrame, covered: pl.DataFrame
) -> pl.DataFrame:
    """Every hour in which a node was up (a held one is) or paid, with the time that is paid for.

    The price of an hour that no line covers is that of the time in which the node was up.
    """
    key = list(NODE_HOUR)
    keys = pl.concat([frame.select(key) for frame in (up, line_hours)]).unique()
    return (
        keys.join(up, on=key, how="left")
        .join(paid_time(lines, line_hours), on=key, how="left")
        .join(covered.with_columns(covered=True), on=key, how="left")
        .join(named_part(line_hours), on=key, how="left")
        .with_columns(
            pl.when("covered").then(pl.coalesce("paid", "part")).otherwise(0).alias("paid")
        )
        .drop("covered", "part")
    )
