from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kubernetes.demand import effective_request
from collector.kubernetes.objects import PodSpec
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
