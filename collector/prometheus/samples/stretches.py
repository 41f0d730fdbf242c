"""State series cleaned from summaries: stretches of samples, where ``clean`` has single ones.

A stretch is a number of samples of one series with one value, of which the first and the last are
known. A raw sample is a stretch of one. Where samples of several scrapers, or of series that mean
different things, lie side by side, it is worked out which of them ``clean`` would keep; where that
depends on samples that are not known, the stretches are in doubt, and are to be read raw.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from collector.prometheus.samples import clean as c
from collector.prometheus.samples.label_sets import Identity, label_table
from collector.prometheus.samples.summary import SUMMARY, cell_of
from collector.prometheus.series.catalogue import USUAL_INTERVAL
from collector.prometheus.series.metric import Series
from ledger.window import Window

NEAR = 0.9  # of an interval, as in ``clean``: what lies nearer than this is a copy
_ALONE = 1.5  # intervals between two samples with none missing


@dataclass(frozen=True)
class Known:
    """What is known of a series.

    Args:
        proven: Rows of ``SUMMARY`` that stand for their samples.
        raw: ``labels``, ``timestamp``, ``value``: the samples of what was read raw; of one
            thing and cell either all are raw, or none.
        start: Where the first cell begins.
    """

    proven: pl.DataFrame
    raw: pl.DataFrame
    start: datetime


def unite(
    known: Known, series: Series, window: Window, who: Identity
) -> tuple[c.Cleaned, pl.DataFrame]:
    """Keep one plausible sample, or stretch, per meaning and time.

    Args:
        known: Stretches and samples.
        series: What the metric is.
        window: As of ``clean``.
        who: Whose samples are kept.

    Returns:
        The same as ``clean``, whose samples also have ``until`` and ``count`` (``time`` is when a
        stretch begins); and ``labels``, ``cell`` of what is in doubt.
    """
    texts = pl.concat([known.proven["labels"], known.raw["labels"]]).unique().sort()
    table, strange = label_table(texts, series, who)
    bad = c.count_strangers(known.raw, strange, series, window)
    raw = c.by_number(known.raw, texts, table)
    numbers = table.select("labels", "series")
    rows = known.proven.join(numbers, on="labels").select(
        "series", "cell", "count", "value", time="first", until="last"
    )
    interval = usual(rows, raw)
    read = _inside(rows, window, interval) + raw.filter(c.inside("time", window)).height
    raw, garbage = c.sift(raw, series, window)
    if series.nonzero:
        raw = raw.filter(pl.col("value") != 0)
    raw = c.once(raw)
    columns = [column for column in table.select("ident", "origin", "meaning", "richness")]
    raw = raw.with_columns(column.gather(raw["series"]) for column in columns)
    raw, conflicts = c.collapse(raw, window)
    single = raw.with_columns(
        cell=cell_of("time", known.start), until="time", count=pl.lit(1, pl.Int64), raw=True
    )
    rows = rows.with_columns(column.gather(rows["series"]) for column in columns)
    rows = pl.concat([rows.with_columns(raw=False), single], how="diagonal").sort(
        "ident", "time", "series"
    )
    kept, doubtful = _kept(rows, interval)
    texts_of = table.select("series", "labels")
    doubt = doubtful.filter(~pl.col("raw")).join(texts_of, on="series").select("labels", "cell")
    meanings = c.meanings_of(table, series)
    notes = c.conflict_notes(series, conflicts)
    samples = kept.select("ident", "meaning", "time", "value", "until", "count")
    cleaned = c.Cleaned(
        samples.sort("ident", "time"),
        meanings,
        interval,
        (*bad, *garbage),
        notes,
        read + sum(entry.count for entry in bad),
    )
    return cleaned, doubt.unique()


def usual(rows: pl.DataFrame, raw: pl.DataFrame) -> timedelta:
    """Median distance of neighbours within a series."""
    told = rows.filter(pl.col("count") > 1).select(
        us=(pl.col("until") - pl.col("time")).dt.total_microseconds() / (pl.col("count") - 1),
        weight=pl.col("count") - 1,
    )
    single = raw.sort("series", "time").select(
        us=pl.when(pl.col("series") == pl.col("series").shift()).then(
            pl.col("time").diff().dt.total_microseconds().cast(pl.Float64)
        ),
        weight=pl.lit(1, pl.Int64),
    )
    both = pl.concat([told, single.filter(pl.col("us") > 0)]).sort("us")
    if both.is_empty():
        return USUAL_INTERVAL
    half = both["weight"].sum() / 2
    median = both.filter(pl.col("weight").cum_sum() >= half)["us"][0]
    return c.settled(float(median))


def _inside(rows: pl.DataFrame, window: Window, interval: timedelta) -> int:
    """How many samples of the stretches lie in the window, by their mean distance."""
    distance = pl.when(pl.col("count") > 1).then(
        (pl.col("until") - pl.col("time")).dt.total_microseconds() / (pl.col("count") - 1)
    )
    us = pl.coalesce(distance, interval / timedelta(microseconds=1))

    def after(moment: datetime) -> pl.Expr:
        """Samples later than a moment."""
        rest = (pl.col("until") - pl.lit(moment, SUMMARY["last"])).dt.total_microseconds()
        # A sample on the edge is before it; jitter of a thousandth of the distance does not matter.
        number = ((rest / us) + 0.999).floor().cast(pl.Int64)
        return number.clip(0, pl.col("count"))

    return int(rows.select((after(window.start) - after(window.end)).sum()).item() or 0)


def _kept(rows: pl.DataFrame, interval: timedelta) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The stretches that are kept, and those in doubt."""
    same = pl.col("ident") == pl.col("ident").shift()
    before = pl.col("until").cum_max().over("ident").shift()
    other = pl.col("origin") != pl.col("origin").shift()
    close = (
        pl.when(other)
        .then(pl.col("time") - before < NEAR * interval)
        .otherwise(pl.col("time") <= before)
    )
    met = rows.filter((same & close).fill_null(value=False))["ident"].unique()
    if met.is_empty():
        return rows, rows.clear()
    meeting = pl.col("ident").is_in(met.to_list())
    kept, doubtful = _thinned(rows.filter(meeting), interval)
    return pl.concat([rows.filter(~meeting), kept]), doubtful


