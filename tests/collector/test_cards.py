"""One table says what a card is, which resource counts, and how many cards a node has."""

from __future__ import annotations

import re

import pytest

from collector.cards import choose, is_device, is_part, maker, original, rank, request_json

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


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
        ("amd.com/cpx_nps4", "amd_com_cpx_nps4"),
        ("volcano.sh/vgpu-number", "volcano_sh_vgpu_number"),
        ("huawei.com/Ascend910", "huawei_com_Ascend910"),
        ("huawei.com/Ascend910-8c", "huawei_com_Ascend910_8c"),
        ("cambricon.com/mlu370.smlu.vcore", "cambricon_com_mlu370_smlu_vcore"),
        ("mthreads.com/gpu", "mthreads_com_gpu"),
    ],
)
def test_a_card_is_known_in_both_spellings(resource: str, text: str) -> None:
    assert rank(resource) is not None
    assert original(text) == resource


@pytest.mark.parametrize("resource", ["cpu", "memory", "vpc.amazonaws.com/efa"])
def test_other_resources_are_no_cards(resource: str) -> None:
    assert rank(resource) is None
    assert not is_device(resource)
    assert original(resource.replace(".", "_").replace("/", "_")) is None
    assert choose({resource: 3}).resource is None


@pytest.mark.parametrize(
    "resource",
    [
        *(f"nvidia.com/{name}" for name in ("gpucores", "gpumem", "gpumem-percentage")),
        *(f"volcano.sh/vgpu-{name}" for name in ("cores", "memory", "memory-percentage")),
    ],
)
def test_what_measures_a_part_of_a_card_is_a_device_but_no_card(resource: str) -> None:
    assert is_device(resource)
    assert rank(resource) is None
    assert original(re.sub("[^a-z]", "_", resource)) == resource
    assert choose({resource: 3}).resource is None


def test_every_device_of_a_request_is_kept() -> None:
    asked = {"cpu": 4, GPU: 1, "nvidia.com/gpumem": 8000, MIG: 0}
    assert request_json(asked) == '{"nvidia.com/gpu":1,"nvidia.com/gpumem":8000}'
    assert request_json({"cpu": 4}) == "{}"


def test_one_makers_cards_may_stand_under_another_domain() -> None:
    assert maker("k8s.amazonaws.com/vgpu") == maker(GPU) != maker("amd.com/gpu")


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


def test_parts() -> None:
    assert [is_part(name) for name in (GPU, MIG, "cpu", "nvidia.com/gpu.shared")] == [
        False,
        True,
        False,
        True,
    ]
