"""Efficiency: sums of use over sums of requests, weighted by cost over all three resources."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from attribution.efficiency import PARTS, efficiencies, figures, parts
from ledger.schema import MONEY
from tests.field_cases import allocation_cases


def rows(resource: str, used: list[Any], requested: list[Any], paid: list[Any]) -> pl.DataFrame:
    """Rows of ``costs`` of workloads."""

    def money(values: list[Any]) -> list[Decimal | None]:
        return [None if value is None else Decimal(str(value)) for value in values]

    return pl.DataFrame(
        {
            "target": ["workload"] * len(used),
            "resource": [resource] * len(used),
            "requested": money(requested),
            "used": money(used),
            "EffectiveCost": money(paid),
        },
        schema_overrides=dict.fromkeys(("requested", "used", "EffectiveCost"), MONEY),
    )


def only(frame: pl.DataFrame) -> dict[str, Any]:
    return efficiencies(frame).row(0, named=True)


@pytest.mark.parametrize("name", ["S7-a", "S7-b", "S7-c", "S7-d", "S7-e", "S7-f"])
def test_sums_and_no_mean_of_ratios(shared: Path, name: str) -> None:
    case = allocation_cases(shared)[name]
    given: Mapping[str, Any] = case["given"]
    resource = "cpu" if "CPU" in case["title"] else "memory"
    found = only(rows(resource, given["use"], given["request"], given["cost"]))
    right = pytest.approx(case["expect"]["efficiency"], abs=case["tolerance"])
    assert found[f"{resource}_efficiency"] == right
    assert found["efficiency"] == right


def test_a_busy_cpu_beside_idle_cards_is_not_efficient(shared: Path) -> None:
    case = allocation_cases(shared)["B09"]
    cost, ratio = case["given"]["cost"], case["given"]["efficiency"]
    names = {"cpu": "cpu", "memory": "ram", "gpu": "gpu"}
    frame = pl.concat(
        rows(resource, [ratio[theirs]], [1], [cost[theirs]]) for resource, theirs in names.items()
    )
    expect = case["expect"]["total_efficiency"]
    assert only(frame)["efficiency"] == pytest.approx(expect, abs=case["tolerance"])


def test_idle_rows_are_left_out() -> None:
    work = rows("cpu", [2], [4], [1])
    idle = rows("cpu", [0], [96], [20]).with_columns(target=pl.lit("__idle__"))
    assert only(pl.concat([work, idle]))["cpu_efficiency"] == 0.5
    assert set(only(idle).values()) == {None}


def test_what_is_not_known_is_neither_used_nor_unused() -> None:
    known, dark = rows("gpu", [4], [8], [1]), rows("gpu", [None], [8], [1])
    assert only(pl.concat([known, dark]))["gpu_efficiency"] is None
    little = rows("gpu", [None], ["0.08"], ["0.01"])
    assert only(pl.concat([known, little]))["gpu_efficiency"] == 0.5
    cpu = rows("cpu", [1], [1], [1])
    both = only(pl.concat([cpu, dark]))
    assert (both["cpu_efficiency"], both["efficiency"]) == (1.0, None)


def test_lines_that_repeat_a_pod_add_cost_and_no_hours() -> None:
    credit = rows("cpu", [None], [None], ["-0.5"])
    found = only(pl.concat([rows("cpu", [1], [2], [1]), credit]))
    assert (found["cpu_efficiency"], found["efficiency"]) == (0.5, 0.5)


def test_grouping_twice_is_grouping_once() -> None:
    frame = pl.concat([rows("cpu", [1, 3], [4, 4], [1, 2]), rows("gpu", [8, 0], [8, 8], [30, 30])])
    frame = frame.with_columns(day=pl.Series([1, 2, 1, 2]), owner=pl.lit("lin"))
    twice = frame.group_by("owner", "day").agg(parts()).group_by("owner").agg(**figures())
    once = efficiencies(frame, ["owner"])
    assert twice.row(0) == once.row(0)
    assert once["efficiency"].item() == (1.5 + 30) / 63
    assert set(PARTS) <= set(frame.group_by("day").agg(parts()).columns)
