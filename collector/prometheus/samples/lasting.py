"""What series said in the end, since when, and what they counted: one query for many series.

A server works it out; where there is none, raw samples are read. Both give a row per meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from collector.prometheus.samples.clean import clean
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import PushDown, QueryError
from ledger.facts import Gap
from ledger.schema import TIME

Frames = dict[str, pl.DataFrame]
SumUp = Callable[[Series, pl.DataFrame], pl.DataFrame]

_NAME = "series"  # the label that carries a metric's name through a query
_TRUE = 'condition=~"true|"'  # of a condition only the series that says that it holds


class Lasting:
    """Questions about the day of a reader; a metric that is not held is in no answer.

    Args:
        reader: Whose source, day and account of gaps are used.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._raw: dict[str, pl.DataFrame | None] = {}

    def last(self, wanted: Sequence[Series], positive: Sequence[Series] = ()) -> Frames:
        """The last value on the day by metric: the columns of the series and ``value``.

        Args:
            wanted: What is asked for.
            positive: What is asked for as well, but only where it is above 0.
        """
        held, above = self._held(wanted), self._held(positive)
        push = self._push([*held, *above])
        if push is None:
            found = self._each([*held, *above], _last(self._reader))
            return found | {
                one.metric: found[one.metric].filter(pl.col("value") > 0)
                for one in above
                if one.metric in found
            }
        parts = [self._lasting(push, held), self._lasting(push, above, " > 0")]
        return self._ask(push, [part for part in parts if part], [*held, *above])

    def counted(self, wanted: Sequence[Series]) -> Frames:
        """What counters counted on the day: the columns of the series and ``value``.

        A counter that fell has started again from 0; one that was not there before the day began
        with it.
        """
        held = self._held(wanted)
        push = self._push(held)
        if push is None:
            return self._each(held, _counted(self._reader))
        promql = self._lasting(push, held)
        after = self._ask(push, [promql], held) if promql else {}
        before = self._ask(push, [promql], held, start=True) if after else {}
        return {
            one.metric: _difference(one, after[one.metric], before.get(one.metric))
            for one in held
            if one.metric in after
        }

    def moments(self, wanted: Sequence[Series]) -> Frames:
        """The first and the last sample on the day: the columns, ``first`` and ``last``.

        Of a series with a label ``condition`` only what is true. A server looks once a minute.
        """
        held = self._held(wanted)
        push = self._push(held)
        if push is None:
            return self._each(held, _moments(self._reader))
        seconds = int((self._reader.window.end - self._reader.window.start).total_seconds())
        ends: list[Frames] = []
        for function in ("min", "max"):
            # timestamp() forgets which metric it looks at: each is asked with its name beside.
            parts = [
                f"label_replace({function}_over_time(timestamp({one.metric}{push.matcher(_TRUE)})"
                f'[{seconds}s:1m]),"{_NAME}","{one.metric}","","")'
                for one in held
            ]
            ends.append(self._ask(push, parts, held) if parts else {})
        low, high = ends
        return {
            one.metric: _spans(one, low[one.metric], high[one.metric])
            for one in held
            if one.metric in low and one.metric in high
        }

    def _held(self, wanted: Sequence[Series]) -> list[Series]:
        return [one for one in wanted if one.metric in self._reader.names(one)]

    def _push(self, held: Sequence[Series]) -> PushDown | None:
        return self._reader.source.push_down if held else None

    def _lasting(self, push: PushDown, held: Sequence[Series], also: str = "") -> str:
        """An expression for the last value on the day of some metrics, by name; empty for none."""
        if not held:
            return ""
        names = "|".join(one.metric for one in held)
        span = push.span(self._reader.window.end - self._reader.window.start)
        inner = push.matcher(f'__name__=~"{names}"') + span
        return f'label_replace(last_over_time({inner}){also},"{_NAME}","$1","__name__","(.+)")'

    def _ask(
        self, push: PushDown, parts: Sequence[str], held: Sequence[Series], *, start: bool = False
    ) -> Frames:
        """One query at the end (or start) of the day, cut by metric and cleaned."""
        reader = self._reader
        reader.asked += 1
        try:
            at = reader.window.start if start else reader.window.end
            reading = push.at(" or ".join(parts), at)
            raw = reading.frame.collect()
        except QueryError as error:
            reader.failures.append(error)
            blind = "; ".join(dict.fromkeys(one.blind for one in held))
            reader.gaps.append(
                Gap("query_failed", f"{held[0].metric}, ...: {error.message}; blind: {blind}")
            )
            return {}
        reader.gaps.extend(gap for gap in reading.gaps if gap not in reader.gaps)
        reader.notes.extend(reading.notes)
        named = raw.with_columns(name=pl.col("labels").str.json_path_match(f"$.{_NAME}"))
        return {
            one.metric: frame
            for one in held
            if (frame := self._cleaned(one, named.filter(pl.col("name") == one.metric))) is not None
        }

    def _cleaned(self, series: Series, raw: pl.DataFrame) -> pl.DataFrame | None:
        reader = self._reader
        found = clean(raw.drop("name"), series, reader.window, reader.who)
        reader.quarantine.extend(found.quarantine)
        reader.samples += found.read
        if found.samples.is_empty():
            return None
        return found.frame.select(*series.columns, "value")

    def _each(self, held: Sequence[Series], sum_up: SumUp) -> Frames:
        """The same of raw samples, series by series."""
        found = {}
        for one in held:
            if one.metric not in self._raw:
                read = self._reader.read_one(one)
                self._raw[one.metric] = None if read is None else read.frame
            frame = self._raw[one.metric]
            summed = None if frame is None else sum_up(one, frame)
            if summed is not None and not summed.is_empty():
                found[one.metric] = summed
        return found


