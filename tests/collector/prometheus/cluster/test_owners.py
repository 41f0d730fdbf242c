"""Chains of owners and roles by series, and by labels and annotations where series end."""

from __future__ import annotations

import json

import pytest

from tests.collector.prometheus.builders import KSM, Sample, at, collect, line, node, pod

START, END = at("10:00"), at("11:00")
NODE = node("gpu-0", at("9:40"), at("11:20"))
BASE = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}
HEAD = {"label_ray_io_cluster": "grpo-x7k2p", "label_ray_io_group": "rollout"}


def told(
    *series: list[Sample],
    labels: dict[str, str] | None = None,
    kind: str = "RayCluster",
    name: str = "grpo-x7k2p",
) -> tuple[list[str], str | None]:
    """The owners of a pod as ``Kind/name``, nearest first, and its role."""
    first = {**BASE, "owner_kind": kind, "owner_name": name}
    samples = [
        *NODE,
        *pod("u1", START, END, labels=labels or {"label_app": "x"}),
        *line("kube_pod_owner", first, START, END),
        *(sample for part in series for sample in part),
    ]
    row = collect(samples).tables["workloads"].row(0, named=True)
    links = [f"{link['kind']}/{link['name']}" for link in json.loads(row["owners"])]
    root = None if row["root_kind"] is None else f"{row['root_kind']}/{row['root_name']}"
    assert root == (links[-1] if links else None)
    return links, row["role"]


def job(name: str, kind: str, owner: str) -> list[Sample]:
    labels = {"job_name": name, "owner_kind": kind, "owner_name": owner}
    return line("kube_job_owner", {**KSM, "namespace": "research", **labels}, START, END)


def cluster(name: str, kind: str, **where: str) -> list[Sample]:
    labels = where or {"namespace": "research"}
    scraped = {"job": "kuberay-operator", **labels, "name": name, "owner_kind": kind}
    return line("kuberay_cluster_info", scraped, START, END)


@pytest.mark.parametrize("name", ["grpo-x7k2p", "grpo-raycluster-x7k2p"])
def test_kuberay_tells_that_a_rayjob_owns_a_cluster_and_the_name_tells_which(name: str) -> None:
    assert told(cluster(name, "RayJob"), name=name)[0] == [f"RayCluster/{name}", "RayJob/grpo"]


def test_a_rayjob_may_have_the_word_in_its_own_name() -> None:
    name = "my-raycluster-x7k2p"
    submitter = job("my-raycluster", "RayJob", "my-raycluster")
    assert told(cluster(name, "RayJob"), submitter, name=name)[0][-1] == "RayJob/my-raycluster"


def test_series_of_kuberay_that_the_scrape_renamed_are_read_alike() -> None:
    seen = cluster("grpo-x7k2p", "RayService", namespace="system", exported_namespace="research")
    assert told(seen)[0][-1] == "RayService/grpo"


def test_without_kuberay_the_job_that_submits_tells_of_a_rayjob() -> None:
    assert told(job("grpo", "RayJob", "grpo"))[0][-1] == "RayJob/grpo"
    assert told(job("other", "RayJob", "other"))[0] == ["RayCluster/grpo-x7k2p"]


def test_a_cluster_that_nobody_owns_keeps_its_name() -> None:
    assert told(cluster("grpo-x7k2p", "None"))[0] == ["RayCluster/grpo-x7k2p"]
    assert told()[0] == ["RayCluster/grpo-x7k2p"]


def test_labels_go_on_where_series_end_and_tell_the_role() -> None:
    labels = {
        **HEAD,
        "label_ray_io_originated_from_cr_name": "grpo",
        "label_ray_io_originated_from_crd": "RayJob",
    }
    assert told(labels=labels) == (["RayCluster/grpo-x7k2p", "RayJob/grpo"], "ray-group:rollout")


@pytest.mark.parametrize("none", ["<none>", ""])
def test_a_job_that_nobody_owns_ends_the_chain_whatever_labels_say(none: str) -> None:
    labels = {"label_katib_kubeflow_org_experiment": "sweep", "label_katib_kubeflow_org_trial": "t"}
    alone = job("sft", none, none)
    assert told(alone, kind="Job", name="sft", labels=labels)[0] == ["Job/sft"]


def test_owners_that_own_each_other_end_somewhere() -> None:
    links, _ = told(job("a", "Job", "b"), job("b", "Job", "a"), kind="Job", name="a")
    assert links[:3] == ["Job/a", "Job/b", "Job/a"]


def test_the_submitter_of_a_rayjob_is_told_by_its_owners() -> None:
    found = told(job("grpo", "RayJob", "grpo"), kind="Job", name="grpo")
    assert found == (["Job/grpo", "RayJob/grpo"], "ray-node-type:submitter")
