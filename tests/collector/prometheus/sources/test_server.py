"""The live server when it is slow, busy, forbidding, partial or wrong."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import stamina

from collector.prometheus import from_settings
from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.series.catalogue import NODE_INFO, POD_PHASE
from collector.prometheus.sources.access import Access
from collector.prometheus.sources.server import Server, parse_retention
from collector.prometheus.sources.source import QueryError
from ledger.errors import AccessError, SourceError
from ledger.settings import Cluster, PrometheusSource
from ledger.window import Window
from tests.collector.prometheus.builders import WINDOW, at
from tests.collector.prometheus.stub import Reply, Request, error, matrix, serving
from tests.conftest import free_port

HOUR = Window(at("1:00"), at("2:00"))
NODE = {"__name__": "kube_node_info", "node": "gpu-0"}


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Retries happen, the waits between them do not."""
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


def server(url: str, **options: Any) -> Server:  # noqa: ANN401 (fields of the settings block)
    return Server.from_settings(PrometheusSource(url=url, **options), "train-a", Path())


def collector(url: str, **options: Any) -> PrometheusCollector:  # noqa: ANN401 (as above)
    block = PrometheusSource(url=url, **options)
    return from_settings(Cluster(name="train-a", prometheus=block), Path())


def minutely(request: Request) -> Reply:
    """A node, a sample a minute in the range asked for, both ends included (as Prometheus 2)."""
    if not request.query.startswith("kube_node_info"):
        return matrix()
    seconds = int(request.query.partition("[")[2].removesuffix("s]"))
    start = request.time - seconds
    return matrix((NODE, [(start + 60.0 * step, "1") for step in range(seconds // 60 + 1)]))


def times(found: Server, window: Window = HOUR) -> pl.Series:
    return found.samples(NODE_INFO, window).frame.collect()["timestamp"]


def test_samples_of_both_edges_are_kept_by_their_own_time() -> None:
    with serving(minutely) as stub:
        found = times(server(stub.url), WINDOW).sort()
    assert len(found) == 24 * 60
    assert (found[0], found[-1]) == (at("0:01"), at("24:00"))


def test_queries_are_raw_ranges_in_the_body_of_a_post() -> None:
    with serving(minutely) as stub:
        times(server(stub.url))
    (asked,) = stub.requests
    assert (asked.method, asked.path, asked.in_url) == ("POST", "/api/v1/query", "")
    assert (asked.query, asked.time) == ("kube_node_info[3600s]", HOUR.end.timestamp())


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"token": "t0ken"}, "Bearer t0ken"),
        ({"username": "ann", "password": "pw"}, "Basic " + base64.b64encode(b"ann:pw").decode()),
    ],
)
def test_credentials_and_headers_are_sent(options: dict[str, str], header: str) -> None:
    with serving(minutely) as stub:
        times(server(stub.url, headers={"X-Scope-OrgID": "team"}, **options))
    assert stub.requests[0].headers["Authorization"] == header
    assert stub.requests[0].headers["X-Scope-OrgID"] == "team"


