"""What a server that knows MetricsQL says of each state series instead of its samples.

Several numbers of a series come from one pass over its samples (``aggr_over_time``), each under the
label ``rollup``; operators between two answers, which cost more than the passes, are avoided. What
would disprove a summary is asked for by itself, in a question whose answer is empty where nothing
does. All numbers are of the samples in (t - length, t].

Of states that only count where they are 1 (``nonzero``) the block of ones is worked out:

- They go on to the end, if the last change is not after the last of them: the block begins with
  that change, or with the first sample.
- Else the last change is the first zero after them, and the integral up to it is how long before
  they began.
- It is one block if the values fell as often as it ended, and there is nothing but zeros and ones
  if their sum is the sum of their squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

import polars as pl

from collector.prometheus.samples.summary import SUMMARY
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import PushDown
from collector.prometheus.sources.wire import literal

ENDS = ("tfirst_over_time", "tlast_over_time", "count_over_time")
BLOCK = (
    "tfirst_over_time",
    "tmax_over_time",
    "tlast_change_over_time",
    "decreases_over_time",
    "integrate",
    "sum_over_time",
    "sum2_over_time",
)
_MARK = "rollup"
_OTHER, _ODD = "last_over_time", "odd"
_MARKED = f',?"{_MARK}":"([a-z0-9_]+)"'


def questions(
    push: PushDown, series: Series, length: timedelta, only: str, keys: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """What is asked of a series, and how points are marked that bear no mark.

    Args:
        push: The server.
        series: What is asked about.
        length: Of the cell before each point.
        only: Further matchers.
        keys: Labels that tell most series of it apart.
    """
    span = push.span(length)

    def name(extra: str = "") -> str:
        return series.metric + push.matcher(",".join(part for part in (only, extra) if part)) + span

    if series.nonzero:
        label, values = series.often or ("", ())
        for value in values:
            yield f"aggr_over_time({_listed(BLOCK)}, {name(f'{label}={_quoted(value)}')})", ""
        others = f"{label}!~{_quoted('|'.join(literal(value) for value in values))}"
        rest = name(others if values else "")
        some = f"and on({','.join(keys)}) (sum2_over_time({rest}) != 0)"
        yield f"aggr_over_time({_listed(BLOCK)}, {rest}) {some}", ""
        return
    yield f"aggr_over_time({_listed(ENDS)}, {name()})", ""
    if series.valued:
        yield f"last_over_time({name()})", _OTHER
        yield f"changes_prometheus({name()}) > 0", _ODD
    else:
        yield f"count_ne_over_time({name()}, 1) > 0", _ODD


def _listed(functions: Iterable[str]) -> str:
    return "(" + ",".join(f'"{function}"' for function in functions) + ")"


def _quoted(text: str) -> str:
    return f'"{text}"'


def decode(answers: Sequence[tuple[pl.DataFrame, str]], series: Series) -> pl.DataFrame:
    """The cells of the answers, as ``SUMMARY``.

    Args:
        answers: Points (``labels``, ``timestamp``, ``value``), and the mark of those without one.
        series: What was asked about.
    """
    functions = BLOCK if series.nonzero else (*ENDS, _OTHER, _ODD)
    points = pl.concat([_marked(frame, mark) for frame, mark in answers])
    wide = points.group_by("labels", "timestamp").agg(
        pl.col("value").filter(pl.col("mark") == function).first().alias(function)
        for function in functions
    )
    return _blocks(wide) if series.nonzero else _ends(wide, valued=series.valued)


def _marked(frame: pl.DataFrame, mark: str) -> pl.DataFrame:
    if mark:
        return frame.with_columns(mark=pl.lit(mark))
    texts = frame["labels"].unique().sort()
    split = pl.DataFrame(
        {
            "text": texts,
            "labels": texts.str.replace(_MARKED, "").str.replace("{,", "{", literal=True),
            "mark": texts.str.extract(_MARKED),
        }
    )
    told = frame.rename({"labels": "text"}).join(split, on="text")
    return told.select("labels", "timestamp", "value", "mark")


def _ends(wide: pl.DataFrame, *, valued: bool) -> pl.DataFrame:
    """Cells of series whose samples all count."""
    value = pl.col(_OTHER) if valued else pl.lit(1.0)
    told = wide.filter(pl.col("count_over_time").is_not_null())
    return _summary(
        told.with_columns(
            first=_time("tfirst_over_time"),
            last=_time("tlast_over_time"),
            count="count_over_time",
            said=value,
            fine=pl.col(_ODD).is_null() & (value >= 0) & value.is_finite(),
        )
    )


def _blocks(wide: pl.DataFrame) -> pl.DataFrame:
    """Cells of series of which only ones count."""
    change, highest = pl.col("tlast_change_over_time"), pl.col("tmax_over_time")
    ended = (change > highest).fill_null(value=False)
    begun = pl.when(ended).then(change - pl.col("integrate")).otherwise(change)
    first = pl.max_horizontal(begun, "tfirst_over_time")  # it may have begun before the cell
    ones = pl.col("sum_over_time")
    told = wide.filter((pl.col("sum2_over_time") != 0).fill_null(value=True))
    return _summary(
        told.with_columns(begun=first).with_columns(
            first=_time("begun"),
            last=_time("tmax_over_time"),
            count=ones,
            said=pl.lit(1.0),
            fine=(ones == pl.col("sum2_over_time"))
            & (pl.col("decreases_over_time") == ended.cast(pl.Int64)),
        )
    )


def _summary(rows: pl.DataFrame) -> pl.DataFrame:
    whole = pl.col("count").is_finite() & (pl.col("count") == pl.col("count").round())
    ordered = (pl.col("first") <= pl.col("last")) & (pl.col("count") >= 1)
    proven = (pl.col("fine") & whole & ordered).fill_null(value=False)
    return rows.select(
        "labels",
        cell="timestamp",
        first="first",
        last="last",
        count=pl.when(whole).then("count").cast(pl.Int64, strict=False),
        value="said",
        proven=proven,
    ).cast(SUMMARY)


def _time(seconds: str) -> pl.Expr:
    """A Unix time in seconds as a time, to the millisecond."""
    finite = pl.when(pl.col(seconds).is_finite()).then(pl.col(seconds))
    stamp = (finite * 1000).round().cast(pl.Int64, strict=False).cast(pl.Datetime("ms"))
    return stamp.dt.replace_time_zone("UTC").cast(SUMMARY["first"])
