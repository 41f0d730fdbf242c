"""Meters of pods: cores, memory, bytes; per pod and quarter of an hour, from cleaned samples.

Kept of each slot is the mean, and what tells whether use crosses the request: the least and the
most. Of the network, whose least and most nothing asks for, the mean alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus import above
from collector.prometheus import series as s
from collector.prometheus.clean import Cleaned
from collector.prometheus.metric import Series
from collector.prometheus.slots import rates, statistics
from collector.prometheus.tenants import expected_in_life, uids, with_life
from ledger.window import Window


@dataclass(frozen=True)
class Meter:
    """A meter of pods.

    Args:
        name: Its name in the table.
        series: The series.
        counter: Whether its rate is meant.
        sandbox: Whether the pod has it as a whole, by network interface.
        kept: The statistics that are kept of a slot.
    """

    name: str
    series: Series
    counter: bool = False
    sandbox: bool = False
    kept: tuple[str, ...] = ("mean", "min", "max")


METERS = (
    Meter("cpu_usage", s.CPU_USAGE, counter=True),
    Meter("memory_working_set", s.MEMORY),
    Meter("network_receive", s.NETWORK_RECEIVE, counter=True, sandbox=True, kept=("mean",)),
    Meter("network_transmit", s.NETWORK_TRANSMIT, counter=True, sandbox=True, kept=("mean",)),
)


@dataclass(frozen=True)
class Known:
    """What is known of pods when their meters are read.

    Args:
        lives: Of ``tenants.numbered``.
        requests: ``uid``, ``start``, ``cpu_millicores``, ``memory_bytes``: what each asked for.
    """

    lives: pl.DataFrame
    requests: pl.DataFrame


def pod_rows(cleaned: Cleaned, meter: Meter, known: Known, window: Window) -> pl.DataFrame:
    """A meter of pods: the sum over their containers, or over their network interfaces.

    Containers are sampled at different times, so statistics are taken per container and summed:
    means are exact; with several containers, min and max are outer bounds. What crosses the
    pod's request has rows of its own beside (``above``).

    Args:
        cleaned: Samples of containers, or of interfaces.
        meter: Which meter.
        known: The pods.
        window: Whole slots.

    Returns:
        Rows of ``finished`` and of ``above``.
    """
    chosen = (interfaces if meter.sandbox else named_containers)(cleaned.meanings)
    samples = cleaned.samples.join(
        chosen.select("meaning"), on="meaning", how="semi", maintain_order="left"
    )
    if meter.counter:
        samples = rates(samples, cleaned.interval)
    tenants = chosen.select("ident", "namespace", "pod").unique(
        "ident", keep="first", maintain_order=True
    )
    samples = with_life(samples, tenants, known.lives, cleaned.interval)
    slots = statistics(samples, ["ident", "life"], window).join(tenants, on="ident", how="left")
    rows = finished(slots, meter, known, cleaned.interval)
    if meter.name not in above.METERS:
        return rows
    crossing = above.Crossing(meter.name, known.requests, uids(known.lives), cleaned.interval)
    return pl.concat([rows, above.above(samples, rows, crossing)])


def finished(slots: pl.DataFrame, meter: Meter, known: Known, interval: timedelta) -> pl.DataFrame:
    """The sums over what a pod consists of, its place, and how many samples were expected.

    Args:
        slots: ``ident``, ``life``, ``namespace``, ``pod``, ``slot``, the statistics kept and
            ``samples``, per container or interface.
        meter: Which meter.
        known: The pods.
        interval: Usual distance of the samples.
    """
    pods = (
        slots.join(uids(known.lives), on="life", how="left")
        .sort("namespace", "pod", "uid", "slot", "ident")
        .group_by("namespace", "pod", "uid", "slot", maintain_order=True)
        .agg(pl.col(*meter.kept).sum(), pl.col("samples").max())
    )
    places = known.lives.drop_nulls(["uid", "node"])
    places = places.unique("uid", keep="last", maintain_order=True)
    placed = pods.join(places.select("uid", "node"), on="uid", how="left", maintain_order="left")
    return expected_in_life(placed, known.lives, interval).with_columns(meter=pl.lit(meter.name))


def named_containers(meanings: pl.DataFrame) -> pl.DataFrame:
    """Containers of pods; the pod's own control group only where no container is named."""
    rows = meanings.filter(pl.col("pod").is_not_null(), pl.col("namespace").is_not_null())
    rows = rows.with_columns(
        named=pl.col("container").is_not_null()
        & (pl.col("container") != "POD").fill_null(value=False)
    )
    group = rows.filter(
        pl.col("container").is_null() & ~pl.col("named").any().over("namespace", "pod")
    )
    return pl.concat([rows.filter("named"), group]).sort("meaning")


def interfaces(meanings: pl.DataFrame) -> pl.DataFrame:
    """A pod's network interfaces: counted once for its sandbox, which may bear the name POD."""
    rows = meanings.filter(
        pl.col("pod").is_not_null(),
        pl.col("namespace").is_not_null(),
        pl.col("container").fill_null("POD") == "POD",
    )
    once = rows.sort("container", "meaning", nulls_last=False).unique(
        ["namespace", "pod", "interface"], keep="first", maintain_order=True
    )
    idents = once.select("ident")
    return rows.join(idents, on="ident", how="semi").sort("meaning")