def _today(reader: Reader) -> pl.Expr:
    return (pl.col("time") > reader.window.start) & (pl.col("time") <= reader.window.end)


def _last(reader: Reader) -> SumUp:
    def last(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
        return _by(series, frame.filter(_today(reader)).sort("time"), pl.col("value").last())

    return last


def _counted(reader: Reader) -> SumUp:
    def counted(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
        ordered = frame.sort("time")
        after = _by(series, ordered.filter(_today(reader)), pl.col("value").last())
        early = ordered.filter(pl.col("time") <= reader.window.start)
        return _difference(series, after, _by(series, early, pl.col("value").last()))

    return counted


def _moments(reader: Reader) -> SumUp:
    def moments(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
        rows = frame.filter(_today(reader))
        if "condition" in series.columns:
            rows = rows.filter(pl.col("condition") == "true")
        return _by(
            series, rows, pl.col("time").min().alias("first"), pl.col("time").max().alias("last")
        )

    return moments


def _by(series: Series, frame: pl.DataFrame, *what: pl.Expr) -> pl.DataFrame:
    """A row per meaning of a series, in the order of its columns."""
    keys = list(series.columns)
    return frame.group_by(keys, maintain_order=True).agg(*what).sort(keys)


def _difference(series: Series, after: pl.DataFrame, before: pl.DataFrame | None) -> pl.DataFrame:
    """What a counter rose by; what fell has started again from 0."""
    keys = list(series.columns)
    known = after.clear() if before is None else before
    both = after.join(known.rename({"value": "earlier"}), on=keys, how="left", nulls_equal=True)
    rise = pl.col("value") - pl.col("earlier").fill_null(0.0)
    return both.select(*keys, pl.when(rise < 0).then("value").otherwise(rise).alias("value"))


def _spans(series: Series, low: pl.DataFrame, high: pl.DataFrame) -> pl.DataFrame:
    """First and last sample as times, of values that are seconds since 1970."""
    keys = list(series.columns)
    both = low.rename({"value": "first"}).join(
        high.rename({"value": "last"}), on=keys, nulls_equal=True
    )
    return both.with_columns(
        (pl.col(name) * 1000)
        .round()
        .cast(pl.Int64)
        .cast(pl.Datetime("ms"))
        .cast(pl.Datetime("us"))
        .dt.replace_time_zone("UTC")
        .cast(TIME)
        for name in ("first", "last")
    )
