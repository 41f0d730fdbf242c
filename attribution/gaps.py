"""What a day's attribution could not see, named with its hours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from attribution.facts import DayFacts
from attribution.identity import ambiguous_labels
from attribution.lives.evidence import NO_PODS, SNAPSHOT_ONLY
from attribution.node_sums import sum_nodes
from attribution.nodes.devices import CARD
from attribution.nodes.methods import CPU, GPU, MEMORY, capacity
from attribution.ratio import HOUR, KIB_PER_GIB
from ledger.facts import Gap
from ledger.settings import Settings
from ledger.text import counted

_UNIT = {
    "cards": (GPU, CARD, "gpu_hours"),
    "cpu": (CPU, 1000, "core_hours"),
    "memory": (MEMORY, KIB_PER_GIB, "gib_hours"),
}


def find(
    facts: DayFacts,
    settings: Settings,
    hours: pl.DataFrame,
    lives: pl.DataFrame,
    held: pl.DataFrame,
    seen: pl.DataFrame,
) -> tuple[Gap, ...]:
    """All gaps of a day's evidence; those of its bill are in ``bill.gaps``.

    Args:
        facts: The day.
        settings: The identity rules.
        hours: ``methods.classify``.
        lives: Pod lives, whether their cluster was seen or not.
        held: Lives while they were seen, with what they hold of cards; claims of devices, too.
        seen: When each cluster was seen.
    """
    return (
        *_unseen(facts, hours, seen),
        *_no_pods(hours),
        *_unknown_requests(hours),
        *_unknown_capacity(hours),
        *_unknown_parts(hours),
        *_strangers(facts, held),
        *_over_commit(hours),
        *ambiguous_labels(lives, settings),
    )


def coverage(hours: pl.DataFrame) -> float | None:
    """Part of the paid node time in which the cluster, and who held it, was seen."""
    dark = pl.when(_unread()).then("paid").otherwise("unseen")
    paid, unseen = hours.select(pl.col("paid").sum(), dark.sum().alias("unseen")).row(0)
    return 1 - unseen / paid if paid else None


def _unread() -> pl.Expr:
    """Whether nobody looked for pods, or a request that the hour needs is not known."""
    return pl.col("blind").is_not_null() | (pl.col("whole") == "no_samples").fill_null(value=False)


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, tz=UTC).strftime("%H:%M:%S")


def _holes(facts: DayFacts, seen: pl.DataFrame, cluster: str) -> str:
    """The times of the day in which a cluster was not seen."""
    rows = seen.filter(pl.col("cluster") == cluster).sort("start")
    edges = [
        facts.start,
        *(t for row in rows.select("start", "end").iter_rows() for t in row),
        facts.end,
    ]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return ", ".join(
        f"{_clock(a)}-{'24:00:00' if b == facts.end else _clock(b)}" for a, b in pairs if a < b
    )


def _unseen(facts: DayFacts, hours: pl.DataFrame, seen: pl.DataFrame) -> Iterator[Gap]:
    dark = pl.min_horizontal("dark", "unseen")
    for unseen, alone in ((pl.col("unseen") - dark, False), (dark, True)):
        rows = sum_nodes(hours.filter((unseen > 0) & ~_unread()), ["cluster"], unseen)
        for cluster, nodes, first, node_hours, gpu_hours in rows.iter_rows():
            what = (
                f"{counted(nodes, 'node')} not seen, or who was there, while others were, "
                f"e.g. {first}"
                if alone
                else f"nothing seen {_holes(facts, seen, cluster)}"
            )
            amounts = {"node_hours": node_hours, "gpu_hours": gpu_hours}
            yield Gap("no_samples", f"{cluster}: {what}", amounts)


_BLIND = {
    NO_PODS: "nodes are seen and no pod is; what the API does not name is unattributed",
    SNAPSHOT_ONLY: "Prometheus wrote nothing of the day; pods deleted before the snapshot of the "
    "API are not seen",
}


def _no_pods(hours: pl.DataFrame) -> Iterator[Gap]:
    """Clusters whose free capacity is not known to be free."""
    free = (capacity(GPU).fill_null(0) * pl.col("paid") - pl.col("held_cards")).clip(0) / CARD
    rows = (
        hours.filter(pl.col("blind").is_not_null() & (pl.col("paid") > 0))
        .group_by("cluster", "blind")
        .agg((pl.col("paid").sum() / HOUR).alias("node_hours"), (free.sum() / HOUR).alias("cards"))
        .sort("cluster")
    )
    for cluster, blind, node_hours, cards in rows.iter_rows():
        amounts = {"node_hours": node_hours, "gpu_hours": cards}
        yield Gap(blind, f"{cluster}: {_BLIND[blind]}", amounts)


def _unknown_requests(hours: pl.DataFrame) -> Iterator[Gap]:
    """Nodes with a pod of which nobody knows what it asked for."""
    rows = sum_nodes(hours.filter(whole="no_samples"), ["cluster"], pl.col("paid"))
    for cluster, nodes, first, node_hours, gpu_hours in rows.iter_rows():
        yield Gap(
            "no_samples",
            f"{cluster}: the requests of pods on {nodes} nodes are not known, e.g. {first}",
            {"node_hours": node_hours, "gpu_hours": gpu_hours},
        )


def _unknown_capacity(hours: pl.DataFrame) -> Iterator[Gap]:
    unsaid = hours.filter(pl.col("unsized").is_null(), whole="capacity_unknown")
    held = (pl.col("held_cards").sum() / CARD / HOUR).alias("held_hours")
    rows = sum_nodes(unsaid, ["cluster"], pl.col("paid"), held).drop("gpu_hours")
    for cluster, nodes, first, node_hours, gpu_hours in rows.iter_rows():
        yield Gap(
            "capacity_unknown",
            f"{cluster}: {nodes} nodes do not say their cards, CPU or memory, e.g. {first}",
            {"node_hours": node_hours, "gpu_hours": gpu_hours},
        )


def _unknown_parts(hours: pl.DataFrame) -> Iterator[Gap]:
    """Nodes with a pod that holds something of which nobody knows what it is of a card."""
    unsized = hours.filter(pl.col("unsized").is_not_null()).with_columns(
        pl.col("gpu_model").fill_null("a card without a name")
    )
    rows = sum_nodes(unsized, ["cluster", "unsized", "gpu_model"], pl.col("paid"))
    for cluster, what, card, nodes, first, node_hours, gpu_hours in rows.iter_rows():
        yield Gap(
            "capacity_unknown",
            f"{cluster}: what {what} is of {card} is not known, on {nodes} nodes, e.g. {first}",
            {"node_hours": node_hours, "gpu_hours": gpu_hours},
        )


def _strangers(facts: DayFacts, held: pl.DataFrame) -> Iterator[Gap]:
    """Pods and claims on nodes that no source described."""
    known = facts.nodes.select("cluster", "node").unique()
    # What a part is of a card only the node says; a request counts as it stands.
    cards = pl.coalesce("cards", pl.col("gpus") * CARD).fill_null(0).cast(pl.Float64) / CARD
    rows = (
        held.filter(pl.col("node").is_not_null())
        .join(known, on=["cluster", "node"], how="anti")
        .group_by("cluster")
        .agg(
            pl.col("node").n_unique().alias("nodes"),
            pl.col("node").min().alias("first"),
            (cards * (pl.col("end") - pl.col("start"))).sum().alias("ms"),
        )
        .select("cluster", "nodes", "first", (pl.col("ms") / HOUR).round(6).alias("gpu_hours"))
        .sort("cluster")
    )
    for cluster, nodes, first, gpu_hours in rows.iter_rows():
        yield Gap(
            "unknown_node",
            f"{cluster}: pods on {nodes} nodes that no source describes, e.g. {first}",
            {"gpu_hours": gpu_hours},
        )


def _over_commit(hours: pl.DataFrame) -> Iterator[Gap]:
    """Claims above capacity: everyone's share shrinks alike, the excess is named."""
    for held, (pool, per, amount) in _UNIT.items():
        split = (
            pl.col("carded")
            if held == "cards"
            else (~pl.col("carded") | (pl.col("method") != "gpu-first"))
        )
        excess = pl.col(f"held_{held}") - capacity(pool) * (pl.col("paid") - pl.col("unseen"))
        rows = (
            hours.filter(split & pl.col("whole").is_null() & (excess > 0))
            .group_by("cluster")
            .agg(
                pl.col("node").n_unique().alias("nodes"),
                pl.col("node").min().alias("first"),
                (excess.sum() / per / HOUR).alias(amount),
            )
            .sort("cluster")
        )
        for cluster, nodes, first, much in rows.iter_rows():
            yield Gap(
                "over_commit",
                f"{cluster}: {nodes} nodes hold more {held} than they have, e.g. {first}",
                {amount: much},
            )
