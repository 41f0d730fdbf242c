"""Meters of pods: cores, memory, bytes; per pod and quarter of an hour, from cleaned samples.

Kept of each slot is the mean, and what tells whether use crosses the request: the least and the
most. Of the network, whose least and most nothing asks for, the mean alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl

from collector.prometheus.meters import above
from collector.prometheus.meters.slots import rates, statistics
from collector.prometheus.meters.tenants import expected_in_life, uids, with_life
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.series import catalogue as s
from collector.prometheus.series.metric import Series
from ledger.window import Window


@dataclass(frozen=True)
class Parts:
    """What a pod consists of, where it is neither containers nor network interfaces.

    Args:
        chosen: From ``Cleaned.meanings`` those that count, with ``thing``: what is counted once;
            and ``turn``: which series of a thing does, the least first.
        mean: Whether a pod has the mean of its things, not their sum.
        only: Labels that must have this value.
    """

    chosen: Callable[[pl.DataFrame], pl.DataFrame]
    mean: bool = False
    only: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Meter:
    """A meter of pods.

    Args:
        name: Its name in the table.
        series: The series.
        counter: Whether its rate is meant.
        sandbox: Whether the pod has it as a whole, by network interface.
        kept: The statistics that are kept of a slot.
        parts: What the pod consists of; None = containers or interfaces.
    """

    name: str
    series: Series
    counter: bool = False
    sandbox: bool = False
    kept: tuple[str, ...] = ("mean", "min", "max")
    parts: Parts | None = None

    def chosen(self, meanings: pl.DataFrame) -> pl.DataFrame:
        """The series that count, of ``Cleaned.meanings`` or ``clean.label_table``."""
        if self.parts is None:
            return (interfaces if self.sandbox else named_containers)(meanings)
        columns = self.series.columns
        own = [
            pl.col(column) == value
            for label, value in self.parts.only.items()
            for column, labels in columns.items()
            if label in labels
        ]
        return self.parts.chosen(meanings.filter(own) if own else meanings)

    def loose(self, meanings: pl.DataFrame) -> list[str]:
        """A note of the series that name no pod, though they should; of ``Parts`` only."""
        if self.parts is None:
            return []
        nameless = pl.any_horizontal(pl.col("namespace", "pod").is_null())
        count = meanings.filter(nameless)["ident"].n_unique()
        one = count == 1
        told = f"{count} series {'names' if one else 'name'} no pod and {'is' if one else 'are'}"
        return [f"{self.series.metric}: {told} left out"] if count else []

    @property
    def about(self) -> list[str]:
        """Columns of ``chosen`` that tell what a series counts towards."""
        place = ["ident", "namespace", "pod"]
        return place if self.parts is None else [*place, "thing", "turn"]


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
    chosen = meter.chosen(cleaned.meanings)
    samples = cleaned.samples.join(
        chosen.select("meaning"), on="meaning", how="semi", maintain_order="left"
    )
    if meter.counter:
        samples = rates(samples, cleaned.interval)
    tenants = chosen.select(meter.about).unique("ident", keep="first", maintain_order=True)
    samples = with_life(
        samples, tenants.select("ident", "namespace", "pod"), known.lives, cleaned.interval
    )
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
            ``samples``, per container or interface; of other things also ``thing``, ``turn``.
        meter: Which meter.
        known: The pods.
        interval: Usual distance of the samples.
    """
    each = pl.col(*meter.kept)
    if meter.parts is not None:
        key = ["namespace", "pod", "life", "slot", "thing"]
        slots = slots.sort(*key, "turn", -pl.col("samples"), "ident")
        slots = slots.unique(key, keep="first", maintain_order=True)
    mean = meter.parts is not None and meter.parts.mean
    pods = (
        slots.join(uids(known.lives), on="life", how="left")
        .sort("namespace", "pod", "uid", "slot", "ident")
        .group_by("namespace", "pod", "uid", "slot", maintain_order=True)
        .agg(each.mean() if mean else each.sum(), pl.col("samples").max())
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
