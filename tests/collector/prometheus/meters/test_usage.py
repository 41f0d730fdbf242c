"""Usage: quarter-hour slots of cards, cores and memory."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from ledger.schema import USAGE
from tests.collector.prometheus.builders import (
    KSM,
    MINUTE,
    Sample,
    at,
    card,
    collect,
    container,
    line,
    node,
    pod,
    small_day,
)

BEFORE, AFTER = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
NODE = node("gpu-0", BEFORE, AFTER)
POD = pod("u1", at("10:00"), at("12:00"))


def meter(name: str, samples: list[Sample]) -> pl.DataFrame:
    return collect([*NODE, *samples]).tables["usage"].filter(pl.col("meter") == name)


def at_slot(frame: pl.DataFrame, clock: str) -> dict[str, object]:
    return frame.filter(pl.col("slot") == at(clock)).row(0, named=True)


def test_rows_have_the_form_of_the_table() -> None:
    frame = collect(small_day()).tables["usage"]
    assert frame.schema == {name: dtype for name, dtype in USAGE.schema.items() if name != "source"}
    assert frame["meter"].unique().sort().to_list() == [
        "cpu_usage",
        "gpu_activity",
        "memory_working_set",
        "up",
    ]
    assert frame.select("node", "device", "uid", "pod", "meter", "slot").is_unique().all()


def test_every_scrape_of_a_node_counts_once_in_its_slot() -> None:
    frame = meter("up", [])
    assert frame.height == 96
    assert frame.select("samples", "expected", "mean").unique().rows() == [(15, 15, 1.0)]


def test_lost_scrapes_show_as_fewer_than_expected() -> None:
    kept = [sample for sample in NODE if not at("10:02") <= sample.time <= at("10:04")]
    frame = collect(kept).tables["usage"]
    row = at_slot(frame, "10:00")
    assert (row["samples"], row["expected"]) == (12, 15)


def test_cpu_is_the_rate_of_the_counter_and_a_restart_is_no_negative_rate() -> None:
    first = container("u1", at("10:00"), at("10:40"), cores=4.0)
    again = container("u1", at("10:41"), at("12:00"), cores=4.0)
    frame = meter("cpu_usage", [*POD, *first, *again])
    assert frame["uid"].unique().to_list() == ["u1"]
    assert frame["node"].unique().to_list() == ["gpu-0"]
    assert at_slot(frame, "10:15")["mean"] == 4.0
    restarted = at_slot(frame, "10:30")
    assert (restarted["min"], restarted["max"]) == (0.0, 4.0)


def test_a_rate_is_not_taken_over_a_hole() -> None:
    samples = [
        sample
        for sample in container("u1", at("10:00"), at("12:00"))
        if not at("10:20") < sample.time < at("11:20")
    ]
    frame = meter("cpu_usage", [*POD, *samples])
    assert frame["slot"].to_list() == [
        at("10:00"),
        at("10:15"),
        at("11:15"),
        at("11:30"),
        at("11:45"),
    ]
    assert frame["mean"].unique().to_list() == [4.0]


def test_containers_of_a_pod_add_up_and_its_control_group_is_no_container() -> None:
    more = [
        *container("u1", at("10:00:20"), at("12:00"), cores=1.0, which="sidecar"),
        *container("u1", at("10:00"), at("12:00"), cores=99.0, which=""),
        *container("u1", at("10:00"), at("12:00"), cores=77.0, which="POD"),
    ]
    frame = meter("cpu_usage", [*POD, *container("u1", at("10:00"), at("12:00")), *more])
    assert at_slot(frame, "11:00")["mean"] == 5.0
    memory = meter("memory_working_set", [*POD, *container("u1", at("10:00"), at("12:00")), *more])
    assert at_slot(memory, "11:00")["mean"] == 2.0 * 2**30


def test_where_no_container_is_named_the_control_group_of_the_pod_counts() -> None:
    frame = meter("cpu_usage", [*POD, *container("u1", at("10:00"), at("12:00"), which="")])
    assert at_slot(frame, "11:00")["mean"] == 4.0


def test_a_name_that_is_used_again_is_joined_by_time() -> None:
    pods = [
        *pod("u1", at("10:00"), at("11:00"), name="train-0"),
        *pod("u2", at("13:00"), at("14:00"), name="train-0"),
    ]
    samples = [
        *container("train-0", at("10:00"), at("11:00")),
        *container("train-0", at("13:00"), at("14:00")),
    ]
    frame = meter("memory_working_set", [*pods, *samples])
    assert frame.filter(pl.col("slot") < at("12:00"))["uid"].unique().to_list() == ["u1"]
    assert frame.filter(pl.col("slot") > at("12:00"))["uid"].unique().to_list() == ["u2"]


def test_in_the_slot_of_its_start_a_pod_expects_only_its_own_time() -> None:
    frame = meter(
        "memory_working_set",
        [*pod("u1", at("10:05"), at("12:00")), *container("u1", at("10:05"), at("12:00"))],
    )
    row = at_slot(frame, "10:00")
    assert (row["samples"], row["expected"]) == (11, 11)


def test_a_card_is_joined_to_the_pod_that_holds_it() -> None:
    samples = [
        *card(BEFORE, at("9:59")),
        *card(at("10:00"), at("12:00"), tenant="u1", value=0.9),
        *card(at("12:01"), AFTER),
    ]
    frame = meter("gpu_activity", [*POD, *samples])
    busy = at_slot(frame, "11:00")
    assert (busy["node"], busy["device"], busy["uid"], busy["mean"]) == (
        "gpu-0",
        "GPU-0",
        "u1",
        0.9,
    )
    free = at_slot(frame, "9:00")
    assert (free["uid"], free["pod"], free["mean"]) == (None, None, 0.5)  # not the exporter's
    per_slot = frame.group_by("slot").agg(pl.col("samples", "expected").sum())
    assert per_slot.select("samples", "expected").unique().rows() == [(15, 15)]


def test_a_label_of_a_pod_that_has_ended_is_cut_off() -> None:
    frame = meter("gpu_activity", [*POD, *card(at("10:00"), at("12:30"), tenant="u1")])
    assert at_slot(frame, "11:30")["uid"] == "u1"
    late = at_slot(frame, "12:15")
    assert (late["uid"], late["pod"], late["samples"]) == (None, None, 15)


def test_a_pod_that_nothing_else_knows_keeps_its_name() -> None:
    frame = meter("gpu_activity", card(at("10:00"), at("11:00"), tenant="ghost"))
    assert frame.select("uid", "pod").unique().rows() == [(None, "ghost")]


def test_utilisation_stands_in_as_a_ratio_for_cards_without_profiling() -> None:
    plain = {"name": "DCGM_FI_DEV_GPU_UTIL", "value": 80.0}
    both = [*card(BEFORE, AFTER, value=0.3), *card(BEFORE, AFTER, **plain)]  # type: ignore[arg-type]
    other = card(BEFORE, AFTER, host="gpu-1", uuid="GPU-1", name="DCGM_FI_DEV_GPU_UTIL", value=80.0)
    frame = meter("gpu_activity", [*node("gpu-1", BEFORE, AFTER), *both, *other])
    assert frame.group_by("device").agg(pl.col("mean").unique().first()).sort("device").rows() == [
        ("GPU-0", 0.3),
        ("GPU-1", 0.8),
    ]


def test_silent_cards_are_a_gap_only_where_there_are_cards() -> None:
    def blind(samples: list[Sample]) -> bool:
        return any("DCGM" in gap.detail for gap in collect(samples).gaps)

    assert blind(NODE)
    assert not blind(node("cpu-0", BEFORE, AFTER, gpus=0))


@pytest.mark.parametrize(
    "labels",
    [
        {"hostname": "gpu-0"},
        {"Hostname": "gpu-0.example.internal"},
        {"Hostname": "dcgm-exporter-x7k", "node": "gpu-0"},
    ],
)
def test_the_node_of_a_card_is_found(labels: dict[str, str]) -> None:
    samples = line(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        {"UUID": "GPU-0", **labels},
        at("10:00"),
        at("11:00"),
        value=0.5,
    )
    assert meter("gpu_activity", samples)["node"].unique().to_list() == ["gpu-0"]


def test_instances_of_one_card_are_apart() -> None:
    samples = [
        sample
        for instance in ("1", "2")
        for sample in line(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            {"UUID": "GPU-0", "Hostname": "gpu-0", "GPU_I_ID": instance},
            at("10:00"),
            at("11:00"),
        )
    ]
    assert meter("gpu_activity", samples)["device"].unique().sort().to_list() == [
        "GPU-0/1",
        "GPU-0/2",
    ]


def test_statistics_of_a_slot() -> None:
    samples = line(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        {"UUID": "GPU-0", "Hostname": "gpu-0"},
        at("9:00"),
        at("11:00"),
        value=lambda seconds: 0.2 if seconds < 3720 else 0.8,
    )
    row = at_slot(meter("gpu_activity", samples), "10:00")
    assert (row["min"], row["max"], row["p50"], row["last"]) == (0.2, 0.8, None, None)
    assert row["mean"] == pytest.approx((0.2 + 14 * 0.8) / 15)
    quiet = at_slot(meter("gpu_activity", samples), "10:15")
    assert (quiet["min"], quiet["max"], quiet["last_change"]) == (0.8, 0.8, None)


def test_each_meter_has_its_own_interval() -> None:
    slow = line(
        "container_memory_working_set_bytes",
        {**KSM, "namespace": "research", "pod": "u1", "container": "main"},
        at("10:00"),
        at("12:00"),
        step=timedelta(minutes=3),
    )
    row = at_slot(meter("memory_working_set", [*POD, *slow]), "11:00")
    assert (row["samples"], row["expected"]) == (5, 5)
