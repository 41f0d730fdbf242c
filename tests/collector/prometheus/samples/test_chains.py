"""Runs: chains of samples without holes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.samples.chains import changes, clip, cut, find_runs, fuse, look_up, union
from ledger.window import Window

ZERO = datetime(2026, 11, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def moments(seconds: list[float]) -> list[datetime]:
    return [ZERO + timedelta(seconds=second) for second in seconds]


def times(seconds: list[float], key: str = "a") -> pl.DataFrame:
    return pl.DataFrame(
        {"key": [key] * len(seconds), "time": moments(seconds)},
        schema={"key": pl.String, "time": pl.Datetime("us", "UTC")},
    )


def seconds_of(frame: pl.DataFrame) -> list[tuple[float, float]]:
    return [
        ((start - ZERO).total_seconds(), (end - ZERO).total_seconds())
        for start, end in frame.select("start", "end").iter_rows()
    ]


def runs(
    seconds: list[float], usual: float = 60, window: tuple[float, float] = (0, 86400)
) -> list[tuple[float, float]]:
    found = find_runs(times(seconds), "key", timedelta(seconds=usual))
    return seconds_of(clip(found, Window(*moments(list(window)))))


def cases(shared: Path, name: str) -> list[dict[str, Any]]:
    known = json.loads((shared / "cases" / "allocation.json").read_text("utf-8"))
    return [case for case in known if case["when"]["op"] == name]


def test_published_cases_of_runs(shared: Path) -> None:
    found = cases(shared, "run_intervals")
    assert found
    for case in found:
        given_, expected = case["given"], case["expect"]
        got = runs(given_["samples_s"], given_["usual_interval_s"], given_["window_s"])
        assert [list(pair) for pair in got] == expected["intervals_s"], case["id"]
        assert sum(end - start for start, end in got) == expected["seconds"], case["id"]


@pytest.mark.parametrize("case_id", ["B27-a", "B27-b"])
def test_a_name_used_twice_is_not_charged_for_the_hole(shared: Path, case_id: str) -> None:
    case = next(one for one in cases(shared, "lives") if one["id"] == case_id)
    samples: list[float] = []
    for life in case["given"]["lives"]:
        low, high = (3600 * int(life[end][:2]) for end in ("start", "end"))
        samples += range(low, high + 1, case["given"]["step_s"])
    found = runs(samples)
    assert sum(high - low for low, high in found) / 60 == case["expect"]["minutes"]


def test_a_hole_of_three_intervals_is_bridged_and_a_longer_one_is_not() -> None:
    regular: list[float] = [0, 60, 120, 180]
    assert runs([*regular, 360, 420]) == [(0, 420)]
    assert runs([*regular, 361, 421]) == [(0, 180), (361, 421)]


def test_each_series_has_its_own_interval() -> None:
    slow = times([0, 180, 360, 540, 1000], "slow")
    quick = times([0, 15, 30, 45, 100], "quick")
    found = find_runs(pl.concat([slow, quick]), "key", MINUTE)
    assert found.group_by("key").len().sort("key").rows() == [("quick", 2), ("slow", 1)]


def test_two_samples_hours_apart_do_not_make_hours_of_life() -> None:
    assert runs([0, 10800]) == [(0, 30), (10770, 10830)]


def test_segments_are_cut_at_the_first_sample_of_a_new_value() -> None:
    frame = times([0, 60, 120, 180, 240]).with_columns(state=pl.Series(list("aabba")))
    steps = changes(frame, ["key"], ["state"])
    segments = cut(find_runs(frame, "key", MINUTE), "key", [steps])
    assert seconds_of(segments) == [(0, 120), (120, 240)]
    assert look_up(segments, "key", steps)["state"].to_list() == ["a", "b"]


def test_the_first_known_value_is_valid_before_it_was_seen() -> None:
    late = times([120]).with_columns(value=pl.lit("x"))
    segments = cut(find_runs(times([0, 60, 120, 180]), "key", MINUTE), "key", [])
    assert look_up(segments, "key", changes(late, ["key"], ["value"]))["value"].to_list() == ["x"]


def test_touching_segments_that_say_the_same_are_one() -> None:
    frame = pl.DataFrame(
        {
            "key": ["a"] * 3,
            "start": moments([0, 60, 180]),
            "end": moments([60, 120, 240]),
            "what": ["x", "x", "x"],
        }
    )
    assert seconds_of(fuse(frame, "key", ["what"])) == [(0, 120), (180, 240)]


def test_union_covers_the_same_time_without_overlap() -> None:
    frame = pl.DataFrame({"start": moments([50, 0, 10, 200]), "end": moments([60, 100, 20, 210])})
    assert seconds_of(union(frame)) == [(0, 100), (200, 210)]


SAMPLES = st.lists(st.integers(0, 5760), min_size=1, max_size=200, unique=True)


@given(SAMPLES, st.sampled_from([1, 3, 6, 12]))
def test_hours_add_up_to_the_day(quarters: list[int], hours: int) -> None:
    found = find_runs(times([15.0 * quarter for quarter in quarters]), "key", MINUTE)
    whole = clip(found, Window.of_day(ZERO.date()))
    parts = [
        clip(found, Window(ZERO + timedelta(hours=hour), ZERO + timedelta(hours=hour + hours)))
        for hour in range(0, 24, hours)
    ]
    assert sum(end - start for part in parts for start, end in seconds_of(part)) == sum(
        end - start for start, end in seconds_of(whole)
    )


@given(SAMPLES, st.randoms())
def test_order_and_copies_change_no_run(quarters: list[int], random: Any) -> None:  # noqa: ANN401 (hypothesis gives a Random)
    seconds = [15.0 * quarter for quarter in quarters]
    shuffled = [*seconds, *seconds[::2]]
    random.shuffle(shuffled)
    expected = find_runs(times(seconds), "key", MINUTE)
    assert find_runs(times(shuffled), "key", MINUTE).equals(expected)


@given(SAMPLES)
def test_runs_hold_every_sample_and_never_overlap(quarters: list[int]) -> None:
    seconds = sorted(15.0 * quarter for quarter in quarters)
    found = seconds_of(find_runs(times(seconds), "key", MINUTE))
    assert all(any(low <= second <= high for low, high in found) for second in seconds)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
