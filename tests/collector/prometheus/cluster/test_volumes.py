"""Persistent volumes, the pods that mount them, and claims of devices."""

from __future__ import annotations

import pytest

from collector.prometheus.collect import PrometheusCollector
from ledger.facts import Facts
from ledger.schema import MOUNTS, VOLUMES
from tests.collector.prometheus.builders import (
    KSM,
    WINDOW,
    MemorySource,
    Sample,
    at,
    collect,
    frame,
    line,
    node,
    pod,
)

NODE = node("gpu-0", at("0:00"), at("24:00"))
START, END = at("1:00"), at("3:00")
PV = {**KSM, "persistentvolume": "pvc-1", "storageclass": "gp3", "csi_driver": "ebs.csi.aws.com"}
PVC = {**KSM, "namespace": "research", "persistentvolumeclaim": "data"}
GIB = 2**30


def volume(**more: str) -> list[Sample]:
    labels = {**PV, "csi_volume_handle": "vol-0abc", **more}
    return [
        *line("kube_persistentvolume_info", labels, START, END),
        *line(
            "kube_persistentvolume_capacity_bytes",
            {**KSM, "persistentvolume": "pvc-1"},
            START,
            END,
            value=100.0 * GIB,
        ),
    ]


def claim(volumename: str = "pvc-1") -> list[Sample]:
    return [
        *line("kube_persistentvolumeclaim_info", {**PVC, "volumename": volumename}, START, END),
        *line("kube_persistentvolumeclaim_labels", {**PVC, "label_experiment": "sft"}, START, END),
    ]


def mounted(uid: str, start: str, end: str) -> list[Sample]:
    labels = {"namespace": "research", "pod": uid, "uid": uid, "persistentvolumeclaim": "data"}
    return [
        *pod(uid, at(start), at(end), gpus=0),
        *line(
            "kube_pod_spec_volumes_persistentvolumeclaims_info",
            {**KSM, **labels, "volume": "disk"},
            at(start),
            at(end),
        ),
    ]


def test_a_volume_has_its_disk_its_claim_and_its_pods() -> None:
    pods = [*mounted("a", "1:00", "3:00"), *mounted("b", "2:00", "3:00")]
    facts = collect([*NODE, *volume(), *claim(), *pods])
    row = facts.tables["volumes"].row(0, named=True)
    assert {name: row[name] for name in ("volume", "handle", "driver", "storage_class")} == {
        "volume": "pvc-1",
        "handle": "vol-0abc",
        "driver": "ebs.csi.aws.com",
        "storage_class": "gp3",
    }
    assert (row["namespace"], row["claim"], row["bytes"]) == ("research", "data", 100 * GIB)
    assert row["labels"] == '{"label_experiment":"sft"}'
    assert (row["start"], row["end"], row["interval_seconds"]) == (START, END, 60.0)
    assert facts.tables["mounts"].select("volume", "uid").rows() == [("pvc-1", "a"), ("pvc-1", "b")]


def test_tables_have_their_form() -> None:
    facts = collect([*NODE, *volume(), *claim(), *mounted("a", "1:00", "3:00")])
    for table in (VOLUMES, MOUNTS):
        expected = {name: dtype for name, dtype in table.schema.items() if name != "source"}
        assert facts.tables[table.name].schema == expected


@pytest.mark.parametrize(
    ("labels", "handle", "driver"),
    [
        ({"ebs_volume_id": "aws://us-east-1a/vol-0abc"}, "vol-0abc", "kubernetes.io/aws-ebs"),
        ({"gce_persistent_disk_name": "disk-7"}, "disk-7", "kubernetes.io/gce-pd"),
        (
            {"nfs_server": "fs-1.efs.example", "nfs_path": "/a"},
            "fs-1.efs.example",
            "kubernetes.io/nfs",
        ),
        ({}, None, None),
    ],
)
def test_disks_of_volumes_without_a_driver(
    labels: dict[str, str], handle: str | None, driver: str | None
) -> None:
    base = {**KSM, "persistentvolume": "pvc-1", "storageclass": ""}
    samples = line("kube_persistentvolume_info", {**base, **labels}, START, END)
    row = collect([*NODE, *samples]).tables["volumes"].row(0, named=True)
    assert (row["handle"], row["driver"], row["bytes"]) == (handle, driver, None)


def test_claims_alone_tell_of_volumes_too() -> None:
    size = line(
        "kube_persistentvolumeclaim_resource_requests_storage_bytes", PVC, START, END, value=GIB
    )
    row = collect([*NODE, *claim(), *size]).tables["volumes"].row(0, named=True)
    assert (row["volume"], row["claim"], row["bytes"], row["handle"]) == (
        "pvc-1",
        "data",
        GIB,
        None,
    )


def test_a_claim_without_a_volume_is_none() -> None:
    facts = collect([*NODE, *claim(volumename="")])
    assert facts.tables["volumes"].is_empty()


def test_a_volume_that_grows_is_cut() -> None:
    grown = [
        one._replace(value=200.0 * GIB)
        if one.name == "kube_persistentvolume_capacity_bytes" and one.time >= at("2:00")
        else one
        for one in volume()
    ]
    rows = collect([*NODE, *grown, *claim()]).tables["volumes"]
    assert rows.select("start", "end", "bytes").rows() == [
        (START, at("2:00"), 100 * GIB),
        (at("2:00"), END, 200 * GIB),
    ]


def test_a_claim_of_one_name_is_another_volume_later() -> None:
    first = {**PVC, "volumename": "pvc-1"}
    second = {**PVC, "volumename": "pvc-2"}
    claims = [
        *line("kube_persistentvolumeclaim_info", first, at("1:00"), at("1:59")),
        *line("kube_persistentvolumeclaim_info", second, at("2:00"), at("3:00")),
    ]
    pods = [*mounted("a", "1:10", "1:50"), *mounted("b", "2:10", "2:50")]
    facts = collect([*NODE, *claims, *pods])
    assert facts.tables["mounts"].select("volume", "uid").rows() == [("pvc-1", "a"), ("pvc-2", "b")]


def test_a_cluster_without_the_series_writes_no_table_and_has_no_gap() -> None:
    facts = collect(NODE)
    assert not {"volumes", "mounts"} & set(facts.tables)
    assert not [gap for gap in facts.gaps if "persistentvolume" in gap.detail]


def with_claim() -> list[Sample]:
    labels = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1", "resource_claim": "gpus"}
    return [
        *NODE,
        *pod("u1", START, END, gpus=0),
        *line("kube_pod_resourceclaim_info", labels, START, END),
    ]


def unread(facts: Facts) -> list[str]:
    return [gap.detail for gap in facts.gaps if gap.reason == "claims_unread"]


def test_claims_that_only_the_api_could_tell_are_a_gap() -> None:
    facts = collect(with_claim())
    assert [detail.partition(" ")[0] for detail in unread(facts)] == ["1"]
    assert "research/u1" in unread(facts)[0]
    assert "claims" not in facts.tables


def test_claims_are_left_to_the_api_where_it_is_read() -> None:
    source = MemorySource(frame(with_claim()))
    assert not unread(PrometheusCollector("train-a", source, api=True).collect(WINDOW))
