from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from collector.kubernetes import from_settings
from ledger.errors import BadInputError, SettingsError, SourceError
from ledger.settings import Cluster
from tests.collector.kubernetes.builders import Json, collect, node, pod, row, running, thing


def text(*items: Json, kind: str = "List") -> str:
    return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": list(items)})


def names(folder: Path) -> list[str]:
    return collect(dump=str(folder)).tables["workloads"]["pod"].unique().sort().to_list()


def test_every_form_of_a_dump(tmp_path: Path) -> None:
    def one(name: str) -> Json:
        return pod(name, running("08:30"))

    bare = {
        key: value for key, value in one("typed").items() if key in ("metadata", "spec", "status")
    }
    (tmp_path / "list.json").write_text(text(one("list"), node()))
    (tmp_path / "typed.json").write_text(text(bare, kind="PodList"))
    (tmp_path / "single.json").write_text("\ufeff" + json.dumps(one("single")))
    (tmp_path / "many.json").write_text(
        json.dumps(one("many-1")) + "\n" + text(one("many-2")) + "\n"
    )
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "zipped.json.gz").write_bytes(gzip.compress(text(one("zipped")).encode()))
    (tmp_path / "README.txt").write_text("not a dump")
    assert names(tmp_path) == ["list", "many-1", "many-2", "single", "typed", "zipped"]


def test_an_archive_without_end_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.kubernetes.dump.LARGEST", 1 << 20)
    (tmp_path / "good.json").write_text(text(pod("a", running("08:30")), node()))
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * (1 << 20) + b"{}"))
    facts = collect(dump=str(tmp_path))
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["a"]
    assert [(e.reason, e.where) for e in facts.quarantine] == [("too_large", "bomb.json.gz")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"kind": "List", "apiVersion": "v1", "items": [', "bad_json"),
        (gzip.compress(text(pod("b", running("08:30"))).encode())[:-20], "truncated"),
        (b"", "not_kubernetes"),
        (b"[1, 2]", "bad_json"),
        (b'{"a": 1}', "not_kubernetes"),
        (b"\xff\xfe\x00", "bad_json"),
        (b"[" * 100_000, "bad_json"),
    ],
)
def test_a_broken_file_is_put_aside_whole(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "good.json").write_text(text(pod("a", running("08:30")), node()))
    (tmp_path / "z.json").write_bytes(content)
    facts = collect(dump=str(tmp_path))
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["a"]
    assert [(e.reason, e.where, e.count) for e in facts.quarantine] == [(reason, "z.json", 1)]


def test_half_a_file_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(text(pod("a", running("08:30"))))
    (tmp_path / "half.json").write_text(json.dumps(pod("b", running("08:30"))) + '{"kind": "Po')
    assert names(tmp_path) == ["a"]


def test_nothing_readable_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(BadInputError, match=r"a\.json"):
        collect(dump=str(tmp_path))


def test_nothing_there_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no dump at"):
        collect(dump=str(tmp_path / "absent.json"))
    with pytest.raises(SourceError, match=r"no \.json"):
        collect(dump=str(tmp_path))


def test_null_lists_are_empty_and_an_odd_object_costs_itself(tmp_path: Path) -> None:
    null = pod("null", running("08:30"))
    null["spec"] |= {"containers": None, "initContainers": None}
    null["metadata"] |= {"labels": None, "annotations": None, "ownerReferences": None}
    odd = pod("odd", running("08:30"))
    odd["metadata"]["labels"] = {"a": 1}
    nameless = pod("nameless", running("08:30"))
    del nameless["metadata"]["uid"]
    (tmp_path / "a.json").write_text(text(null, odd, nameless, node()))
    facts = collect(dump=str(tmp_path))
    assert row(facts, "null")["cpu_millicores"] == 0
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["null"]
    assert {entry.reason: entry.example for entry in facts.quarantine} == {
        "bad_object": "Pod train/odd: Expected `str`, got `int` - at `$.metadata.labels[...]`",
        "no_uid": "train/nameless",
    }


def test_what_is_not_in_the_dump_is_a_gap_and_its_table_absent(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text(pod("a", running("08:30"))))
    facts = collect(dump=str(tmp_path))
    assert set(facts.tables) == {"workloads"}
    assert [gap.reason for gap in facts.gaps] == ["not_in_dump"]
    (tmp_path / "b.json").write_text(text(kind="NodeList"))
    facts = collect(dump=str(tmp_path))
    assert facts.tables["nodes"].is_empty()
    assert not facts.gaps


def test_kinds_that_are_not_read_are_never_decoded(tmp_path: Path) -> None:
    secret = thing("v1", "Secret", "token")
    secret["metadata"]["labels"] = {"not": ["even", "valid"]}
    (tmp_path / "a.json").write_text(text(pod("a", running("08:30")), node(), secret))
    assert not collect(dump=str(tmp_path)).quarantine


def test_a_collector_of_dumps_needs_no_access(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text(pod("a", running("08:30")), node()))
    cluster = Cluster.model_validate({"name": "c", "kubernetes": {"dump": "a.json"}})
    collector = from_settings(cluster, tmp_path)
    assert (collector.name, collector.snapshot, collector.permissions.kubernetes) == (
        "kubernetes/c",
        False,
        (),
    )
    assert collector.reach() is None
    assert [(probe.ok, probe.detail) for probe in collector.probe()] == [
        (True, "1 found"),
        (True, "1 found"),
    ]
    (tmp_path / "a.json").write_text("{")
    (probe,) = collector.probe()
    assert not probe.ok
    assert probe.blind


def test_settings_without_a_way_in_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no kubernetes block"):
        from_settings(Cluster(name="c"), tmp_path)
    remote = Cluster.model_validate({"name": "c", "kubernetes": {"dump": "s3://bucket/dump.json"}})
    with pytest.raises(SettingsError, match="no local path"):
        from_settings(remote, tmp_path)


def test_an_odd_object_in_a_list_costs_only_itself(tmp_path: Path) -> None:
    good = pod("a", running("08:30"))
    odd: list[Any] = [{**good, "metadata": "x"}, {**good, "kind": 5}, 7, None]
    (tmp_path / "objects.json").write_text(text(node(), *odd, good))
    (tmp_path / "pods.json").write_text(text(*odd[2:], kind="PodList"))
    facts = collect(dump=str(tmp_path))
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["a"]
    told = {(entry.reason, entry.where): entry.count for entry in facts.quarantine}
    assert told == {("bad_object", "pods"): 3, ("bad_object", "objects"): 3}
