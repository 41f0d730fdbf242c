"""Annotations and labels of pods under their own keys, as far as these are known."""

from __future__ import annotations

import json
from pathlib import Path

from collector.prometheus import from_settings
from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.sources.export import ParquetExport
from ledger.settings import Cluster, Identity, KubernetesSource, PrometheusSource
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
    write_parquet,
)

NODE = node("gpu-0", at("0:00"), at("24:00"))
BASE = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}
SAID = {
    "annotation_gpu_fraction": "0.5",
    "annotation_gpu_fraction_num_devices": "2",
    "annotation_model_version": "7b-2",
    "annotation_team_example_owner": "lin",
    "annotation_team_example_cost_center": "42",
    "annotation_prometheus_io_scrape": "true",
}


def samples(said: dict[str, str] = SAID) -> list[Sample]:
    return [
        *NODE,
        *pod("u1", at("10:00"), at("12:00")),
        *line("kube_pod_annotations", {**BASE, **said}, at("10:00"), at("12:00")),
    ]


def test_known_annotations_bear_their_own_key_and_others_are_left_out() -> None:
    row = collect(samples()).tables["workloads"].row(0, named=True)
    assert json.loads(row["annotations"]) == {
        "gpu-fraction": "0.5",
        "gpu-fraction-num-devices": "2",
        "model-version": "7b-2",
        "annotation_team_example_owner": "lin",
    }


def test_a_key_of_the_settings_is_kept_under_its_own_spelling() -> None:
    globs = ("team.example/cost-center", "prometheus.io/*")
    collector = PrometheusCollector("train-a", MemorySource(frame(samples())), annotations=globs)
    row = collector.collect(WINDOW).tables["workloads"].row(0, named=True)
    kept = json.loads(row["annotations"])
    assert kept["team.example/cost-center"] == "42"
    assert kept["annotation_prometheus_io_scrape"] == "true"


def test_the_settings_of_the_cluster_name_annotations() -> None:
    cluster = Cluster(
        name="train-a",
        kubernetes=KubernetesSource(context="x", annotations=("a/b",)),
        prometheus=PrometheusSource(url="http://127.0.0.1:9"),
    )
    collector = from_settings(cluster, Path())
    assert (collector.annotations, collector.api) == (("a/b",), True)


def test_annotations_that_identity_rules_name_are_kept() -> None:
    cluster = Cluster(name="train-a", prometheus=PrometheusSource(url="http://127.0.0.1:9"))
    rules = Identity(owner=("label:owner", "annotation:team.example/cost-center", "default:x"))
    annotations = from_settings(cluster, Path(), rules).annotations
    assert "team.example/cost-center" in annotations
    collector = PrometheusCollector(
        "train-a", MemorySource(frame(samples())), annotations=annotations
    )
    row = collector.collect(WINDOW).tables["workloads"].row(0, named=True)
    assert json.loads(row["annotations"])["team.example/cost-center"] == "42"


def test_annotations_that_collide_are_kept_as_they_stand() -> None:
    said = {"annotation_a_owner_conflict1": "lin", "annotation_a_owner_conflict2": "wei"}
    row = collect(samples(said)).tables["workloads"].row(0, named=True)
    assert json.loads(row["annotations"]) == said


def test_an_annotation_that_changes_cuts_the_life() -> None:
    changed = [
        *NODE,
        *pod("u1", at("10:00"), at("12:00")),
        *line(
            "kube_pod_annotations",
            {**BASE, "annotation_gpu_fraction": "0.5"},
            at("10:00"),
            at("10:59"),
        ),
        *line(
            "kube_pod_annotations",
            {**BASE, "annotation_gpu_fraction": "0.25"},
            at("11:00"),
            at("12:00"),
        ),
    ]
    found = collect(changed).tables["workloads"].select("start", "annotations").rows()
    assert found == [
        (at("10:00"), '{"gpu-fraction":"0.5"}'),
        (at("11:00"), '{"gpu-fraction":"0.25"}'),
    ]


def test_pods_of_a_cluster_without_the_series_have_no_annotations() -> None:
    facts = collect([*NODE, *pod("u1", at("10:00"), at("12:00"))])
    assert facts.tables["workloads"]["annotations"].to_list() == [None]
    assert not [gap for gap in facts.gaps if "annotations" in gap.detail]


def test_the_group_of_a_shared_card_bears_its_own_key() -> None:
    labels = {"label_runai_gpu_group": "g-1", "label_experiment": "grpo-7b"}
    facts = collect([*NODE, *pod("u1", at("10:00"), at("12:00"), labels=labels)])
    found = json.loads(facts.tables["workloads"]["labels"][0])
    assert found == {"runai-gpu-group": "g-1", "label_experiment": "grpo-7b"}


def test_an_export_of_annotations_reads_the_same(tmp_path: Path) -> None:

    source = ParquetExport(write_parquet(samples(), tmp_path, files=2))
    row = PrometheusCollector("train-a", source).collect(WINDOW).tables["workloads"]
    assert row.equals(collect(samples()).tables["workloads"])
