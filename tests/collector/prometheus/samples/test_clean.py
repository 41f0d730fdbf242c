"""Garbage is counted, copies are collapsed by meaning."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta

import polars as pl

from collector.prometheus.samples.clean import Cleaned, clean
from collector.prometheus.samples.label_sets import Identity
from collector.prometheus.series.catalogue import GPU_UTIL, MEMORY, NODE_INFO, POD_INFO, Series
from tests.collector.prometheus.builders import KSM, MINUTE, WINDOW, Sample, at, frame, line

BASE = {**KSM, "node": "gpu-0", "provider_id": "aws:///a/i-0"}


(STALE,) = struct.unpack(">d", bytes.fromhex("7ff0000000000002"))
"""The NaN by which Prometheus marks the end of a series (`value.StaleNaN`)."""


def cleaned(samples: list[Sample], series: Series = NODE_INFO, label: str | None = None) -> Cleaned:
    raw = frame(samples).select(
        "labels", pl.col("timestamp").cast(pl.Datetime("us", "UTC")), "value"
    )
    return clean(raw, series, WINDOW, Identity("train-a", label))


def reasons(result: Cleaned) -> dict[str, int]:
    return {entry.reason: entry.count for entry in result.quarantine}


def test_garbage_is_put_aside_by_reason_and_moves_nothing() -> None:
    good = line("kube_node_info", BASE, at("12:00"), at("13:00"))
    text = good[0].labels
    bad = [
        Sample("kube_node_info", text, time, value)
        for time, value in (
            (at("12:10:05"), math.nan),
            (at("12:20:05"), math.inf),
            (at("12:30:05"), -5.0),
            (at("12:40:05"), -1.97e25),
            (at("12:50:05"), STALE),
            (datetime(1, 1, 1, tzinfo=UTC), 2.0),
            (datetime(2099, 1, 1, tzinfo=UTC), 2.0),
        )
    ]
    result = cleaned([*good, *bad])
    assert reasons(result) == {"nan": 2, "inf": 1, "negative": 2, "out_of_window": 2}
    assert result.samples.equals(cleaned(good).samples)


def test_garbage_of_the_margin_belongs_to_the_other_day() -> None:
    late = Sample(
        "kube_node_info",
        line("x", BASE, at("0:00"), at("0:00"))[0].labels,
        at("24:00") + MINUTE,
        math.nan,
    )
    assert reasons(cleaned([late])) == {}


def test_values_that_mean_no_value_are_put_aside() -> None:
    labels = {"Hostname": "gpu-0", "UUID": "GPU-0"}
    blank = line("DCGM_FI_DEV_GPU_UTIL", labels, at("1:00"), at("1:00"), value=9.2e18)
    assert reasons(cleaned(blank, GPU_UTIL)) == {"above_ceiling": 1}


def test_a_replica_with_the_same_times_is_a_copy() -> None:
    first = line("kube_node_info", BASE, at("1:00"), at("2:00"))
    second = line("kube_node_info", {**BASE, "prometheus_replica": "b"}, at("1:00"), at("2:00"))
    result = cleaned([*first, *second])
    assert (result.samples.height, result.notes) == (61, ())


def test_an_offset_replica_only_fills_holes() -> None:
    first = [
        *line("kube_node_info", {**BASE, "replica": "a"}, at("1:00"), at("2:00")),
        *line("kube_node_info", {**BASE, "replica": "a"}, at("3:00"), at("4:00")),
    ]
    second = line("kube_node_info", {**BASE, "replica": "b"}, at("1:00:13"), at("4:00:13"))
    result = cleaned([*first, *second])
    distances = result.samples["time"].diff().drop_nulls()
    assert min(distances) >= timedelta(seconds=54)
    assert max(distances) <= timedelta(minutes=2)
    assert result.interval == MINUTE


def test_a_restart_with_a_new_instance_stays_one_life() -> None:
    first = line("kube_node_info", BASE, at("1:00"), at("2:00"))
    second = line("kube_node_info", {**BASE, "instance": "10.9.9.9:8080"}, at("2:01"), at("3:00"))
    result = cleaned([*first, *second])
    assert result.samples.height == 121
    assert result.samples["ident"].n_unique() == 1


def test_copies_that_disagree_are_counted_and_the_one_that_says_more_wins() -> None:
    more = line("kube_node_info", {**BASE, "instance": "z"}, at("1:00"), at("1:10"))
    less = line("kube_node_info", {**KSM, "node": "gpu-0", "instance": "a"}, at("1:00"), at("1:10"))
    result = cleaned([*less, *more])
    assert result.frame["provider_id"].unique().to_list() == ["aws:///a/i-0"]
    assert "11 times" in result.notes[0]


def test_two_values_at_one_time_are_one_conflict() -> None:
    labels = {"namespace": "n", "pod": "p", "container": "c"}
    one = line("container_memory_working_set_bytes", labels, at("1:00"), at("1:00"), value=5.0)
    two = line(
        "container_memory_working_set_bytes",
        {**labels, "job": "z"},
        at("1:00"),
        at("1:00"),
        value=7.0,
    )
    result = cleaned([*two, *one], MEMORY)
    assert result.samples["value"].to_list() == [7.0]  # {"container":…,"job":…} comes first by name
    assert "1 times" in result.notes[0]


def test_series_without_the_cluster_label_are_never_ours() -> None:
    ours = line("kube_node_info", {**BASE, "cluster": "train-a"}, at("1:00"), at("1:10"))
    theirs = line("kube_node_info", {**BASE, "cluster": "train-b"}, at("1:00"), at("1:10"))
    nobody = line("kube_node_info", BASE, at("1:00"), at("1:04"))
    result = cleaned([*ours, *theirs, *nobody], label="cluster")
    assert (result.samples.height, reasons(result)) == (11, {"no_cluster": 5})


def test_labels_that_are_no_json_are_put_aside() -> None:
    broken = [
        Sample("kube_node_info", "{node=", at("1:00"), 1.0),
        Sample("kube_node_info", '{"node": 5}', at("1:00"), 1.0),
    ]
    assert reasons(cleaned(broken)) == {"bad_labels": 2}


def test_exported_labels_are_read_under_their_own_name() -> None:
    labels = {
        **KSM,
        "namespace": "monitoring",
        "pod": "kube-state-metrics-1",
        "exported_namespace": "research",
        "exported_pod": "train-0",
        "uid": "u1",
    }
    result = cleaned(line("kube_pod_info", labels, at("1:00"), at("1:01")), POD_INFO)
    assert result.meanings.select("namespace", "pod", "uid").row(0) == ("research", "train-0", "u1")


def test_an_empty_label_is_an_absent_one() -> None:
    labels = {**KSM, "namespace": "n", "pod": "p", "uid": "u", "node": ""}
    result = cleaned(line("kube_pod_info", labels, at("1:00"), at("1:01")), POD_INFO)
    assert result.meanings["node"].to_list() == [None]
