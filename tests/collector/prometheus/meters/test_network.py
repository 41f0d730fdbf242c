"""Network meters: bytes per second of a pod, never of its node."""

from __future__ import annotations

import polars as pl

from tests.collector.prometheus.builders import KSM, Sample, at, collect, line, node, pod

NODE = node("gpu-0", at("0:00"), at("24:00"))
START, END = at("10:00"), at("12:00")


def moved(
    name: str, rate: float, *, interface: str = "eth0", way: str = "receive", **more: str
) -> list[Sample]:
    labels = {"job": "kubelet", "namespace": "research", "pod": name, "interface": interface}
    return line(
        f"container_network_{way}_bytes_total",
        {**labels, **more},
        START,
        END,
        value=lambda seconds: rate * seconds,
    )


def rates(samples: list[Sample], meter: str = "network_receive") -> list[tuple[str, float]]:
    rows = collect([*NODE, *samples]).tables["usage"].filter(pl.col("meter") == meter)
    return rows.select("uid", pl.col("mean").round(6)).unique().sort("uid").rows()


def test_interfaces_of_a_pod_add_up() -> None:
    samples = [*pod("u1", START, END), *moved("u1", 1000.0), *moved("u1", 24.0, interface="net1")]
    assert rates(samples) == [("u1", 1024.0)]
    sent = [*pod("u1", START, END), *moved("u1", 500.0, way="transmit")]
    assert rates(sent, "network_transmit") == [("u1", 500.0)]


def test_a_pod_counts_once_however_its_sandbox_is_called() -> None:
    for name in ("", "POD"):
        samples = [*pod("u1", START, END), *moved("u1", 1000.0, container=name)]
        assert rates(samples) == [("u1", 1000.0)]
    both = [
        *pod("u1", START, END),
        *moved("u1", 1000.0, container=""),
        *moved("u1", 1000.0, container="POD"),
        *moved("u1", 1000.0, container="main"),
    ]
    assert rates(both) == [("u1", 1000.0)]


def test_pods_in_the_network_of_their_node_have_no_meter_of_their_own() -> None:
    base = {**KSM, "namespace": "research", "pod": "u2", "uid": "u2", "host_network": "true"}
    agent = line("kube_pod_info", {**base, "node": "gpu-0"}, START, END)
    samples = [*pod("u1", START, END), *agent, *moved("u1", 1000.0), *moved("u2", 9e9)]
    assert rates(samples) == [("u1", 1000.0)]


def test_a_counter_that_starts_again_is_no_negative_rate() -> None:
    first = moved("u1", 1000.0)[:60]
    again = [
        one._replace(time=one.time + (at("11:00") - START)) for one in moved("u1", 1000.0)[:60]
    ]
    rows = collect([*NODE, *pod("u1", START, END), *first, *again]).tables["usage"]
    assert rows.filter(pl.col("meter") == "network_receive")["mean"].gt(900.0).all()


def test_no_network_series_is_no_gap() -> None:
    facts = collect([*NODE, *pod("u1", START, END)])
    assert not [gap for gap in facts.gaps if "network" in gap.detail]
