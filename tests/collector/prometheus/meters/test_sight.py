"""Coverage per node and meter: what was seen of what could be expected."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ledger.schema import COVERAGE
from tests.collector.prometheus.builders import (
    MINUTE,
    Sample,
    at,
    card,
    collect,
    container,
    node,
    pod,
    small_day,
)

BEFORE, AFTER = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
NODES = [*node("gpu-0", BEFORE, AFTER), *node("gpu-1", BEFORE, AFTER)]


def rows(samples: list[Sample]) -> dict[tuple[str, str], dict[str, Any]]:
    frame = collect(samples).tables["coverage"]
    return {(row["node"], row["meter"]): row for row in frame.iter_rows(named=True)}


def told(samples: list[Sample]) -> list[str]:
    return [note for note in collect(samples).notes if "were seen" in note]


def test_rows_have_the_form_of_the_table_and_a_whole_day_is_whole() -> None:
    facts = collect(small_day())
    frame = facts.tables["coverage"]
    form = {name: dtype for name, dtype in COVERAGE.schema.items() if name != "source"}
    assert frame.schema == form
    assert frame.select("node", "meter").is_unique().all()
    assert frame.filter(pl.col("seen") > pl.col("expected")).is_empty()
    assert frame.filter(pl.col("meter") == "up").select("seen", "expected").row(0) == (1440, 1440)


def test_lost_scrapes_of_a_node_are_missing_from_its_coverage() -> None:
    kept = [one for one in NODES if "gpu-1" not in one.labels or one.time.hour not in (10, 11)]
    found = rows(kept)
    assert (found["gpu-0", "up"]["seen"], found["gpu-0", "up"]["expected"]) == (1440, 1440)
    assert (found["gpu-1", "up"]["seen"], found["gpu-1", "up"]["expected"]) == (1320, 1440)


def test_a_pod_without_samples_is_silent_and_not_idle() -> None:
    lived = [
        *pod("u1", at("10:00"), at("12:00")),
        *pod("u2", at("10:00"), at("12:00")),
        *container("u1", at("10:00"), at("12:00")),
    ]
    row = rows([*NODES, *lived])["gpu-0", "cpu_usage"]
    assert (row["things"], row["silent"]) == (2, 1)
    assert row["expected"] == pytest.approx(2 * 120, abs=2)
    assert row["seen"] == pytest.approx(120, abs=2)
    assert row["interval_seconds"] == 60


def test_cards_of_a_node_whose_exporter_is_down_are_expected_and_silent() -> None:
    seen = [one for index in range(8) for one in card(BEFORE, AFTER, uuid=f"GPU-{index}")]
    found = rows([*NODES, *seen])
    assert (found["gpu-0", "gpu_activity"]["seen"], found["gpu-0", "gpu_activity"]["silent"]) == (
        8 * 1440,
        0,
    )
    dark = found["gpu-1", "gpu_activity"]
    assert (dark["seen"], dark["expected"], dark["things"], dark["silent"]) == (0, 8 * 1440, 8, 8)
    (note,) = told([*NODES, *seen])
    assert note == (
        "gpu_activity: less than 90% of the samples expected were seen on 1 node (none on 1): gpu-1"
    )


def test_a_meter_that_nobody_measures_has_no_rows_but_its_gap() -> None:
    facts = collect(NODES)
    assert facts.tables["coverage"]["meter"].unique().to_list() == ["up"]
    assert any(gap.reason == "no_series" for gap in facts.gaps)
