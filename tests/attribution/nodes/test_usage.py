from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from attribution.nodes.usage import read_usage

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

PODS = pl.DataFrame({"cluster": "c1", "uid": ["a", "b"], "id": pl.Series([0, 1], dtype=pl.UInt32)})


@pytest.fixture
def usage(new_day: type[DayBuilder]) -> pl.DataFrame:
    """Two pods and a stranger, two cards, copies of a second source, and a value that is none."""
    day = new_day()
    for uid in ("a", "stranger", "b", "a"):
        for slot in (0, 0.25, 1):
            day.use(uid, "cpu_usage", slot, 0.5 + slot, expected=15)
            for device in ("0", "1"):
                day.use(uid, "gpu_activity", slot, 0.7, device=device, expected=15)
    day.use("a", "cpu_usage", 0, 9, source="prometheus/c2", samples=14, expected=15)
    day.use("b", "memory_working_set", 0, float("nan"))
    return day.frame_of("usage")


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_batches_do_not_show(
    usage: pl.DataFrame, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_usage(usage, PODS).slots()
    monkeypatch.setattr("attribution.nodes.usage.BATCH", size)
    for rows in (usage, usage.lazy()):
        found = read_usage(rows, PODS).slots()
        assert_frame_equal(found, whole, check_row_order=False)


def test_of_copies_the_one_with_most_samples_counts(usage: pl.DataFrame) -> None:
    slots = read_usage(usage, PODS).slots()
    assert slots.height == 2 * 3 * 3
    first = slots.filter(id=0, meter=0).sort("slot")
    assert first["value"].to_list() == [500, 750, 1500]


def test_a_part_holds_the_usage_of_its_pods(usage: pl.DataFrame) -> None:
    whole = read_usage(usage, PODS)
    parts = [whole.part(0, 1), whole.part(1, 2)]
    assert [part.pods["uid"].to_list() for part in parts] == [["a"], ["b"]]
    assert [set(part.rows["id"]) for part in parts] == [{0}, {1}]
    assert sum(part.rows.height for part in parts) == whole.rows.height
