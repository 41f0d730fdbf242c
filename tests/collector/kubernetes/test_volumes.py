"""Persistent volumes and the pods that mount them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.facts import Facts
from ledger.schema import MOUNTS, VOLUMES
from ledger.window import Window, parse_day
from tests.collector.kubernetes.builders import (
    DAY,
    Json,
    collect,
    ended,
    node,
    pod,
    row,
    running,
    thing,
)

DAYS = Window.of_days(parse_day(DAY), parse_day("2026-12-01"))
EBS = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0abc"}}


def facts_of(folder: Path, *items: Json, window: Window | None = None) -> Facts:
    path = folder / "objects.json"
    every = [node(), pod("main", running("08:30")), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    return collect(window or Window.of_day(parse_day(DAY)), dump=str(path))


def volume(
    name: str = "pv-1",
    source: Json | None = None,
    *,
    size: str = "100Gi",
    claim: str | None = "data",
    uid: str = "uid-PersistentVolumeClaim-data",
    **meta: str,
) -> Json:
    spec: Json = {"capacity": {"storage": size}, "storageClassName": "gp3", **(source or EBS)}
    if claim:
        spec["claimRef"] = {"namespace": "train", "name": claim, "uid": uid}
    return thing("v1", "PersistentVolume", name, namespace=None, spec=spec, **meta)


def volume_claim(name: str = "data", volume: str | None = "pv-1", **meta: object) -> Json:
    return thing("v1", "PersistentVolumeClaim", name, spec={"volumeName": volume}, **meta)


def mounting(claim: str) -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def volume_row(facts: Facts, name: str = "pv-1") -> Json:
    return row(facts, name, "volumes", "volume")


def test_a_volume_with_the_labels_of_its_claim(tmp_path: Path) -> None:
    claim = volume_claim(
        labels={"experiment": "grpo"}, annotations={"example.com/owner": "lin", "secret": "x"}
    )
    frame = facts_of(tmp_path, volume(created="09:00"), claim, window=DAYS).tables["volumes"]
    assert dict(frame.schema) == {k: v for k, v in VOLUMES.schema.items() if k != "source"}
    first, second = frame.rows(named=True)
    expected = {
        "cluster": "train-a",
        "volume": "pv-1",
        "handle": "vol-0abc",
        "driver": "ebs.csi.aws.com",
        "namespace": "train",
        "claim": "data",
        "storage_class": "gp3",
        "bytes": 100 * 2**30,
        "labels": '{"experiment":"grpo"}',
        "annotations": '{"example.com/owner":"lin"}',
        "interval_seconds": None,
    }
    assert {key: first[key] for key in expected} == expected
    assert (first["start"].hour, first["end"], second["end"]) == (9, second["start"], DAYS.end)


@pytest.mark.parametrize(
    ("source", "handle", "driver"),
    [
        (EBS, "vol-0abc", "ebs.csi.aws.com"),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-0abc"}},
            "vol-0abc",
            "kubernetes.io/aws-ebs",
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "vol-0abc"}},
            "vol-0abc",
            "kubernetes.io/aws-ebs",
        ),
        ({"gcePersistentDisk": {"pdName": "pvc-1"}}, "pvc-1", "kubernetes.io/gce-pd"),
        (
            {
                "csi": {
                    "driver": "pd.csi.storage.gke.io",
                    "volumeHandle": "projects/p/zones/z/disks/pvc-1",
                }
            },
            "projects/p/zones/z/disks/pvc-1",
            "pd.csi.storage.gke.io",
        ),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/s/disks/d"}},
            "/subscriptions/s/disks/d",
            "kubernetes.io/azure-disk",
        ),
        ({"nfs": {"server": "nas", "path": "/a"}}, "nas:/a", "kubernetes.io/nfs"),
        ({"hostPath": {"path": "/mnt"}}, None, None),
    ],
)
def test_the_providers_id_of_a_disk(
    tmp_path: Path, source: Json, handle: str | None, driver: str | None
) -> None:
    found = volume_row(facts_of(tmp_path, volume(source=source)))
    assert (found["handle"], found["driver"]) == (handle, driver)


def test_a_volume_whose_claim_is_not_there_has_no_labels(tmp_path: Path) -> None:
    free = volume("pv-2", claim=None)
    again = volume_claim(uid="uid-later")
    facts = facts_of(tmp_path, volume(), free, again)
    assert [volume_row(facts, name)["labels"] for name in ("pv-1", "pv-2")] == [None, None]
    assert [volume_row(facts, name)["claim"] for name in ("pv-1", "pv-2")] == ["data", None]


@pytest.mark.parametrize("size", ["much", "-1", "1e90"])
def test_a_size_that_cannot_be_is_put_aside(tmp_path: Path, size: str) -> None:
    facts = facts_of(tmp_path, volume(size=size), volume("pv-2", claim=None, size="8Ei"))
    assert facts.tables["volumes"].is_empty()
    assert {(entry.reason, entry.where) for entry in facts.quarantine} == {
        ("bad_number", "persistentvolumes")
    }


def test_pods_that_mount(tmp_path: Path) -> None:
    scratch = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}
    facts = facts_of(
        tmp_path,
        volume(),
        volume("pv-2", claim="b-scratch"),
        volume_claim(),
        pod("a", running("08:30"), spec=mounting("data")),
        pod("b", ended("08:30", "09:00"), phase="Succeeded", spec=scratch),
        pod("c", running("08:30"), spec=mounting("elsewhere")),
        pod("waits", node=None, bound=None, phase="Pending", spec=mounting("data")),
        window=DAYS,
    )
    frame = facts.tables["mounts"]
    assert dict(frame.schema) == {k: v for k, v in MOUNTS.schema.items() if k != "source"}
    days = [parse_day(DAY), parse_day("2026-12-01")]
    assert frame.select("day", "volume", "uid").rows() == [
        (days[0], "pv-1", "uid-a"),
        (days[0], "pv-2", "uid-b"),
        (days[1], "pv-1", "uid-a"),
    ]


def test_either_end_tells_what_a_claim_is_bound_to(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        volume(claim=None),
        volume_claim(),
        pod("a", running("08:30"), spec=mounting("data")),
    )
    assert facts.tables["mounts"]["volume"].to_list() == ["pv-1"]
