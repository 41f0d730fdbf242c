"""From raw samples to one plausible sample per meaning and time.

Order: other clusters out, garbage into quarantine, copies collapsed. Copies are found by what a
sample *means* (the identity of its series), not by its scrape labels: HA pairs, two
kube-state-metrics, restarted targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.samples.label_sets import Identity, label_table
from collector.prometheus.series.catalogue import USUAL_INTERVAL
from collector.prometheus.series.metric import Series
from ledger.facts import Quarantine
from ledger.window import Window

_SECOND = 1_000_000
_JITTER = 0.025
ABSURD = timedelta(days=3653)  # no store holds samples ten years away from the day asked for


@dataclass(frozen=True)
class Cleaned:
    """Plausible samples without copies.

    Args:
        samples: ``ident`` UInt32 (number of what the sample is about), ``meaning`` UInt32 (number
            of identity and info), ``time`` Datetime(us, UTC), ``value`` Float64; sorted by
            ``ident``, ``time``, which are unique.
        meanings: ``ident``, ``meaning`` and the columns of the series (String, null = absent),
            plus ``labels`` (canonical JSON object) where the series keeps a prefix.
        interval: Usual distance of two samples of one raw series.
        quarantine: What was put aside.
        notes: What else a reader should know.
        read: Samples of the cluster inside the window, good and bad; those of absurd times not.
    """

    samples: pl.DataFrame
    meanings: pl.DataFrame
    interval: timedelta
    quarantine: tuple[Quarantine, ...] = ()
    notes: tuple[str, ...] = ()
    read: int = 0

    @property
    def steps(self) -> pl.DataFrame:
        """``frame`` without the samples that repeat the one before them."""
        names = ("ident", "meaning", "value")
        new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in names)
        return Cleaned(self.samples.filter(new), self.meanings, self.interval).frame

    @property
    def frame(self) -> pl.DataFrame:
        """Samples with the columns of their series, sorted by ``ident``, ``time``."""
        return self.samples.join(
            self.meanings.drop("ident"), on="meaning", how="left", maintain_order="left"
        )


def clean(raw: pl.DataFrame, series: Series, window: Window, who: Identity) -> Cleaned:
    """Keep one plausible sample per meaning and time.

    Args:
        raw: ``labels``, ``timestamp``, ``value`` (see ``source.SAMPLES``), any order.
        series: What the metric is.
        window: The window asked for; garbage is counted where it lies inside, so that margins
            count nothing twice.
        who: Whose samples are kept.
    """
    texts = raw["labels"].unique().sort()
    table, strange = label_table(texts, series, who)
    bad = count_strangers(raw, strange, series, window)
    rows = by_number(raw, texts, table)
    read = rows.filter(inside("time", window)).height + sum(entry.count for entry in bad)
    rows, garbage = sift(rows, series, window)
    if series.nonzero:
        rows = rows.filter(pl.col("value") != 0)
    rows = once(rows)
    interval = _usual(rows)
    numbers = table.select("ident", "origin", "meaning")  # in order of the series
    rows = rows.with_columns(column.gather(rows["series"]) for column in numbers)
    rows, conflicts = collapse(rows, window)
    rows = _thin(rows, interval, table)
    return Cleaned(
        rows.select("ident", "meaning", "time", "value"),
        meanings_of(table, series),
        interval,
        (*bad, *garbage),
        conflict_notes(series, conflicts),
        read,
    )


def meanings_of(table: pl.DataFrame, series: Series) -> pl.DataFrame:
    """The meanings of ``Cleaned`` from a table of label sets."""
    columns = [*series.columns, *(["labels_kept"] if series.prefix else [])]
    return (
        table.select("ident", "meaning", *columns)
        .unique("meaning")
        .sort("meaning")
        .rename({"labels_kept": "labels"}, strict=False)
    )


def conflict_notes(series: Series, conflicts: int) -> tuple[str, ...]:
    """What a reader should know of copies that disagree."""
    if not conflicts:
        return ()
    return (
        f"{series.metric}: {conflicts} times with different values of one meaning; "
        "the copy with more labels was taken, then the first by name",
    )


def by_number(raw: pl.DataFrame, texts: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
    """``series``, ``time``, ``value`` of the samples that are kept.

    Labels are compared once, as categories: joined as text they take most of the time of a day.
    """
    known = texts.drop_nulls()
    numbers = known.to_frame().join(
        table.select("labels", "series"), on="labels", how="left", maintain_order="left"
    )["series"]
    codes = raw["labels"].cast(pl.Enum(known)).to_physical()
    return pl.DataFrame(
        {"series": numbers.gather(codes), "time": raw["timestamp"], "value": raw["value"]}
    ).drop_nulls("series")


def once(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows sorted by series, time and value, without repetitions."""
    names = ("series", "time", "value")
    other = (pl.col(name).ne_missing(pl.col(name).shift()) for name in names)
    first = pl.int_range(pl.len()) == 0
    return rows.sort(names).filter(pl.any_horizontal(first, *other))


def count_strangers(
    raw: pl.DataFrame, strange: dict[str, list[str]], series: Series, window: Window
) -> list[Quarantine]:
    """What is put aside of each reason for which label sets are strange, inside the window."""
    entries = []
    for reason, texts in strange.items():
        if texts:
            count = raw.filter(pl.col("labels").is_in(texts), inside("timestamp", window)).height
            if count:
                entries.append(Quarantine(reason, series.metric, count, str(texts[0])[:120]))
    return entries


