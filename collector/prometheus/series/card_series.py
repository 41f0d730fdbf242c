"""The series of cards: how busy they are, by whom it is said, and what tells spinning from work.

Names: dcgm-exporter (from 4.9.0 on, fields bear new names and utilisation is a ratio instead of a
percentage), AMD's device metrics exporter, neuron-monitor, GKE's device plugins and the names that
Google's and Amazon's managed services give the same figures (``kubernetes_io:…``, Container
Insights). Azure's own figure is retired there in favour of dcgm-exporter's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from collector.prometheus.series.metric import Series, same

_CARD = {
    "device": (
        "UUID",
        "uuid",
        "gpu_uuid",
        "gpu",
        "gpu_id",
        "accelerator_id",
        "neuroncore",
        "GpuDevice",
    ),
    "instance": ("GPU_I_ID",),
    "host": ("Hostname", "hostname"),
    "place": ("node", "kubernetes_node", "nodename", "node_name", "NodeName"),
    "machine": ("instance_id", "InstanceId"),
    "namespace": ("namespace", "namespace_name", "Namespace"),
    "pod": ("pod", "pod_name", "FullPodName", "PodName"),
    "container": ("container", "container_name", "ContainerName"),
}
_MODEL = {"modelName": ("modelName", "card_series", "model")}
# Every ratio may come as a percentage; what is above is no value.
_ALONE = Series("", _CARD, _MODEL, ceiling=100.0, optional=True)

GPU_ACTIVE = replace(
    _ALONE,
    metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    also={"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": 1.0},
    blind="whether cards worked: active cost and idle experiments",
    optional=False,
)
SM_ACTIVE = replace(
    _ALONE,
    metric="DCGM_FI_PROF_SM_ACTIVE",
    also={"DCGM_FI_PROF_SM_UTIL_RATIO": 1.0},
    blind="how much of each card worked; the engine's activity only tells whether any of it did",
)
GPU_UTIL = replace(
    _ALONE,
    metric="DCGM_FI_DEV_GPU_UTIL",
    also={"DCGM_FI_DEV_GPU_UTIL_RATIO": 100.0, "container_gpu_utilization": 1.0},
    blind="whether cards worked, where the profiling metric is missing",
)
TENSOR = replace(
    _ALONE,
    metric="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    also={"DCGM_FI_PROF_TENSOR_UTIL_RATIO": 1.0},
    blind="whether a busy card computes, or only spins",
)
DRAM = replace(
    _ALONE,
    metric="DCGM_FI_PROF_DRAM_ACTIVE",
    also={"DCGM_FI_PROF_DRAM_UTIL_RATIO": 1.0},
    blind="whether a busy card moves memory, as decoding does, or only spins",
)
POWER = replace(
    _ALONE,
    metric="DCGM_FI_DEV_POWER_USAGE",
    also={"DCGM_FI_DEV_BOARD_POWER_WATTS": 1.0},
    blind="whether a busy card draws power, or only spins",
    ceiling=10_000.0,
)
POWER_LIMIT = replace(
    POWER,
    metric="DCGM_FI_DEV_POWER_MGMT_LIMIT",
    also={
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 1.0,
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS": 1.0,
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS": 1.0,
    },
    blind="what a card draws at work, to measure its power by",
)
AMD_ACTIVE = replace(
    _ALONE,
    metric="gpu_gfx_activity",
    also={"amd_gpu_gfx_activity": 1.0},
    info={**_MODEL, "partition": ("gpu_partition_id",)},
    blind="whether AMD cards worked",
)
NEURON_ACTIVE = replace(
    _ALONE, metric="neuroncore_utilization_ratio", blind="whether Neuron cores worked"
)
DUTY_CYCLE = replace(
    _ALONE,
    metric="duty_cycle",
    also={"kubernetes_io:container_accelerator_duty_cycle": 1.0},
    info={**_MODEL, **same("make")},
    blind="whether TPUs worked, and cards of GKE without dcgm-exporter",
)
TENSORCORE = replace(
    _ALONE,
    metric="tensorcore_utilization",
    also={"kubernetes_io:container_accelerator_tensorcore_utilization": 1.0},
    blind="whether a busy TPU computes, or only waits",
)
TPU_MEMORY = replace(
    _ALONE,
    metric="memory_bandwidth_utilization",
    also={"kubernetes_io:container_accelerator_memory_bandwidth_utilization": 1.0},
    blind="whether a busy TPU moves memory, or only waits",
)


@dataclass(frozen=True)
class Measure:
    """A series of how busy cards are.

    Args:
        series: The series.
        percent: Whether its values are percentages, unless their range says otherwise.
        compute: What must be near 0 as well for a busy card to count as spinning ...
        memory: ... together with this.
        coarse: Whether it only tells that anything ran at all, so that the card's power is asked.
        whole: Whether it says nothing of a card that is cut into MIG devices.
    """

    series: Series
    percent: bool = False
    compute: Series | None = None
    memory: Series | None = None
    coarse: bool = False
    whole: bool = False


# The most trusted first; utilisation last, as it is 100 % while any kernel is resident.
MEASURES = (
    Measure(SM_ACTIVE, compute=TENSOR, memory=DRAM),
    Measure(GPU_ACTIVE, compute=TENSOR, memory=DRAM, coarse=True),
    Measure(AMD_ACTIVE, percent=True),
    Measure(NEURON_ACTIVE),
    Measure(DUTY_CYCLE, percent=True, compute=TENSORCORE, memory=TPU_MEMORY, whole=True),
    Measure(GPU_UTIL, percent=True, compute=TENSOR, memory=DRAM, coarse=True, whole=True),
)
CARD_SERIES = (
    *(measure.series for measure in MEASURES),
    TENSOR,
    DRAM,
    POWER,
    POWER_LIMIT,
    TENSORCORE,
    TPU_MEMORY,
)
