"""How many cards a node has and what one unit is of a card, for every way to offer cards."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.gaps import of_layouts
from collector.labels import NodeLabels, sanitised
from collector.layouts import Layout, layout
from tests.field_cases import allocation_cases

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
MIG1, MIG2, MIG3 = (f"nvidia.com/mig-{name}" for name in ("1g.5gb", "2g.10gb", "3g.20gb"))
A100 = "NVIDIA-A100-SXM4-40GB"
UNKNOWN = {GPU: None}
GKE = "cloud.google.com/gke-"
_KEYS = {"sharing": "gpu.sharing-strategy", "strategy": "mig.strategy", "config": "mig.config"}


def labelled(more: dict[str, str] | None = None, /, **labels: str) -> dict[str, str]:
    """Labels ``count`` for ``nvidia.com/gpu.count`` and so on."""
    known = {f"nvidia.com/{_KEYS.get(key, f'gpu.{key}')}": text for key, text in labels.items()}
    return known | (more or {})


def gke(**labels: str) -> dict[str, str]:
    return {GKE + key.replace("_", "-"): text for key, text in labels.items()}


def read(capacity: dict[str, int], labels: dict[str, str], **more: Any) -> Layout:  # noqa: ANN401
    found = layout(capacity, NodeLabels(labels).get, **more)
    spelled = NodeLabels({sanitised(key): text for key, text in labels.items()}, sanitised)
    assert layout(capacity, spelled.get, **more) == found
    return found


@pytest.mark.parametrize(
    ("capacity", "labels", "cards", "units"),
    [
        ({GPU: 8}, {}, 8, {GPU: "1"}),
        ({GPU: 8}, labelled(count="8", sharing="none", replicas="1"), 8, {GPU: "1"}),
        # The strategy is a setting of the operator; without MIG the count is one of cards.
        ({GPU: 8}, labelled(count="8", strategy="single", product="H100"), 8, {GPU: "1"}),
        ({GPU: 8}, labelled(strategy="single", config="all-disabled"), 8, {GPU: "1"}),
        # Strategy single: the count is one of MIG devices.
        (
            {GPU: 56},
            labelled(count="56", strategy="single", product=f"{A100}-MIG-1g.5gb"),
            8,
            {GPU: "1/7"},
        ),
        ({GPU: 6}, labelled(count="6", product=f"{A100}-MIG-2g.10gb"), 2, {GPU: "2/7"}),
        ({GPU: 4}, labelled(count="4", product=f"{A100}-MIG-3g.20gb"), 2, {GPU: "3/7"}),
        ({GPU: 2}, labelled(count="2", product=f"{A100}-MIG-4g.20gb"), 2, {GPU: "4/7"}),
        ({GPU: 2}, labelled(count="2", product=f"{A100}-MIG-7g.40gb"), 2, {GPU: "1"}),
        ({GPU: 4}, labelled(count="4", product="NVIDIA-A30-MIG-2g.12gb"), 2, {GPU: "1/2"}),
        ({GPU: 5}, labelled(count="5", product=f"{A100}-MIG-3g.20gb"), 3, {GPU: "3/7"}),
        ({GPU: 7}, labelled(product=f"{A100}-MIG-1g.5gb"), 1, {GPU: "1/7"}),
        # ... each of them in replicas.
        (
            {GPU: 28},
            labelled(count="7", replicas="4", product=f"{A100}-MIG-1g.5gb-SHARED"),
            1,
            {GPU: "1/28"},
        ),
        (
            {SHARED: 28},
            labelled(replicas="4", product=f"{A100}-MIG-1g.5gb-SHARED"),
            1,
            {SHARED: "1/28"},
        ),
        (
            {GPU: 56},
            labelled(count="56", strategy="single", config="all-1g.5gb"),
            None,
            {GPU: None},
        ),
        ({GPU: 7}, labelled(count="7", product="NVIDIA-L9-MIG-1g.5gb"), None, {GPU: None}),
        ({GPU: 7}, labelled(count="0", product=f"{A100}-MIG-INVALID"), None, {GPU: None}),
        # Strategy mixed: the count is one of cards, and without it they are added up.
        ({MIG3: 2, GPU: 0}, labelled(count="1", product=A100), 1, {MIG3: "3/7", GPU: "1"}),
        ({MIG3: 4}, labelled(count="1", product=A100), 2, {MIG3: "3/7"}),
        ({MIG3: 4, MIG1: 2}, labelled(product=A100), 2, {MIG3: "3/7", MIG1: "1/7"}),
        ({GPU: 4, MIG1: 28}, labelled(product=A100), 8, {GPU: "1", MIG1: "1/7"}),
        ({GPU: 4, MIG1: 28}, labelled(count="8"), 8, {GPU: "1", MIG1: None}),
        ({GPU: 4, MIG1: 28}, {}, None, {GPU: "1", MIG1: None}),
        (
            {"nvidia.com/mig-1g.5gb.shared": 14},
            labelled({"nvidia.com/mig-1g.5gb.replicas": "2"}, product=A100),
            1,
            {"nvidia.com/mig-1g.5gb.shared": "1/14"},
        ),
        (
            {"nvidia.com/mig-1c.3g.20gb": 6, "nvidia.com/mig-1g.5gb.me": 1},
            labelled(count="2", product=A100),
            2,
            {"nvidia.com/mig-1c.3g.20gb": "1/7", "nvidia.com/mig-1g.5gb.me": "1/7"},
        ),
        # Time-slicing and MPS, renamed or not.
        ({GPU: 56}, labelled(count="8", replicas="7", sharing="mps"), 8, {GPU: "1/7"}),
        ({GPU: 56}, labelled(count="8", sharing="time-slicing"), 8, {GPU: "1/7"}),
        ({GPU: 56}, labelled(count="8", product="NVIDIA-H100-SHARED"), 8, {GPU: "1/7"}),
        ({SHARED: 56}, labelled(count="8"), 8, {SHARED: "1/7"}),
        ({GPU: 56}, labelled(replicas="7"), 8, {GPU: "1/7"}),
        ({GPU: 56}, labelled(count="many", replicas="7"), 8, {GPU: "1/7"}),
        ({GPU: 56}, labelled(count="99999999999", replicas="7"), 8, {GPU: "1/7"}),
        ({GPU: 56}, labelled(count="-8", replicas="0", sharing="mps"), None, {GPU: None}),
        ({SHARED: 56}, {}, None, {SHARED: None}),
        # HAMi: a virtual card without a measure is a whole one.
        ({GPU: 80}, labelled(count="8"), 8, {GPU: "1"}),
        # GKE.
        (
            {GPU: 6},
            gke(gpu_sharing_strategy="time-sharing", max_shared_clients_per_gpu="3"),
            2,
            {GPU: "1/3"},
        ),
        ({GPU: 9}, gke(gpu_sharing_strategy="mps"), None, {GPU: None}),
        (
            {GPU: 7},
            gke(gpu_partition_size="1g.5gb", accelerator="nvidia-tesla-a100"),
            1,
            {GPU: "1/7"},
        ),
        (
            {GPU: 28},
            gke(
                gpu_partition_size="1g.5gb",
                accelerator="nvidia-tesla-a100",
                gpu_sharing_strategy="time-sharing",
                max_shared_clients_per_gpu="4",
            ),
            1,
            {GPU: "1/28"},
        ),
        ({GPU: 7}, gke(gpu_partition_size="1g.5gb"), None, {GPU: None}),
        # Others.
        (
            {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32},
            {},
            16,
            {"aws.amazon.com/neuron": "1", "aws.amazon.com/neuroncore": "1/2"},
        ),
        (
            {
                "aws.amazon.com/neuron": 16,
                "aws.amazon.com/neurondevice": 16,
                "aws.amazon.com/neuroncore": 128,
            },
            {},
            16,
            {
                "aws.amazon.com/neuron": "1",
                "aws.amazon.com/neurondevice": "1",
                "aws.amazon.com/neuroncore": "1/8",
            },
        ),
        ({"aws.amazon.com/neuroncore": 32}, {}, None, {"aws.amazon.com/neuroncore": None}),
        (
            {"k8s.amazonaws.com/vgpu": 40},
            labelled(count="4"),
            4,
            {"k8s.amazonaws.com/vgpu": "1/10"},
        ),
        (
            {"k8s.amazonaws.com/vgpu": 40},
            {"karpenter.k8s.aws/instance-gpu-count": "4"},
            4,
            {"k8s.amazonaws.com/vgpu": "1/10"},
        ),
        ({"k8s.amazonaws.com/vgpu": 40}, {}, None, {"k8s.amazonaws.com/vgpu": None}),
        ({"amd.com/gpu": 8}, {}, 8, {"amd.com/gpu": "1"}),
        (
            {"amd.com/gpu": 16},
            {
                "amd.com/gpu.compute-memory-partition": "cpx_nps4",
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
            },
            2,
            {"amd.com/gpu": "1/8"},
        ),
        (
            {"amd.com/dpx_nps1": 2, "amd.com/gpu": 1},
            {},
            2,
            {"amd.com/dpx_nps1": "1/2", "amd.com/gpu": "1"},
        ),
        ({"amd.com/cpx_nps4": 8}, {}, None, {"amd.com/cpx_nps4": None}),
        # Volcano's virtual cards: whole ones, unless a pod measures them.
        (
            {"volcano.sh/vgpu-number": 20},
            {"karpenter.k8s.aws/instance-gpu-count": "2"},
            2,
            {"volcano.sh/vgpu-number": "1"},
        ),
        ({"volcano.sh/vgpu-number": 20}, {}, None, {"volcano.sh/vgpu-number": "1"}),
        (
            {"aws.amazon.com/neuroncore": 32},
            {"karpenter.k8s.aws/instance-accelerator-count": "16"},
            16,
            {"aws.amazon.com/neuroncore": "1/2"},
        ),
        ({"google.com/tpu": 4}, gke(tpu_accelerator="tpu-v5p-slice"), 4, {"google.com/tpu": "1"}),
        ({"huawei.com/Ascend910-8c": 4}, {}, None, {"huawei.com/Ascend910-8c": None}),
        # None at all.
        ({GPU: 0}, {}, 0, {GPU: "1"}),
        ({"cpu": 8}, {}, 0, {}),
        ({}, labelled(product="NVIDIA-H100"), None, {}),
    ],
)
def test_cards_and_units(
    capacity: dict[str, int],
    labels: dict[str, str],
    cards: int | None,
    units: dict[str, str | None],
) -> None:
    found = read(capacity, labels)
    assert found.cards == cards
    assert json.loads(found.units_json or "{}") == units
    named = {gap.reason for gap in of_layouts([("n", found)])}
    parts = [units[name] for name, amount in capacity.items() if amount and name in units]
    assert ("capacity_unknown" in named) == (cards is None or None in parts)


@pytest.mark.parametrize("case", ["S6-a", "S6-b", "S6-c", "S6-d"])
def test_cards_and_what_can_be_asked_for(shared: Path, case: str) -> None:
    given_, expect = (allocation_cases(shared)[case][key] for key in ("given", "expect"))
    found = read(given_["capacity"], given_["labels"])
    assert {"physical": found.cards, "schedulable": found.schedulable} == expect


def test_a_node_that_says_nothing_has_no_number_of_cards() -> None:
    assert read({}, {}, sized=False).cards is None


def test_cards_that_only_slices_list_are_counted() -> None:
    assert read({"cpu": 8}, labelled(product="NVIDIA-H100"), devices=8).cards == 8
    assert read({GPU: 0, "cpu": 8}, {}, devices=4).cards == 4


def test_the_gap_names_profile_and_card() -> None:
    found = read({GPU: 7}, labelled(product="NVIDIA-L9-MIG-1g.5gb"))
    details = [gap.detail for gap in of_layouts([("a", found), ("b", found)])]
    assert len(details) == 2
    assert all("NVIDIA-L9" in text and "a, b" in text for text in details)
    assert any("1g.5gb" in text for text in details)


@pytest.mark.parametrize(
    ("labels", "register", "memory"),
    [
        (labelled(memory="81559", product="NVIDIA-H100-80GB-HBM3"), None, 81559),
        (labelled(memory="4864", product=f"{A100}-MIG-1g.5gb"), None, 40 * 1024),
        (labelled(memory="9728", product="NVIDIA-A100-MIG-1g.5gb"), None, None),
        (labelled(memory="many"), None, None),
        (labelled(memory="0"), None, None),
        ({}, "GPU-1,10,32768,100,NVIDIA-V100,0,true:GPU-2,10,32768,100,V100,0,true:", 32768),
        ({}, "GPU-1,10,32768,100,V100,0,true:GPU-2,10,16384,100,V100,0,true:", None),
        ({}, '[{"id":"GPU-1","count":10,"devmem":24576,"devcore":100}]', 24576),
        ({}, '[{"id":', None),
        ({}, ":::,,,,:", None),
    ],
)
def test_memory_of_one_card(
    labels: dict[str, str], register: str | None, memory: int | None
) -> None:
    assert read({GPU: 7}, labels, register=register).memory_mib == memory


def test_what_hami_registers_are_cards() -> None:
    register = "GPU-1,10,32768,100,V100,0,true:GPU-2,10,32768,100,V100,0,true:"
    found = read({GPU: 20}, {}, register=register)
    assert (found.cards, found.units) == (2, {GPU: Fraction(1)})


_TEXTS = st.sampled_from(["", "0", "1", "2", "7", "8", "-1", "x", "1e9", "9" * 30, "\u0661", "4.0"])
_LABELS = st.dictionaries(
    st.sampled_from(
        [
            "nvidia.com/gpu.count",
            "nvidia.com/gpu.replicas",
            "nvidia.com/gpu.memory",
            "karpenter.k8s.aws/instance-gpu-count",
            f"{GKE}max-shared-clients-per-gpu",
        ]
    ),
    _TEXTS,
)
_PRODUCTS = st.sampled_from(["", A100, f"{A100}-MIG-1g.5gb", f"{A100}-MIG-9g.5gb-SHARED", "-MIG-"])
_OFFERED = st.dictionaries(
    st.sampled_from([GPU, SHARED, MIG1, MIG2, "k8s.amazonaws.com/vgpu", "amd.com/gpu", "cpu"]),
    st.integers(0, 10**12),
)


@given(_OFFERED, _LABELS, _PRODUCTS)
def test_whatever_labels_say_a_unit_is_no_more_than_a_card(
    capacity: dict[str, int], labels: dict[str, str], product: str
) -> None:
    found = read(capacity, labels | {"nvidia.com/gpu.product": product})
    assert found.cards is None or found.cards >= 0
    assert all(unit is None or 0 < unit <= 1 for unit in found.units.values())
    assert found.memory_mib is None or found.memory_mib > 0
