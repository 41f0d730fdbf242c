"""Nodes: spans, capacity, labels; and what a day did not see."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from ledger.schema import NODES
from ledger.window import Window
from tests.collector.prometheus.builders import (
    KSM,
    MINUTE,
    WINDOW,
    Sample,
    at,
    card,
    collect,
    line,
    node,
    small_day,
)


def nodes(samples: list[Sample]) -> pl.DataFrame:
    return collect(samples).tables["nodes"]


def all_day(gpus: int = 8, labels: dict[str, str] | None = None) -> list[Sample]:
    before, after = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
    return node("gpu-0", before, after, gpus=gpus, labels=labels)


def test_a_node_is_described_by_its_series() -> None:
    frame = collect(small_day()).tables["nodes"]
    assert frame.schema == {name: dtype for name, dtype in NODES.schema.items() if name != "source"}
    row = frame.row(0, named=True)
    assert (row["start"], row["end"]) == (WINDOW.start, WINDOW.end)
    assert (row["provider_id"], row["instance_type"], row["region"], row["capacity_type"]) == (
        "aws:///us-east-1a/i-gpu-0",
        "p5.48xlarge",
        "us-east-1",
        "spot",
    )
    assert (row["cpu_millicores"], row["memory_bytes"]) == (192_000, 2 * 2**40)
    assert (row["gpus"], row["gpu_resource"]) == (8, "nvidia.com/gpu")
    assert row["gpu_model"] == "NVIDIA-H100-80GB-HBM3"


def test_a_node_without_cards_says_zero_and_one_without_capacity_says_nothing() -> None:
    assert nodes(all_day(gpus=0))["gpus"].to_list() == [0]
    bare = [sample for sample in all_day() if sample.name == "kube_node_info"]
    assert nodes(bare).select("gpus", "cpu_millicores").rows() == [(None, None)]


@pytest.mark.parametrize(
    ("labels", "capacity", "cards"),
    [
        (
            {
                "label_nvidia_com_gpu_count": "4",
                "label_nvidia_com_gpu_sharing_strategy": "time-slicing",
            },
            40,
            4,
        ),
        ({"label_nvidia_com_gpu_count": "56"}, 56, 56),
        ({"label_nvidia_com_gpu_replicas": "7"}, 56, 8),
        (
            {
                "label_nvidia_com_gpu_count": "56",
                "label_nvidia_com_gpu_product": "A100-SXM4-40GB-MIG-1g.5gb",
                "label_nvidia_com_mig_strategy": "single",
            },
            56,
            8,
        ),
    ],
)
def test_cards_are_physical_where_labels_tell(
    labels: dict[str, str], capacity: int, cards: int | None
) -> None:
    assert nodes(all_day(gpus=capacity, labels=labels))["gpus"].to_list() == [cards]


def test_mig_profiles_are_no_cards() -> None:
    mig = line(
        "kube_node_status_capacity",
        {**KSM, "node": "gpu-0", "resource": "nvidia_com_mig_3g_40gb"},
        at("0:00"),
        at("24:00"),
        value=16,
    )
    facts = collect([*all_day(gpus=0), *mig])
    assert facts.tables["nodes"]["gpus"].to_list() == [None]
    assert "gpu-0" in next(g.detail for g in facts.gaps if g.reason == "capacity_unknown")
    told = {"label_nvidia_com_gpu_count": "8", "label_nvidia_com_gpu_product": "NVIDIA-H100"}
    frame = nodes([*all_day(gpus=0, labels=told), *mig])
    assert frame.select("gpus", "gpu_resource", "gpu_model").rows() == [
        (8, "nvidia.com/mig-3g.40gb", "NVIDIA-H100")
    ]


def test_a_name_on_another_machine_is_another_row() -> None:
    early = [sample for sample in node("gpu-0", at("0:00"), at("11:59"))]
    late = [
        sample._replace(labels=sample.labels.replace("i-gpu-0", "i-new"))
        for sample in node("gpu-0", at("12:00"), at("24:00"))
    ]
    assert nodes([*early, *late]).select("start", "provider_id").rows() == [
        (at("0:00"), "aws:///us-east-1a/i-gpu-0"),
        (at("12:00"), "aws:///us-east-1a/i-new"),
    ]


def test_a_hole_is_a_gap_with_its_hours_and_lowers_coverage() -> None:
    facts = collect(
        [
            *node("gpu-0", at("0:00") - MINUTE, at("9:00")),
            *node("gpu-0", at("15:00"), at("24:00") + MINUTE),
        ]
    )
    assert facts.coverage == 0.75
    (hole,) = [gap for gap in facts.gaps if gap.reason == "no_samples"]
    assert hole.amounts == {"hours": 6.0}
    assert str(Window(at("9:00"), at("15:00"))) in hole.detail
    assert facts.tables["nodes"].height == 2


def test_another_node_covers_the_hole_of_one() -> None:
    facts = collect(
        [*node("gpu-0", at("0:00"), at("9:00")), *node("gpu-1", at("0:00"), at("24:00"))]
    )
    assert facts.coverage == 1.0
    assert not [gap for gap in facts.gaps if gap.reason == "no_samples"]


def test_the_grain_of_sampling_at_the_ends_is_no_hole() -> None:
    facts = collect(node("gpu-0", at("0:00:40"), at("23:59:40")))
    assert facts.coverage == 1.0


def test_what_lies_before_the_oldest_sample_is_lost_to_retention() -> None:
    facts = collect(node("gpu-0", at("6:00"), at("24:00")))
    assert [(gap.reason, gap.amounts) for gap in facts.gaps if gap.amounts] == [
        ("retention", {"hours": 6.0})
    ]
    day_before = Window(WINDOW.start - timedelta(days=1), WINDOW.start)
    nothing = collect(node("gpu-0", at("6:00"), at("24:00")), day_before)
    assert nothing.coverage == 0.0
    assert nothing.tables == {}  # an empty table would erase what an earlier run saw
    assert {gap.reason for gap in nothing.gaps} == {"no_series", "retention"}


def test_the_creation_time_stands_in_for_the_node_series() -> None:
    created = line(
        "kube_node_created", {**KSM, "node": "gpu-0"}, at("0:00"), at("24:00"), value=1.7e9
    )
    facts = collect([*created, *card(at("0:00"), at("24:00"))])
    assert facts.tables["nodes"].select("node", "start", "end").rows() == [
        ("gpu-0", WINDOW.start, WINDOW.end)
    ]
    assert any("kube_node_created was read instead" in note for note in facts.notes)
    assert facts.tables["nodes"]["created"].dt.timestamp("ms").to_list() == [1_700_000_000_000]


def test_data_ends_where_the_last_sample_stands() -> None:
    assert collect(node("gpu-0", at("0:00"), at("20:00"))).data_through == at("20:00")
    assert collect(small_day()).data_through == WINDOW.end
