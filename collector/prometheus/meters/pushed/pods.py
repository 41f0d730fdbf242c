"""Meters of pods by slots that the server works out; pods of which that proves too little, raw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec
import polars as pl

from collector.prometheus.meters import above
from collector.prometheus.meters.pods import (
    Known,
    Meter,
    finished,
    pod_rows,
)
from collector.prometheus.meters.pushed.asking import ROWS, Asker, NotPushedError, listed
from collector.prometheus.meters.pushed.cells import Cells, cells_of
from collector.prometheus.meters.pushed.holders import held, reaches
from collector.prometheus.meters.pushed.sketches import counters, gauges, sketch
from collector.prometheus.meters.pushed.tables import numbered
from collector.prometheus.meters.slots import SLOT
from collector.prometheus.meters.tenants import uids
from collector.prometheus.samples.chains import HOLE
from collector.prometheus.samples.reader import Reader
from collector.prometheus.sources.source import PushDown
from ledger.window import Window

LISTS = 3
"""So many lists of names are asked for; beyond, all samples are read, a few hours at a time, unless
that takes half as many questions at least."""

_NAMED = 'container!="",container!="POD"'
_SANDBOX = 'container=~"|POD"'
_NAME = ["namespace", "pod"]


def pushed_rows(reader: Reader, push: PushDown, meter: Meter, known: Known) -> pl.DataFrame:
    """The rows that ``meters.pod_rows`` would have of all samples.

    Raises:
        NotPushedError: All samples are to be read.
        QueryError: The server cannot answer.
    """
    if reader.names(meter.series) != [meter.series.metric]:
        raise NotPushedError
    asker = Asker(reader, push, meter.series, _only(meter))
    interval = asker.interval()
    cells = cells_of(interval)
    if cells is None:
        raise NotPushedError
    found = _Found.of(asker, meter, cells)
    slots = held(found.slots, reaches(known.lives, interval))
    slots = slots.with_columns(good=pl.col("good") & pl.col("held"))
    inside = pl.col("slot").is_between(reader.window.start, reader.window.end, closed="left")
    slots = slots.filter(inside)
    doubtful = slots.filter(~pl.col("good")).select(_NAME).unique()
    lonely = _lonely(asker, meter)
    doubtful = pl.concat([doubtful, found.whole]).unique()
    rows = finished(slots.join(doubtful, on=_NAME, how="anti"), meter, known, interval)
    if meter.name in above.METERS:
        crossing = above.Crossing(meter.name, known.requests, uids(known.lives), interval)
        crossed = above.crossed_slots(rows, crossing).select(_NAME).unique()
        rows = rows.join(crossed, on=_NAME, how="anti", maintain_order="left")
        doubtful = pl.concat([doubtful, crossed])
    raw = _Raw(asker, meter, known, interval, _lengths(slots, reader.window))
    beside = replace(raw, asker=replace(asker, only=_SANDBOX))
    return pl.concat(
        [rows, *raw.rows(doubtful.sort(_NAME), found.whole), *beside.rows(lonely, lonely)]
    )


@dataclass(frozen=True)
class _Found:
    """What was told.

    Args:
        slots: ``ident``, ``namespace``, ``pod``, ``slot``, ``low``, ``high``, ``good``,
            ``samples`` and the statistics that the meter keeps.
        whole: ``namespace``, ``pod`` of which all samples of the day are needed at once: several
            series speak of one thing.
    """

    slots: pl.DataFrame
    whole: pl.DataFrame

    @classmethod
    def of(cls, asker: Asker, meter: Meter, cells: Cells) -> _Found:
        grids = _counters(asker, meter, cells) if meter.counter else _gauges(asker, cells)
        numbers, table, strange = numbered(grids, meter.series, asker.reader.who)
        if strange or table.is_empty() or _renamed(grids):
            raise NotPushedError
        rows = sketch(numbers, cells)
        rows = (
            counters(rows, cells.interval, each="max" in meter.kept)
            if meter.counter
            else gauges(rows, meter.series.ceiling)
        )
        asker.reader.notes += meter.loose(table)
        chosen = meter.chosen(table).select("series", *meter.about)
        slots = rows.join(chosen, on="series", maintain_order="left")
        several = table.filter(pl.len().over("ident") > 1)
        return cls(slots, several.drop_nulls(_NAME).select(_NAME).unique())


def _gauges(asker: Asker, cells: Cells) -> dict[str, pl.DataFrame]:
    pattern = cells.promql(asker.selected, asker.push.span(cells.interval))
    small = {
        "pattern": f"({pattern} != {cells.regular})",
        "at": f"({asker.last_time(cells)} and ({asker.over('count_over_time')} != {cells.count}))",
    }
    return {
        "total": asker.grid(asker.over("sum_over_time")),
        "min": asker.grid(asker.over("min_over_time")),
        "max": asker.grid(asker.over("max_over_time")),
        **asker.grids(small),
    }


def _counters(asker: Asker, meter: Meter, cells: Cells) -> dict[str, pl.DataFrame]:
    hole = HOLE * cells.interval
    pattern = cells.promql(asker.selected, asker.push.span(cells.interval))
    earlier = f"{asker.over('last_over_time')[:-1]} offset {SLOT.seconds}s)"
    total = asker.over("sum_over_time")
    small = {
        "pattern": f"({pattern} != {cells.regular})",
        "odd": f"(({asker.over('resets', hole)} > 0) or ({total} * 0 != 0))",
        "begin": f"({asker.first_time(cells)} unless {earlier})",
        "base": f"({asker.over('min_over_time')} unless {earlier})",
    }
    grids = {
        "level": asker.grid(asker.over("last_over_time")),
        "at": asker.grid(asker.last_time(cells)),
        **asker.grids(small),
    }
    rate = f"irate({asker.selected}{asker.push.span(hole)})"
    for name in meter.kept:
        if name != "mean":
            grids[name] = asker.grid(asker.each(f"{name}_over_time", rate, cells))
    return grids


def _renamed(grids: dict[str, pl.DataFrame]) -> bool:
    """Whether a scraper moved labels that are asked about to other names."""
    return any(
        grid["labels"].unique().str.contains('"exported_(namespace|pod|container)":').any()
        for grid in grids.values()
    )


def _lengths(slots: pl.DataFrame, window: Window) -> float:
    """Samples of all series in an hour."""
    return float(slots["samples"].sum()) / (window.seconds / 3600)


def _only(meter: Meter) -> str:
    """The matchers of the series that are asked for."""
    if meter.parts is not None:
        return ",".join(f'{label}="{value}"' for label, value in meter.parts.only.items())
    return _SANDBOX if meter.sandbox else _NAMED


def _lonely(asker: Asker, meter: Meter) -> pl.DataFrame:
    """Pods of which only series are held that were not asked for; and the account of these.

    Counts what is read, and puts garbage of the other series aside as if all were read.
    """
    day, wide = asker.reader.window, asker.reader.wide
    other = meter.series.metric + asker.push.matcher(_NAMED if meter.sandbox else _SANDBOX)
    every = meter.series.metric + asker.push.matcher()
    late = f" offset {int((wide.end - day.end).total_seconds())}s"
    span = asker.push.span(day.end - day.start) + late
    total = f"sum_over_time({other}{span})"
    names = "namespace,pod,exported_namespace,exported_pod,exported_container"
    long = asker.push.span(wide.end - wide.start)
    mine = f"group by (namespace,pod) (last_over_time({asker.selected}{long}))"
    asked = {
        "read": f"sum(count_over_time({every}{span}))",
        "odd": f"(min_over_time({other}{span}) < 0) or ({total} * 0 != 0)",
        "lonely": f"group by ({names}) (last_over_time({other}{long})) "
        f"unless on (namespace,pod) {mine}",
    }
    if meter.sandbox:
        del asked["lonely"]
    if meter.parts is not None:  # there are no others that could stand for them
        asked = {"read": asked["read"]}
    told = asker.at(asked, wide.end)
    asker.reader.samples += int(told["read"]["value"].sum())
    alone = told.get("lonely")
    texts = pl.Series("labels", [], pl.String) if alone is None else alone["labels"]
    if texts.str.contains('"exported_').any():
        raise NotPushedError
    lonely = _names(texts)
    if meter.parts is not None:
        return lonely
    odd = _names(told["odd"]["labels"]).join(lonely, on=_NAME, how="anti")
    if odd.height:
        _account(asker, odd, other=_NAMED if meter.sandbox else _SANDBOX)
    return lonely


def _names(texts: pl.Series) -> pl.DataFrame:
    """``namespace``, ``pod`` of label sets that name a pod."""
    found = [msgspec.json.decode(text, type=dict[str, str]) for text in texts]
    pairs = [(one.get("namespace"), one.get("pod")) for one in found]
    form = {"namespace": pl.String, "pod": pl.String}
    return pl.DataFrame(pairs, schema=form, orient="row").drop_nulls().unique()


def _account(asker: Asker, pods: pl.DataFrame, other: str) -> None:
    """Put garbage aside of series that are not used."""
    lists = listed(pods["pod"].unique().sort().to_list())
    if len(lists) > LISTS:
        raise NotPushedError
    beside = Asker(asker.reader, asker.push, asker.series, other)
    for names in lists:
        raw = beside.raw(asker.reader.window, f'pod=~"{names}"')
        asker.cleaned(raw, asker.reader.window)


@dataclass(frozen=True)
class _Raw:
    """Reads samples of some pods.

    Args:
        asker: Where.
        meter: Which meter.
        known: The pods.
        interval: Usual distance of the samples of all.
        hourly: Samples of all in an hour.
    """

    asker: Asker
    meter: Meter
    known: Known
    interval: timedelta
    hourly: float

    def rows(self, pods: pl.DataFrame, whole: pl.DataFrame) -> list[pl.DataFrame]:
        """Rows of some pods, of whom ``whole`` are to be looked at over the day at once."""
        if pods.is_empty():
            return []
        reader = self.asker.reader
        lists = listed(pods["pod"].unique().sort().to_list())
        pieces = self._pieces()
        if len(lists) <= max(LISTS, 2 * len(pieces)):
            return [
                self._made(self._raw(reader.wide, pods, names), reader.window) for names in lists
            ]
        if whole.height:
            raise NotPushedError
        found = []
        for piece in pieces:
            start = max(reader.wide.start, piece.start - HOLE * self.interval)
            raw = self._raw(Window(start, piece.end), pods, "")
            found.append(self._made(raw, piece))
        return found

    def _raw(self, window: Window, pods: pl.DataFrame, names: str) -> pl.DataFrame:
        raw = self.asker.raw(window, f'pod=~"{names}"' if names else "")
        texts = raw["labels"].unique()
        found = [msgspec.json.decode(text, type=dict[str, str]) for text in texts]
        pairs = pl.DataFrame(
            {
                "labels": texts,
                "namespace": [one.get("namespace") for one in found],
                "pod": [one.get("pod") for one in found],
            },
            schema={"labels": pl.String, "namespace": pl.String, "pod": pl.String},
        )
        wanted = pairs.join(pods, on=_NAME, how="semi")
        return raw.join(wanted.select("labels"), on="labels", how="semi", maintain_order="left")

    def _made(self, raw: pl.DataFrame, window: Window) -> pl.DataFrame:
        cleaned = self.asker.cleaned(raw, window, self.interval)
        return pod_rows(cleaned, self.meter, self.known, window)

    def _pieces(self) -> list[Window]:
        """The day in spans of whole slots, each with about as many samples as an answer holds."""
        day = self.asker.reader.window
        slots = max(1, int(ROWS / max(1.0, self.hourly) * 4))
        found, start = [], day.start
        while start < day.end:
            end = min(start + slots * SLOT, day.end)
            found.append(Window(start, end))
            start = end
        return found
