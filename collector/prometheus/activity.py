"""How busy cards are: the most trusted series of each, and what is busy without working.

Activity is the ratio of the most trusted series that a card has in a quarter of an hour:
``SM_ACTIVE``, then ``GR_ENGINE_ACTIVE``, AMD's graphics activity, Neuron's core utilisation, a
device plugin's duty cycle, and ``GPU_UTIL`` last; less what ``spinning`` finds.

``GPU_UTIL`` and duty cycles are 0 or missing on MIG devices: nothing is taken from them there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from collector.prometheus import card_series as c
from collector.prometheus.card_series import MEASURES, Measure
from collector.prometheus.clean import Cleaned
from collector.prometheus.metric import Series
from collector.prometheus.nodes import Nodes
from collector.prometheus.places import Placed, place
from collector.prometheus.reader import Reader, no_series
from collector.prometheus.spinning import without_spinning
from ledger.facts import Quarantine


@dataclass(frozen=True)
class Activity:
    """How busy cards are by one series.

    Args:
        metric: The series.
        cleaned: Samples, values 0 to 1.
        placed: Its meanings, of ``place``.
    """

    metric: str
    cleaned: Cleaned
    placed: pl.DataFrame


def read_activity(reader: Reader, nodes: Nodes | None) -> list[Activity]:
    """Activity of cards, most trusted series first; silence is a gap only where there are cards.

    Series are read until all nodes with cards are spoken of.
    """
    equipped = set() if nodes is None else set(nodes.with_cards)
    found: list[Activity] = []
    spoken: set[str] = set()
    gauges = Gauges(reader, nodes)
    failures = len(reader.failures)
    for measure in MEASURES:
        if found and not equipped - spoken:
            break
        activity = _read(measure, gauges)
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
    """

    def __init__(self, reader: Reader, nodes: Nodes | None) -> None:
        self.reader = reader
        self.nodes = nodes
        self._known: dict[str, Placed | None] = {}

    def ratio(self, series: Series, *, percent: bool = False) -> Placed | None:
        """A series as values 0 to 1; None if it has no samples."""
        if series.metric not in self._known:
            cleaned = self.reader.read_one(series)
            self._known[series.metric] = None
            if cleaned is not None:
                placed = place(cleaned.meanings, self.nodes)
                samples = self._as_ratio(cleaned.samples, placed, series, percent=percent)
                self._known[series.metric] = Placed(replace(cleaned, samples=samples), placed)
        return self._known[series.metric]

    def plain(self, series: Series) -> Placed | None:
        """A series in its own unit; None if it has no samples."""
        if series.metric not in self._known:
            cleaned = self.reader.read_one(series)
            self._known[series.metric] = (
                None if cleaned is None else Placed(cleaned, place(cleaned.meanings, self.nodes))
            )
        return self._known[series.metric]

    def note(self, text: str) -> None:
        """Tell a reader."""
        self.reader.notes.append(text)

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


def _read(measure: Measure, gauges: Gauges) -> Activity | None:
    read = gauges.ratio(measure.series, percent=measure.percent)
    if read is None:
        return None
    if measure.whole:
        read = read.only(~_in_parts(read.placed, gauges.nodes))
    if "partition" in read.placed.columns:  # only the first of a card's partitions reports
        read = read.only(pl.col("partition").fill_null("0") == "0")
    if read.cleaned.samples.is_empty():
        return None
    return Activity(measure.series.metric, without_spinning(measure, gauges, read), read.placed)


def _in_parts(placed: pl.DataFrame, nodes: Nodes | None) -> pl.Expr:
    """Whether a card is a MIG device, or cut into some, by its labels or by its node's."""
    instances = placed.filter(pl.col("instance").is_not_null())["card"].unique()
    cut = [] if nodes is None else nodes.with_mig.to_list()
    return (
        pl.col("instance").is_not_null()
        | pl.col("card").is_in(instances.to_list()).fill_null(value=False)
        | pl.col("node").is_in(cut).fill_null(value=False)
    )
