"""What a server that knows PromQL says of each state series instead of its samples.

A span is cut into cells of some hours. Of each series and cell the server gives two numbers, and
where values differ from series to series a third:

- when its first and last sample were, in milliseconds before the cell's end
  (``first * 2^24 + last``, a half more where all its values are one and the same, and plausible);
- how many samples it has;
- its value.

Of states that only count where they are 1 (``nonzero``), the samples of 1 are meant, and the server
leaves out what is 0 all the time. All of it is arithmetic of PromQL, so that one question brings
all numbers, told apart by the label ``runbill_q``. PromQL finds first and
last sample by a subquery of ``timestamp``, which is the sample's own time, never that of a
look-back. Servers that know MetricsQL are asked otherwise (``rollups``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import PushDown, Reading

CELL = timedelta(hours=3, minutes=30)  # a day and its margins are seven
_UNIT = 2**24  # milliseconds of a cell; the longest is 4.6 hours
_MARK = "runbill_q"

SUMMARY = pl.Schema(
    {
        "labels": pl.String(),
        "cell": pl.Datetime("us", "UTC"),
        "first": pl.Datetime("us", "UTC"),
        "last": pl.Datetime("us", "UTC"),
        "count": pl.Int64(),
        "value": pl.Float64(),
        "proven": pl.Boolean(),
    }
)
"""``labels``; ``cell``, its end; ``first`` and ``last`` time of samples (``first`` null: before the
cell, so that it goes on from there); their ``count`` and ``value``; whether it is the only one."""


@dataclass(frozen=True)
class Wording:
    """How a server is asked.

    Args:
        push: The server.
        step: Of subqueries; no longer than the distance of samples.
    """

    push: PushDown
    step: timedelta

    def ask(self, series: Series, only: str = "", *, plain: bool) -> str:
        """The question of a series.

        Args:
            series: What is asked about.
            only: Further matchers.
            plain: Whether all values should be 1.
        """
        name = series.metric + self.push.matcher(only)
        span = self.push.span(CELL)
        if series.nonzero:
            first, last = self._extremes(f"(timestamp({name}) and {name} == 1)")
            least, most = f"min_over_time({name}{span})", f"max_over_time({name}{span})"
            fine = f"({least} >= bool 0) * ({most} == bool 1)"
            # With anything but 0, in whatever way it adds up.
            some = f"sum_over_time({name}{span}) != 0 or min_over_time({name}{span}) < 0"
            count = f"sum_over_time({name}{span}) and ({some})"
        else:
            first, last = self._extremes(f"timestamp({name})")
            fine = f"(changes({name}{span}) == bool 0)"
            if plain:
                fine += f" * (last_over_time({name}{span}) == bool 1)"
            some = ""
            count = f"count_over_time({name}{span})"
        ends = f"{_ago(first)} * {_UNIT} + {_ago(last)} + 0.5 * {fine}"
        parts = {"p": f"({ends}) and ({some})" if some else ends, "n": count}
        if not plain and not series.nonzero:
            parts["v"] = f"last_over_time({name}{span})"
        return " or ".join(
            f'label_replace({text}, "{_MARK}", "{mark}", "", "")' for mark, text in parts.items()
        )

    def _extremes(self, times: str) -> tuple[str, str]:
        seconds = [part // timedelta(seconds=1) for part in (CELL, self.step)]
        span = f"[{seconds[0]}s:{seconds[1]}s]"
        return f"min_over_time({times}{span})", f"max_over_time({times}{span})"


def _ago(time: str) -> str:
    return f"round((time() - {time}) * 1000)"


def decode(reading: Reading, *, valued: bool) -> pl.DataFrame:
    """The cells of a reply, as ``SUMMARY``.

    Args:
        reading: The reply.
        valued: Whether it holds values; all of them are 1 otherwise.
    """
    points = reading.frame.collect()
    texts = points["labels"].unique().sort()
    split = pl.DataFrame(
        {"text": texts, "mark": texts.str.extract(_Q), "labels": texts.str.replace(_Q, "")},
    ).with_columns(labels=pl.col("labels").str.replace("{,", "{", literal=True))
    rows = points.rename({"labels": "text"}).join(split, on="text")
    by = ["labels", "timestamp"]
    ends, counts, values = (
        rows.filter(mark=mark).select(*by, pl.col("value").alias(mark)) for mark in "pnv"
    )
    both = counts.join(ends, on=by, how="left")
    both = both.join(values, on=by, how="left") if valued else both.with_columns(v=pl.lit(1.0))
    whole = pl.col("p").floor().cast(pl.Int64, strict=False)
    first, last = whole // _UNIT, whole % _UNIT
    begun = first < CELL // timedelta(milliseconds=1)
    end = pl.col("timestamp")
    whole_number = pl.col("n") == pl.col("n").round()
    told = (
        pl.col("p").is_finite() & whole_number & pl.col("n").is_finite() & pl.col("v").is_finite()
    )
    proven = (pl.col("p") > whole) & (pl.col("v") >= 0) & (first >= last) & (last >= 0)
    return both.select(
        "labels",
        cell=end,
        first=pl.when(told & begun).then(end - pl.duration(milliseconds=first)),
        last=pl.when(told).then(end - pl.duration(milliseconds=last)),
        count=pl.when(pl.col("n").is_finite())
        .then(pl.col("n"))
        .round()
        .cast(pl.Int64, strict=False),
        value="v",
        proven=(told & proven).fill_null(value=False),
    )


_Q = f',?"{_MARK}":"([nvp])"'


def cell_of(column: str, start: datetime) -> pl.Expr:
    """The end of the cell that holds a time, if the first cell begins at ``start``."""
    origin = pl.lit(start, dtype=SUMMARY["cell"])
    passed = (pl.col(column) - origin).dt.total_microseconds()
    number = (passed - 1) // (CELL // timedelta(microseconds=1)) + 1
    return origin + number * pl.lit(CELL)
