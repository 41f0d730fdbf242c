"""Real servers, filled: the same facts as from the export of the same samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from collector.prometheus import PrometheusCollector, from_settings
from ledger.settings import Cluster, PrometheusSource
from ledger.window import Window
from tests.collector.prometheus.builders import (
    DAY,
    MINUTE,
    Sample,
    at,
    small_day,
    write_openmetrics,
    write_parquet,
)
from tests.real_servers import SERVERS

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
WINDOW = Window.of_day(YESTERDAY)


def samples() -> list[Sample]:
    """The small day, moved to yesterday, with an hour's hole and a sample that cannot be."""
    shift = timedelta(days=(YESTERDAY - DAY).days)
    odd = Sample("kube_node_info", small_day()[0].labels, at("3:00:30"), math.inf)
    gone = [sample for sample in small_day() if not at("4:00") < sample.time < at("5:00")]
    return [sample._replace(time=sample.time + shift) for sample in [*gone, odd]]


@pytest.fixture(scope="module", params=SERVERS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PrometheusCollector, PrometheusCollector]]:
    """The live collector and the one of the export."""
    folder = tmp_path_factory.mktemp("prometheus")
    export = write_parquet(samples(), folder / "export", 2)
    text = write_openmetrics(samples(), folder / "day.om")
    with SERVERS[request.param].serve(folder / "server", [text]) as url:
        yield (
            _collector(PrometheusSource(url=url)),
            _collector(PrometheusSource(export=str(export))),
        )


def _collector(block: PrometheusSource) -> PrometheusCollector:
    return from_settings(Cluster(name="train-a", prometheus=block), Path())


def test_the_server_and_the_export_give_the_same_facts(
    pair: tuple[PrometheusCollector, PrometheusCollector],
) -> None:
    live, export = (collector.collect(WINDOW) for collector in pair)
    assert set(live.tables) == {"nodes", "workloads", "usage", "coverage"}
    for name, table in export.tables.items():
        assert table.height > 0
        assert_frame_equal(live.tables[name], table, check_exact=True)
    assert (live.coverage, live.gaps, live.quarantine, live.notes, live.data_through) == (
        export.coverage,
        export.gaps,
        export.quarantine,
        export.notes,
        export.data_through,
    )
    assert live.coverage == pytest.approx(23 / 24)
    assert [(entry.reason, entry.count) for entry in live.quarantine] == [("inf", 1)]


def test_a_dead_series_does_not_live_on(
    pair: tuple[PrometheusCollector, PrometheusCollector],
) -> None:
    frame = pair[0].collect(WINDOW).tables["workloads"]
    ends = dict(frame.sort("end").select("uid", "end").iter_rows())
    shift = timedelta(days=(YESTERDAY - DAY).days)
    assert ends == {"u1": at("12:00") + shift, "u2": at("15:00") + shift, "u3": at("19:00") + shift}


def test_both_reach_equally_far_and_hold_the_same(
    pair: tuple[PrometheusCollector, PrometheusCollector],
) -> None:
    live, export = pair
    assert (
        live.reach()
        == export.reach()
        == Window(WINDOW.start - 20 * MINUTE, WINDOW.end + 20 * MINUTE)
    )
    assert [(probe.need, probe.ok) for probe in live.probe()] == [
        (probe.need, probe.ok) for probe in export.probe()
    ]


def test_a_day_before_the_oldest_sample_is_lost_to_retention(
    pair: tuple[PrometheusCollector, PrometheusCollector],
) -> None:
    day = Window.of_day(YESTERDAY - timedelta(days=3))
    for collector in pair:
        facts = collector.collect(day)
        assert (facts.coverage, facts.tables) == (0.0, {})
        assert [gap.amounts for gap in facts.gaps if gap.reason == "retention"] == [{"hours": 24.0}]


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_allows_few_samples_is_read_in_parts(tmp_path: Path, server: str) -> None:
    text = write_openmetrics(samples(), tmp_path / "day.om")
    export = write_parquet(samples(), tmp_path / "export")
    kind = SERVERS[server]
    with kind.serve(tmp_path / "server", [text], kind.few_samples) as url:
        live = _collector(PrometheusSource(url=url)).collect(WINDOW)
    expected = _collector(PrometheusSource(export=str(export))).collect(WINDOW)
    for name, table in expected.tables.items():
        assert_frame_equal(live.tables[name], table, check_exact=True)
