"""Effective requests: sidecars, init containers, overhead, the scheduler's word, and resizes."""

from __future__ import annotations

import json
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collector.prometheus.builders import KSM, Sample, at, collect, line, node, pod

NODE = node("gpu-0", at("0:00"), at("24:00"))
BASE = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}
START, END = at("10:00"), at("12:00")
GIB = 2**30


def asked(
    container: str,
    start: datetime = START,
    end: datetime = END,
    *,
    init: bool = False,
    **amounts: float,
) -> list[Sample]:
    kind = "init_container" if init else "container"
    return [
        sample
        for resource, value in amounts.items()
        for sample in line(
            f"kube_pod_{kind}_resource_requests",
            {**BASE, "container": container, "resource": resource},
            start,
            end,
            value=value,
        )
    ]


def sidecar(container: str) -> list[Sample]:
    labels = {**BASE, "container": container, "restart_policy": "Always"}
    return line("kube_pod_init_container_info", labels, START, END)


def life(start: datetime = START, end: datetime = END) -> list[Sample]:
    samples = pod("u1", start, end, gpus=0)
    return [one for one in samples if one.name != "kube_pod_container_resource_requests"]


def requests(samples: list[Sample]) -> pl.DataFrame:
    return collect([*NODE, *life(), *samples]).tables["workloads"]


def cores(samples: list[Sample]) -> list[int | None]:
    return requests(samples)["cpu_millicores"].to_list()


def test_containers_and_sidecars_run_beside_each_other() -> None:
    proxy = [*asked("proxy", init=True, cpu=0.5, memory=GIB), *sidecar("proxy")]
    row = requests([*asked("main", cpu=2.0, memory=4.0 * GIB), *proxy]).row(0, named=True)
    assert (row["cpu_millicores"], row["memory_bytes"]) == (2500, 5 * GIB)


def test_an_init_container_counts_where_it_asks_for_more_than_all_that_run_later() -> None:
    fetch = asked("fetch", init=True, cpu=8.0)
    check = asked("check", init=True, cpu=3.0)
    assert cores([*asked("main", cpu=2.0), *fetch, *check]) == [8000]
    assert cores([*asked("main", cpu=2.0), *asked("fetch", init=True, cpu=1.0)]) == [2000]


def test_sidecars_count_as_declared_before_init_containers() -> None:
    proxy = [*asked("proxy", init=True, cpu=0.5), *sidecar("proxy")]
    assert cores([*asked("main", cpu=2.0), *asked("fetch", init=True, cpu=8.0), *proxy]) == [8500]


def test_an_init_container_without_a_policy_is_no_sidecar() -> None:
    labels = {**BASE, "container": "fetch"}
    plain = line("kube_pod_init_container_info", labels, START, END)
    assert cores([*asked("main", cpu=2.0), *asked("fetch", init=True, cpu=1.0), *plain]) == [2000]


def test_overhead_comes_on_top() -> None:
    over = [
        *line("kube_pod_overhead_cpu_cores", BASE, START, END, value=0.25),
        *line("kube_pod_overhead_memory_bytes", BASE, START, END, value=float(GIB)),
    ]
    row = requests([*asked("main", cpu=2.0, memory=4.0 * GIB), *over]).row(0, named=True)
    assert (row["cpu_millicores"], row["memory_bytes"]) == (2250, 5 * GIB)


def test_the_scheduler_is_right_about_what_it_speaks_of() -> None:
    told = line(
        "kube_pod_resource_request",
        {"job": "scheduler", "namespace": "research", "pod": "u1", "resource": "cpu"},
        START,
        END,
        value=6.0,
    )
    row = requests([*asked("main", cpu=2.0, memory=4.0 * GIB), *told]).row(0, named=True)
    assert (row["cpu_millicores"], row["memory_bytes"]) == (6000, 4 * GIB)


def test_the_scheduler_names_resources_in_their_own_spelling() -> None:
    told = [
        sample
        for resource, value in (("cpu", 6.0), ("nvidia.com/gpu", 2.0))
        for sample in line(
            "kube_pod_resource_request",
            {"namespace": "research", "pod": "u1", "resource": resource},
            START,
            END,
            value=value,
        )
    ]
    row = requests(told).row(0, named=True)
    assert (row["cpu_millicores"], row["gpus"]) == (6000, 2)
    assert json.loads(row["gpu_request"]) == {"nvidia.com/gpu": 2}


