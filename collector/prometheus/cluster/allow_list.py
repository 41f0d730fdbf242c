"""Whether kube-state-metrics shows labels of pods at all: without an allow-list it shows none."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.series import catalogue as s
from collector.prometheus.sources.source import SampleSource
from collector.source import Probe
from ledger.errors import SourceError
from ledger.facts import Gap
from ledger.window import Window

_MANY = 50  # pods that are looked at: without an allow-list none of them shows a label
_RECENT = timedelta(minutes=5)
_EMPTY = (
    f"{s.POD_LABELS.metric} holds no labels: kube-state-metrics runs without "
    "--metric-labels-allowlist=pods=[*]"
)


def unlabelled(pods: pl.DataFrame, *, api: bool) -> tuple[list[Gap], list[str]]:
    """What is to be said of a day whose pods show no labels: gaps and notes.

    Args:
        pods: Rows of ``workloads``.
        api: Whether the cluster's API is read as well; its labels are used then.
    """
    told = pods["labels"].drop_nulls()
    if told.is_empty() or (told != "{}").any():
        return [], []
    if api:
        return [], [f"{_EMPTY}; labels are those that the Kubernetes API tells"]
    count = {"pods": float(pods["uid"].n_unique())}
    blind = (
        f"{_EMPTY}; blind but for owners: {s.POD_LABELS.blind}; give the cluster a kubernetes block"
    )
    return [Gap("labels_not_exported", blind, count)], []


def probe_labels(source: SampleSource, reach: Window | None, *, api: bool) -> Probe | None:
    """The probe of a source whose pods show no labels; None where they do, or nothing tells.

    Args:
        source: Where samples come from; its series of labels has samples.
        reach: What it holds.
        api: Whether the cluster's API is read as well.
    """
    if reach is None:
        return None
    try:
        found = _some(source, reach)
    except SourceError:
        return None
    if found.is_empty() or found.str.contains(f'"{s.POD_LABELS.prefix}').any():
        return None
    need = s.POD_LABELS.metric
    if api:
        return Probe(need, True, f"{_EMPTY}; the Kubernetes API tells them", "", reach)
    return Probe(need, False, _EMPTY, s.POD_LABELS.blind, reach)


def _some(source: SampleSource, reach: Window) -> pl.Series:
    """Label sets of some pods near the end of what the source holds."""
    server = source.push_down
    if server is None:
        window = Window(max(reach.start, reach.end - _RECENT), reach.end)
        frame = source.samples(s.POD_LABELS, window).frame
    else:
        query = f"topk({_MANY}, {s.POD_LABELS.metric}{server.matcher()})"
        frame = server.at(query, reach.end).frame
    return frame.select("labels").collect()["labels"]
