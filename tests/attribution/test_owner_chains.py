"""From a dump of a cluster to a bill per training job: owner chains roll up to their roots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from attribution.day import attribute_day
from attribution.facts import TABLES, DayFacts
from ledger.settings import Settings
from tests.collector.kubernetes.builders import (
    Json,
    collect,
    container,
    metadata,
    node,
    pod,
    running,
    thing,
)
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

_VERSIONS = {
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "PyTorchJob": "kubeflow.org/v1",
}


def owner(text: str | None) -> list[Json]:
    """The reference to ``Kind/name``, as an object that may own."""
    if text is None:
        return []
    kind, _, name = text.partition("/")
    api = _VERSIONS[kind]
    return [{"apiVersion": api, "kind": kind, "metadata": metadata(name, uid=f"uid-{kind}-{name}")}]


def test_training_jobs_roll_up_to_one_row_each(
    shared: Path, new_day: type[DayBuilder], tmp_path: Path
) -> None:
    case = allocation_cases(shared)["B11"]
    given, expect = case["given"], case["expect"]
    items = [
        thing(_VERSIONS[item["kind"]], item["kind"], item["name"], owners=owner(item["owner"]))
        for item in given["objects"]
    ]
    day = new_day()
    for number, item in enumerate(given["pods"]):
        host, size = f"host-{number}", {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}
        items.append(node(host, capacity=size, provider=f"aws:///z/i-{number}", created="00:00"))
        items.append(
            pod(
                item["pod"],
                running("00:00"),
                node=host,
                bound="00:00",
                created="00:00",
                owners=owner(item["owner"]),
                containers=[container(gpus=8)],
            )
        )
        day.line(f"l{number}", f"i-{number}", 0, 24, str(item["cost"]))
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    facts = collect(dump=str(path))
    tables = {
        table.name: facts.tables[table.name].with_columns(source=pl.lit("kubernetes/train-a"))
        for table in TABLES
        if table.name in facts.tables
    }
    own = {"charges": day.frame_of("charges")}
    rest = {table.name: table.empty() for table in TABLES if table.name not in tables}
    read = DayFacts.of_tables(day.facts().day, rest | own | tables)
    costs = attribute_day(read, Settings()).costs

    named = costs.filter(pl.col("target") == "workload").with_columns(
        pl.concat_str("root_kind", "root_name", separator="/").alias("root")
    )
    rows = named.group_by("root").agg(pl.col("EffectiveCost").sum().cast(pl.Float64))
    assert dict(rows.iter_rows()) == pytest.approx(expect["rows"], abs=case["tolerance"])
    jobs = {root.partition("/")[2] for root in expect["rows"]}
    assert set(named["experiment"]) == jobs
    total, lost = (
        float(frame["EffectiveCost"].sum())
        for frame in (costs, costs.filter(pl.col("target") == "__unattributed__"))
    )
    assert (total, lost) == pytest.approx(
        (expect["total"], expect["unattributed"]), abs=case["tolerance"]
    )
    assert not facts.gaps
