"""Which node a card sits in, and which pod holds it, as its labels say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from collector.prometheus.cluster.nodes import Nodes
from collector.prometheus.samples.clean import Cleaned


@dataclass(frozen=True)
class Placed:
    """A series of cards.

    Args:
        cleaned: Its samples.
        placed: Its meanings, of ``place``.
    """

    cleaned: Cleaned
    placed: pl.DataFrame

    def only(self, which: pl.Expr) -> Placed:
        """The series of those meanings alone."""
        placed = self.placed.filter(which)
        if placed.height == self.placed.height:
            return self
        samples = self.cleaned.samples.join(
            placed.select("meaning"), on="meaning", how="semi", maintain_order="left"
        )
        return Placed(replace(self.cleaned, samples=samples), placed)


def place(frame: pl.DataFrame, nodes: Nodes | None) -> pl.DataFrame:
    """Add ``node``, ``card``, ``device`` (a card, or its MIG device) and the tenant.

    The host name may be the node's, its fully qualified name, or the exporter pod's, and a machine
    may bear the id that its node has from the provider: the first that is a known node wins. The
    tenant is not the exporter itself.

    Args:
        frame: With the columns of a series of cards.
        nodes: Nodes, if any are known.
    """
    known = [] if nodes is None else nodes.names.to_list()
    machines = {} if nodes is None else dict(nodes.machines.iter_rows())
    bare = pl.col("host").str.split(".").list.first()
    candidates = [
        pl.when(name.is_in(known)).then(name) for name in (pl.col("host"), bare, pl.col("place"))
    ]
    exporter = pl.any_horizontal(
        pl.col(name)
        .str.contains("(?i)dcgm|metrics-exporter|neuron-monitor|^exporter$")
        .fill_null(value=False)
        for name in ("pod", "container")
    )
    machine = pl.col("machine").replace_strict(machines, default=None, return_dtype=pl.String)
    return frame.with_columns(
        node=pl.coalesce(*candidates, machine, "host", "place"),
        card="device",
        device=pl.concat_str("device", "instance", separator="/", ignore_nulls=True),
        namespace=pl.when(~exporter).then("namespace"),
        pod=pl.when(~exporter).then("pod"),
    )
