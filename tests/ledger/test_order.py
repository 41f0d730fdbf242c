"""Rows in order of many text columns."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ledger.order import ordered

texts = st.none() | st.sampled_from(["", "a", "b", "é"])
rows = st.lists(st.tuples(texts, texts, st.none() | st.integers(0, 9), st.integers()), max_size=30)


@given(rows)
def test_it_is_the_order_of_a_sort(
    given: list[tuple[str | None, str | None, int | None, int]],
) -> None:
    schema = {"a": pl.String, "b": pl.String, "t": pl.Int64, "n": pl.Int128}
    frame = pl.DataFrame(given, schema=schema, orient="row").unique(["a", "b", "t"], keep="first")
    assert_frame_equal(ordered(frame, ["a", "b"], ["t"]), frame.sort("a", "b", "t"))
