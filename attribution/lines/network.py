"""Traffic: lines for transfer, NAT gateways and load balancers fall to pods by their bytes.

Each class of traffic (cross-zone, internet, NAT) has its own lines and price in the bill, so what
is split is what the bill says, never a price of ours. Counters know bytes and no classes: every
line splits by all bytes that its pods sent (or received), with low confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.bill.line_words import inbound, is_network, with_words
from attribution.facts import DayFacts
from attribution.identity import first_hit, line_rule
from attribution.lines.parts import Found, in_steps, moments, parts_of, unattributed, weights
from attribution.ratio import milliseconds
from ledger.settings import Settings

SLOT = 900_000
"""Length of a slot of ``usage``, ms."""

_METERS = (
    "cluster",
    "uid",
    "namespace",
    "pod",
    "meter",
    "slot",
    "mean",
    "samples",
    "expected",
)
_LACK = "counted bytes of pods"
_CLUSTER_TAGS = (
    "aws:eks:cluster-name",
    "eks:cluster-name",
    "goog-k8s-cluster-name",
    "alpha.eksctl.io/cluster-name",
    "KubernetesCluster",
)
_OWNED = r'"(?:user:)?kubernetes\.io/cluster/([^"]+)":'


def place_network(
    lines: pl.DataFrame, lives: pl.DataFrame, facts: DayFacts, settings: Settings
) -> Found:
    """Parts of the lines for traffic that no rule names an experiment for.

    A line belongs to the cluster that its tags name, else to the only one of the day. Its pods
    share it by the bytes that they sent in its period, or received if it pays for what came in. A
    pod that no source shows alive is ``__unattributed__``/``no_samples``.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        lives: Pod lives with ``who``.
        facts: The day; meters of host-network pods are not in it.
        settings: The identity rules.
    """
    traffic = with_words(lines).filter(is_network().fill_null(value=False))
    if traffic.is_empty():
        return Found()
    rows = facts.usage.lazy().filter(
        pl.col("meter").is_in(["network_transmit", "network_receive"])
        & pl.col("uid").is_not_null()
        & (pl.col("mean") > 0)
    )
    meters = rows.select(_METERS).collect(engine="streaming")
    if meters.is_empty():
        return Found()
    mine = _of_cluster(_nameless(traffic, settings), facts)
    seen = _bytes(meters, lives)
    both = (
        in_steps(mine, SLOT)
        .join(
            seen.slots, left_on=["cluster", "meter", "step"], right_on=["cluster", "meter", "slot"]
        )
        .select(
            "line",
            "number",
            "who",
            "bytes",
            pl.max_horizontal("start", "step").alias("from"),
            pl.min_horizontal("end", pl.col("step") + SLOT).alias("until"),
        )
    )
    sums = (
        both.group_by("line", "number", "who")
        .agg(
            pl.col("bytes").cast(pl.Int128).sum().alias("amount"),
            pl.col("from").min(),
            pl.col("until").max(),
        )
        .join(seen.pods, on="number")
    )
    told = sums.with_columns(
        weights("amount").alias("weight"),
        pl.when(pl.col("who").is_null()).then(pl.lit("no_samples")).alias("reason"),
        *unattributed(),
    )
    lacking = mine.join(sums, on="line", how="anti").select("line", pl.lit(_LACK).alias("lack"))
    return Found(parts_of(told, resource="network", confidence="low"), lacking.sort("line"))


def _nameless(lines: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """The lines that no rule names an experiment for, but one that names everything."""
    rules = [rule for rule in settings.identity.experiment if not rule.startswith("default:")]
    return lines.filter(first_hit(rules, line_rule("experiment")).is_null())


def _of_cluster(lines: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """``line, start, end, cluster, meter`` of the lines whose cluster is known."""
    frames = (frame.lazy() for frame in (facts.nodes, facts.workloads, facts.usage))
    clusters = pl.concat(frame.select("cluster").unique() for frame in frames)
    known = clusters.unique().drop_nulls().collect()["cluster"]
    tags = (
        pl.col("Tags").str.json_path_match(f"$['{prefix}{name}']")
        for name in _CLUSTER_TAGS
        for prefix in ("", "user:")
    )
    tagged = pl.coalesce(*tags, pl.col("Tags").str.extract(_OWNED))
    only = pl.lit(known[0] if len(known) == 1 else None, dtype=pl.String)
    received = inbound().fill_null(value=False)
    return lines.select(
        "line",
        "start",
        "end",
        pl.coalesce(tagged, only).alias("cluster"),
        pl.when(received)
        .then(pl.lit("network_receive"))
        .otherwise(pl.lit("network_transmit"))
        .alias("meter"),
    ).filter(pl.col("cluster").is_in(known.implode()))


@dataclass(frozen=True)
class _Bytes:
    """What pods sent and received.

    Args:
        slots: ``number, cluster, meter, slot, bytes, who``.
        pods: ``number, cluster, uid, namespace, pod``.
    """

    slots: pl.DataFrame
    pods: pl.DataFrame


def _bytes(meters: pl.DataFrame, lives: pl.DataFrame) -> _Bytes:
    """The bytes of each pod and slot; a slot counts for the part of it that was sampled."""
    part = (pl.col("samples") / pl.col("expected")).clip(0, 1)
    part = pl.when(part.is_finite()).then(part).otherwise(1.0)
    amount = pl.col("mean") * (SLOT / 1000) * part
    pod = ["cluster", "uid"]
    pods = (
        meters.group_by(pod)
        .agg(pl.col("namespace").min(), pl.col("pod").min())
        .sort(pod)
        .with_row_index("number")
    )
    rows = (
        meters.join(pods.select("number", *pod), on=pod)
        .select(
            "number",
            "cluster",
            "meter",
            (milliseconds("slot") // SLOT * SLOT).alias("slot"),
            amount.clip(0, 2**53).alias("bytes"),
        )
        .filter(pl.col("bytes").is_finite())
        .group_by("number", "cluster", "meter", "slot")
        .agg(pl.col("bytes").max().round(0).cast(pl.Int64))
        .with_row_index("moment")
    )
    spans = rows.select("moment", "number", start="slot", end=pl.col("slot") + SLOT)
    known = lives.join(pods.select("number", *pod), on=pod)
    who = moments(spans, known, ["number"])
    return _Bytes(rows.join(who, on="moment", how="left").drop("moment"), pods)
