"""Copies by meaning: pairs, restarts, second exporters, and what they disagree about."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ledger.facts import Facts
from tests.collector.prometheus.builders import (
    MINUTE,
    Sample,
    at,
    canonical,
    card,
    collect,
    container,
    line,
    node,
    pod,
)

BASE = [
    *node("gpu-0", at("8:00"), at("14:00")),
    *pod("u1", at("10:00"), at("12:00"), running=at("10:05")),
    *pod("u2", at("12:30"), at("13:00"), gpus=0),
    *card(at("8:00"), at("14:00"), tenant="u1", value=0.7),
    *container("u1", at("10:05"), at("12:00")),
]
EXPECTED = collect(BASE)


def same(facts: Facts) -> None:
    for name, table in EXPECTED.tables.items():
        assert_frame_equal(facts.tables[name], table, check_exact=True)


def relabelled(samples: list[Sample], **labels: str) -> list[Sample]:
    return [one._replace(labels=canonical({**json.loads(one.labels), **labels})) for one in samples]


@pytest.mark.parametrize(
    "label", ["prometheus_replica", "__replica__", "replica", "prometheus", "cluster_replica"]
)
def test_a_pair_is_one(label: str) -> None:
    pair = relabelled(BASE, **{label: "a"}) + relabelled(BASE, **{label: "b"})
    same(collect(pair))


@pytest.mark.parametrize("label", ["instance", "job", "endpoint", "service", "metrics_path"])
def test_who_scraped_is_no_meaning(label: str) -> None:
    same(collect(relabelled(BASE, **{label: "another"})))
    same(collect([*BASE, *relabelled(BASE, **{label: "another"})]))


@given(st.integers(0, 300), st.integers(1, 20), st.text("abcz019.:", min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_a_restart_with_minutes_of_overlap_changes_no_cell(
    minute: int, overlap: int, name: str
) -> None:
    moment = at("8:00") + minute * MINUTE
    before = [one for one in BASE if one.time <= moment + overlap * MINUTE]
    after = relabelled([one for one in BASE if one.time > moment], instance=name)
    mixed = [*before, *after]
    random.Random(minute).shuffle(mixed)
    same(collect(mixed))


@given(st.integers(1, 59), st.integers(0, 40), st.sampled_from(["a", "m", "z", "10.0.0.9:1"]))
@settings(max_examples=10, deadline=None)
def test_which_of_a_pair_bears_which_name_changes_no_cell(
    offset: int, lost: int, name: str
) -> None:
    second = [one._replace(time=one.time + timedelta(seconds=offset)) for one in BASE]
    second = second[: len(second) - lost]
    pairs = [
        [*relabelled(BASE, instance=one), *relabelled(second, instance=other)]
        for one, other in ((name, "k"), ("k", name))
    ]
    first, swapped = (collect(pair) for pair in pairs)
    for table, rows in first.tables.items():
        assert_frame_equal(swapped.tables[table], rows, check_exact=True)


def test_two_exporters_that_disagree_are_one_and_counted() -> None:
    labels = {"namespace": "research", "pod": "u1", "uid": "u1", "container": "main"}
    request = {**labels, "resource": "cpu"}
    name = "kube_pod_container_resource_requests"
    other = line(name, {**request, "job": "aaa"}, at("10:00"), at("12:00"), value=99.0)
    facts = collect([*BASE, *other])
    rows = facts.tables["workloads"].filter(uid="u1")
    # The first by name wins, all the time: neither the sum nor a mixture.
    assert rows["cpu_millicores"].unique().to_list() == [16_000]
    conflicts = [note for note in facts.notes if "different values of one meaning" in note]
    assert len(conflicts) == 1
    assert conflicts[0].startswith(f"{name}: 121 times")
    assert collect([*other, *BASE]).notes == facts.notes


def test_the_exporter_that_says_more_wins() -> None:
    poor = line(
        "kube_node_info", {"node": "gpu-0", "instance": "a"}, at("8:00"), at("14:00"), value=1.0
    )
    facts = collect([*poor, *BASE])
    assert facts.tables["nodes"]["provider_id"].unique().to_list() == ["aws:///us-east-1a/i-gpu-0"]
    assert any("different values" in note for note in facts.notes)


def test_layouts_replicas_and_labels_of_nodes_cut_them() -> None:
    def labelled(start: str, end: str, **labels: str) -> list[Sample]:
        told = {f"label_{key}": value for key, value in labels.items()}
        return line("kube_node_labels", {"node": "gpu-0", **told}, at(start), at(end))

    base = [one for one in node("gpu-0", at("8:00"), at("14:00")) if one.name != "kube_node_labels"]
    shared = {"nvidia_com_gpu_count": "8", "nvidia_com_gpu_sharing_strategy": "time-slicing"}
    facts = collect(
        [
            *base,
            *labelled("8:00", "9:59", nvidia_com_gpu_count="8"),
            *labelled("10:00", "11:59", nvidia_com_gpu_replicas="4", **shared),
            *labelled("12:00", "14:00", nvidia_com_gpu_replicas="2", **shared),
        ]
    )
    found = facts.tables["nodes"].select("start", "gpus", "gpu_units").rows()
    assert found == [
        (at("8:00"), 8, '{"nvidia.com/gpu":"1"}'),
        (at("10:00"), 8, '{"nvidia.com/gpu":"1/4"}'),
        (at("12:00"), 8, '{"nvidia.com/gpu":"1/2"}'),
    ]


def test_a_mig_layout_that_changes_cuts_the_node() -> None:
    def offered(resource: str, start: str, end: str, units: float) -> list[Sample]:
        labels = {"node": "gpu-0", "resource": resource}
        return line("kube_node_status_capacity", labels, at(start), at(end), value=units)

    told = {
        "label_nvidia_com_gpu_product": "NVIDIA-A100-SXM4-80GB",
        "label_nvidia_com_gpu_count": "8",
    }
    facts = collect(
        [
            *node("gpu-0", at("8:00"), at("14:00"), gpus=0, labels=told),
            *offered("nvidia_com_gpu", "8:00", "9:59", 8.0),
            *offered("nvidia_com_gpu", "10:00", "14:00", 7.0),
            *offered("nvidia_com_mig_3g_40gb", "8:00", "9:59", 0.0),
            *offered("nvidia_com_mig_3g_40gb", "10:00", "14:00", 2.0),
        ]
    )
    found = facts.tables["nodes"].select("start", "gpus", "gpu_memory_mib").rows()
    assert [row[:2] for row in found] == [(at("8:00"), 8), (at("10:00"), 8)]
    units = json.loads(facts.tables["nodes"]["gpu_units"][1])
    assert units == {"nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "3/7"}
