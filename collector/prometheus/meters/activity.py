"""How busy cards are: the most trusted series of each, and what is busy without working.

Activity is the ratio of the most trusted series that a card has in a quarter of an hour:
``SM_ACTIVE``, then ``GR_ENGINE_ACTIVE``, AMD's graphics activity, Neuron's core utilisation, a
device plugin's duty cycle, and ``GPU_UTIL`` last; less what ``spinning`` finds.

``GPU_UTIL`` and duty cycles are 0 or missing on MIG devices: nothing is taken from them there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import polars as pl

from collector.prometheus.cluster.nodes import Nodes
from collector.prometheus.meters.cards import card_slots
from collector.prometheus.meters.places import Placed, place
from collector.prometheus.meters.spinning import without_spinning
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.reader import Reader, no_series
from collector.prometheus.series import card_series as c
from collector.prometheus.series.card_series import MEASURES, Measure
from collector.prometheus.series.metric import Series
from ledger.facts import Quarantine


@dataclass(frozen=True)
class Activity:
    """How busy cards are by one series.

    Args:
        metric: The series.
        slots: Of ``cards.card_slots``.
        interval: Usual distance of its samples.
        placed: Its meanings, of ``place``.
    """

    metric: str
    slots: pl.DataFrame
    interval: timedelta
    placed: pl.DataFrame


def read_activity(
    reader: Reader,
    nodes: Nodes | None,
    lives: pl.DataFrame,
    measured: Callable[[Measure, Gauges], Activity | None] | None = None,
) -> list[Activity]:
    """Activity of cards, most trusted series first; silence is a gap only where there are cards.

    Series are read until all nodes with cards are spoken of.

    Args:
        reader: Where they are read.
        nodes: Nodes, if any are known.
        lives: Of ``tenants.numbered``.
        measured: How a measure is read, if not by its samples.
    """
    equipped = set() if nodes is None else set(nodes.with_cards)
    found: list[Activity] = []
    spoken: set[str] = set()
    gauges = Gauges(reader, nodes)
    failures = len(reader.failures)
    for measure in MEASURES:
        if found and not equipped - spoken:
            break
        activity = measured(measure, gauges) if measured else by_samples(measure, gauges, lives)
        if activity is not None:
            found.append(activity)
            spoken |= set(activity.placed["node"].drop_nulls())
    if equipped and not found and len(reader.failures) == failures:
        reader.gaps.append(no_series(c.GPU_ACTIVE, reader.window))
    return found


class Gauges:
    """The series that activity is told from, each read once, with the places of its cards.

    Args:
        reader: Where they are read.
        nodes: Nodes, if any are known.
        read: Reads a series, if not all of it is wanted.
    """

    def __init__(
        self,
        reader: Reader,
        nodes: Nodes | None,
        read: Callable[[Series], Cleaned | None] | None = None,
    ) -> None:
        self.reader = reader
        self.nodes = nodes
        self.read = read or reader.read_one
        self.spinning = 0
        self._known: dict[str, Placed | None] = {}

    def ratio(self, series: Series, *, percent: bool = False) -> Placed | None:
        """A series as values 0 to 1; None if it has no samples."""
        if series.metric not in self._known:
            cleaned = self.read(series)
            self._known[series.metric] = None
            if cleaned is not None:
                placed = place(cleaned.meanings, self.nodes)
                samples = self._as_ratio(cleaned.samples, placed, series, percent=percent)
                self._known[series.metric] = Placed(replace(cleaned, samples=samples), placed)
        return self._known[series.metric]

    def plain(self, series: Series) -> Placed | None:
        """A series in its own unit; None if it has no samples."""
        if series.metric not in self._known:
            cleaned = self.read(series)
            self._known[series.metric] = (
                None if cleaned is None else Placed(cleaned, place(cleaned.meanings, self.nodes))
            )
        return self._known[series.metric]

    def spun(self, cards: int) -> None:
        """So many cards were busy by the series that is read now and did nothing for some time."""
        self.spinning += cards

    def _as_ratio(
        self, samples: pl.DataFrame, placed: pl.DataFrame, series: Series, *, percent: bool
    ) -> pl.DataFrame:
        """Whichever unit a node's exporter uses: told by name, then by range.

        A percentage of whole numbers has nothing between 0 and 1; a ratio nothing above 1, but for
        single values that are none.
        """
        value = pl.col("value")
        if not percent and not (samples["value"] > 1).any():
            return samples
        rows = samples.join(
            placed.select("meaning", "node"), on="meaning", how="left", maintain_order="left"
        )
        above = (value > 1).sum().over("node")
        between = ((value > 0) & (value < 1)).sum().over("node")
        busy = (value > 0).sum().over("node")
        hundred = (above > 0) | (between == 0) if percent else 2 * above > busy
        rows = rows.with_columns(value=pl.when(hundred).then(value / 100).otherwise(value))
        good = rows.filter(value <= 1).drop("node")
        if good.height < rows.height:
            entry = Quarantine("above_ceiling", series.metric, rows.height - good.height)
            self.reader.quarantine.append(entry)
        return good


def by_samples(measure: Measure, gauges: Gauges, lives: pl.DataFrame) -> Activity | None:
    """Activity by one series, of all its samples; None if there are none."""
    gauges.spinning = 0
    read = read_measure(measure, gauges)
    if read is None:
        return None
    cleaned = read.cleaned
    tell_spinning(gauges.reader, measure, gauges.spinning)
    slots = card_slots(cleaned, read.placed, lives, gauges.reader.window)
    return Activity(measure.series.metric, slots, cleaned.interval, read.placed)


def tell_spinning(reader: Reader, measure: Measure, cards: int) -> None:
    """Note how many cards only span."""
    if cards:
        reader.notes.append(
            f"{measure.series.metric}: {cards} cards were busy without any work for some time "
            "(no tensor and memory activity, or no power drawn); that time counts as idle"
        )


def read_measure(measure: Measure, gauges: Gauges) -> Placed | None:
    """Activity by one series, 0 to 1, without cards that only spin; None if there is none."""
    read = gauges.ratio(measure.series, percent=measure.percent)
    if read is None:
        return None
    read = read.only(speaks(measure, read.placed, gauges.nodes))
    if read.cleaned.samples.is_empty():
        return None
    return replace(read, cleaned=without_spinning(measure, gauges, read))


def speaks(measure: Measure, placed: pl.DataFrame, nodes: Nodes | None) -> pl.Expr:
    """Which meanings of a series say something of their card."""
    told = pl.lit(value=True)
    if measure.whole:
        told = ~_in_parts(placed, nodes)
    if "partition" in placed.columns:  # only the first of a card's partitions reports
        told = told & (pl.col("partition").fill_null("0") == "0")
    return told


def _in_parts(placed: pl.DataFrame, nodes: Nodes | None) -> pl.Expr:
    """Whether a card is a MIG device, or cut into some, by its labels or by its node's."""
    instances = placed.filter(pl.col("instance").is_not_null())["card"].unique()
    cut = [] if nodes is None else nodes.with_mig.to_list()
    return (
        pl.col("instance").is_not_null()
        | pl.col("card").is_in(instances.to_list()).fill_null(value=False)
        | pl.col("node").is_in(cut).fill_null(value=False)
    )
