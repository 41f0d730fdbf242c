"""Slots that the server works out are those of all samples: patterns, owners, and a real server."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collector.prometheus import PrometheusCollector, from_settings
from collector.prometheus.meters.pushed.asking import TEXT, listed
from collector.prometheus.meters.pushed.cells import cells_of
from collector.prometheus.meters.pushed.holders import held, reaches
from collector.prometheus.meters.tenants import numbered, with_life
from ledger.facts import Facts
from ledger.settings import Cluster, PrometheusSource
from tests.collector.prometheus.builders import (
    MINUTE,
    WINDOW,
    Sample,
    at,
    canonical,
    card,
    line,
    node,
    pod,
    write_openmetrics,
    write_parquet,
)
from tests.effort import SOAK, examples
from tests.prometheus_server import running_prometheus

BEFORE, AFTER = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
START, END = at("3:07"), at("9:41")
CELLS = cells_of(MINUTE)
TENSOR, DRAM = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"


@given(st.lists(st.integers(0, 9), min_size=15, max_size=15))
@settings(max_examples=examples(100), deadline=None)
def test_a_pattern_tells_number_and_place_of_samples_or_is_unsound(counts: list[int]) -> None:
    assert CELLS is not None
    places = [(place + 1) % 15 for place in range(15)]
    pairs = zip(counts, places, strict=True)
    number = sum(count * (4**place + 4**15) for count, place in pairs)
    frame = pl.DataFrame({"pattern": [float(number)]})
    told = frame.select(*CELLS.decode(pl.col("pattern"))).row(0, named=True)
    assert told["sound"] == all(count < 4 for count in counts)
    if not told["sound"]:
        return
    full = [place + 1 for place, count in enumerate(counts) if count]
    assert told["samples"] == sum(counts)
    assert told["crowded"] == any(count > 1 for count in counts)
    if full:
        assert (told["first_cell"], told["last_cell"]) == (full[0], full[-1])
        steps = [later - one for one, later in pairwise(full)]
        assert told["widest"] == max(steps, default=0)


@pytest.mark.parametrize(("seconds", "whole"), [(20, True), (60, True), (7, False), (600, False)])
def test_a_slot_has_whole_cells_or_none(seconds: int, whole: bool) -> None:
    assert (cells_of(timedelta(seconds=seconds)) is not None) == whole


@given(st.sets(st.text("ab-.", min_size=1, max_size=6), max_size=12), st.text("ab-.", max_size=6))
@settings(max_examples=examples(100), deadline=None)
def test_lists_of_names_match_these_names_alone(names: set[str], other: str) -> None:
    patterns = [text.replace("\\\\", "\\") for text in listed(names)]
    for name in (*names, other):
        assert any(re.fullmatch(text, name) for text in patterns) == (name in names)


def test_names_that_begin_alike_need_few_lists() -> None:
    names = [
        f"grpo-32b-team-{run:04d}-ray-worker-{rank}" for run in range(99) for rank in range(40)
    ]
    lists = listed(names)
    assert len(lists) <= 3
    assert max(map(len, lists)) <= TEXT


_TIMES = st.integers(0, 40)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), _TIMES, st.integers(1, 9)), max_size=4),
    _TIMES,
    st.integers(1, 5),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_proven_owner_owns_every_sample_in_the_span(
    lives: list[tuple[str, int, int]], low: int, length: int
) -> None:
    begin = at("10:00")
    rows = [
        (uid, "ns", "p", "n", begin + start * MINUTE, begin + (start + long) * MINUTE)
        for uid, start, long in lives
    ]
    time = pl.Datetime("us", "UTC")
    texts = dict.fromkeys(("uid", "namespace", "pod", "node"), pl.String())
    known = pl.DataFrame(rows, schema={**texts, "start": time, "end": time}, orient="row")
    known = numbered(known.sort("namespace", "pod", "start"))
    first, last = begin + low * MINUTE, begin + (low + length) * MINUTE
    span = pl.DataFrame({"namespace": ["ns"], "pod": ["p"], "low": [first], "high": [last]})
    told = held(span.cast({"low": time, "high": time}), reaches(known, MINUTE))
    if not told["held"][0]:
        return
    steps = [first + number * MINUTE / 4 for number in range(1, 4 * length + 1)]
    samples = pl.DataFrame({"ident": [0] * len(steps), "time": steps}).cast(
        {"ident": pl.UInt32, "time": time}
    )
    tenants = pl.DataFrame({"ident": [0], "namespace": ["ns"], "pod": ["p"]}).cast(
        {"ident": pl.UInt32}
    )
    lived = with_life(samples.with_columns(value=0.0), tenants, known, MINUTE)
    assert lived["life"].unique().to_list() == told["life"].to_list()


Change = Callable[[list[Sample], random.Random], list[Sample]]


def plain(rows: list[Sample], _: random.Random) -> list[Sample]:
    return rows


def jittered(rows: list[Sample], dice: random.Random) -> list[Sample]:
    return [
        one._replace(time=one.time + timedelta(milliseconds=dice.randrange(9000))) for one in rows
    ]


def holed(rows: list[Sample], dice: random.Random) -> list[Sample]:
    first = dice.randrange(30, len(rows) - 40)
    return rows[:first] + rows[first + dice.randrange(1, 30) :]


def restarted(rows: list[Sample], dice: random.Random) -> list[Sample]:
    first = dice.randrange(30, len(rows) - 40)
    base = rows[first].value
    return rows[:first] + [one._replace(value=one.value - base) for one in rows[first:]]


def broken(rows: list[Sample], dice: random.Random) -> list[Sample]:
    place = dice.randrange(30, len(rows) - 40)
    odd = dict(enumerate((math.nan, -1.97e25, math.inf), place))
    return [one._replace(value=odd.get(number, one.value)) for number, one in enumerate(rows)]


def paired(rows: list[Sample], dice: random.Random) -> list[Sample]:
    late = timedelta(seconds=dice.randrange(3, 50))
    return rows + [
        one._replace(
            labels=canonical({**json.loads(one.labels), "prometheus_replica": "b"}),
            time=one.time + late,
        )
        for one in rows[: -dice.randrange(1, 90)]
    ]


CHANGES: tuple[Change, ...] = (plain, jittered, holed, restarted, broken, paired)


def meters(name: str, change: Change, dice: random.Random, *, many: bool) -> list[Sample]:
    """Containers, control group and network of a pod; the containers' use crosses requests."""
    base = {"job": "kubelet", "instance": "k", "namespace": "research", "pod": name}
    found: list[Sample] = []
    for which in ("main", "side") if many else ("main", ""):
        labels = {**base, "container": which} if which else base
        level, rate = dice.uniform(0, 1e5), dice.uniform(5, 25)
        total = [level]
        for _ in range(500):
            total.append(round(total[-1] + 60 * rate * dice.uniform(0.4, 1.6), 6))
        cpu = line(
            "container_cpu_usage_seconds_total",
            labels,
            START + timedelta(seconds=20),
            END,
            value=lambda seconds, course=total: course[int(seconds) // 60],  # type: ignore[misc]
        )
        memory = line(
            "container_memory_working_set_bytes",
            labels,
            START + timedelta(seconds=20),
            END,
            value=lambda _: float(round(dice.uniform(3e10, 9e10))),
        )
        found += [*change(cpu, dice), *change(memory, dice)]
    network = line(
        "container_network_receive_bytes_total",
        {**base, "interface": "eth0"},
        START,
        END,
        value=lambda seconds: float(round(seconds * 1234.5)),
    )
    return [*found, *change(network, dice)]


def cards(host: str, dice: random.Random, percent: float = 1.0) -> list[Sample]:
    """Cards that a pod holds: one at work, one that spins for a while, one with garbage."""
    found: list[Sample] = []
    for number in range(3 if SOAK else 2):
        for start, end, tenant in (
            (BEFORE, START - MINUTE, None),
            (START, END, f"on-{host}"),
            (END + MINUTE, AFTER, None),
        ):
            held = {"host": host, "uuid": f"{host}-{number}", "tenant": tenant}
            rows = [card(start, end, name=name, **held) for name in  # type: ignore[arg-type]
                    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", TENSOR, DRAM)]  # fmt: skip
            for place, (active, tensor, memory) in enumerate(zip(*rows, strict=True)):
                spins = number == 1 and tenant and 40 < place < 90
                busy = dice.uniform(0.3, 1) if tenant else 0.0
                work = 0.002 if spins else busy / 2
                found += [
                    active._replace(value=round(busy * percent, 6)),
                    tensor._replace(value=round(work, 6)),
                    memory._replace(value=round(work, 6)),
                ]
    return found


def world() -> list[Sample]:
    dice = random.Random(4)
    found = [*cards("gpu-0", dice), *cards("gpu-1", dice, percent=100.0)]
    for host in ("gpu-0", "gpu-1"):
        found += [*node(host, BEFORE, AFTER), *pod(f"on-{host}", START, END, on=host)]
    for number, change in enumerate(CHANGES):
        for many in (False, True) if SOAK else (number % 2 == 0,):
            name = f"{change.__name__}-{many:d}"
            found += pod(name, START, END, on=f"gpu-{number % 2}", gpus=0)
            found += meters(name, change, dice, many=many)
    return found


def _facts(block: PrometheusSource) -> tuple[Facts, PrometheusCollector]:
    collector = from_settings(Cluster(name="train-a", prometheus=block), Path())
    return collector.collect(WINDOW), collector


def test_a_server_that_summarises_gives_the_rows_of_all_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = world()
    export = write_parquet(samples, tmp_path / "export")
    expected, _ = _facts(PrometheusSource(export=str(export)))
    for way in ("pod_rows", "by_samples"):  # how all samples would be looked at
        monkeypatch.delattr(f"collector.prometheus.meters.usage.{way}")
    text = write_openmetrics(samples, tmp_path / "day.om")
    with running_prometheus(tmp_path, [text]) as url:
        facts, collector = _facts(PrometheusSource(url=url))
        assert collector.source.push_down is not None
    for name, table in expected.tables.items():
        assert_frame_equal(facts.tables[name], table, check_exact=True)
    assert facts.quarantine == expected.quarantine
    assert {entry.reason for entry in facts.quarantine} >= {"nan", "inf", "negative"}
    assert facts.notes == expected.notes
    assert any("without any work" in note for note in facts.notes)