def inside(column: str, window: Window) -> pl.Expr:
    """Whether a time lies in the window."""
    return (pl.col(column) > window.start) & (pl.col(column) <= window.end)


def sift(
    rows: pl.DataFrame,
    series: Series,
    window: Window,
) -> tuple[pl.DataFrame, list[Quarantine]]:
    """Put garbage aside and count it by reason; each sample has the first reason that fits."""
    time, value = pl.col("time"), pl.col("value")
    absurd = (time < window.start - ABSURD) | (time > window.end + ABSURD) | time.is_null()
    reason = (
        pl.when(absurd)
        .then(pl.lit("out_of_window"))
        .when(value.is_null() | value.is_nan())
        .then(pl.lit("nan"))
        .when(value.is_infinite())
        .then(pl.lit("inf"))
        .when(value < 0)
        .then(pl.lit("negative"))
    )
    if series.ceiling is not None:
        reason = reason.when(value > series.ceiling).then(pl.lit("above_ceiling"))
    rows = rows.with_columns(reason=reason)
    aside = rows.filter(pl.col("reason").is_not_null())
    if aside.is_empty():
        return rows.drop("reason"), []
    counts = (
        aside.filter(inside("time", window) | (pl.col("reason") == "out_of_window"))
        .group_by("reason")
        .agg(pl.len().cast(pl.Int64))
        .sort("reason")
    )
    entries = [Quarantine(name, series.metric, count) for name, count in counts.iter_rows()]
    return rows.filter(pl.col("reason").is_null()).drop("reason"), entries


def _usual(rows: pl.DataFrame) -> timedelta:
    """Median distance of neighbours within raw series; ``rows`` sorted by series and time."""
    distance = rows.select(
        us=pl.when(pl.col("series") == pl.col("series").shift()).then(
            pl.col("time").diff().dt.total_microseconds()
        )
    )
    median = distance.filter(pl.col("us") > 0)["us"].median()
    if not isinstance(median, float):
        return USUAL_INTERVAL
    return settled(median)


def settled(us: float) -> timedelta:
    """The interval that a distance in microseconds shows.

    Intervals are set in seconds, mostly in quarters of a minute; what is beside them is jitter, and
    another half of the samples must not give another interval.
    """
    if us < _SECOND:
        return timedelta(microseconds=round(us))
    quarters = 15 * round(us / _SECOND / 15)
    near = abs(quarters - us / _SECOND) <= _JITTER * quarters
    return timedelta(seconds=quarters if near else round(us / _SECOND))


def collapse(rows: pl.DataFrame, window: Window) -> tuple[pl.DataFrame, int]:
    """One sample per identity and time, and how often the copies disagreed."""
    rows = rows.sort("ident", "time", "series", "value")
    copy = (
        (pl.col("ident") == pl.col("ident").shift()) & (pl.col("time") == pl.col("time").shift())
    ).fill_null(value=False)
    other = (pl.col("value") != pl.col("value").shift()) | (
        pl.col("meaning") != pl.col("meaning").shift()
    )
    marked = rows.with_columns(copy=copy, conflict=copy & other & inside("time", window))
    if not marked["copy"].any():
        return rows, 0
    conflicts = marked.filter("conflict").select("ident", "time").unique().height
    return marked.filter(~pl.col("copy")).drop("copy", "conflict"), conflicts


def _thin(rows: pl.DataFrame, interval: timedelta, table: pl.DataFrame) -> pl.DataFrame:
    """Where several scrapers saw one thing at different times, let the others only fill holes.

    One scraper is kept whole: that with more labels, then with more samples, then the earliest, so
    that names decide last and a renamed scraper changes nothing. Of each next one, the samples that
    lie nearly an interval away from everything kept so far. Otherwise the distances of an HA pair
    would look like a shorter interval, and its regular grid like one full of holes.
    """
    several = rows.filter(pl.col("origin").n_unique().over("ident") > 1)
    if several.is_empty():
        return rows
    order = (
        several.group_by("ident", "origin")
        .agg(pl.col("series").min(), count=pl.len(), first=pl.col("time").min())
        .join(table.select("series", "richness"), on="series")
        .sort("ident", -pl.col("richness"), -pl.col("count").cast(pl.Int64), "first", "series")
        .with_columns(turn=pl.int_range(pl.len()).over("ident") + 1)
        .select("ident", "origin", "turn")
    )
    several = several.join(order, on=["ident", "origin"])
    near = interval * 0.9
    kept = several.filter(pl.col("turn") == 1).sort("time", "ident")
    for turn in order["turn"].unique().sort().to_list()[1:]:
        extra = several.filter(pl.col("turn") == turn).sort("time", "ident")
        known = kept.select("ident", "time", nearest="time")
        far = extra.join_asof(
            known, on="time", by="ident", strategy="nearest", tolerance=near, check_sortedness=False
        ).filter(pl.col("nearest").is_null())
        kept = pl.concat([kept, far.drop("nearest")]).sort("time", "ident")
    single = rows.join(order.select("ident").unique(), on="ident", how="anti")
    return pl.concat([single, kept.drop("turn")]).sort("ident", "time")
