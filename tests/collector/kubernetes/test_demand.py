from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kubernetes.demand import effective_request
from collector.kubernetes.objects import PodSpec, PodStatus
from tests.collector.kubernetes.builders import Json, container

GIB = 2**30


def request(**spec: object) -> dict[str, Fraction]:
    return effective_request(msgspec.convert(spec, PodSpec))


def sidecar(cpu: str) -> Json:
    return container("sidecar", cpu=cpu, restartPolicy="Always")


def test_containers_and_sidecars_add_up() -> None:
    assert request(
        containers=[container(cpu="2"), container(cpu="500m")], initContainers=[sidecar("1")]
    )["cpu"] == Fraction("3.5")


def test_a_large_init_container_sets_the_request() -> None:
    found = request(
        containers=[container(cpu="2", memory="8Gi")],
        initContainers=[container(cpu="6", memory="1Gi")],
    )
    assert found == {"cpu": 6, "memory": 8 * GIB}


def test_only_sidecars_declared_before_an_init_container_count_with_it() -> None:
    big, small = container(cpu="4"), container(cpu="1")
    assert request(containers=[small], initContainers=[sidecar("2"), big])["cpu"] == 6
    assert request(containers=[small], initContainers=[big, sidecar("2")])["cpu"] == 4


def test_overhead_is_added_and_pod_level_resources_replace() -> None:
    found = request(
        containers=[container(cpu="2", memory="1Gi")],
        overhead={"cpu": "250m"},
        resources={"requests": {"cpu": "8"}},
    )
    assert found == {"cpu": Fraction("8.25"), "memory": GIB}


def test_a_limit_without_a_request_is_one() -> None:
    limited = {
        "name": "a",
        "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "4"}, "requests": {"cpu": "1"}},
    }
    assert request(containers=[limited]) == {"nvidia.com/gpu": 2, "cpu": 1}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None, "initContainers": None},
        {"containers": [{"name": "a", "resources": None}]},
    ],
)
def test_no_containers_no_resources_no_request(spec: Json) -> None:
    assert request(**spec) == {}


@given(st.lists(st.integers(0, 64), max_size=4), st.lists(st.integers(0, 64), max_size=4))
def test_the_request_covers_every_moment(apps: list[int], inits: list[int]) -> None:
    found = request(
        containers=[container(cpu=str(cpu)) for cpu in apps],
        initContainers=[container(cpu=str(cpu)) for cpu in inits],
    )
    assert found.get("cpu", 0) == max([sum(apps), *inits])


def resized(status: Json, **spec: object) -> Fraction:
    asked = {"containers": [container(cpu="2"), container("other", cpu="1")], **spec}
    found = effective_request(msgspec.convert(asked, PodSpec), msgspec.convert(status, PodStatus))
    return found["cpu"]


def of_main(allocated: str | None = None, in_force: str | None = None) -> Json:
    return {
        "containerStatuses": [
            {
                "name": "main",
                **({"allocatedResources": {"cpu": allocated}} if allocated else {}),
                **({"resources": {"requests": {"cpu": in_force}}} if in_force else {}),
            }
        ]
    }


def pending(reason: str) -> Json:
    return {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 3),
        (of_main("2", "2"), 3),
        # Down to 2 of 6: what is still allocated or in force is held.
        (of_main("2", "6"), 7),
        (of_main("6", "6"), 7),
        # Up to 2 of 1: deferred, the wish is held; infeasible, it is not.
        (of_main("1", "1"), 3),
        (of_main("1", "1") | pending("Deferred"), 3),
        (of_main("1", "1") | pending("Infeasible"), 2),
        (pending("Infeasible"), 3),
    ],
)
def test_a_resize_in_place_holds_the_most(status: Json, cpu: int) -> None:
    assert resized(status) == cpu


def test_a_resize_of_the_whole_pod_counts_the_overhead_once() -> None:
    status = {"allocatedResources": {"cpu": "9"}, "resources": {"requests": {"cpu": "5"}}}
    whole = {"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}}
    assert resized(status, **whole) == 9
    assert resized({}, **whole) == 5
    assert resized(status | pending("Infeasible"), **whole) == 9


def test_what_a_resize_does_not_name_stays() -> None:
    found = effective_request(
        msgspec.convert({"containers": [container(cpu="2", gpus=4)]}, PodSpec),
        msgspec.convert(of_main("1") | pending("Infeasible"), PodStatus),
    )
    assert found == {"cpu": 1, "memory": GIB, "nvidia.com/gpu": 4}