def test_a_netrc_does_not_replace_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eve password x\n", "utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(minutely) as stub:
        times(server(stub.url, token="t0ken"))
        times(server(stub.url, headers={"Authorization": "Own scheme"}))
    assert [one.headers["Authorization"] for one in stub.requests] == ["Bearer t0ken", "Own scheme"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_an_access_error_and_is_not_repeated(status: int) -> None:
    with serving(lambda _: error(status, "go away")) as stub:
        with pytest.raises(AccessError, match=rf"answers {status}: go away \(check token"):
            collector(stub.url).collect(WINDOW)
        assert len(stub.requests) == 1


def test_secrets_stay_out_of_messages() -> None:
    with serving(lambda _: error(403, "no")) as stub:
        url = stub.url.replace("http://", "http://ann:hunter2@")
        with pytest.raises(AccessError) as caught:
            times(server(url, token="t0ken"))
    assert "hunter2" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_fault_that_passes_is_tried_again(status: int) -> None:
    faults = iter([error(status, "busy", Retry_After="0"), error(status, "busy")])
    with serving(lambda request: next(faults, None) or minutely(request)) as stub:
        assert len(times(server(stub.url))) == 60
        assert len(stub.requests) == 3


def test_a_fault_that_stays_is_a_gap_of_its_series() -> None:
    def answer(request: Request) -> Reply:
        return error(503, "busy") if "cpu_usage" in request.query else minutely(request)

    with serving(answer) as stub:
        facts = collector(stub.url).collect(WINDOW)
        assert len(stub.queries("container_cpu_usage_seconds_total")) == 4
    (failed,) = [gap for gap in facts.gaps if gap.reason == "query_failed"]
    assert "container_cpu_usage_seconds_total" in failed.detail
    assert "answers 503: busy" in failed.detail
    assert facts.tables["nodes"].height == 1


@pytest.mark.parametrize("status", [400, 422])
def test_a_query_that_is_refused_is_a_gap_and_is_not_repeated(status: int) -> None:
    def answer(request: Request) -> Reply:
        return error(status, "bad query") if "phase" in request.query else minutely(request)

    with serving(answer) as stub:
        facts = collector(stub.url).collect(WINDOW)
        assert len(stub.queries("kube_pod_status_phase")) in (0, 1)
        with pytest.raises(QueryError, match=f"answers {status}: bad query"):
            server(stub.url).samples(POD_PHASE, HOUR)
    assert facts.coverage == pytest.approx(1.0, abs=0.001)


def test_warnings_are_gaps_and_remarks_are_notes() -> None:
    def answer(request: Request) -> Reply:
        found = minutely(request)
        assert isinstance(found.body, dict)
        return Reply(body={**found.body, "warnings": ["store eu-1 is down"], "infos": ["slow"]})

    with serving(answer) as stub:
        reading = server(stub.url).samples(NODE_INFO, WINDOW)
    assert [(gap.reason, gap.detail) for gap in reading.gaps] == [
        ("partial_response", "kube_node_info: store eu-1 is down")
    ]
    assert reading.notes == ("kube_node_info: slow",)


def test_a_partial_reply_is_a_gap() -> None:
    with serving(lambda _: matrix(isPartial=True)) as stub:
        reading = server(stub.url).samples(NODE_INFO, HOUR)
    assert [gap.reason for gap in reading.gaps] == ["partial_response"]


def test_too_many_samples_at_once_are_asked_for_in_parts() -> None:
    def answer(request: Request) -> Reply:
        seconds = int(request.query.partition("[")[2].removesuffix("s]"))
        return (
            minutely(request)
            if seconds <= 1800
            else error(
                422, "query processing would load too many samples into memory in query execution"
            )
        )

    with serving(answer) as stub:
        assert times(server(stub.url)).sort().to_list() == [
            HOUR.start + (at("0:01") - at("0:00")) * minute for minute in range(1, 61)
        ]
        assert len(stub.requests) == 3


def test_halving_ends() -> None:
    with serving(lambda _: error(422, "too many samples")) as stub:
        with pytest.raises(QueryError, match="too many samples"):
            times(server(stub.url))
        assert len(stub.requests) == 4  # 60, 30, 15 and 7.5 minutes


def test_a_server_that_never_replies_is_unreachable() -> None:
    with (
        serving(lambda _: Reply(wait=True)) as stub,
        pytest.raises(SourceError, match="gave no reply in time") as caught,
    ):
        times(server(stub.url, timeout_seconds=0.1))
    assert not isinstance(caught.value, QueryError)


def test_a_query_that_is_too_slow_is_a_gap_of_its_series() -> None:
    def answer(request: Request) -> Reply:
        return Reply(wait=True) if "memory_working" in request.query else minutely(request)

    with serving(answer) as stub:
        facts = collector(stub.url, timeout_seconds=1).collect(WINDOW)
    assert [
        "container_memory_working_set_bytes" in gap.detail and "no reply" in gap.detail
        for gap in facts.gaps
        if gap.reason == "query_failed"
    ] == [True]


def test_nobody_there_is_a_source_error_with_a_hint() -> None:
    with pytest.raises(SourceError, match=r"cannot be reached.*prometheus\.url"):
        collector(f"http://127.0.0.1:{free_port()}").collect(WINDOW)


def test_a_page_that_is_no_api_is_an_error_not_an_empty_day() -> None:
    with (
        serving(lambda _: Reply(body=b"<html>sign in</html>")) as stub,
        pytest.raises(SourceError, match="is not Prometheus' JSON"),
    ):
        collector(stub.url).collect(WINDOW)


def test_a_ca_that_does_not_exist_is_an_error_of_ours() -> None:
    with pytest.raises(SourceError):
        times(server("https://127.0.0.1:1", ca="no-such-file.pem"))


def test_chunks_follow_the_number_of_samples_and_run_side_by_side() -> None:
    together = threading.Barrier(2)

    def answer(request: Request) -> Reply:
        start = request.time - int(request.query.partition("[")[2].removesuffix("s]"))
        if start > WINDOW.start.timestamp():
            together.wait(60)
        values = [(start + second * 1.5, "1") for second in range(1, 1000)]
        return matrix(*(({**NODE, "node": f"n-{number}"}, values) for number in range(45)))

    with serving(answer) as stub:
        server(stub.url).samples(NODE_INFO, Window(at("0:00"), at("7:00")))
    assert [one.query for one in stub.requests[:1]] == ["kube_node_info[3600s]"]
    assert {one.query for one in stub.requests[1:]} == {  # about 250,000 samples, and the rest
        "kube_node_info[19980s]",
        "kube_node_info[1620s]",
    }


def test_zeros_of_states_are_dropped_at_the_source() -> None:
    labels = {"__name__": "kube_pod_status_phase", "phase": "Running"}
    time = HOUR.end.timestamp()
    with serving(lambda _: matrix((labels, [(time - 60, "0"), (time, "1")]))) as stub:
        found = server(stub.url).samples(POD_PHASE, HOUR).frame.collect()
    assert found.rows() == [('{"phase":"Running"}', HOUR.end, 1.0)]


def test_special_values_and_milliseconds_survive() -> None:
    time = HOUR.end.timestamp()
    values = [(time - 0.999, "NaN"), (time - 0.5, "+Inf"), (time, "1e-07")]
    with serving(lambda _: matrix((NODE, values))) as stub:
        found = server(stub.url).samples(NODE_INFO, HOUR).frame.collect()
    assert found["value"].is_nan().to_list() == [True, False, False]
    assert found["value"].to_list()[1:] == [float("inf"), 1e-07]
    assert found["timestamp"].dt.millisecond().to_list() == [1, 500, 0]


def test_a_cluster_may_bear_another_name_in_its_label() -> None:
    ours, other = ({**NODE, "cluster": name} for name in ("eks-7", "train-a"))
    points = [(WINDOW.start.timestamp() + 60.0 * n, "1") for n in range(1, 1441)]

    def answer(request: Request) -> Reply:
        if request.path.endswith("/values"):
            return Reply(404, {})
        node = request.query.startswith("kube_node_info{") and "[" in request.query
        return matrix((ours, points), (other, points)) if node else matrix()

    with serving(answer) as stub:
        options = {"cluster_label": "cluster", "cluster_value": "eks-7"}
        facts = collector(stub.url, **options).collect(WINDOW)
    assert facts.tables["nodes"].select("cluster", "node").unique().rows() == [("train-a", "gpu-0")]
    assert any('cluster=~"|eks' in request.query for request in stub.requests)


def test_a_cluster_label_is_asked_for_with_those_that_have_none() -> None:
    with serving(minutely) as stub:
        server(stub.url, cluster_label="cluster").samples(NODE_INFO, HOUR)
    assert stub.requests[0].query == 'kube_node_info{cluster=~"|train\\\\-a"}[3600s]'


@pytest.mark.parametrize(
    ("text", "days"),
    [("15d", 15), ("1y", 365), ("2w1d", 15), ("15d or 10GiB", 15), ("10GiB", None), ("", None)],
)
def test_retention_is_read_as_prometheus_writes_it(text: str, days: int | None) -> None:
    found = parse_retention(text)
    assert (found.days if found else None) == days


def test_credentials_are_never_shown() -> None:
    access = Access(
        "http://ann:s3cret@127.0.0.1:1", headers={"Authorization": "s3cret"}, token="s3cret"
    )
    assert "s3cret" not in repr(access)
    source = Server(access)
    with pytest.raises(SourceError) as caught:
        source.samples(NODE_INFO, WINDOW)
    assert "http://127.0.0.1:1/" in str(caught.value)
    assert "s3cret" not in str(caught.value)


SPAN = re.compile(r"\[(\d+)([smh])\]")
SECONDS = {"s": 1, "m": 60, "h": 3600}


@pytest.mark.parametrize(
    ("seen", "ends"),
    [
        ([(-50, -30)], (-50, -30)),
        ([(-7, -6.5), (-5.5, -1)], (-7, -1)),  # a look six hours ago finds nothing
        ([(-20, -14), (-11, -8)], (-20, -8)),
        ([(-4, -3)], (-4, -3)),  # nor does any other
    ],
)
def test_reach_does_not_depend_on_where_a_look_falls(
    seen: list[tuple[float, float]], ends: tuple[float, float]
) -> None:
    """``seen`` in hours from now."""
    now = datetime.now(UTC).timestamp()
    stamps = [
        now + 3600 * start + 60 * minute
        for start, end in seen
        for minute in range(round((end - start) * 60) + 1)
    ]

    def within(end: float, query: str) -> list[float]:
        span = SPAN.search(query)
        assert span
        start = end - int(span[1]) * SECONDS[span[2]]
        return [stamp for stamp in stamps if start < stamp <= end]

    def answer(request: Request) -> Reply:
        if request.path.endswith("runtimeinfo"):
            return Reply(body={"status": "success", "data": {"storageRetention": "15d"}})
        if request.path.endswith("query_range"):
            start, end, step = (float(request.form[name]) for name in ("start", "end", "step"))
            marks = [start + step * number for number in range(int((end - start) // step) + 1)]
            hits = [(mark, "1") for mark in marks if within(mark, request.query)]
            return matrix(({}, hits)) if hits else matrix()
        found = [(stamp, "1") for stamp in within(request.time, request.query)]
        return matrix(({"node": "a"}, found)) if found else matrix()

    with serving(answer) as stub:
        reach = server(stub.url).reach()
    assert reach is not None
    hours = [(at.timestamp() - now) / 3600 for at in (reach.start, reach.end)]
    assert hours == pytest.approx(ends, abs=0.01)
