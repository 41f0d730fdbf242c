"""Unused quota: moved out of idle, never more than there is, and nothing is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attribution.query.quota import quota_overhead
from ledger.schema import MONEY
from ledger.window import Window
from tests.attribution.query_books import DAY
from tests.field_cases import allocation_cases

_QUOTA: dict[str, Any] = {
    "BillingCurrency": pl.String,
    "day": pl.Date,
    "cluster": pl.String,
    "namespace": pl.String,
    "resource": pl.String,
    "hard": MONEY,
    "used": MONEY,
    "price": MONEY,
}
_IDLE: dict[str, Any] = {
    "BillingCurrency": pl.String,
    "day": pl.Date,
    "cluster": pl.String,
    "resource": pl.String,
    "cost": MONEY,
}


def moved(
    quotas: Sequence[tuple[object, ...]], idle: Sequence[tuple[object, ...]], hours: float = 1
) -> dict[tuple[str | None, str], Decimal]:
    start = Window.of_day(DAY).start
    found = quota_overhead(
        pl.DataFrame([("USD", DAY, "c", *row) for row in quotas], schema=_QUOTA, orient="row"),
        pl.DataFrame([("USD", DAY, "c", *row) for row in idle], schema=_IDLE, orient="row"),
        Window(start, start + timedelta(hours=hours)),
    )
    return {(row["namespace"], row["resource"]): row["overhead"] for row in found.to_dicts()}


def test_unused_quota_is_moved_out_of_idle(shared: Path) -> None:
    case = allocation_cases(shared)["S18"]
    given, expect = case["given"], case["expect"]

    def number(block: str, key: str) -> Decimal:
        values: Mapping[str, float] = given[block]
        return Decimal(str(values[key]))

    resources = list(given["quota"])
    found = moved(
        [("team", r, *(number(b, r) for b in ("quota", "used", "price"))) for r in resources],
        [(r, number("idle_before", r)) for r in resources],
        given["hours"],
    )
    near = {"abs": case["tolerance"]}
    overhead = {r: float(found["team", r]) for r in resources}
    assert overhead == pytest.approx(expect["overhead"], **near)
    assert sum(overhead.values()) == pytest.approx(expect["overhead_total"], **near)
    after = {r: float(found[None, r]) for r in resources}
    assert after == pytest.approx(expect["idle_after"], **near)
    assert float(sum(found.values())) == pytest.approx(expect["sum"], **near)


def test_quotas_share_the_idle_that_there_is() -> None:
    quotas = [("a", "cpu", 10, 2, 1), ("b", "cpu", 5, 1, 1), ("z", "cpu", 5, 9, 1)]
    found = moved(quotas, [("cpu", 3), ("gpu", 7)])
    assert found == {
        ("a", "cpu"): 2,
        ("b", "cpu"): 1,
        ("z", "cpu"): 0,
        (None, "cpu"): 0,
        (None, "gpu"): 7,
    }


def test_what_is_not_known_moves_nothing() -> None:
    assert moved([("a", "cpu", 10, None, 1), ("b", "cpu", 10, 1, None)], [("cpu", 3)]) == {
        ("a", "cpu"): 0,
        ("b", "cpu"): 0,
        (None, "cpu"): 3,
    }


_UNITS = st.integers(0, 10**16).map(lambda units: Decimal(units).scaleb(-12))


@given(st.lists(st.tuples(st.sampled_from("abc"), _UNITS, _UNITS, _UNITS), max_size=6), _UNITS)
def test_no_quota_changes_the_sum(
    quotas: list[tuple[str, Decimal, Decimal, Decimal]], idle: Decimal
) -> None:
    found = moved([(name, "cpu", *rest) for name, *rest in quotas], [("cpu", idle)])
    assert sum(found.values()) == idle
    assert min(found.values()) >= 0
