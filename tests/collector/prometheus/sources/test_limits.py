"""What servers say when a query is too much for them: it is asked again in parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from collector.prometheus.series.catalogue import NODE_INFO
from collector.prometheus.sources.limits import is_limit
from collector.prometheus.sources.server import Server
from collector.prometheus.sources.source import TooMuchError
from ledger.settings import PrometheusSource
from ledger.window import Window
from tests.collector.prometheus.builders import at
from tests.collector.prometheus.stub import Reply, Request, error, matrix, serving

HOUR = Window(at("1:00"), at("2:00"))
NODE = {"__name__": "kube_node_info", "node": "gpu-0"}
SAID = {
    "prometheus": (
        422,
        "query processing would load too many samples into memory in query execution",
    ),
    "prometheus, slow": (503, "query timed out in expression evaluation"),
    "prometheus, points": (
        400,
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query "
        "resolution (?step=XX)",
    ),
    "victoria, samples": (
        422,
        'cannot fetch data for "filters=[...]": cannot select more than '
        "-search.maxSamplesPerQuery=1000000000 samples; possible solutions: to increase the "
        "-search.maxSamplesPerQuery; to reduce time range for the query",
    ),
    "victoria, one series": (
        422,
        "error during time series unpacking: cannot process more than 30000000 samples per series; "
        "either increase -search.maxSamplesPerSeries or reduce time range for the query",
    ),
    "victoria, series": (
        422,
        "error when searching tsids: the number of matching timeseries exceeds 300000; either "
        "narrow down the search or increase -search.max* command-line flag values",
    ),
    "victoria, memory": (422, "not enough memory for processing 5000000000 data points"),
    "mimir, chunks": (
        422,
        "the query exceeded the maximum number of chunks (limit: 2000000 chunks) "
        "(err-mimir-max-chunks-per-query)",
    ),
    "cortex": (422, "the query hit the max number of series limit (limit: 100000 series)"),
    "thanos": (422, "exceeded series limit: store gateway: limit 500000 violated (got 500001)"),
    "victoria, slow": (
        422,
        f'error when executing query="{"some_metric or " * 400}": cannot execute '
        f'"{"some_metric or " * 400}": cannot evaluate "some_metric": timeout exceeded during '
        "query execution: 30.000 seconds; possible solutions: ...",
    ),
    "a proxy": (413, "Request Entity Too Large"),
}


@pytest.mark.parametrize("said", SAID)
def test_each_is_known(said: str) -> None:
    assert is_limit(*SAID[said])


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (429, "the request has been rejected because the tenant exceeded the request rate limit"),
        (400, 'parse error: unexpected identifier "limit"'),
        (503, "service unavailable"),
        (422, "many-to-many matching not allowed: matching labels must be unique on one side"),
    ],
)
def test_other_errors_are_none(status: int, told: str) -> None:
    assert not is_limit(status, told)


def minutely(request: Request) -> tuple[int, Reply]:
    """The seconds that were asked for, and a sample for each of their minutes."""
    seconds = int(request.query.partition("[")[2].removesuffix("s]"))
    start = request.time - seconds
    points = [(start + 60.0 * step, "1") for step in range(1, seconds // 60 + 1)]
    return seconds, matrix((NODE, points))


@pytest.mark.parametrize("said", SAID)
def test_the_range_is_halved_and_no_sample_is_lost(said: str) -> None:
    def answer(request: Request) -> Reply:
        seconds, reply = minutely(request)
        return error(*SAID[said]) if seconds > 1800 else reply

    assert _found(answer) == 60


def test_an_error_behind_an_answer_that_was_begun_is_one() -> None:
    def answer(request: Request) -> Reply:
        seconds, reply = minutely(request)
        late = (
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
            b'{"status":"error","errorType":"422","error":"cannot process more than 40 samples per '
            b'series; either increase -search.maxSamplesPerSeries or reduce the time range"}'
        )
        return Reply(body=late) if seconds > 1800 else reply

    assert _found(answer) == 60


def test_halving_ends_where_every_range_is_too_much() -> None:
    with serving(lambda _: error(*SAID["victoria, samples"])) as stub, pytest.raises(TooMuchError):
        _server(stub.url).samples(NODE_INFO, HOUR)


def _server(url: str) -> Server:
    return Server.from_settings(PrometheusSource(url=url), "train-a", Path())


def _found(answer: Callable[[Request], Reply]) -> int:
    with serving(answer) as stub:
        frame = _server(stub.url).samples(NODE_INFO, HOUR).frame.collect()
    return frame["timestamp"].n_unique()