def test_of_two_pods_of_one_name_the_scheduler_is_not_asked() -> None:
    told = line(
        "kube_pod_resource_request",
        {"namespace": "research", "pod": "again", "resource": "cpu"},
        at("8:00"),
        at("12:00"),
        value=6.0,
    )
    pods = [
        *pod("u1", at("8:00"), at("9:00"), name="again", gpus=0),
        *pod("u2", at("10:00"), at("12:00"), name="again", gpus=0),
    ]
    frame = collect([*NODE, *pods, *told]).tables["workloads"]
    assert frame["cpu_millicores"].to_list() == [16_000, 16_000]


def test_each_change_of_an_amount_is_a_cut() -> None:
    resized = [
        *asked("main", START, at("10:30"), cpu=2.0),
        *asked("main", at("10:31"), at("11:30"), cpu=4.0),
        *asked("main", at("11:31"), END, cpu=1.0),
    ]
    frame = requests([*resized, *asked("log", cpu=0.5)])
    assert frame.select("start", "end", "cpu_millicores").rows() == [
        (START, at("10:31"), 2500),
        (at("10:31"), at("11:31"), 4500),
        (at("11:31"), END, 1500),
    ]


def test_every_device_that_is_asked_for_is_told() -> None:
    devices = asked("main", nvidia_com_gpu=2.0, nvidia_com_gpucores=30.0, nvidia_com_gpumem=8000.0)
    row = requests(devices).row(0, named=True)
    assert (row["gpus"], row["gpu_resource"]) == (2, "nvidia.com/gpu")
    assert json.loads(row["gpu_request"]) == {
        "nvidia.com/gpu": 2,
        "nvidia.com/gpucores": 30,
        "nvidia.com/gpumem": 8000,
    }


def test_a_part_of_a_card_is_asked_for_by_its_profile() -> None:
    row = requests(asked("main", cpu=1.0, nvidia_com_mig_3g_40gb=2.0)).row(0, named=True)
    assert json.loads(row["gpu_request"]) == {"nvidia.com/mig-3g.40gb": 2}


def test_a_pod_without_devices_asks_for_none_and_one_of_which_nothing_is_said_is_unknown() -> None:
    assert requests(asked("main", cpu=1.0)).select("gpus", "gpu_request").row(0) == (0, "{}")
    assert requests([]).select("gpus", "gpu_request", "cpu_millicores").row(0) == (None, None, None)


def test_a_second_exporter_without_uids_is_a_copy() -> None:
    copy = [
        one._replace(labels=one.labels.replace(',"uid":"u1"', "").replace("8080", "9003"))
        for one in asked("main", at("10:00:30"), at("11:59:30"), cpu=7.0)
    ]
    frame = requests([*asked("main", cpu=2.0), *copy])
    assert frame["cpu_millicores"].to_list() == [2000]


@given(
    running=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    beside=st.lists(st.integers(0, 8), max_size=3),
    first=st.lists(st.integers(0, 16), max_size=3),
    over=st.integers(0, 3),
)
@settings(max_examples=15, deadline=None)
def test_a_request_is_never_less_than_what_runs_or_what_starts(
    running: list[int], beside: list[int], first: list[int], over: int
) -> None:
    samples = [
        *(one for n, cpu in enumerate(running) for one in asked(f"c{n}", cpu=float(cpu))),
        *(one for n, cpu in enumerate(beside) for one in asked(f"s{n}", init=True, cpu=float(cpu))),
        *(one for n in range(len(beside)) for one in sidecar(f"s{n}")),
        *(one for n, cpu in enumerate(first) for one in asked(f"i{n}", init=True, cpu=float(cpu))),
        *line("kube_pod_overhead_cpu_cores", BASE, START, END, value=float(over)),
    ]
    (found,) = cores(samples)
    assert found is not None
    at_work, at_start = sum(running) + sum(beside), max(first, default=0)
    assert found >= 1000 * (max(at_work, at_start) + over)
    assert found <= 1000 * (at_work + at_start + over)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_rows_changes_nothing(order: int) -> None:
    samples = [*asked("main", cpu=2.0), *asked("fetch", init=True, cpu=8.0)][::order]
    assert cores(samples) == [8000]
