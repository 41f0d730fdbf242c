from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from ledger.facts import Facts
from ledger.schema import NODES
from ledger.window import Window, parse_day
from tests.collector.kubernetes.builders import DAY, Json, collect, node, pod, row, running
from tests.field_cases import allocation_cases


def facts_of(folder: Path, *items: Json, window: Window | None = None) -> Facts:
    path = folder / "objects.json"
    path.write_text(
        json.dumps(
            {"kind": "List", "apiVersion": "v1", "items": [pod("a", running("08:30")), *items]}
        )
    )
    return collect(window or Window.of_day(parse_day(DAY)), dump=str(path))


def node_row(facts: Facts, name: str = "gpu-1") -> Json:
    return row(facts, name, "nodes", "node")


def test_a_node_stands_from_its_registration_on_every_day(tmp_path: Path) -> None:
    days = Window.of_days(parse_day(DAY), parse_day("2026-12-01"))
    frame = facts_of(tmp_path, node(), window=days).tables["nodes"]
    assert [(row["start"].hour, row["end"].day) for row in frame.iter_rows(named=True)] == [
        (6, 1),
        (0, 2),
    ]
    assert dict(frame.schema) == {
        name: dtype for name, dtype in NODES.schema.items() if name != "source"
    }


def test_what_a_node_says_of_itself(tmp_path: Path) -> None:
    labels = {
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1a",
        "karpenter.sh/capacity-type": "spot",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
    }
    found = node_row(facts_of(tmp_path, node(labels=labels)))
    assert json.loads(found["labels"]) == labels
    expected = {
        "cluster": "train-a",
        "provider_id": "aws:///eu-1a/i-1",
        "instance_type": "p5.48xlarge",
        "capacity_type": "spot",
        "region": "eu-west-1",
        "zone": "eu-west-1a",
        "cpu_millicores": 192000,
        "memory_bytes": 2**41,
        "gpus": 8,
        "gpu_resource": "nvidia.com/gpu",
        "gpu_model": "NVIDIA-H100-80GB-HBM3",
        "gpu_units": '{"nvidia.com/gpu":"1"}',
        "gpu_memory_mib": 81559,
        "created": datetime(2026, 11, 30, 6, tzinfo=UTC),
        "interval_seconds": None,
    }
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("capacity", "gpus"),
    [
        ({"cpu": "4", "memory": "8Gi"}, 0),
        ({"cpu": "4", "nvidia.com/gpu": "0"}, 0),
        ({}, None),
    ],
)
def test_a_count_that_is_not_given_is_not_zero(
    tmp_path: Path,
    capacity: Json,
    gpus: int | None,
) -> None:
    found = node_row(facts_of(tmp_path, node(capacity=capacity)))
    assert found["gpus"] == gpus
    assert found["cpu_millicores"] == (4000 if capacity else None)


def test_cards_of_several_makers_are_named_as_a_gap(tmp_path: Path) -> None:
    mixed = node(capacity={"nvidia.com/gpu": "2", "amd.com/gpu": "1"})
    facts = facts_of(tmp_path, mixed)
    assert [gap.reason for gap in facts.gaps] == ["several_card_resources"]


def test_a_node_that_shares_its_cards_and_does_not_count_them_is_unknown(tmp_path: Path) -> None:
    capacity = {"cpu": "8", "nvidia.com/mig-1g.5gb": "14", "nvidia.com/mig-3g.20gb": "2"}
    facts = facts_of(tmp_path, node(capacity=capacity))
    found = node_row(facts)
    assert found["gpus"] is None
    assert set(json.loads(found["gpu_units"]).values()) == {None}
    assert {gap.reason for gap in facts.gaps} == {"capacity_unknown"}
    assert all("gpu-1" in gap.detail for gap in facts.gaps)


def test_replicas_are_no_cards(tmp_path: Path) -> None:
    labels = {
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.replicas": "7",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    facts = facts_of(tmp_path, node(labels=labels, capacity={"cpu": "8", "nvidia.com/gpu": "56"}))
    found = node_row(facts)
    assert found["gpus"] == 8
    assert json.loads(found["gpu_units"]) == {"nvidia.com/gpu": "1/7"}
    assert not facts.gaps


@pytest.mark.parametrize("case", ["S6-a", "S6-b", "S6-c", "S6-d"])
def test_physical_cards_and_schedulable_units(tmp_path: Path, shared: Path, case: str) -> None:
    given, expect = (allocation_cases(shared)[case][key] for key in ("given", "expect"))
    capacity = {"cpu": "8"} | {name: str(units) for name, units in given["capacity"].items()}
    found = node_row(facts_of(tmp_path, node(capacity=capacity, labels=given["labels"])))
    units = json.loads(found["gpu_units"] or "{}")
    schedulable = sum(found["gpus"] / Fraction(unit) for unit in units.values())
    assert {"physical": found["gpus"], "schedulable": schedulable} == expect


def test_what_hami_registers_is_read(tmp_path: Path) -> None:
    register = "GPU-1,10,32768,100,V100,0,true:GPU-2,10,32768,100,V100,0,true:"
    made = node(
        capacity={"cpu": "8", "nvidia.com/gpu": "20"},
        annotations={"hami.io/node-nvidia-register": register},
    )
    found = node_row(facts_of(tmp_path, made))
    assert (found["gpus"], found["gpu_memory_mib"]) == (2, 32768)
    assert found["gpu_units"] == '{"nvidia.com/gpu":"1"}'


def test_a_model_without_a_count_is_named(tmp_path: Path) -> None:
    labels = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    facts = facts_of(tmp_path, node(capacity={"cpu": "8"}, labels=labels))
    assert node_row(facts)["gpus"] is None
    (gap,) = facts.gaps
    assert gap.reason == "capacity_unknown"
    assert "nvidia-h100-80gb" in gap.detail


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (node("bad", capacity={"cpu": "many"}), "bad_number"),
        (node("bad", created="25:00"), "bad_date"),
    ],
)
def test_a_node_that_cannot_be_true_is_put_aside(tmp_path: Path, made: Json, reason: str) -> None:
    facts = facts_of(tmp_path, made, node())
    assert facts.tables["nodes"]["node"].to_list() == ["gpu-1"]
    assert [(entry.reason, entry.where) for entry in facts.quarantine] == [(reason, "nodes")]
