"""Policies and states from series: the second source of ``resources`` and ``events``.

It tells less than the API: of jobs their state and times, of queues and pools their amounts, and no
policy that no exporter shows. ``docs/resources.md`` has the keys, which are those of the API where
both know them.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus.policies import amounts
from collector.prometheus.policies.events import counts, exits
from collector.prometheus.policies.jobs import jobs, ray_clusters, ray_jobs
from collector.prometheus.samples.lasting import Lasting
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import policy_series as p
from ledger.schema import EVENTS, RESOURCES, Table


@dataclass(frozen=True)
class Policies:
    """Rows of two tables, without ``day``, ``source`` and ``cluster``."""

    resources: pl.DataFrame
    events: pl.DataFrame


def read_policies(reader: Reader) -> Policies | None:
    """What series tell of jobs, queues and autoscalers, and of how containers ended.

    Five queries at most; None where no series speaks of them, or where one of them failed: what an
    earlier run has read must not be replaced by a part.

    Raises:
        AccessError: The source refuses us.
        SourceError: The source cannot be reached.
    """
    ask, window, failed = Lasting(reader), reader.window, len(reader.failures)
    states = ask.last([one for one in p.STATES if one is not p.RESTARTS], [p.RESTARTS])
    moments = ask.moments(p.MOMENTS)
    counted = ask.counted(p.COUNTERS)
    if not (states or moments or counted) or len(reader.failures) > failed:
        return None
    resources = [
        *ray_jobs(moments, states, window),
        *ray_clusters(moments, states),
        *jobs(moments, states, window),
        *amounts.queues(states, counted),
        *amounts.node_pools(states),
        *amounts.autoscaler(states),
    ]
    events = [*exits(states, window), *counts(counted, window)]
    return Policies(
        _rows(resources, RESOURCES, ["kind", "namespace", "name", "uid"]),
        _rows(events, EVENTS, ["id"]),
    )


def _rows(parts: list[pl.DataFrame], table: Table, key: list[str]) -> pl.DataFrame:
    """Parts as one frame in the table's columns, one row per key."""
    schema = {
        name: dtype
        for name, dtype in table.schema.items()
        if name not in ("day", "source", "cluster")
    }
    rows = pl.concat([pl.DataFrame(schema=schema), *parts], how="diagonal_relaxed")
    return (
        rows.select(list(schema))
        .unique(key, keep="first", maintain_order=True)
        .sort(key, nulls_last=True)
    )
