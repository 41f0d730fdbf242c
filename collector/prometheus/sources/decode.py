"""Replies of the query API as tables: millions of points a second, few copies.

A reply is decoded down to its series, whose labels and points stay bytes. Labels are made canonical
once per distinct text; the points of all series become the lines of one CSV file in memory. What is
not written as servers write it (blanks, numbers that are no text) takes the slow, typed way.

Form: https://prometheus.io/docs/prometheus/latest/querying/api/#expression-query-result-formats
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import polars as pl

from collector.prometheus.sources.source import SAMPLES
from ledger.text import canonical_json

_MOST_LABELS = 200_000  # label sets of one connection that are remembered
_OPENING = b",-1,0],"


class _One(msgspec.Struct):
    """A series: its labels, and either points or one point."""

    metric: msgspec.Raw = msgspec.Raw(b"{}")
    values: msgspec.Raw = msgspec.Raw(b"")
    value: msgspec.Raw = msgspec.Raw(b"")


class _Data(msgspec.Struct):
    result: list[_One] = msgspec.field(default_factory=list)


class _Envelope(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)
    warnings: list[str] | None = None
    infos: list[str] | None = None
    isPartial: bool | None = None  # VictoriaMetrics


@dataclass(frozen=True)
class Answer:
    """What a server replied.

    Args:
        frame: Points, as ``source.SAMPLES``, series by series; time stamps to the millisecond.
        warnings: What it says it left out.
        infos: What else it says.
        series: Number of its series.
        label_bytes: Size of the labels in the reply.
        point_bytes: Size of the points in it.
    """

    frame: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAMPLES))
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()
    series: int = 0
    label_bytes: int = 0
    point_bytes: int = 0


class Decoder:
    """Decodes replies; remembers the labels that it has seen. Not to be shared between threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def decode(self, body: bytes) -> Answer:
        """A reply as a table.

        Raises:
            msgspec.DecodeError: It is not in the form of the API.
            UnicodeError: It is no UTF-8.
        """
        envelope = msgspec.json.decode(body, type=_Envelope)
        found = envelope.data.result
        points = [_list_of(one) for one in found]
        partial = ("the reply is partial",) if envelope.isPartial else ()
        return Answer(
            self._frame(found, points),
            (*(envelope.warnings or ()), *partial),
            tuple(envelope.infos or ()),
            len(found),
            sum(len(one.metric) for one in found),
            sum(map(len, points)),
        )

    def _frame(self, found: Sequence[_One], points: Sequence[memoryview]) -> pl.DataFrame:
        if not found:
            return pl.DataFrame(schema=SAMPLES)
        rows = _quick(points)
        rows = _typed(points) if rows is None else rows
        texts = pl.Series("labels", [self._canonical(one.metric) for one in found], pl.String)
        return rows.select(
            texts.gather(rows["series"]),
            pl.col("milliseconds").cast(pl.Datetime("ms", "UTC")).cast(SAMPLES["timestamp"]),
            "value",
        ).rename({"milliseconds": "timestamp"})

    def _canonical(self, metric: msgspec.Raw) -> str:
        raw = bytes(metric)
        known = self._known.get(raw)
        if known is None:
            labels = msgspec.json.decode(raw, type=dict[str, str])
            labels.pop("__name__", None)
            known = canonical_json(labels)
            if len(self._known) >= _MOST_LABELS:
                self._known.clear()
            self._known[raw] = known
        return known


def _list_of(one: _One) -> memoryview:
    """The points of a series as a JSON list without its outer brackets."""
    if len(one.values):
        return memoryview(one.values)[1:-1]
    return memoryview(one.value)


def _quick(points: Sequence[memoryview]) -> pl.DataFrame | None:
    """``series``, ``milliseconds``, ``value``; None if they are not written as expected.

    Without quotes and opening brackets a point is a line ``,1733000000,0.5`` that ends with ``]``.
    A line of our own opens each series.
    """
    lines = _OPENING.join([b"", *points]).translate(None, b'"[')
    whole = b"." not in lines[len(_OPENING) : len(_OPENING) + 11]
    for kind in (pl.Int64(), pl.Float64()) if whole else (pl.Float64(),):
        read = pl.read_csv(
            lines,
            has_header=False,
            schema={"none": pl.String(), "seconds": kind, "value": pl.Float64()},
            columns=[1, 2],
            eol_char="]",
            quote_char=None,
            ignore_errors=True,
        )
        opening = pl.col("seconds") < 0
        lacking = sum(read.null_count().row(0))
        if lacking or read.select(opening.sum()).item() != len(points):
            continue
        milliseconds = pl.col("seconds") * 1000
        return (
            read.with_columns(series=opening.cum_sum() - 1)
            .filter(~opening)
            .select(
                "series",
                milliseconds=milliseconds.round().cast(pl.Int64),
                value="value",
            )
        )
    return None


def _typed(points: Sequence[memoryview]) -> pl.DataFrame:
    """The same by way of Python's objects; a value that is no number is null."""
    decoder = msgspec.json.Decoder(list[tuple[float, str]])
    rows = [
        (number, round(seconds * 1000), value)
        for number, text in enumerate(points)
        for seconds, value in decoder.decode(b"[" + bytes(text) + b"]")
    ]
    schema = {"series": pl.Int64, "milliseconds": pl.Int64, "value": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        pl.col("value").cast(pl.Float64, strict=False)
    )
