"""A kube-state-metrics that shows no labels of pods: said, and made up for by the API."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from collector.prometheus.collect import PrometheusCollector
from collector.source import Probe
from ledger.facts import Facts
from tests.collector.prometheus.builders import (
    KSM,
    WINDOW,
    MemorySource,
    Sample,
    at,
    frame,
    line,
    node,
    pod,
)

START, END = at("23:00"), at("24:00")
EMPTY = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}


def samples(labels: dict[str, str] | None) -> list[Sample]:
    """A day with one pod; None = there is no series of labels at all."""
    rest = [one for one in pod("u1", START, END) if one.name != "kube_pod_labels"]
    told = [] if labels is None else line("kube_pod_labels", {**EMPTY, **labels}, START, END)
    return [*node("gpu-0", at("22:30"), END), *rest, *told]


def ask(labels: dict[str, str] | None, *, api: bool = False) -> tuple[Facts, Sequence[Probe]]:
    collector = PrometheusCollector("train-a", MemorySource(frame(samples(labels))), api=api)
    return collector.collect(WINDOW), collector.probe()


def probe(probes: Sequence[Probe]) -> Probe:
    """The one probe of the series."""
    [found] = [one for one in probes if one.need == "kube_pod_labels"]
    return found


def reasons(facts: Facts) -> list[str]:
    return [gap.reason for gap in facts.gaps if "kube_pod_labels" in gap.detail]


def test_without_the_api_it_is_a_gap_that_says_what_to_do() -> None:
    facts, probes = ask({})
    assert reasons(facts) == ["labels_not_exported"]
    [gap] = [gap for gap in facts.gaps if gap.reason == "labels_not_exported"]
    assert "--metric-labels-allowlist" in gap.detail
    assert "kubernetes block" in gap.detail
    assert gap.amounts == {"pods": 1.0}
    found = probe(probes)
    assert not found.ok
    assert "--metric-labels-allowlist" in found.detail
    assert "experiment" in found.blind


def test_with_the_api_it_is_a_note() -> None:
    facts, probes = ask({}, api=True)
    assert reasons(facts) == []
    assert any("the Kubernetes API tells" in note for note in facts.notes)
    found = probe(probes)
    assert (found.ok, found.blind) == (True, "")
    assert "the Kubernetes API tells" in found.detail


@pytest.mark.parametrize("api", [True, False])
def test_labels_that_are_shown_are_nothing_to_say(api: bool) -> None:
    facts, probes = ask({"label_owner": "lin"}, api=api)
    assert reasons(facts) == []
    assert not any("allowlist" in note for note in facts.notes)
    assert (probe(probes).ok, probe(probes).detail) == (True, "present")


def test_a_series_that_is_not_there_is_named_as_such() -> None:
    facts, probes = ask(None)
    assert reasons(facts) == ["no_series"]
    assert (probe(probes).ok, probe(probes).detail) == (False, "no samples")
