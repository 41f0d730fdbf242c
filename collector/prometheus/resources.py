"""Resource names as kube-state-metrics writes them, and their original spelling.

Dots, dashes and slashes all become ``_``, so the way back is a table of known names. Sources: the
device plugins' documentation; MIG profiles ``nvidia.com/mig-<g>g.<memory>gb[.me]``.
"""

from __future__ import annotations

import re

CARDS: dict[str, str] = {
    "nvidia_com_gpu": "nvidia.com/gpu",
    "nvidia_com_gpu_shared": "nvidia.com/gpu.shared",
    "nvidia_com_pgpu": "nvidia.com/pgpu",
    "amd_com_gpu": "amd.com/gpu",
    "gpu_intel_com_i915": "gpu.intel.com/i915",
    "gpu_intel_com_xe": "gpu.intel.com/xe",
    "habana_ai_gaudi": "habana.ai/gaudi",
    "google_com_tpu": "google.com/tpu",
    "aws_amazon_com_neuron": "aws.amazon.com/neuron",
    "aws_amazon_com_neurondevice": "aws.amazon.com/neurondevice",
    "k8s_amazonaws_com_vgpu": "k8s.amazonaws.com/vgpu",
    "huawei_com_ascend910": "huawei.com/Ascend910",
}
_MIG = re.compile(r"nvidia_com_mig_(?:(\d+c)_)?(\d+g)_(\d+gb)(_me)?")


def card_resource(sanitised: str) -> str | None:
    """The original name of a card resource; None if it is none that we know."""
    if match := _MIG.fullmatch(sanitised):
        compute, slices, memory, extra = match.groups()
        parts = [part for part in (compute, slices, memory) if part]
        return f"nvidia.com/mig-{'.'.join(parts)}{'.me' if extra else ''}"
    return CARDS.get(sanitised.lower())