def _thinned(rows: pl.DataFrame, interval: timedelta) -> tuple[pl.DataFrame, pl.DataFrame]:
    """As ``clean`` thins: one scraper whole, of each next one what lies away from all kept."""
    rows = _without_twins(rows)
    order = (
        rows.group_by("ident", "origin")
        .agg(
            pl.col("series", "richness").sort_by("series").first(),
            total=pl.col("count").sum(),
            begun=pl.col("time").min(),
        )
        .sort("ident", -pl.col("richness"), -pl.col("total"), "begun", "series")
        .with_columns(turn=pl.int_range(pl.len()).over("ident") + 1)
    )
    rows = rows.join(order.select("ident", "origin", "turn"), on=["ident", "origin"])
    kept = rows.filter(pl.col("turn") == 1).sort("ident", "time")
    doubts = [kept.filter(_laps())]
    for turn in order["turn"].unique().sort().to_list()[1:]:
        extra = rows.filter(pl.col("turn") == turn).sort("ident", "time")
        doubts.append(extra.filter(_laps()))
        judged = _judged(extra, kept, interval)
        doubts.append(judged.filter("doubtful").select(extra.columns))
        far = judged.filter("far").select(extra.columns)
        kept = pl.concat([kept, far]).sort("ident", "time")
    columns = [name for name in rows.columns if name != "turn"]
    return kept.select(columns), pl.concat(doubts).select(columns)


def _without_twins(rows: pl.DataFrame) -> pl.DataFrame:
    """Series of one scraper that say the same at the same times are one."""
    by = ["ident", "origin", "meaning", "time", "until", "count", "value"]
    return rows.unique(by, keep="first", maintain_order=True)


def _laps() -> pl.Expr:
    """Whether a stretch of one scraper begins before another one ends."""
    before = pl.col("until").cum_max().over("ident").shift()
    same = pl.col("ident") == pl.col("ident").shift()
    return (same & (pl.col("time") <= before)).fill_null(value=False)


def _judged(extra: pl.DataFrame, kept: pl.DataFrame, interval: timedelta) -> pl.DataFrame:
    """Add ``far`` (away from all that is kept) and ``doubtful``; the others are copies."""
    near = NEAR * interval
    runs = _solid_runs(kept, interval)
    back = runs.select("ident", "low", low_end="high", low_says="says").sort("low")
    ahead = runs.select("ident", next="low").sort("next")
    met = (
        extra.with_columns(edge=pl.col("until") + near)
        .sort("edge")
        .join_asof(back, left_on="edge", right_on="low", by="ident", check_sortedness=False)
        .sort("until")
        .join_asof(
            ahead,
            left_on="until",
            right_on="next",
            by="ident",
            strategy="forward",
            check_sortedness=False,
        )
    )
    away = (pl.col("low").is_null() | (pl.col("time") - pl.col("low_end") > near)) & (
        pl.col("next").is_null() | (pl.col("next") - pl.col("until") > near)
    )
    covered = (pl.col("time") >= pl.col("low") - near) & (
        pl.col("until") <= pl.col("low_end") + near
    )
    says = pl.struct("meaning", "value")
    agrees = pl.col("low_says").list.len() == 1
    agrees = agrees & (pl.col("low_says").list.first() == says)
    copy = covered & (agrees | pl.col("raw"))
    return met.with_columns(
        far=away.fill_null(value=False), doubtful=~(away | copy).fill_null(value=False)
    )


def _solid_runs(kept: pl.DataFrame, interval: timedelta) -> pl.DataFrame:
    """Runs of kept samples with none missing: ``ident``, ``low``, ``high`` and what they say.

    A stretch with a sample missing is a run of its own that covers nothing: ``says`` is empty.
    """
    span = (pl.col("until") - pl.col("time")).dt.total_microseconds()
    full = (span / (interval / timedelta(microseconds=1))).round() + 1 <= pl.col("count")
    apart = (pl.col("time") - pl.col("until").shift() > _ALONE * interval) | (
        pl.col("ident") != pl.col("ident").shift()
    )
    broken = apart.fill_null(value=True) | ~full | ~full.shift(fill_value=True)
    return (
        kept.sort("ident", "time")
        .with_columns(full=full, run=broken.cum_sum())
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("ident").first(),
            low=pl.col("time").min(),
            high=pl.col("until").max(),
            says=pl.struct("meaning", "value").filter("full").unique(),
        )
        .drop("run")
    )
