"""Dynamic resource allocation: cards that only slices list, and claims that hold them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.facts import Facts
from ledger.schema import CLAIMS
from ledger.window import Window, parse_day
from tests.collector.kubernetes.apiserver import ApiServer
from tests.collector.kubernetes.builders import (
    DAY,
    NOW,
    Json,
    at,
    collect,
    container,
    ended,
    node,
    pod,
    row,
    running,
)
from tests.collector.kubernetes.dra import (
    AMD,
    NVIDIA,
    claim,
    device,
    gpu,
    mig,
    result,
    slice_of,
)

BARE = {"cpu": "192", "memory": "2Ti"}
DAYS = Window.of_days(parse_day(DAY), parse_day("2026-12-01"))


def facts_of(folder: Path, *items: Json, window: Window | None = None) -> Facts:
    path = folder / "objects.json"
    every = [node(capacity=BARE), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    return collect(window or Window.of_day(parse_day(DAY)), dump=str(path))


def claim_row(facts: Facts, name: str = "c") -> Json:
    return row(facts, name, "claims", "claim")  # its table has the same columns `start`, ...


def cards(folder: Path, *items: Json) -> str | None:
    found: str | None = claim_row(facts_of(folder, *items))["cards"]
    return found


def test_cards_of_a_node_stand_in_its_slices(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        slice_of("gpu-1", gpu(0), gpu(1)),
        slice_of("gpu-1", gpu(2), mig(2, "1g.5gb"), part=1),
        slice_of("gpu-1", *(gpu(n) for n in range(9)), generation=0),
        slice_of("gpu-1", device("mlx5_0", type="nic"), driver="sriov.example.com"),
        pod("a", running("08:30")),
    )
    found = row(facts, "gpu-1", "nodes", "node")
    assert (found["gpus"], found["gpu_units"]) == (3, None)
    assert (found["gpu_model"], found["gpu_memory_mib"]) == ("NVIDIA-A100-SXM4-40GB", 40 * 1024)
    assert not facts.gaps


def test_mig_devices_without_their_card_are_one_card(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        slice_of("gpu-1", mig(0, "3g.20gb"), mig(0, "3g.20gb", 4), mig(1, "7g.40gb")),
        pod("a", running("08:30")),
    )
    assert row(facts, "gpu-1", "nodes", "node")["gpus"] == 2


def test_a_claim_of_two_cards_that_two_pods_hold(tmp_path: Path) -> None:
    uids = ["uid-a", "uid-b"]
    held = claim("c", result("gpu-0"), result("gpu-1"), pods=uids, allocated="09:30")
    facts = facts_of(
        tmp_path,
        slice_of("gpu-1", gpu(0), gpu(1)),
        held,
        pod("a", running("09:31")),
        pod("b", running("09:31")),
        window=DAYS,
    )
    frame = facts.tables["claims"]
    assert dict(frame.schema) == {k: v for k, v in CLAIMS.schema.items() if k != "source"}
    first, second = frame.rows(named=True)
    expected = {
        "cluster": "train-a",
        "uid": "uid-ResourceClaim-c",
        "namespace": "train",
        "claim": "c",
        "node": "gpu-1",
        "cards": "2",
        "pods": '["uid-a","uid-b"]',
        "interval_seconds": None,
    }
    assert {key: first[key] for key in expected} == expected
    assert (f"{first['start']:%H:%M}", first["end"], second["start"]) == (
        "09:30",
        second["start"],
        DAYS.end.replace(day=1),
    )


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize(
    ("made", "results", "expected"),
    [
        ([gpu(0)], [result("gpu-0")], "1"),
        ([gpu(0)], [result("gpu-0", adminAccess=True)], "0"),
        ([gpu(0), mig(1, "1g.5gb")], [result("gpu-0"), result("gpu-1-mig-1g5gb-0")], "8/7"),
        ([mig(0, "3g.20gb")], [result("gpu-0-mig-3g20gb-0")], "3/7"),
        ([mig(0, "1c.3g.20gb")], [result("gpu-0-mig-1c3g20gb-0")], "1/7"),
        ([mig(0, "1g.5gb", product="NVIDIA A300")], [result("gpu-0-mig-1g5gb-0")], None),
        # Shared by several claims: the largest part of a capacity.
        ([gpu(0)], [result("gpu-0", shareID="s", consumedCapacity={"memory": "10Gi"})], "1/4"),
        ([gpu(0)], [result("gpu-0", shareID="s", consumedCapacity={"memory": "0"})], None),
        ([gpu(0)], [result("gpu-0", shareID="s")], None),
        # A network card in the same claim is none of ours.
        ([gpu(0)], [result("gpu-0"), result("mlx5_0", driver="dra.net")], "1"),
        # Not in any slice: only the driver's name for whole devices says what it is.
        ([], [result("gpu-0")], "1"),
        ([], [result("gpu-0-mig-1g5gb-19-0")], None),
    ],
)
def test_what_a_claim_is_of_cards(
    tmp_path: Path, version: str, made: list[Json], results: list[Json], expected: str | None
) -> None:
    objects = [
        slice_of("gpu-1", *made, version=version),
        claim("c", *results, version=version, pods=["uid-a"]),
        pod("a", running("08:30")),
    ]
    facts = facts_of(tmp_path, *objects)
    assert claim_row(facts)["cards"] == expected
    named = [gap for gap in facts.gaps if gap.reason == "capacity_unknown"]
    assert bool(named) == (expected is None)
    assert all("train/c" in gap.detail for gap in named)


def test_partitions_of_an_amd_card(tmp_path: Path) -> None:
    parts = [
        device(f"gpu-0-{n}", type="amdgpu-partition", pciBusID="0000:19:00.0") for n in range(8)
    ]
    whole = device("gpu-1-1", type="amdgpu", pciBusID="0000:20:00.0")
    made = slice_of("gpu-1", *parts, whole, driver=AMD)
    held = claim("c", result("gpu-0-0", driver=AMD), result("gpu-1-1", driver=AMD))
    facts = facts_of(tmp_path, made, held, pod("a", running("08:30")))
    assert claim_row(facts)["cards"] == "9/8"
    assert row(facts, "gpu-1", "nodes", "node")["gpus"] == 2


def test_partitions_that_are_made_on_demand(tmp_path: Path) -> None:
    mode = device("gpu-0-cpx-nps4", type="amdgpu-partition", capacity={"partitions": 8})
    taken = result("gpu-0-cpx-nps4", driver=AMD, consumedCapacity={"partitions": "2"})
    assert cards(tmp_path, slice_of("gpu-1", mode, driver=AMD), claim("c", taken)) == "1/4"


def test_a_part_by_counters_alone_is_unknown_and_the_whole_is_a_card(tmp_path: Path) -> None:
    def taking(name: str, cores: int) -> Json:
        counters = [{"counterSet": "card-0", "counters": {"cores": {"value": str(cores)}}}]
        return {**device(name), "consumesCounters": counters}

    shared = [{"name": "card-0", "counters": {"cores": {"value": "8"}}}]
    made = slice_of(
        "gpu-1",
        taking("whole", 8),
        taking("half", 4),
        driver="npu.example.com",
        sharedCounters=shared,
    )
    assert cards(tmp_path, made, claim("c", result("whole", driver="npu.example.com"))) == "1"
    assert cards(tmp_path, made, claim("c", result("half", driver="npu.example.com"))) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"node": "gpu-1"}, "gpu-1"),
        ({"node": "host-1", "key": "kubernetes.io/hostname"}, "gpu-1"),
        ({"node": None}, "gpu-1"),
    ],
)
def test_the_node_of_a_claim(tmp_path: Path, changes: Json, expected: str) -> None:
    facts = facts_of(
        tmp_path,
        node(capacity=BARE, labels={"kubernetes.io/hostname": "host-1"}, resourceVersion="11"),
        slice_of("gpu-1", gpu(0)),
        claim("c", result("gpu-0"), **changes),
    )
    assert claim_row(facts)["node"] == expected


def test_a_claim_without_a_known_node(tmp_path: Path) -> None:
    made = claim("c", result("gpu-0", node="rack-7"), node=None)
    assert claim_row(facts_of(tmp_path, made))["node"] is None


def test_the_start_of_a_claim(tmp_path: Path) -> None:
    owner = pod("a", running("09:31"), bound="09:30", uid="uid-a")
    made = claim("c", result("gpu-0"), owners=[owner], allocated=None, pods=["uid-a"])
    standing = claim("s", result("gpu-1"), allocated=None, created="07:00")
    facts = facts_of(tmp_path, owner, made, standing)
    starts = [f"{claim_row(facts, name)['start']:%H:%M}" for name in ("c", "s")]
    assert starts == ["09:30", "07:00"]


def test_pods_that_name_a_claim_hold_it_once_they_are_bound(tmp_path: Path) -> None:
    named = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    generated = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    facts = facts_of(
        tmp_path,
        claim("c", result("gpu-0"), pods=["uid-a"]),
        pod("a", running("08:30")),
        pod("b", ended("09:00", "10:00"), phase="Succeeded", spec=named),
        pod("d", running("10:30"), status=generated),
        pod("waits", node=None, bound=None, phase="Pending", spec=named),
    )
    assert json.loads(claim_row(facts)["pods"]) == ["uid-a", "uid-b", "uid-d"]


def test_claims_without_cards_or_allocation_are_no_rows(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        claim("waits"),
        claim("nic", result("mlx5_0", driver="dra.net")),
        claim("domain", result("channel-0", driver="compute-domain.nvidia.com")),
    )
    assert facts.tables["claims"].is_empty()


def test_a_claim_that_stands_for_a_request_counts_once(tmp_path: Path) -> None:
    made = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}
    asks = pod("a", running("08:30"), containers=[container(gpus=1)], status=made)
    facts = facts_of(
        tmp_path, slice_of("gpu-1", gpu(0)), asks, claim("c", result("gpu-0"), pods=["uid-a"])
    )
    assert facts.tables["claims"].is_empty()
    assert row(facts, "a")["gpus"] == 1


def test_claims_that_are_gone_or_unread_are_named(tmp_path: Path) -> None:
    named = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gone"}]}
    over = pod("a", ended("09:00", "10:00"), phase="Succeeded", spec=named)
    assert [gap.reason for gap in facts_of(tmp_path, over).gaps] == ["claims_unread"]
    (gap,) = facts_of(tmp_path, over, claim("other")).gaps
    assert gap.reason == "claims_gone"
    assert "train/a" in gap.detail


def test_a_claim_that_cannot_be_true_is_put_aside(tmp_path: Path) -> None:
    late = claim("late", result("gpu-0"), allocated="25:00")
    odd = claim("odd", result("gpu-0", consumedCapacity={"memory": "much"}))
    facts = facts_of(tmp_path, slice_of("gpu-1", gpu(0)), late, odd, claim("c", result("gpu-0")))
    assert facts.tables["claims"]["claim"].to_list() == ["c"]
    assert {entry.reason for entry in facts.quarantine} == {"bad_date", "bad_number"}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_whichever_version_a_server_has(version: str) -> None:
    root = f"/apis/resource.k8s.io/{version}"
    lists = {
        "/api/v1/nodes": [node(capacity=BARE)],
        "/api/v1/pods": [pod("a", running("08:30"))],
        f"{root}/resourceslices": [slice_of("gpu-1", gpu(0), version=version)],
        f"{root}/resourceclaims": [claim("c", result("gpu-0"), version=version, pods=["uid-a"])],
    }
    with ApiServer(lists, now=NOW - 3600) as server:
        facts = collect(server=server.url)
    found = claim_row(facts)
    assert (found["cards"], f"{found['end']:%H:%M}") == ("1", "23:00")
    assert row(facts, "gpu-1", "nodes", "node")["gpus"] == 1
    assert not facts.gaps


def test_a_deleted_claim_ends(tmp_path: Path) -> None:
    made = claim("c", result("gpu-0"), deletionTimestamp=at("12:00"))
    assert f"{claim_row(facts_of(tmp_path, made))['end']:%H:%M}" == "12:00"


def test_the_driver_of_nvidia_is_one_of_cards(tmp_path: Path) -> None:
    assert cards(tmp_path, claim("c", result("gpu-vfio-0", driver=NVIDIA))) == "1"
