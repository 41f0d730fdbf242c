"""Second stage: who was on which node, what each pod is, and how much it held."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.facts import DayFacts
from attribution.identity import name_pods
from attribution.lives.jobs import Jobs, place, tell_jobs
from attribution.lives.lives import pod_lives, there_spans
from attribution.lives.reservations import tell_tenants
from attribution.nodes import card_groups, claims, nested
from attribution.nodes.devices import add_cards
from attribution.nodes.node_hours import held_amounts
from attribution.nodes.usage import POD, PodUsage, read_usage
from attribution.phases import add_phase
from attribution.shards import Shards, each, ranges
from attribution.stages.evidence import Evidence
from ledger.facts import Gap
from ledger.schema import IDENTITY_KEYS, UNATTRIBUTED
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
class Holders:
    """Pods on nodes.

    Args:
        every: ``lives.pod_lives``, whether their cluster was seen or not.
        lives: Lives while they were seen, with what they hold of cards, and ``who``.
        who: What each pod is (``WHO``), by ``who``.
        lost: ``claims.Claimed.lost``: claims of devices that nobody holds.
        there: ``cluster, node, start, end`` (ms): when each node was there.
        maybe: The same, when it was or may have been.
        nowhere: Jobs of Slurm on nodes that no pod was.
        alone: ``nested.Settled.alone``: jobs that held all cards of their pod.
    """

    every: pl.DataFrame
    lives: pl.DataFrame
    who: pl.DataFrame
    lost: pl.DataFrame
    there: pl.DataFrame
    maybe: pl.DataFrame
    nowhere: tuple[Gap, ...] = ()
    alone: pl.DataFrame | None = None


@dataclass(frozen=True)
class Amounts:
    """What pods held and used; the largest frames of a day.

    Args:
        usage: Usage by pod and slot.
        held: ``node_hours.held_amounts``.
    """

    usage: PodUsage
    held: pl.DataFrame


def find_holders(
    facts: DayFacts, evidence: Evidence, settings: Settings, jobs: Jobs | None = None
) -> Holders:
    """Who was on which node, as far as it was seen.

    Args:
        facts: The day.
        evidence: What was seen of it.
        settings: Identity rules and roles.
        jobs: Jobs of Slurm in pods, which are not among the facts.

    Raises:
        SettingsError: A rule cannot be used.
    """
    every = pod_lives(facts)
    placed = place(jobs, every) if jobs else None
    if placed:
        every = pl.concat([every, placed.lives])
    pods = card_groups.fit(add_cards(evidence.of(every), facts.nodes))
    claimed = claims.add(pods, evidence.of(claims.spans(facts)))
    settled = nested.settle(claimed.lives, placed)
    lives, who = _who(settled.lives, settings)
    there, maybe = there_spans(facts, evidence.up, lives, evidence.seen, evidence.holes)
    nowhere = placed.gaps if placed else ()
    return Holders(every, lives, who, claimed.lost, there, maybe, nowhere, settled.alone)


def measure(facts: DayFacts, holders: Holders, shards: Shards) -> Amounts:
    """What the pods held in each node-hour, some pods at a time.

    Args:
        facts: The day.
        holders: Its pods.
        shards: How many are looked at together.
    """
    told = tell_jobs(tell_tenants(facts.usage, holders.every), holders.alone)
    usage = read_usage(told, _by_place(holders.lives))
    return Amounts(usage, _held(holders.lives, usage, shards))


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
