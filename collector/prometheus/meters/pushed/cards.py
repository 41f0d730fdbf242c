"""How busy cards were, by slots that the server works out; cards of doubtful nodes, by samples.

Whether a series of a node is a percentage is told for the node as a whole: so is what is read raw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec
import polars as pl

from collector.prometheus.meters.activity import (
    Activity,
    Gauges,
    read_measure,
    speaks,
    tell_spinning,
)
from collector.prometheus.meters.cards import KEPT, card_slots
from collector.prometheus.meters.places import place
from collector.prometheus.meters.pushed.asking import ROWS, Asker, NotPushedError, listed
from collector.prometheus.meters.pushed.cells import cells_of
from collector.prometheus.meters.pushed.gauges import CardSlots, card_gauges, ratios
from collector.prometheus.meters.pushed.holders import held, reaches
from collector.prometheus.meters.pushed.spun import Gate
from collector.prometheus.meters.pushed.tables import only_label
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series.card_series import POWER, POWER_LIMIT, Measure
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import PushDown

_THING = ["node", "device", "namespace", "pod", "life", "slot"]
_SLOTS = [*_THING, *KEPT, "samples"]


@dataclass(frozen=True)
class Cards:
    """Asks a server how busy cards are.

    Args:
        push: The server.
        lives: Of ``tenants.numbered``.
        counted: Series whose samples are counted as read.
    """

    push: PushDown
    lives: pl.DataFrame
    counted: set[str] = field(default_factory=set)

    def measured(self, measure: Measure, gauges: Gauges) -> Activity | None:
        """What ``activity`` would read of a measure; None if there is nothing.

        Raises:
            NotPushedError: All samples are to be read.
            QueryError: The server cannot answer.
        """
        reader = gauges.reader
        name = _only_name(reader, measure.series)
        if name is None:
            return None
        beside = _beside(reader, measure)
        asker = Asker(reader, self.push, replace(measure.series, metric=name, also={}))
        cells = cells_of(asker.interval())
        if cells is None:
            raise NotPushedError
        gate = Gate.of(asker, beside[0], beside[1], cells) if beside else None
        found = card_gauges(asker, cells, gate)
        hosts = _Hosts.of(found.table, measure.series)
        doubted = self._aside(asker, found.table["labels"], hosts, beside)
        placed = place(found.table, gauges.nodes).with_columns(host=hosts.values)
        rows, unsure = ratios(found, placed, percent=measure.percent)
        told = placed.filter(speaks(measure, placed, gauges.nodes))
        slots = self._of_pods(rows, told, cells.interval, reader)
        doubted |= set(unsure) | set(slots.filter(~pl.col("good"))["host"])
        if len(beside) > 2:  # what draws power works all the same
            doubted |= set(slots.filter(pl.col("still") > 0)["host"])
        sure = slots.filter(~pl.col("host").is_in(list(doubted)))
        spinning = sure.filter(pl.col("still") > 0).select("node", "device").unique().height
        parts = [sure.select(_SLOTS)]
        for some in _batches(sorted(doubted), found, hosts):
            more, spun = self._raw(asker, measure, gauges, hosts.label, some)
            parts.append(more.cast(sure.select(_SLOTS).schema))
            spinning += spun
        tell_spinning(reader, measure, spinning)
        slots = pl.concat(parts)
        if slots.is_empty():
            return None
        return Activity(measure.series.metric, slots, cells.interval, told)

    def _of_pods(
        self, rows: pl.DataFrame, told: pl.DataFrame, interval: timedelta, reader: Reader
    ) -> pl.DataFrame:
        """Slots of the day with the pod that held the card, as ``cards.card_slots`` has them."""
        day = reader.window
        inside = pl.col("slot").is_between(day.start, day.end, closed="left")
        meant = told.select("series", "host", *_THING[:4], single=pl.len().over("ident") == 1)
        slots = rows.filter(inside).join(meant, on="series", maintain_order="left")
        slots = held(slots, reaches(self.lives, interval))
        known = self.lives.select("namespace", "pod", known=pl.lit(value=True)).unique()
        slots = slots.join(known, on=["namespace", "pod"], how="left", maintain_order="left")
        stale = pl.col("life").is_null() & pl.col("known").fill_null(value=False)
        slots = slots.with_columns(
            pl.when(~stale).then(name).alias(name) for name in ("namespace", "pod")
        )
        alone = pl.len().over(_THING) == 1
        return slots.with_columns(good=pl.col("good") & pl.col("held") & pl.col("single") & alone)

    def _aside(
        self, asker: Asker, active: pl.Series, hosts: _Hosts, beside: tuple[str, ...]
    ) -> set[str]:
        """Count what is read; nodes of which what stands beside activity is no plausible ratio."""
        day, wide = asker.reader.window, asker.reader.wide
        late = f" offset {int((wide.end - day.end).total_seconds())}s"
        span, long = (
            self.push.span(day.end - day.start) + late,
            self.push.span(wide.end - wide.start),
        )
        rest = self.push.matcher()
        found: set[str] = set()
        for number, name in enumerate((asker.series.metric, *beside)):
            asked: dict[str, str] = {}
            if name not in self.counted:
                self.counted.add(name)
                asked["read"] = f"sum(count_over_time({name}{rest}{span}))"
            if number:
                most = 1 if number <= 2 else POWER.ceiling
                asked["odd"] = (
                    f"((min_over_time({name}{rest}{long}) < 0) or "
                    f"(max_over_time({name}{rest}{long}) > {most}))"
                )
                asked["total"] = f"sum_over_time({name}{rest}{long})"
            told = asker.at(asked, wide.end) if asked else {}
            if "read" in told:
                asker.reader.samples += int(told.pop("read")["value"].sum())
            if "total" in told:
                total = told.pop("total")
                found |= hosts.named(total.filter(~pl.col("value").is_finite())["labels"])
                if number <= 2:  # none, or one of another scrape
                    found |= hosts.named(active.filter(~active.is_in(total["labels"].implode())))
            found |= {host for each in told.values() for host in hosts.named(each["labels"])}
        return found

    def _raw(
        self, asker: Asker, measure: Measure, gauges: Gauges, label: str, hosts: list[str]
    ) -> tuple[pl.DataFrame, int]:
        """Slots of all samples of some nodes, and how many of their cards only span."""
        only = [f'{label}=~"{names}"' for names in listed(hosts)]
        reader = asker.reader

        def read(series: Series) -> Cleaned | None:
            name = _only_name(reader, series)
            if name is None:
                return None
            own = replace(asker, series=replace(series, metric=name))
            raw = pl.concat([own.raw(reader.wide, each, ROWS * 2) for each in only])
            found = own.cleaned(raw, reader.window)
            return None if found.samples.is_empty() else found

        some = Gauges(reader, gauges.nodes, read)
        told = read_measure(measure, some)
        if told is None:
            return pl.DataFrame(schema=dict.fromkeys(_SLOTS, pl.Null())), 0
        slots = card_slots(told.cleaned, told.placed, self.lives, reader.window)
        return slots.select(_SLOTS), some.spinning


def _only_name(reader: Reader, series: Series) -> str | None:
    """The one name of a series that the source holds; None if it holds none.

    Raises:
        NotPushedError: There are several, or one of another unit.
    """
    names = reader.names(series)
    if len(names) > 1 or any(series.also.get(name, 1.0) != 1 for name in names):
        raise NotPushedError
    return names[0] if names else None


def _beside(reader: Reader, measure: Measure) -> tuple[str, ...]:
    """Names of tensor and memory activity, and of power and its limit, as far as they are asked.

    Raises:
        NotPushedError: Only samples tell.
    """
    if measure.compute is None or measure.memory is None:
        return ()
    gate = [_only_name(reader, one) for one in (measure.compute, measure.memory)]
    power = [_only_name(reader, one) for one in (POWER, POWER_LIMIT)]
    powered = None not in power
    if None in gate:
        if any(gate) or (measure.coarse and powered):
            raise NotPushedError
        return ()
    return tuple(name for name in (*gate, *(power if powered else ())) if name is not None)


@dataclass(frozen=True)
class _Hosts:
    """The label that names the node of each series.

    Args:
        label: Its name.
        values: Its value, by row of the table of label sets.
    """

    label: str
    values: pl.Series

    @classmethod
    def of(cls, table: pl.DataFrame, series: Series) -> _Hosts:
        """The hosts of a series."""
        return cls(*only_label(table, series.columns["host"]))

    def named(self, texts: pl.Series) -> set[str]:
        """The nodes that label sets name."""
        sets = [msgspec.json.decode(text, type=dict[str, str]) for text in texts]
        return {one[self.label] for one in sets if one.get(self.label)}


def _batches(doubted: list[str], found: CardSlots, hosts: _Hosts) -> Iterator[list[str]]:
    """Nodes in groups that are not too much at a time."""
    each = found.rows["samples"].sum() / max(1, hosts.values.n_unique())
    size = max(1, int(2 * ROWS / max(1.0, each)))
    for start in range(0, len(doubted), size):
        yield doubted[start : start + size]
