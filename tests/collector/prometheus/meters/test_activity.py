"""How busy cards are: the most trusted series, its unit, and cards that only spin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.facts import Facts
from tests.collector.prometheus.builders import (
    MINUTE,
    Sample,
    at,
    card,
    collect,
    line,
    node,
    pod,
)

START, END = at("10:00"), at("12:00")
NODE = node("gpu-0", at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE)
POD = pod("u1", START, END)
GR, SM, UTIL = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
TENSOR, DRAM = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"
POWER, LIMIT = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_MGMT_LIMIT"


def said(
    values: Mapping[str, float], *, more: Sequence[Sample] = (), nodes: Sequence[Sample] = NODE
) -> Facts:
    samples = [
        one
        for name, value in values.items()
        for one in card(START, END, tenant="u1", name=name, value=value)
    ]
    return collect([*nodes, *POD, *samples, *more])


def activity(facts: Facts) -> float | None:
    """The one activity of all slots; None without any."""
    if "usage" not in facts.tables:
        return None
    rows = facts.tables["usage"].filter(pl.col("meter") == "gpu_activity")
    means = rows["mean"].round(9).unique().to_list()
    assert len(means) <= 1
    return means[0] if means else None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({SM: 0.4, GR: 0.9, UTIL: 100}, 0.4),
        ({GR: 0.9, UTIL: 100}, 0.9),
        ({UTIL: 80}, 0.8),
        # A kernel that spins, and decoding that is bound by memory.
        ({GR: 1.0, TENSOR: 0.0, DRAM: 0.001}, 0.0),
        ({GR: 0.95, TENSOR: 0.02, DRAM: 0.7}, 0.95),
        ({GR: 0.95, TENSOR: 0.0, DRAM: 0.7}, 0.95),
        ({UTIL: 100, TENSOR: 0.0, DRAM: 0.0}, 0.0),
        ({SM: 0.9, TENSOR: 0.0, DRAM: 0.0}, 0.0),
        # A healthy large run (marin-community/marin#7344).
        ({UTIL: 98.55, TENSOR: 0.324, DRAM: 0.241, POWER: 984, LIMIT: 1000}, 0.9855),
        # Only one of the two is known.
        ({GR: 1.0, TENSOR: 0.0}, 1.0),
        ({GR: 1.0, DRAM: 0.0}, 1.0),
        # Power: hangs of NVIDIA/nccl#968 and horovod/horovod#3611.
        ({UTIL: 100, POWER: 70, LIMIT: 700}, 0.0),
        ({UTIL: 100, POWER: 47, LIMIT: 250}, 0.0),
        ({GR: 1.0, POWER: 70, LIMIT: 700}, 0.0),
        ({UTIL: 100, POWER: 600, LIMIT: 700}, 1.0),
        ({UTIL: 30, POWER: 70, LIMIT: 700}, 0.3),
        ({UTIL: 100, POWER: 70}, 1.0),
        ({SM: 0.9, POWER: 70, LIMIT: 700}, 0.9),
        # What draws power works, e.g. plain floating point in cache.
        ({GR: 1.0, TENSOR: 0.0, DRAM: 0.0, POWER: 600, LIMIT: 700}, 1.0),
        # Known tensor and memory activity outrank power.
        ({GR: 1.0, TENSOR: 0.3, DRAM: 0.3, POWER: 70, LIMIT: 700}, 1.0),
    ],
)
def test_activity_is_that_of_the_most_trusted_series(
    values: dict[str, float], expected: float
) -> None:
    assert activity(said(values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"DCGM_FI_DEV_GPU_UTIL_RATIO": 0.8}, 0.8),
        ({"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": 0.7, UTIL: 100}, 0.7),
        ({"DCGM_FI_PROF_SM_UTIL_RATIO": 0.6, GR: 1.0}, 0.6),
        (
            {
                GR: 1.0,
                "DCGM_FI_PROF_TENSOR_UTIL_RATIO": 0.0,
                "DCGM_FI_PROF_DRAM_UTIL_RATIO": 0.0,
            },
            0.0,
        ),
        (
            {
                GR: 1.0,
                "DCGM_FI_DEV_BOARD_POWER_WATTS": 70,
                "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS": 700,
            },
            0.0,
        ),
        # Units by range: a ratio under the old name, a percentage under a name of ratios.
        ({UTIL: 0.8}, 0.8),
        ({GR: 70}, 0.7),
        ({UTIL: 1}, 0.01),
    ],
)
def test_names_and_units_of_later_exporters(values: dict[str, float], expected: float) -> None:
    assert activity(said(values)) == expected


def test_an_exporter_that_is_upgraded_at_noon_is_one_meter() -> None:
    noon = at("11:00")
    samples = [
        *card(START, noon - MINUTE, tenant="u1", name=UTIL, value=80.0),
        *card(noon, END, tenant="u1", name="DCGM_FI_DEV_GPU_UTIL_RATIO", value=0.8),
    ]
    facts = collect([*NODE, *POD, *samples])
    assert activity(facts) == 0.8
    rows = facts.tables["usage"].filter(pl.col("meter") == "gpu_activity", pl.col("uid") == "u1")
    assert rows["samples"].sum() == 121


def test_a_series_that_stops_is_followed_by_the_next_in_trust() -> None:
    samples = [
        *card(START, at("11:00"), tenant="u1", name=SM, value=0.4),
        *card(START, END, tenant="u1", name=GR, value=0.9),
    ]
    other = node("gpu-1", START, END)  # has cards, so that the next series is read
    facts = collect([*NODE, *other, *POD, *samples])
    rows = facts.tables["usage"].filter(pl.col("meter") == "gpu_activity", pl.col("uid") == "u1")
    assert dict(rows.select("slot", "mean").iter_rows())[at("10:15")] == 0.4
    assert dict(rows.select("slot", "mean").iter_rows())[at("11:15")] == 0.9


def test_a_single_value_above_one_is_no_ratio() -> None:
    samples = card(START, END, tenant="u1", name=GR, value=0.5)
    samples[10] = samples[10]._replace(value=3.0)
    facts = collect([*NODE, *POD, *samples])
    assert activity(facts) == 0.5
    assert {entry.reason: entry.count for entry in facts.quarantine} == {"above_ceiling": 1}


@pytest.mark.parametrize("name", [UTIL, "duty_cycle"])
def test_a_mig_device_is_not_idle_because_utilisation_says_nothing_of_it(name: str) -> None:
    labels = {"UUID": "GPU-0", "Hostname": "gpu-0", "make": "nvidia"}
    device = {**labels, "GPU_I_ID": "3", "GPU_I_PROFILE": "1g.10gb"}
    samples = [
        *line(name, {**device, "pod": "u1", "namespace": "research"}, START, END, value=0.0),
        *line(name, labels, START, END, value=0.0),
    ]
    assert activity(collect([*NODE, *POD, *samples])) is None


def test_neither_is_a_card_of_a_node_with_mig() -> None:
    cut = node("gpu-0", START, END, gpus=0) + line(
        "kube_node_status_capacity",
        {"node": "gpu-0", "resource": "nvidia_com_mig_1g_10gb"},
        START,
        END,
        value=7.0,
    )
    assert activity(said({UTIL: 0}, nodes=cut)) is None
    assert activity(said({GR: 0.25}, nodes=cut)) == 0.25


def test_amd_cards() -> None:
    labels = {
        "gpu_id": "2",
        "gpu_uuid": "ccff74a1",
        "gpu_partition_id": "0",
        "card_series": "AMD Instinct MI300X OAM",
        "hostname": "gpu-0",
        "namespace": "research",
        "pod": "u1",
    }
    samples = [
        *line("gpu_gfx_activity", labels, START, END, value=60.0),
        *line(
            "gpu_gfx_activity",
            {**labels, "gpu_uuid": "ccff74a2", "gpu_partition_id": "1"},
            START,
            END,
            value=0.0,
        ),
    ]
    facts = collect([*node("gpu-0", START, END, labels={}), *POD, *samples])
    assert activity(facts) == 0.6
    assert facts.tables["nodes"]["gpu_model"].to_list() == ["AMD-Instinct-MI300X-OAM"]


def test_neuron_cores_are_found_on_their_machine() -> None:
    labels = {"instance_id": "i-gpu-0", "neuroncore": "3", "runtime_tag": "367"}
    samples = line("neuroncore_utilization_ratio", labels, START, END, value=0.5)
    rows = collect([*NODE, *POD, *samples]).tables["usage"].filter(meter="gpu_activity")
    assert rows.select("node", "device", "mean").unique().row(0) == ("gpu-0", "3", 0.5)


def test_tpus_are_on_the_node_of_their_pod() -> None:
    labels = {
        "make": "cloud-tpu",
        "accelerator_id": "1234-0",
        "model": "tpu-v6e-slice",
        "namespace": "research",
        "pod": "u1",
        "container": "main",
    }
    busy = line("duty_cycle", labels, START, END, value=90.0)
    rows = collect([*NODE, *POD, *busy]).tables["usage"].filter(meter="gpu_activity")
    assert rows.select("node", "uid", "mean").unique().row(0) == ("gpu-0", "u1", 0.9)
    still = [
        *line("tensorcore_utilization", labels, START, END, value=0.0),
        *line("memory_bandwidth_utilization", labels, START, END, value=0.0),
    ]
    assert activity(collect([*NODE, *POD, *busy, *still])) == 0.0


def test_a_reader_is_told_which_series_was_used_and_what_only_span() -> None:
    other = [
        *node("gpu-1", START, END),
        *card(START, END, host="gpu-1", uuid="GPU-1", name=UTIL, value=80.0),
    ]
    notes = said({GR: 1.0, TENSOR: 0.0, DRAM: 0.0}, more=other).notes
    assert f"how busy the cards of 1 nodes were is {GR}" in notes
    assert f"how busy the cards of 1 nodes were is {UTIL}" in notes
    assert [note for note in notes if "1 cards were busy without any work" in note]


def test_what_spins_for_some_time_is_idle_for_that_time_only() -> None:
    half = at("11:00")
    samples = [
        *card(START, END, tenant="u1", name=GR, value=1.0),
        *card(START, half, tenant="u1", name=TENSOR, value=0.4),
        *card(half + MINUTE, END, tenant="u1", name=TENSOR, value=0.0),
        *card(START, END, tenant="u1", name=DRAM, value=0.0),
    ]
    rows = collect([*NODE, *POD, *samples]).tables["usage"].filter(meter="gpu_activity")
    means = dict(rows.select("slot", "mean").iter_rows())
    assert (means[at("10:30")], means[at("11:30")]) == (1.0, 0.0)


@given(
    ratio=st.floats(0, 1),
    tensor=st.none() | st.floats(0, 1),
    dram=st.none() | st.floats(0, 1),
    power=st.none() | st.floats(0, 700),
)
@settings(max_examples=25, deadline=None)
def test_evidence_of_spinning_only_ever_lowers_activity_to_zero(
    ratio: float, tensor: float | None, dram: float | None, power: float | None
) -> None:
    values = {TENSOR: tensor, DRAM: dram, POWER: power, LIMIT: 700.0, GR: ratio}
    found = activity(said({name: value for name, value in values.items() if value is not None}))
    assert found is not None
    assert found in (0.0, round(ratio, 9))
    if power is None and (tensor is None or dram is None):
        assert found == round(ratio, 9)


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        pytest.param(
            "kubernetes_io:container_accelerator_duty_cycle",
            {
                "node_name": "gpu-0",
                "namespace_name": "research",
                "pod_name": "u1",
                "container_name": "main",
                "accelerator_id": "GPU-0",
                "make": "nvidia",
                "model": "nvidia-h100-80gb",
            },
            60.0,
            id="GKE",
        ),
        pytest.param(
            "container_gpu_utilization",
            {
                "NodeName": "gpu-0",
                "Namespace": "research",
                "PodName": "u1",
                "ContainerName": "main",
                "GpuDevice": "nvidia0",
                "InstanceId": "i-0abc",
            },
            60.0,
            id="EKS",
        ),
    ],
)
def test_managed_names_of_the_same_figure_are_read(
    name: str, labels: dict[str, str], value: float
) -> None:
    facts = collect([*NODE, *POD, *line(name, labels, START, END, value=value)])
    rows = facts.tables["usage"].filter(pl.col("meter") == "gpu_activity")
    assert rows.select("node", "pod", "uid").unique().rows() == [("gpu-0", "u1", "u1")]
    assert activity(facts) == 0.6
