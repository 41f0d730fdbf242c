"""Owners of kinds that nobody told us of: found by discovery, fetched by metadata, few requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import stamina

from collector.kubernetes import from_settings, further
from collector.kubernetes.kinds import KINDS
from ledger.facts import Facts
from ledger.settings import Cluster
from tests.collector.kubernetes.apiserver import ApiServer, Fault, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    Json,
    collect,
    container,
    node,
    pod,
    row,
    running,
    thing,
)

TUNES = "/apis/train.acme.example/v1/finetunes"
RUNNERS = "/apis/train.acme.example/v1/runners"


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=2):
        yield


def tune(name: str = "polish", **more: object) -> Json:
    return thing("train.acme.example/v1", "FineTune", name, **more)


def runner(name: str, *owners: Json) -> Json:
    return thing("train.acme.example/v1", "Runner", name, owners=owners)


def made(name: str, *owners: Json, gpus: int | None = 8) -> Json:
    return pod(name, running("08:30"), owners=owners, containers=[container(gpus=gpus)])


def chain(facts: Facts, name: str) -> list[str]:
    links = json.loads(row(facts, name)["owners"])
    return [f"{link['kind']}/{link['name']}" for link in links]


def read(server: ApiServer) -> Facts:
    with server:
        return collect(server=server.url)


def single(server: ApiServer, path: str) -> list[str]:
    """Names of the objects that were asked for one by one."""
    root, plural = path.rsplit("/", 1)
    inner = f"{root}/namespaces/train/{plural}/"
    return [one.path.removeprefix(inner) for one in server.requests if inner in one.path]


def test_a_chain_goes_through_kinds_that_nobody_knows() -> None:
    top = tune(labels={"experiment": "polish-9", "owner": "acme"}, spec={"password": "x"})
    below = runner("polish-runner", top)
    pods = [made(f"p{number}", below) for number in range(50)]
    server = ApiServer(by_list([node(), top, below, *pods]), now=NOW)
    facts = read(server)
    assert not facts.gaps
    assert chain(facts, "p7") == ["Runner/polish-runner", "FineTune/polish"]
    assert json.loads(row(facts, "p7")["owner_labels"]) == {
        "experiment": "polish-9",
        "owner": "acme",
    }
    assert single(server, RUNNERS) == ["polish-runner"]
    assert single(server, TUNES) == ["polish"]
    assert len(server.seen("/apis/train.acme.example/v1")) <= 2
    asked = [one.accept for one in server.requests if "acme" in one.path and "/v1/" in one.path]
    assert all(accept.startswith("application/json;as=PartialObjectMetadata;") for accept in asked)


def test_many_objects_of_a_kind_are_one_list() -> None:
    """A thousand pods under 300 runners of 25 tunes are a handful of requests."""
    tunes = [tune(f"t{number}") for number in range(25)]
    runners = [runner(f"r{number}", tunes[number % 25]) for number in range(300)]
    pods = [made(f"p{number}", runners[number % 300]) for number in range(1000)]
    server = ApiServer(by_list([node(), *tunes, *runners, *pods]), now=NOW)
    facts = read(server)
    assert chain(facts, "p999") == ["Runner/r99", "FineTune/t24"]
    assert not single(server, RUNNERS)
    assert not single(server, TUNES)
    assert len([one for one in server.requests if "acme" in one.path]) <= 6


def test_a_search_ends_when_all_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further, "SINGLE", 0)
    wanted = tune("a")
    others = [tune(f"z{number:04}") for number in range(1200)]
    server = ApiServer(by_list([node(), wanted, *others, made("p", wanted)]), now=NOW)
    assert chain(read(server), "p") == ["FineTune/a"]
    assert len(server.seen(TUNES)) == 1


@pytest.mark.parametrize("single_objects", [20, 0])
def test_what_may_not_be_read_is_one_gap_that_names_the_permission(
    monkeypatch: pytest.MonkeyPatch, single_objects: int
) -> None:
    monkeypatch.setattr(further, "SINGLE", single_objects)
    tops = [tune("a"), tune("b")]
    pods = [made(f"p{number}", tops[number % 2]) for number in range(6)]
    faults = {
        TUNES: [Fault(403)],
        **{
            f"/apis/train.acme.example/v1/namespaces/train/finetunes/{name}": [Fault(403)]
            for name in "ab"
        },
    }
    server = ApiServer(by_list([node(), *tops, *pods]), faults, now=NOW)
    facts = read(server)
    (gap,) = facts.gaps
    assert gap.reason == "access_denied"
    assert "grant get and list on finetunes.train.acme.example" in gap.detail
    assert "owner chains end at FineTune (2 of them)" in gap.detail
    assert chain(facts, "p1") == ["FineTune/b"]
    assert row(facts, "p1")["root_name"] == "b"
    assert len([one for one in server.requests if "/finetunes" in one.path]) == 1


def test_without_cards_below_it_is_a_note() -> None:
    """A DaemonSet of an operator, on every cluster: nobody's books are the worse for it."""
    policy = thing("nvidia.com/v1", "ClusterPolicy", "gpu", namespace=None)
    agents = thing("apps/v1", "DaemonSet", "exporter", owners=[policy])
    path = "/apis/nvidia.com/v1/clusterpolicys/gpu"
    lists = by_list([node(), policy, agents, made("p", agents, gpus=None)])
    facts = read(ApiServer(lists, {path: [Fault(403)]}, now=NOW))
    assert not facts.gaps
    assert any("grant get and list on clusterpolicys.nvidia.com" in one for one in facts.notes)
    assert chain(facts, "p") == ["DaemonSet/exporter", "ClusterPolicy/gpu"]
    facts = read(ApiServer(lists, now=NOW))
    assert not [one for one in facts.notes if "clusterpolicys" in one]


