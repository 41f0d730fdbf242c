"""What an agent knows now, and what it wrote before: one state of a day's rows.

An agent drops from memory what has ended and is written. Its rows stay, until it knows better.
"""

from __future__ import annotations

import polars as pl

from collector.agent.state import Watch
from ledger import schema
from ledger.facts import Facts

TABLES = (schema.WORKLOADS, schema.NODES, schema.EVENTS, schema.RESOURCES)


def merge(watch: Watch, facts: Facts, earlier: dict[str, pl.LazyFrame]) -> dict[str, pl.DataFrame]:
    """The rows of a day.

    Args:
        watch: What is in memory.
        facts: Its rows of that day.
        earlier: Rows of that day as they were written, by table, without their source.

    Returns:
        The rows to replace them by.
    """
    found = dict(facts.tables)
    pods = pl.LazyFrame({"uid": sorted(watch.pods.known)}, schema={"uid": pl.String})
    nodes = [(node.facts[-1][1]["node"], node.created) for node in watch.nodes.known.values()]
    known = pl.LazyFrame(nodes, schema={"node": pl.String, "created": schema.TIME}, orient="row")
    for name, ours in ((schema.WORKLOADS.name, pods), (schema.NODES.name, known)):
        if name in earlier:
            same = ours.collect_schema().names()
            rest = earlier[name].join(ours, on=same, how="anti", nulls_equal=True).collect()
            found[name] = pl.concat([rest.select(found[name].columns), found[name]])
    if schema.EVENTS.name in earlier:
        found[schema.EVENTS.name] = _events(
            earlier[schema.EVENTS.name].collect(), found[schema.EVENTS.name]
        )
    return found


def _events(before: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """One row per thing that happened: its last telling, its first time, its highest count."""
    key = list(schema.EVENTS.key)
    both = pl.concat([before.select(now.columns), now]).sort(*key, "time", maintain_order=True)
    rest = [name for name in now.columns if name not in (*key, "first_time", "count")]
    return (
        both.group_by(key, maintain_order=True)
        .agg(
            *(pl.col(name).drop_nulls().last() for name in rest),
            pl.col("first_time").min(),
            pl.col("count").max(),
        )
        .select(now.columns)
    )
