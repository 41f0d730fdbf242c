"""Labels of nodes (type, place, capacity type, card model) and annotations of pods, by one table.

The keys stand here in their own spelling. kube-state-metrics writes them otherwise, so a source
hands over *how* it spells a key (``as_is``, ``sanitised``) with its labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from collector.mig import card_name

ANNOTATIONS = (
    "experiment",
    "owner",
    "pipeline",
    "model-version",
    "model_version",
    "project",
    "phase",
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "vgpu-devices-allocated",
    "vgpu-ids-new",
)
"""Last parts of annotation keys of pods that are kept, whatever the prefix: identity and cards."""

_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
MODEL = (
    "nvidia.com/gpu.product",
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "cloud.google.com/gke-tpu-accelerator",
)
_CAPACITY = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-provisioning",
    "kubernetes.azure.com/scalesetpriority",
    "node.kubernetes.io/lifecycle",
)
_SPOT_FLAGS = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")
_CAPACITY_WORDS = {
    "spot": "spot",
    "ec2spot": "spot",
    "preemptible": "spot",
    "on-demand": "on-demand",
    "ondemand": "on-demand",
    "normal": "on-demand",
    "regular": "on-demand",
    "standard": "on-demand",
    "reserved": "reserved",
    "capacity-block": "reserved",
}


def as_is(key: str) -> str:
    """A key as the API gives it."""
    return key


@lru_cache(maxsize=1024)
def sanitised(key: str) -> str:
    """A key as kube-state-metrics writes it: ``label_`` and snake case."""
    return (
        "label_"
        + re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"[^a-zA-Z0-9_]", "_", key)).lower()
    )


def capacity_word(text: str | None) -> str | None:
    """``spot``, ``on-demand`` or ``reserved`` by any of their names; another word in lower case."""
    word = (text or "").lower().replace("_", "-")
    return _CAPACITY_WORDS.get(word, word) or None


@dataclass(frozen=True)
class NodeLabels:
    """The labels of a node.

    Args:
        labels: Value by key, as the source spells it.
        spelling: How the source spells a key.
    """

    labels: Mapping[str, str]
    spelling: Callable[[str], str] = as_is

    def get(self, key: str) -> str | None:
        """The value of a key in its own spelling; None if absent or empty."""
        return self.labels.get(self.spelling(key)) or None

    def _first(self, keys: tuple[str, ...]) -> str | None:
        return next((value for key in keys if (value := self.get(key))), None)

    @property
    def instance_type(self) -> str | None:
        """The provider's type of machine."""
        return self._first(_TYPE)

    @property
    def region(self) -> str | None:
        """The provider's region."""
        return self._first(_REGION)

    @property
    def zone(self) -> str | None:
        """The zone in the region."""
        return self._first(_ZONE)

    @property
    def gpu_model(self) -> str | None:
        """Model of the cards, whatever parts they are offered in; None if no label names one."""
        return card_name(self._first(MODEL) or "") or None

    @property
    def capacity_type(self) -> str | None:
        """on-demand, spot or reserved; None if no label says so in a word that is known."""
        if any(self.get(flag) == "true" for flag in _SPOT_FLAGS):
            return "spot"
        word = capacity_word(self._first(_CAPACITY))
        return word if word in _CAPACITY_WORDS.values() else None