def test_an_owner_or_a_kind_that_is_gone_ends_the_chain_there() -> None:
    gone = tune("gone")
    lists = by_list([node(), tune("other"), made("p", gone)])
    assert chain(read(ApiServer(lists, now=NOW)), "p") == ["FineTune/gone"]
    del lists[TUNES]
    facts = read(ApiServer(lists, now=NOW))
    assert chain(facts, "p") == ["FineTune/gone"]
    assert not facts.gaps


def test_another_object_of_that_name_is_not_the_owner() -> None:
    top = tune("a", uid="first")
    again = tune("a", uid="second", labels={"experiment": "no"})
    facts = read(ApiServer(by_list([node(), again, made("p", top)]), now=NOW))
    assert row(facts, "p")["owner_labels"] == "{}"


def test_a_server_that_fails_is_a_gap_and_what_was_read_stays() -> None:
    top, other = tune("a"), thing("other.example/v1", "Flow", "f", labels={"owner": "lin"})
    faults = {"/apis/train.acme.example/v1": [Fault(500)]}
    lists = by_list([node(), top, other, made("p", top), made("q", other)])
    facts = read(ApiServer(lists, faults, now=NOW))
    (gap,) = facts.gaps
    assert gap.reason == "query_failed"
    assert json.loads(row(facts, "q")["owner_labels"]) == {"owner": "lin"}


def test_an_answer_that_is_no_object_is_passed_over() -> None:
    top = tune("a")
    path = "/apis/train.acme.example/v1/namespaces/train/finetunes/a"
    for body in (b"<html>", b'{"metadata": 5}', b"[]"):
        server = ApiServer(
            by_list([node(), top, made("p", top)]), {path: [Fault(200, body=body)]}, now=NOW
        )
        assert chain(read(server), "p") == ["FineTune/a"]


def test_a_listed_kind_under_another_version_is_found_by_its_reference() -> None:
    top = thing("leaderworkerset.x-k8s.io/v2", "LeaderWorkerSet", "l", labels={"owner": "mei"})
    facts = read(ApiServer(by_list([node(), top, made("p", top)]), now=NOW))
    assert json.loads(row(facts, "p")["owner_labels"]) == {"owner": "mei"}
    assert not facts.gaps


