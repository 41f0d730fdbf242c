"""Cases of the field that begin with samples: through the collector, and on to the costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from attribution.day import attribute_day
from attribution.facts import DayFacts
from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.samples.chains import clip, find_runs
from collector.prometheus.sources.export import ParquetExport
from ledger.facts import Facts
from ledger.schema import CHARGES
from ledger.settings import Settings
from ledger.window import Window
from tests.collector.prometheus.builders import (
    DAY,
    KSM,
    MINUTE,
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
from tests.field_cases import allocation_cases

HOUR = timedelta(hours=1)


def priced(nodes: Mapping[str, float], start: datetime, hours: int) -> pl.DataFrame:
    """Bill lines of whole hours, by node and price of an hour."""
    rows = [
        {
            "day": start.date(),
            "x_Source": "bill",
            "x_LineId": f"{name}-{hour}",
            "x_Part": 0,
            "x_Basis": "billed",
            "x_Dimension": "compute",
            "BillingCurrency": "USD",
            "ChargeCategory": "Usage",
            "ResourceId": f"i-{name}",
            "ChargePeriodStart": start + hour * HOUR,
            "ChargePeriodEnd": start + (hour + 1) * HOUR,
            **dict.fromkeys(("BilledCost", "EffectiveCost"), Decimal(str(price))),
        }
        for name, price in nodes.items()
        for hour in range(hours)
    ]
    return pl.DataFrame(rows, schema=CHARGES.schema)


def costs(facts: Sequence[Facts], charges: pl.DataFrame, day: date = DAY) -> pl.DataFrame:
    """The costs of pods on a day."""
    names = {name for one in facts for name in one.tables}
    tables = {
        name: pl.concat(
            one.tables[name].with_columns(source=pl.lit(f"prometheus/{number}"))
            for number, one in enumerate(facts)
            if name in one.tables
        )
        for name in names
    }
    books = attribute_day(DayFacts.of_tables(day, {**tables, "charges": charges}), Settings())
    return books.costs.filter(pl.col("target") == "workload").with_columns(
        cost=pl.col("EffectiveCost").cast(pl.Float64)
    )


def cores(name: str, start: datetime, end: datetime, count: float) -> list[Sample]:
    """A node that has nothing but cores."""
    return [
        one._replace(value=count if '"resource":"cpu"' in one.labels else 0.0)
        if one.name == "kube_node_status_capacity"
        else one
        for one in node(name, start, end, gpus=0)
    ]


@pytest.mark.parametrize("name", ["S4-a", "S4-b", "S4-c", "S4-d"])
def test_runs_of_samples(shared: Path, name: str) -> None:
    case = allocation_cases(shared)[name]
    given = case["given"]
    midnight = WINDOW.start
    times = pl.DataFrame(
        {"key": "k", "time": [midnight + timedelta(seconds=at) for at in given["samples_s"]]},
        schema_overrides={"time": pl.Datetime("us", "UTC")},
    )
    low, high = (midnight + timedelta(seconds=at) for at in given["window_s"])
    runs = find_runs(times, "key", timedelta(seconds=given["usual_interval_s"]))
    inside = clip(runs, Window(low, high))
    found = [
        [(moment - midnight).total_seconds() for moment in row]
        for row in inside.select("start", "end").iter_rows()
    ]
    assert found == [
        pytest.approx(span, abs=case["tolerance"]) for span in case["expect"]["intervals_s"]
    ]
    lived = inside.select((pl.col("end") - pl.col("start")).sum()).item().total_seconds()
    assert lived == pytest.approx(case["expect"]["seconds"], abs=case["tolerance"])


def moment(text: str) -> datetime:
    if "T" in text:
        return datetime.fromisoformat(text)
    return at(text)


def test_garbage_samples_do_not_move_a_cost(shared: Path, tmp_path: Path) -> None:
    case = allocation_cases(shared)["B23"]
    given, series = case["given"], case["given"]["series"]
    start, end = at(series["start"]), at(series["end"])
    asked = {"namespace": "research", "pod": "u1", "uid": "u1", "container": "main"}
    request = line(
        "kube_pod_container_resource_requests",
        {**KSM, **asked, "resource": "cpu"},
        start,
        end,
        value=float(series["value"]),
        step=timedelta(seconds=series["step_s"]),
    )
    garbage = [
        Sample(request[0].name, request[0].labels, moment(time), float(value))
        for time, value in given["extra"]
    ]
    life = [one for one in pod("u1", start, end, on="n1", gpus=0) if one.name != request[0].name]
    size = 2 * series["value"]
    samples = [*cores("n1", start, end, size), *life, *request, *garbage]
    source = ParquetExport(write_parquet(samples, tmp_path))
    facts = PrometheusCollector("train-a", source).collect(WINDOW)
    reasons: dict[str, int] = {}
    for entry in facts.quarantine:
        reasons[entry.reason] = reasons.get(entry.reason, 0) + entry.count
    assert reasons == case["expect"]["by_reason"]
    assert facts.quarantined == case["expect"]["quarantined"]
    (lived,) = facts.tables["workloads"].select(pl.col("end") - pl.col("start")).to_series()
    assert lived / MINUTE == case["expect"]["minutes"]
    lines = priced({"n1": size * given["price_core_hour"]}, start, 1)
    found = costs([facts], lines)["cost"].sum()
    assert found == pytest.approx(case["expect"]["cost"], abs=case["tolerance"])


def test_a_finished_job_that_is_still_listed(shared: Path) -> None:
    case = allocation_cases(shared)["B29-b"]
    given = case["given"]
    start = at("10:00")
    over = start + given["running_minutes"] * MINUTE
    listed = over + given["listed_after_minutes"] * MINUTE
    samples = [
        one
        for one in pod("u1", start, listed, on="n1", gpus=given["gpus"])
        if one.name != "kube_pod_status_phase"
    ]
    labels = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}
    phases = [
        *line("kube_pod_status_phase", {**labels, "phase": "Running"}, start, over),
        *line("kube_pod_status_phase", {**labels, "phase": "Succeeded"}, over + MINUTE, listed),
    ]
    hours = -(-(listed - start) // HOUR)
    machine = node("n1", start, start + hours * HOUR, gpus=given["gpus"])
    facts = collect([*machine, *samples, *phases])
    lines = priced({"n1": given["gpus"] * given["gpu_price_hour"]}, start, hours)
    found = costs([facts], lines)
    held = float(found.select(pl.col("gpu_seconds").sum()).item()) / 3600
    assert held == pytest.approx(case["expect"]["gpu_hours"], abs=case["tolerance"])
    assert found["cost"].sum() == pytest.approx(case["expect"]["cost"], abs=case["tolerance"])


def test_equal_names_in_two_clusters_and_a_series_without_one(shared: Path) -> None:
    case = allocation_cases(shared)["B35"]
    start, samples, prices = at("8:00"), [], {}
    for series in case["given"]["series"]:
        end = start + series["hours"] * HOUR
        cluster = {"cluster": series["cluster"]} if series["cluster"] else {}
        labels = {"namespace": series["namespace"], "pod": series["pod"], "uid": "u", **cluster}
        info = line("kube_pod_info", {**KSM, **labels, "node": series["node"]}, start, end)
        samples += info
        if not cluster:
            continue
        machine = f"{series['cluster']}0"
        prices[machine] = series["gpus"] * series["gpu_price_hour"]
        amounts = {"nvidia_com_gpu": series["gpus"], "cpu": 0.0, "memory": 0.0}
        base = {**KSM, **cluster, "node": series["node"]}
        samples += line(
            "kube_node_info", {**base, "provider_id": f"aws:///a/i-{machine}"}, start, end
        )
        for resource, amount in amounts.items():
            unit, asked = {"resource": resource}, {**labels, "container": "main"}
            samples += line("kube_node_status_capacity", {**base, **unit}, start, end, value=amount)
            samples += line(
                "kube_pod_container_resource_requests",
                {**KSM, **asked, **unit},
                start,
                end,
                value=amount,
            )
    source = MemorySource(frame(samples))
    facts = [PrometheusCollector(name, source, "cluster").collect(WINDOW) for name in ("a", "b")]
    for one in facts:
        assert {entry.reason for entry in one.quarantine} == {"no_cluster"}
        assert len(one.quarantine) == case["expect"]["quarantined"]
    hours = max(series["hours"] for series in case["given"]["series"])
    found = costs(facts, priced(prices, start, hours))
    for expected, rows in (
        (
            "by_cluster_namespace",
            found.with_columns(key=pl.format("{}/{}", "cluster", "namespace")),
        ),
        ("by_namespace", found.with_columns(key="namespace")),
        ("filter_cluster_a", found.filter(cluster="a").with_columns(key="namespace")),
    ):
        sums = dict(rows.group_by("key").agg(pl.col("cost").sum()).iter_rows())
        assert sums == pytest.approx(case["expect"][expected], abs=case["tolerance"])


def test_a_request_is_carried_to_samples_of_use(shared: Path) -> None:
    case = allocation_cases(shared)["S5-h"]
    given: Mapping[str, Any] = case["given"]
    asked, used = (
        datetime.fromtimestamp(given[f"{key}_at_s"], UTC) for key in ("request", "usage")
    )
    day = asked.date()
    start = asked - HOUR
    labels = {"namespace": "research", "pod": "u1", "uid": "u1", "container": "main"}
    life = [
        one
        for one in pod("u1", start, asked, on="n1", gpus=0)
        if one.name != "kube_pod_container_resource_requests"
    ]
    samples = [
        *cores("n1", start, asked + HOUR, 4.0),
        *life,
        *line(
            "kube_pod_container_resource_requests",
            {**KSM, **labels, "resource": given["resource"]},
            start,
            asked,
            value=given["request"],
        ),
        *line(
            "container_cpu_usage_seconds_total",
            {key: labels[key] for key in ("namespace", "pod", "container")},
            used - HOUR,
            used,
            value=lambda seconds: given["usage"] * seconds,
        ),
    ]
    facts = collect(samples, Window.of_day(day))
    # A core-hour of the four at four dollars an hour is a dollar.
    hour = start.replace(minute=0, second=0)
    found = costs([facts], priced({"n1": 4.0}, hour, 3), day)
    assert found["cost"].sum() == pytest.approx(case["expect"]["basis"], abs=case["tolerance"])


def test_a_pod_pays_for_the_larger_at_each_step(shared: Path) -> None:
    """Not for the larger of the means: that of use hides its peaks."""
    case = allocation_cases(shared)["S5-i"]
    given: Mapping[str, Any] = case["given"]
    start = at("12:00")
    end = start + timedelta(seconds=given["window_s"][1])
    used, total = {}, 0.0
    for second, value in given["usage_series"]:
        total += value * (given["interval_s"] if second else 0)
        used[second] = total
    labels = {"namespace": "research", "pod": "u1", "uid": "u1", "container": "main"}
    life = [
        one
        for one in pod("u1", start, end, on="n1", gpus=0)
        if one.name != "kube_pod_container_resource_requests"
    ]
    samples = [
        *cores("n1", start - HOUR, end + HOUR, 4.0),
        *life,
        *line(
            "kube_pod_container_resource_requests",
            {**KSM, **labels, "resource": given["resource"]},
            start,
            end,
            value=given["request"],
        ),
        *line(
            "container_cpu_usage_seconds_total",
            {key: labels[key] for key in ("namespace", "pod", "container")},
            start,
            end,
            value=lambda seconds: used[int(seconds)],
        ),
    ]
    facts = collect(samples)
    hours = (end - start).total_seconds() / 3600
    # A core-hour of the four at four dollars an hour is a dollar.
    found = costs([facts], priced({"n1": 4.0}, start, 1))
    basis = float(found["cost"].sum()) / hours
    assert basis == pytest.approx(case["expect"]["basis_mean"], abs=case["tolerance"])
