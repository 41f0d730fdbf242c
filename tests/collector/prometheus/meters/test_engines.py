"""Meters of engines: several in a pod, ranks, names, restarts, and what names no pod."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from collector.prometheus import from_settings
from collector.prometheus.meters.engines import ENGINE_METERS
from ledger.settings import Cluster, PrometheusSource
from tests.collector.prometheus.builders import (
    WINDOW,
    Sample,
    at,
    collect,
    line,
    node,
    pod,
    write_openmetrics,
    write_parquet,
)
from tests.prometheus_server import running_prometheus

NODE = node("gpu-0", at("0:00"), at("24:00"))
START, END = at("10:00"), at("12:00")


def says(name: str, value: float, *, of: str = "u1", port: int = 8000, **more: str) -> list[Sample]:
    """A series of an engine: a counter that rises by the value each second, or a gauge."""
    labels = {"job": "engines", "instance": f"10.0.0.1:{port}", "namespace": "research", "pod": of}
    told = {key: text for key, text in {**labels, **more}.items() if text}
    rises = name.endswith("_total")
    return line(name, told, START, END, value=(lambda seconds: value * seconds) if rises else value)


def means(samples: list[Sample], meter: str) -> list[tuple[str, float]]:
    lives = [*NODE, *pod("u1", START, END), *pod("u2", START, END, gpus=0)]
    rows = collect([*lives, *samples]).tables["usage"].filter(pl.col("meter") == meter)
    return rows.select("uid", pl.col("mean").round(6)).unique().sort("uid").rows()


def vllm(name: str, value: float, engine: str = "0", port: int = 8000) -> list[Sample]:
    return says(name, value, port=port, engine=engine, model_name="qwen")


def test_engines_of_a_pod_add_up_and_their_caches_are_averaged() -> None:
    for one in ({"engine": "1"}, {"port": 8001}):
        tokens = vllm("vllm:generation_tokens_total", 100.0)
        tokens += vllm("vllm:generation_tokens_total", 20.0, **one)
        assert means(tokens, "generation_tokens") == [("u1", 120.0)]
        full = vllm("vllm:kv_cache_usage_perc", 0.9) + vllm("vllm:kv_cache_usage_perc", 0.3, **one)
        assert means(full, "kv_cache_usage") == [("u1", 0.6)]


def test_an_engine_is_one_however_its_address_is_spelled() -> None:
    name = "vllm:num_requests_running"
    twice = says(name, 4.0, engine="0") + says(name, 4.0, engine="0", instance="u1:8000", job="x")
    assert means(twice, "requests_running") == [("u1", 4.0)]


def test_ranks_of_one_engine_count_once_and_data_parallel_ones_each() -> None:
    name = "sglang:num_running_reqs"
    ranks = [
        sample
        for dp, tp, value in ((0, 0, 5.0), (0, 1, 6.0), (1, 2, 7.0), (1, 10, 9.0))
        for sample in says(name, value, dp_rank=str(dp), tp_rank=str(tp), pp_rank="0")
    ]
    assert means(ranks, "requests_running") == [("u1", 12.0)]
    without = says(name, 5.0, tp_rank="0") + says(name, 6.0, tp_rank="1")
    assert means(without, "requests_running") == [("u1", 5.0)]


def test_one_pod_under_several_names_of_an_engine_is_one() -> None:
    names = ("vllm:", "ray_vllm_", "ray_vllm:")
    tokens = [one for name in names for one in vllm(f"{name}prompt_tokens_total", 50.0)]
    tokens += says("ray_vllm_prompt_tokens_total", 7.0, of="u2", WorkerId="a")
    tokens += says("ray_vllm_prompt_tokens_total", 8.0, of="u2", WorkerId="b")
    assert means(tokens, "prompt_tokens") == [("u1", 50.0), ("u2", 15.0)]
    old = says("vllm:gpu_cache_usage_perc", 0.2, of="u2")
    both = vllm("vllm:kv_cache_usage_perc", 0.5) + vllm("vllm:gpu_cache_usage_perc", 0.5)
    assert means(both + old, "kv_cache_usage") == [("u1", 0.5), ("u2", 0.2)]


def test_engines_of_two_systems_add_up() -> None:
    both = vllm("vllm:num_requests_waiting", 3.0) + says("sglang:num_queue_reqs", 4.0, port=30000)
    assert means(both, "requests_waiting") == [("u1", 7.0)]


def test_reasons_of_finished_requests_add_up() -> None:
    name = "vllm:request_success_total"
    done = says(name, 2.0, finished_reason="stop") + says(name, 0.5, finished_reason="length")
    assert means(done, "requests_finished") == [("u1", 2.5)]


def test_a_counter_that_starts_again_is_no_negative_rate() -> None:
    whole = vllm("vllm:num_preemptions_total", 10.0)
    again = [now._replace(value=was.value) for now, was in zip(whole[60:], whole, strict=False)]
    rows = collect([*NODE, *pod("u1", START, END), *whole[:60], *again]).tables["usage"]
    rates = rows.filter(pl.col("meter") == "preemptions")["mean"]
    assert rates.len() == 8
    assert rates.is_between(9.0, 10.0 + 1e-9).all()


def test_a_name_that_is_used_again_is_two_pods() -> None:
    lives = pod("u1", START, at("10:50"), name="it") + pod("u2", at("11:10"), END, name="it")
    told = [
        one
        for one in says("vllm:num_requests_running", 4.0, of="it")
        if one.time <= at("10:50") or one.time >= at("11:10")
    ]
    rows = collect([*NODE, *lives, *told]).tables["usage"]
    rows = rows.filter(pl.col("meter") == "requests_running")
    assert rows["uid"].unique().sort().to_list() == ["u1", "u2"]
    assert rows["node"].unique().to_list() == ["gpu-0"]


def test_what_names_no_pod_is_no_meter_but_a_note() -> None:
    loose = says("vllm:num_requests_running", 4.0, of="")
    facts = collect([*NODE, *pod("u1", START, END), *loose])
    assert "requests_running" not in facts.tables["usage"]["meter"].to_list()
    assert any("vllm:num_requests_running" in note and "no pod" in note for note in facts.notes)


def test_ray_tells_how_busy_cards_are_and_what_it_spilled() -> None:
    cards = [
        one
        for index, value in ((0, 100.0), (1, 50.0))
        for one in says("ray_node_gpus_utilization", value, GpuIndex=str(index), ip="10.0.0.1")
    ]
    assert means(cards, "ray_gpu_utilization") == [("u1", 0.75)]
    objects = [
        one
        for place, value in (("SPILLED", 2.0**30), ("MMAP_SHM", 2.0**33))
        for one in says("ray_object_store_memory", value, Location=place)
    ]
    assert means(objects, "object_store_spilled") == [("u1", 2.0**30)]


def test_no_engines_are_no_gap_and_no_rows() -> None:
    facts = collect([*NODE, *pod("u1", START, END)])
    assert not [gap for gap in facts.gaps if "vllm" in gap.detail or "ray" in gap.detail]
    names = [meter.name for meter in ENGINE_METERS]
    assert facts.tables["usage"].filter(pl.col("meter").is_in(names)).is_empty()


def test_coverage_expects_samples_of_pods_that_gave_any() -> None:
    lives = [*NODE, *pod("u1", START, END), *pod("u2", START, END)]
    half = [one for one in vllm("vllm:num_requests_running", 1.0) if one.time <= at("11:00")]
    rows = collect([*lives, *half]).tables["coverage"]
    row = rows.filter(pl.col("meter") == "requests_running").row(0, named=True)
    assert (row["node"], row["things"], row["silent"]) == ("gpu-0", 1, 0)
    assert row["seen"] / row["expected"] == pytest.approx(0.5, abs=0.02)


def everything() -> list[Sample]:
    whole = vllm("vllm:generation_tokens_total", 100.0)
    restarted = [
        *whole[:70],
        *(now._replace(value=was.value) for now, was in zip(whole[70:], whole, strict=False)),
    ]
    return [
        *NODE,
        *(one for name in ("u1", "u2", "u3", "u4") for one in pod(name, START, END, gpus=1)),
        *restarted,
        *vllm("vllm:generation_tokens_total", 20.0, engine="1"),
        *says("ray_vllm_generation_tokens_total", 7.0, of="u2", WorkerId="a"),
        *says("sglang:generation_tokens_total", 9.0, of="u3"),
        *vllm("vllm:kv_cache_usage_perc", 0.5),
        *says("vllm:kv_cache_usage_perc", 0.25, engine="1"),
        *says("sglang:num_running_reqs", 5.0, of="u3", tp_rank="0", dp_rank="0"),
        *says("sglang:num_running_reqs", 6.0, of="u3", tp_rank="1", dp_rank="0"),
        *says("vllm:num_requests_running", 4.0, of=""),
        *says("vllm:num_requests_running", 4.0, of="u4")[:50],
        *says("ray_node_gpus_utilization", 30.0, of="u2", GpuIndex="0"),
        *says("ray_object_store_memory", 77.0, of="u2", Location="SPILLED"),
        *says("ray_object_store_memory", 88.0, of="u2", Location="MMAP_SHM"),
    ]


def test_a_server_tells_what_all_samples_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = everything()
    export = PrometheusSource(export=str(write_parquet(samples, tmp_path / "export")))
    raw = from_settings(Cluster(name="train-a", prometheus=export), Path()).collect(WINDOW)
    monkeypatch.delattr("collector.prometheus.meters.usage.pod_rows")
    with running_prometheus(tmp_path, [write_openmetrics(samples, tmp_path / "day.om")]) as url:
        live = Cluster(name="train-a", prometheus=PrometheusSource(url=url))
        told = from_settings(live, Path()).collect(WINDOW)
    names = {meter.name for meter in ENGINE_METERS}
    assert names & set(raw.tables["usage"]["meter"]) >= {"generation_tokens", "kv_cache_usage"}
    for table in ("usage", "coverage"):
        assert_frame_equal(told.tables[table], raw.tables[table], check_exact=True)
    assert told.quarantine == raw.quarantine
    assert told.notes == raw.notes