def test_secrets_and_config_maps_are_not_asked_for_as_owners() -> None:
    owners: Sequence[Json] = [thing("v1", "Secret", "s"), thing("v1", "ConfigMap", "c")]
    pods = [made(f"p{number}", owner) for number, owner in enumerate(owners)]
    server = ApiServer(by_list([node(), *owners, *pods]), now=NOW)
    facts = read(server)
    assert not [one.path for one in server.requests if "secret" in one.path]
    assert not [one for one in server.requests if one.path.endswith("configmaps/c")]
    assert chain(facts, "p0") == ["Secret/s"]


def test_owners_in_a_circle_of_unknown_kinds_end() -> None:
    one, two = tune("one"), tune("two")
    one, two = tune("one", owners=[two]), tune("two", owners=[one])
    facts = read(ApiServer(by_list([node(), one, two, made("p", one)]), now=NOW))
    assert chain(facts, "p") == ["FineTune/one", "FineTune/two"]


def test_a_dump_holds_owners_of_any_kind(tmp_path: Path) -> None:
    top = tune(labels={"owner": "acme"}, annotations={"last-applied": "hidden"})
    items = [node(), top, runner("r", top), made("p", runner("r")), thing("v1", "Secret", "s")]
    (tmp_path / "all.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": items})
    )
    facts = collect(dump=str(tmp_path))
    assert chain(facts, "p") == ["Runner/r", "FineTune/polish"]
    assert json.loads(row(facts, "p")["owner_labels"]) == {"owner": "acme"}
    assert "hidden" not in str(facts)


def test_probes_ask_for_kinds_that_are_installed() -> None:
    """Those of known systems that no object has named yet; others cannot be known."""
    made_of = [
        thing("run.ai/v1", "RunaiJob", "r"),
        thing("slinky.slurm.net/v1beta1", "NodeSet", "n"),
    ]
    lists = by_list([node(), *made_of, tune()])
    faults = {"/apis/slinky.slurm.net/v1beta1/nodesets": [Fault(403)]}
    with ApiServer(lists, faults, now=NOW) as server:
        cluster = Cluster.model_validate({"name": "a", "kubernetes": {"server": server.url}})
        probes = {probe.need: probe for probe in from_settings(cluster, Path("/")).probe()}
    assert probes["list runaijobs.run.ai"].ok
    assert "grant get and list on nodesets" in probes["list nodesets.slinky.slurm.net"].detail
    assert probes["list nodesets.slinky.slurm.net"].blind
    assert "list trainingworkloads.run.ai" not in probes
    assert not [need for need in probes if "acme" in need]


def test_lists_of_which_owners_and_labels_matter_are_asked_for_without_the_rest() -> None:
    server = ApiServer(now=NOW)
    read(server)
    for kind in KINDS:
        for path in kind.paths:
            for one in server.seen(path):
                bare = kind.form.__name__ == "Object"
                assert ("PartialObjectMetadataList" in one.accept) is bare, kind


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "../../../../../../api/v1/namespaces/kube-system/secrets/s"},
        {"name": ".."},
        {"name": "a%2f..%2fb"},
        {"apiVersion": "../../api/v1", "kind": "Secret", "name": "s"},
        {"apiVersion": "x/../../../api/v1", "kind": "Secret", "name": "s"},
        {"apiVersion": "v1?x", "kind": "Secret", "name": "s"},
    ],
)
def test_a_reference_leads_to_no_other_path(odd: Json) -> None:
    """Whoever may make a pod writes its references: they are no way to what he may not read."""
    secret = thing("v1", "Secret", "s", namespace="kube-system")
    lured = made("p", tune())
    lured["metadata"]["ownerReferences"][0] |= odd
    server = ApiServer(by_list([node(), tune(), secret, lured]), now=NOW)
    facts = read(server)
    assert chain(facts, "p") == [f"{odd.get('kind', 'FineTune')}/{odd['name']}"]
    assert not [one.path for one in server.requests if "secret" in one.path or "acme" in one.path]
    assert not server.seen("/api/v1")


def test_a_name_is_one_part_of_a_path() -> None:
    top = tune("a?b#c d")
    server = ApiServer(by_list([node(), top, made("p", top)]), now=NOW)
    read(server)
    assert single(server, TUNES) == ["a%3Fb%23c%20d"]


