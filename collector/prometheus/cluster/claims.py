"""Claims of devices (dynamic resource allocation): series tell only that there are some."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from collector.gaps import about
from collector.prometheus.samples.names import with_uid
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s
from ledger.facts import Gap


def unread_claims(reader: Reader, lives: pl.DataFrame) -> Iterator[Gap]:
    """The gap of pods whose claims nobody reads: which devices they hold is not known.

    Args:
        reader: Where the series is read.
        lives: ``uid``, ``namespace``, ``pod``, ``start``, ``end`` of pods.
    """
    read = reader.read_steps(s.POD_CLAIMS)
    if read is None:
        return
    inside = (pl.col("start") < reader.window.end) & (pl.col("end") > reader.window.start)
    alive = lives.filter(inside).select("uid", "namespace", "pod").unique()
    holders = alive.join(with_uid(read, alive), on="uid", how="semi")
    names = holders.select(name=pl.format("{}/{}", "namespace", "pod"))["name"].unique().sort()
    yield from about(
        "claims_unread",
        "pods hold devices by a resource claim; which ones only the Kubernetes API tells",
        names.to_list(),
    )
