"""States that a server summarises: the same facts as from every single sample."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from polars.testing import assert_frame_equal

from collector.prometheus import PrometheusCollector
from collector.prometheus.sources.access import Access
from collector.prometheus.sources.export import ParquetExport
from collector.prometheus.sources.server import Server
from ledger.facts import Facts
from ledger.window import Window
from tests.collector.prometheus.builders import (
    DAY,
    KSM,
    MINUTE,
    Sample,
    at,
    canonical,
    line,
    node,
    pod,
    write_openmetrics,
    write_parquet,
)
from tests.effort import SOAK
from tests.real_servers import SERVERS

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
SHIFT = timedelta(days=(YESTERDAY - DAY).days)
WINDOW = Window.of_day(YESTERDAY)
FIRST, LAST = at("0:00") - 20 * MINUTE, at("24:00") + 20 * MINUTE
PODS = 400 if SOAK else 30


def relabelled(samples: list[Sample], **labels: str) -> list[Sample]:
    return [one._replace(labels=canonical({**json.loads(one.labels), **labels})) for one in samples]


def one_pod(number: int, dice: random.Random) -> list[Sample]:
    """A life with what happens to lives; times to the millisecond."""
    start = FIRST + dice.randrange(1400) * MINUTE
    end = min(start + dice.choice((0, 1, 3, 40, 300, 900)) * MINUTE, LAST)
    uid, name = f"uid-{number}", f"pod-{number // 2 if dice.random() < 0.2 else number}"
    running = min(start + dice.choice((0, 0, 1, 2, 70)) * MINUTE, end)
    life = pod(uid, start, end, name=name, gpus=dice.choice((0, 1, 8)), running=running)
    base = {**KSM, "namespace": "research", "pod": name, "uid": uid}
    if dice.random() < 0.5:  # it finished, and was seen for a while
        seen = min(end + dice.choice((1, 4, 30)) * MINUTE, LAST + MINUTE)
        phase = "kube_pod_status_phase"
        how = {**base, "phase": dice.choice(("Succeeded", "Failed"))}
        if end > start:
            life += line(phase, how, start, end, value=0)
        life += line(phase, how, end + MINUTE, seen)
        life += line(phase, {**base, "phase": "Running"}, end + MINUTE, seen, value=0)
        info = [one for one in life if one.name != phase and one.time == end]
        later = range((seen - end) // MINUTE)
        life += [one._replace(time=end + (1 + k) * MINUTE) for one in info for k in later]
    if dice.random() < 0.3:
        life += line("kube_pod_status_scheduled_time", base, start, end, value=1.7e9 + number)
    if dice.random() < 0.3:
        claim = {"volume": "v", "persistentvolumeclaim": f"claim-{number % 3}"}
        series = "kube_pod_spec_volumes_persistentvolumeclaims_info"
        life += line(series, {**base, **claim}, start, end)
    happening = dice.choice((calm, calm, holed, relabelled_later, resized, garbage, two_scrapers))
    life = happening(life, dice)
    jitter = timedelta(milliseconds=dice.randrange(900))
    return [one._replace(time=one.time + jitter) for one in life]


def calm(life: list[Sample], dice: random.Random) -> list[Sample]:
    return life


def holed(life: list[Sample], dice: random.Random) -> list[Sample]:
    """Scrapes that failed: of one, some in a row, or of one series alone."""
    first = dice.choice(life).time
    until = first + dice.choice((0, 1, 2, 3, 5, 60)) * MINUTE
    alone = dice.choice((None, None, "kube_pod_info", "kube_pod_status_phase", "kube_pod_labels"))
    return [
        one
        for one in life
        if not first <= one.time <= until or (alone is not None and one.name != alone)
    ]


def relabelled_later(life: list[Sample], dice: random.Random) -> list[Sample]:
    moment = dice.choice(life).time
    return [
        relabelled([one], label_experiment="other")[0]
        if one.name == "kube_pod_labels" and one.time >= moment
        else one
        for one in life
    ]


def resized(life: list[Sample], dice: random.Random) -> list[Sample]:
    moment = dice.choice(life).time
    return [
        one._replace(value=one.value * 2)
        if one.name.endswith("resource_requests") and one.time >= moment
        else one
        for one in life
    ]


def garbage(life: list[Sample], dice: random.Random) -> list[Sample]:
    """Single samples that cannot be; between the others, or in their place."""
    odd = dice.sample(life, min(3, len(life)))
    kept = [one for one in life if one not in odd]
    late = timedelta(seconds=dice.choice((0, 7)))
    # VictoriaMetrics keeps 18 digits of a series: beside -1.97e25, little would be left of others.
    values = (-1.97e12, math.inf, -1.0, 0.5)
    return [*kept, *(one._replace(time=one.time + late, value=dice.choice(values)) for one in odd)]


def two_scrapers(life: list[Sample], dice: random.Random) -> list[Sample]:
    """A pair, a restart of the exporter with or without overlap, or another exporter."""
    moment = dice.choice(life).time
    kind = dice.randrange(4)
    if kind == 0:
        offset = timedelta(seconds=dice.choice((0, 13, 29, 50)))
        other = [one._replace(time=one.time + offset) for one in life]
        lost = dice.randrange(1, 30)
        return relabelled(life, replica="a") + relabelled(other[lost:], replica="b")
    if kind == 1:
        overlap = dice.choice((-1, 0, 3)) * MINUTE
        before = [one for one in life if one.time <= moment + overlap]
        return before + relabelled([one for one in life if one.time > moment], instance="b")
    if kind == 2:
        return life + relabelled(life, job="second")
    return life + [
        one._replace(value=3.0)
        for one in relabelled(life, job="another")
        if one.name.endswith("requests")
    ]


def world() -> list[Sample]:
    dice = random.Random(11)
    machines = [*node("gpu-0", FIRST, LAST), *node("gpu-1", at("3:00"), at("9:00"), gpus=0)]
    for number in range(3):
        claim = {"namespace": "research", "persistentvolumeclaim": f"claim-{number}"}
        bound = {**KSM, **claim, "volumename": f"pv-{number}", "storageclass": "fast"}
        machines += line("kube_persistentvolumeclaim_info", bound, at("2:00"), LAST)
    pods = [one for number in range(PODS) for one in one_pod(number, dice)]
    samples = [one._replace(time=one.time + SHIFT) for one in [*machines, *pods]]
    # A store has one value per series and time.
    once = {(one.name, one.labels, one.time): one for one in samples}
    return list(once.values())


@pytest.fixture(scope="module", params=SERVERS)
def collected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Facts, Facts, Server]]:
    """Facts of a live server, those of an export of the same samples, and the server."""
    folder = tmp_path_factory.mktemp("states")
    samples = world()
    export = ParquetExport(write_parquet(samples, folder / "export"))
    text = write_openmetrics(samples, folder / "day.om")
    with SERVERS[request.param].serve(folder / "server", [text]) as url:
        server = Server(Access(url))
        live, expected = (
            PrometheusCollector("train-a", source).collect(WINDOW) for source in (server, export)
        )
        yield live, expected, server


def test_stretches_give_the_facts_of_samples(collected: tuple[Facts, Facts, Server]) -> None:
    live, expected, server = collected
    assert server.push_down is not None
    assert expected.tables["workloads"].height > PODS // 2
    for name in ("nodes", "workloads", "volumes", "mounts"):
        assert_frame_equal(live.tables[name], expected.tables[name], check_exact=True)
    assert live.quarantine == expected.quarantine
    assert (live.coverage, live.gaps) == (expected.coverage, expected.gaps)
    assert set(live.notes) == set(expected.notes)
    # Samples of a stretch across the day's edge are counted by their mean distance.
    assert live.read == pytest.approx(expected.read, rel=1e-3)


def test_no_more_is_asked_than_there_are_series(collected: tuple[Facts, Facts, Server]) -> None:
    server = collected[2]
    assert 0 < server.asked <= 80
    assert 0 < server.largest < 50_000_000
