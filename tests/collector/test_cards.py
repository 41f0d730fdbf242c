"""One table says what a card is, which resource counts, and how many cards a node has."""

from __future__ import annotations

import pytest

from collector.cards import choose, is_part, original, physical, rank, shares
from collector.labels import NodeLabels, sanitised

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
FEATURE = "nvidia.com/"


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        ("nvidia.com/gpu", "nvidia_com_gpu"),
        ("nvidia.com/gpu.shared", "nvidia_com_gpu_shared"),
        ("nvidia.com/mig-3g.40gb", "nvidia_com_mig_3g_40gb"),
        ("nvidia.com/mig-1c.3g.40gb", "nvidia_com_mig_1c_3g_40gb"),
        ("nvidia.com/mig-1g.10gb.me", "nvidia_com_mig_1g_10gb_me"),
        ("amd.com/gpu", "amd_com_gpu"),
        ("aws.amazon.com/neuroncore", "aws_amazon_com_neuroncore"),
        ("huawei.com/Ascend910", "huawei_com_Ascend910"),
        ("huawei.com/Ascend910-8c", "huawei_com_Ascend910_8c"),
        ("cambricon.com/mlu370.smlu.vcore", "cambricon_com_mlu370_smlu_vcore"),
        ("mthreads.com/gpu", "mthreads_com_gpu"),
    ],
)
def test_a_card_is_known_in_both_spellings(resource: str, text: str) -> None:
    assert rank(resource) is not None
    assert original(text) == resource


@pytest.mark.parametrize(
    "resource",
    ["cpu", "memory", "nvidia.com/gpucores", "nvidia.com/gpumem", "vpc.amazonaws.com/efa"],
)
def test_other_resources_are_no_cards(resource: str) -> None:
    assert rank(resource) is None
    assert original(resource.replace(".", "_").replace("/", "_")) is None
    assert choose({resource: 3}).resource is None


@pytest.mark.parametrize(
    ("amounts", "chosen", "others"),
    [
        ({GPU: 0, MIG: 2, "nvidia.com/mig-3g.20gb": 1}, MIG, ("nvidia.com/mig-3g.20gb",)),
        ({GPU: 4, MIG: 28}, GPU, (MIG,)),
        ({GPU: 0}, GPU, ()),
        (
            {"aws.amazon.com/neuroncore": 128, "aws.amazon.com/neuron": 16},
            "aws.amazon.com/neuron",
            ("aws.amazon.com/neuroncore",),
        ),
    ],
)
def test_whole_cards_count_before_parts_however_many(
    amounts: dict[str, int], chosen: str, others: tuple[str, ...]
) -> None:
    found = choose(amounts)
    assert (found.resource, found.units, found.others) == (chosen, amounts[chosen], others)


def labelled(**labels: str) -> NodeLabels:
    """Labels ``gpu_count`` for ``nvidia.com/gpu.count`` and so on."""
    keys = {"sharing": "gpu.sharing-strategy", "strategy": "mig.strategy", "config": "mig.config"}
    return NodeLabels({FEATURE + keys.get(k, f"gpu.{k}"): v for k, v in labels.items()})


@pytest.mark.parametrize(
    ("amounts", "labels", "cards"),
    [
        ({GPU: 8}, labelled(), 8),
        ({GPU: 8}, labelled(count="8", sharing="none", replicas="1"), 8),
        # The strategy is a setting of the operator; without MIG the count is one of cards.
        ({GPU: 8}, labelled(count="8", strategy="single", product="NVIDIA-H100"), 8),
        ({GPU: 8}, labelled(strategy="single", config="all-disabled"), 8),
        ({GPU: 56}, labelled(count="8", sharing="time-slicing"), 8),
        ({GPU: 56}, labelled(count="8", sharing="mps"), 8),
        ({GPU: 56}, labelled(count="8", replicas="7"), 8),
        ({GPU: 56}, labelled(count="8", product="NVIDIA-H100-SHARED"), 8),
        ({"nvidia.com/gpu.shared": 56}, labelled(count="8"), 8),
        ({MIG: 56}, labelled(count="8", strategy="mixed"), 8),
        ({GPU: 4, MIG: 28}, labelled(count="8", strategy="mixed"), 8),
        ({GPU: 4, MIG: 28}, labelled(), None),
        ({GPU: 56}, labelled(replicas="7"), None),
        ({GPU: 56}, labelled(count="many", replicas="7"), None),
        ({GPU: 56}, labelled(count="56", strategy="single", product="A100-MIG-1g.5gb"), None),
        ({GPU: 112}, labelled(count="56", replicas="2", product="A100-MIG-1g.5gb-SHARED"), None),
        ({GPU: 56}, labelled(count="56", strategy="single", config="all-1g.5gb"), None),
        ({GPU: 7}, NodeLabels({"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}), None),
        ({GPU: 9}, NodeLabels({"cloud.google.com/gke-gpu-sharing-strategy": "mps"}), None),
        ({"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32}, labelled(), 16),
        ({"aws.amazon.com/neuroncore": 32}, labelled(), None),
        ({GPU: 0}, labelled(count="8", sharing="time-slicing"), 0),
        ({}, labelled(), 0),
        ({}, labelled(product="NVIDIA-H100"), None),
    ],
)
def test_physical_cards(amounts: dict[str, int], labels: NodeLabels, cards: int | None) -> None:
    found = choose(amounts)
    assert physical(found, labels.get) == cards
    spelled = NodeLabels({sanitised(k): v for k, v in labels.labels.items()}, sanitised)
    assert physical(found, spelled.get) == cards
    assert shares(found, spelled.get) == shares(found, labels.get)


def test_a_node_that_says_nothing_has_no_number_of_cards() -> None:
    assert physical(choose({}), labelled().get, sized=False) is None


def test_parts() -> None:
    assert [is_part(name) for name in (GPU, MIG, "cpu", "nvidia.com/gpu.shared")] == [
        False,
        True,
        False,
        True,
    ]
