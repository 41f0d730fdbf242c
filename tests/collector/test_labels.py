"""Labels of nodes say the same however a source spells their keys."""

from __future__ import annotations

import pytest

from collector.labels import NodeLabels, sanitised


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"karpenter.sh/capacity-type": "on-demand"}, "on-demand"),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "reserved"),
        (
            {"cloud.google.com/gke-spot": "false", "cloud.google.com/gke-preemptible": "true"},
            "spot",
        ),
        ({"cloud.google.com/gke-provisioning": "preemptible"}, "spot"),
        ({"kubernetes.azure.com/scalesetpriority": "regular"}, "on-demand"),
        ({"node.kubernetes.io/lifecycle": "Ec2Spot"}, "spot"),
        ({"karpenter.sh/capacity-type": "a word of their own"}, None),
        ({}, None),
    ],
)
def test_capacity_type(labels: dict[str, str], expected: str | None) -> None:
    assert NodeLabels(labels).capacity_type == expected
    spelled = {sanitised(key): value for key, value in labels.items()}
    assert NodeLabels(spelled, sanitised).capacity_type == expected


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("eks.amazonaws.com/capacityType", "label_eks_amazonaws_com_capacity_type"),
        ("nvidia.com/gpu.sharing-strategy", "label_nvidia_com_gpu_sharing_strategy"),
        ("node.kubernetes.io/instance-type", "label_node_kubernetes_io_instance_type"),
    ],
)
def test_keys_as_kube_state_metrics_writes_them(key: str, text: str) -> None:
    assert sanitised(key) == text


def test_the_first_key_with_a_value_wins() -> None:
    labels = NodeLabels(
        {
            "node.kubernetes.io/instance-type": "",
            "beta.kubernetes.io/instance-type": "p5.48xlarge",
            "topology.kubernetes.io/region": "eu-1",
            "failure-domain.beta.kubernetes.io/region": "eu-0",
            "karpenter.k8s.aws/instance-gpu-name": "h100",
        }
    )
    assert (labels.instance_type, labels.region, labels.zone, labels.gpu_model) == (
        "p5.48xlarge",
        "eu-1",
        None,
        "h100",
    )


@pytest.mark.parametrize(
    ("product", "card"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "NVIDIA-A100-SXM4-40GB"),
        ("", None),
    ],
)
def test_the_model_is_that_of_the_card_whatever_parts_it_is_offered_in(
    product: str, card: str | None
) -> None:
    assert NodeLabels({"nvidia.com/gpu.product": product}).gpu_model == card
