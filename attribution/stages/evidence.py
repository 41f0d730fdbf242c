"""First stage: what the sources of a day saw, and what they did not."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.facts import DayFacts
from attribution.lives.evidence import dark_spans, seen_spans, weigh_clusters, while_seen
from attribution.lives.lives import node_holes, node_spans, sampled_pod_spans
from ledger.settings import Settings


@dataclass(frozen=True)
class Evidence:
    """When clusters and nodes were seen; all times in milliseconds.

    Args:
        clusters: ``evidence.weigh_clusters``: ``cluster, snapshot, blind``.
        up: ``lives.node_spans``: ``cluster, node, sampled, start, end``.
        seen: ``evidence.seen_spans``: ``cluster, start, end``.
        holes: ``lives.node_holes``: ``cluster, node, start, end``.
        dark: ``evidence.dark_spans``: ``cluster, node, start, end``.
    """

    clusters: pl.DataFrame
    up: pl.DataFrame
    seen: pl.DataFrame
    holes: pl.DataFrame
    dark: pl.DataFrame

    def of(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The parts of intervals of ``cluster, node`` that were seen."""
        return while_seen(spans, self.seen, self.dark)


def gather(facts: DayFacts, settings: Settings) -> Evidence:
    """The evidence of a day.

    Args:
        facts: The day.
        settings: Which clusters should have samples.
    """
    up = node_spans(facts)
    seen, holes = seen_spans(up, sampled_pod_spans(facts)), node_holes(facts)
    dark = dark_spans(facts, seen, holes)
    return Evidence(weigh_clusters(facts, settings), up, seen, holes, dark)
