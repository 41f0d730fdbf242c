"""Replies become tables, however they are written."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.prometheus.sources.decode import Decoder

PAIRS = st.tuples(
    st.one_of(st.integers(0, 2**32), st.integers(0, 2**40).map(lambda ms: ms / 1000)),
    st.one_of(st.floats(), st.sampled_from([1e-07, -1.97e25, 2.0**62])),
)
LABELS = st.dictionaries(
    st.text('abé"[],', min_size=1, max_size=4), st.text(max_size=4), max_size=3
)


def body(
    series: Sequence[tuple[dict[str, str], Sequence[tuple[float, str]]]], gap: str = ""
) -> bytes:
    result = [
        {"metric": dict([("__name__", "x"), *one.items()]), "values": values}
        for one, values in series
    ]
    reply = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(reply, separators=("," + gap, ":" + gap)).encode()


def text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(str(value), repr(value))


@given(
    st.lists(st.tuples(LABELS, st.lists(PAIRS, max_size=5)), max_size=4), st.sampled_from(["", " "])
)
@settings(max_examples=60, deadline=None)
def test_every_point_survives(
    series: list[tuple[dict[str, str], list[tuple[float, float]]]], gap: str
) -> None:
    told = [(labels, [(time, text(value)) for time, value in pairs]) for labels, pairs in series]
    frame = Decoder().decode(body(told, gap)).frame
    flat = [(labels, time, value) for labels, pairs in series for time, value in pairs]
    assert [json.loads(one) for one in frame["labels"]] == [labels for labels, _, _ in flat]
    times = frame["timestamp"].dt.epoch("ms").to_list()
    assert times == [round(time * 1000) for _, time, _ in flat]
    for found, (_, _, value) in zip(frame["value"], flat, strict=True):
        assert found == value or (math.isnan(found) and math.isnan(value))


def test_a_vector_and_what_stands_beside_it() -> None:
    reply = (
        b'{"status":"success","isPartial":true,"warnings":["w"],"infos":["i"],"data":'
        b'{"resultType":"vector","result":[{"metric":{"b":"1","a":"2"},"value":[1.5,"7"]}]}}'
    )
    answer = Decoder().decode(reply)
    assert answer.frame.rows() == [
        ('{"a":"2","b":"1"}', datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), 7.0)
    ]
    assert (answer.warnings, answer.infos) == (("w", "the reply is partial"), ("i",))
    assert answer.series == 1


def test_what_is_no_number_is_null_and_what_is_no_reply_an_error() -> None:
    frame = Decoder().decode(body([({}, [(1, "1"), (2, "x")])])).frame
    assert frame["value"].to_list() == [1.0, None]
    assert (
        Decoder()
        .decode(b'{"status":"success","data":{"result":[]}}')
        .frame.equals(pl.DataFrame(schema=frame.schema))
    )
    with pytest.raises(msgspec.DecodeError):
        Decoder().decode(b"<html>")