def test_an_owner_of_an_odd_form_still_owns(tmp_path: Path) -> None:
    """What a version writes in another way costs the state of a job, not the names of its pods."""
    top = thing("ray.io/v1", "RayJob", "top", labels={"owner": "mei"}, spec={"suspend": {"x": 1}})
    below = thing("ray.io/v1", "RayCluster", "top-a1", owners=[top], status={"state": []})
    items = [node(), top, below, made("p", below)]
    (tmp_path / "all.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": items})
    )
    for facts in (read(ApiServer(by_list(items), now=NOW)), collect(dump=str(tmp_path))):
        assert chain(facts, "p") == ["RayCluster/top-a1", "RayJob/top"]
        assert json.loads(row(facts, "p")["owner_labels"]) == {"owner": "mei"}
        assert [(entry.reason, entry.where) for entry in facts.quarantine] == [
            ("bad_object", "rayclusters.ray.io"),
            ("bad_object", "rayjobs.ray.io"),
        ]


@pytest.mark.parametrize("body", [b'{"resources":5}', b"{}", b"[" * 5000, b"5", b"\xff"])
def test_a_discovery_that_talks_nonsense_is_a_gap(body: bytes) -> None:
    top = tune()
    faults = {
        "/apis/train.acme.example/v1": [Fault(200, body=body)],
        "/apis/ray.io/v1/rayjobs": [Fault(403)],
        "/apis/ray.io/v1": [Fault(200, body=body)],
        "/apis/batch/v1/jobs": [Fault(200, body=b'{"items":' + b"[" * 5000)],
    }
    facts = read(ApiServer(by_list([node(), top, made("p", top)]), faults, now=NOW))
    assert chain(facts, "p") == ["FineTune/polish"]
    found = sorted((gap.reason, gap.detail.partition(":")[0]) for gap in facts.gaps)
    assert found == [
        ("access_denied", "rayjobs.ray.io"),
        ("query_failed", "FineTune of train.acme.example/v1"),
        ("query_failed", "jobs.batch"),
    ]


def test_a_reference_to_a_version_that_is_gone_is_followed() -> None:
    """It keeps the version of its day; the object, its uid and its labels are the same."""
    top = tune(labels={"owner": "acme"})
    made_then = made("p", top)
    made_then["metadata"]["ownerReferences"][0]["apiVersion"] = "train.acme.example/v1alpha1"
    facts = read(ApiServer(by_list([node(), top, made_then]), now=NOW))
    assert json.loads(row(facts, "p")["owner_labels"]) == {"owner": "acme"}
    assert not facts.gaps


def test_a_version_that_nobody_knew_of_is_listed_too() -> None:
    """The state of its objects as well, not their names alone."""
    jobs = thing("jobset.x-k8s.io/v1beta7", "JobSet", "js", spec={"suspend": True})
    facts = read(ApiServer(by_list([node(), jobs]), now=NOW))
    (found,) = facts.tables["resources"].rows(named=True)
    assert (found["kind"], json.loads(found["configuration"])["state"]) == ("JobSet", "suspended")


def test_a_search_whose_pages_expire_goes_on() -> None:
    tops = [tune(f"t{n:03}", labels={"owner": f"o{n}"}) for n in range(600)]
    pods = [made(f"p{n}", tops[n]) for n in range(0, 600, 20)]
    faults = {TUNES: [Fault(410, only_continued=True)]}
    facts = read(ApiServer(by_list([node(), *tops, *pods]), faults, now=NOW))
    assert json.loads(row(facts, "p0")["owner_labels"]) == {"owner": "o0"}
    assert json.loads(row(facts, "p580")["owner_labels"]) == {"owner": "o580"}
    assert not facts.gaps


def test_a_chain_of_fifty_ends_and_says_so() -> None:
    owners: list[Json] = []
    for number in range(50):
        above = owners[-1:]
        owners.append(thing(f"g{number}.example/v1", f"K{number}", f"k{number}", owners=above))
    facts = read(ApiServer(by_list([node(), *owners, made("p", owners[-1])]), now=NOW))
    assert len(chain(facts, "p")) == further.DEPTH + 1
    assert [note for note in facts.notes if "chains end at K39" in note]
