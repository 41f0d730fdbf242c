"""When a source that stops answering is given up, and when it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from collector.prometheus.series.catalogue import CPU_USAGE, MEMORY, NODE_INFO
from collector.prometheus.sources.source import QueryError, Reading, SampleSource, SlowError
from collector.prometheus.sources.steady import Steady
from ledger.errors import SourceError
from tests.collector.prometheus.builders import MINUTE, WINDOW, frame


class Server:
    """Answers as long as ``fault`` is None; itself what it works out."""

    metricsql = False

    def __init__(self) -> None:
        self.fault: SourceError | None = None
        self.asked = 0

    def ask(self, *_: object) -> Reading:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return Reading(frame([]).lazy())

    samples = grid = at = ask

    @property
    def push_down(self) -> Server:
        self.ask()
        return self


def steady_of(server: Server) -> Steady:
    return Steady(cast(SampleSource, server))


def fails(question: Callable[[], object]) -> str:
    with pytest.raises(QueryError) as caught:
        question()
    return caught.value.message


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize("known", [True, False])
def test_what_a_lost_server_could_work_out_can_still_be_asked_for(
    server: Server, known: bool
) -> None:
    steady = steady_of(server)
    steady.samples(NODE_INFO, WINDOW)
    assert not known or steady.push_down is not None
    server.fault = SourceError("gone")
    assert "gone" in fails(lambda: steady.samples(CPU_USAGE, WINDOW))
    push = steady.push_down
    if push is None:
        assert not known
        return
    assert fails(lambda: push.grid(CPU_USAGE.metric, WINDOW, MINUTE)) == "not asked any more: gone"


def test_a_metric_that_is_too_much_in_two_ways_is_no_server_that_hangs(server: Server) -> None:
    steady = steady_of(server)
    push = steady.push_down
    assert push is not None
    server.fault = SlowError("slow")
    assert fails(lambda: push.grid(f"rate({CPU_USAGE.metric}[5m])", WINDOW, MINUTE)) == "slow"
    assert fails(lambda: steady.samples(CPU_USAGE, WINDOW)) == "slow"
    server.fault = None
    steady.samples(MEMORY, WINDOW)


def test_two_metrics_in_a_row_without_a_reply_are_a_server_that_hangs(server: Server) -> None:
    steady = steady_of(server)
    assert steady.push_down is not None
    server.fault = SlowError("slow")
    assert fails(lambda: steady.samples(CPU_USAGE, WINDOW)) == "slow"
    assert steady.push_down is not None  # no reply of the server
    assert fails(lambda: steady.samples(MEMORY, WINDOW)) == "slow"
    asked = server.asked
    assert fails(lambda: steady.samples(NODE_INFO, WINDOW)) == "not asked any more: slow"
    assert server.asked == asked
