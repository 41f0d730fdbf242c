"""What a stream makes of answers that go wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.agent.connection import BrokenError, Clock, WatchApi, steady
from collector.agent.stream import STUCK, Alive, Aside, ExpiredError, Item, Seen, Stream
from collector.agent.wire import PODS
from collector.kubernetes.client import ApiError
from ledger.settings import KubernetesSource
from tests.collector.agent.watchserver import WatchServer
from tests.collector.kubernetes.apiserver import Fault
from tests.collector.kubernetes.builders import pod, running

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATH = "/api/v1/pods"


def stream(server: WatchServer) -> tuple[Stream, list[Item]]:
    items: list[Item] = []
    api = WatchApi(KubernetesSource(server=server.url), Path("/"))
    server.now = NOW.timestamp()
    return Stream(PODS, api, Clock(lambda: NOW), items.append), items


def changes(items: list[Item]) -> list[tuple[str, str]]:
    return [(i.change, i.object.metadata.name) for i in items if isinstance(i, Seen)]


def test_a_list_then_what_changes() -> None:
    with WatchServer() as server:
        server.put(pod("a", running("08:05")))
        found, items = stream(server)
        found.cycle()
        server.put(pod("b", running("08:05")))
        server.remove(pod("a", running("08:05")))
        found.cycle()
    assert changes(items) == [("LISTED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert [item.listed for item in items if isinstance(item, Alive)] == [True, False, False]


def test_a_line_that_is_cut_is_told_again() -> None:
    with WatchServer(
        mangle=lambda _, lines: [*lines[:1], lines[1][:40]] if lines[1:] else lines
    ) as (server):
        found, items = stream(server)
        found.list()
        server.put(pod("a", running("08:05")))
        server.put(pod("b", running("08:05")))
        with pytest.raises(BrokenError, match=r"middle of a line|IncompleteRead|Protocol"):
            found.watch()
        server.mangle = None
        found.watch()
    assert changes(items) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize("by_status", [True, False])
def test_an_expired_version_makes_it_list_again(by_status: bool) -> None:
    faults = {f"{PATH}?watch": [Fault(410, times=1)]} if by_status else {}
    with WatchServer(faults=faults) as server:
        found, items = stream(server)
        found.list()
        server.put(pod("a", running("08:05")))
        if not by_status:
            server.forget(PATH)
        with pytest.raises(ExpiredError):
            found.watch()
        assert found.version is None
        found.cycle()
    assert changes(items) == [("LISTED", "a")]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refusal_keeps_the_version(status: int) -> None:
    with WatchServer(faults={f"{PATH}?watch": [Fault(status, times=1)]}) as server:
        found, _ = stream(server)
        found.list()
        version = found.version
        with pytest.raises(ApiError) as raised:
            found.watch()
        assert (raised.value.status, found.version) == (status, version)


def test_an_error_that_is_no_expiry_is_a_cut() -> None:
    error = b'{"type": "ERROR", "object": {"code": 500, "message": "etcd is away"}}\n'
    with WatchServer(mangle=lambda _, lines: [error]) as server:
        found, _ = stream(server)
        found.list()
        with pytest.raises(BrokenError, match="etcd is away"):
            found.watch()
        assert found.version is not None


@pytest.mark.parametrize("rest", [b"\n", b"[" * 5000 + b"]" * 5000 + b"}\n"])
def test_lines_that_stay_unreadable_end_in_a_list(rest: bytes) -> None:
    with WatchServer(mangle=lambda _, lines: [b'{"type": "ADDED", "object": ' + rest]) as server:
        found, _ = stream(server)
        found.list()
        for _ in range(2):
            with pytest.raises(BrokenError):
                found.watch()
        with pytest.raises(ExpiredError):
            found.watch()


def test_a_broken_object_costs_only_itself() -> None:
    with WatchServer() as server:
        found, items = stream(server)
        found.list()
        bad = pod("bad", running("08:05"))
        bad["spec"]["containers"] = "none"
        server.put(bad)
        server.put(pod("good", running("08:05")))
        found.watch()
    assert changes(items) == [("ADDED", "good")]
    assert [i.rejected.reason for i in items if isinstance(i, Aside)] == ["bad_object"]


def test_a_list_that_expires_while_it_is_paged_starts_again() -> None:
    with WatchServer(faults={PATH: [Fault(410, times=1, only_continued=True)]}) as server:
        for name in "abc":
            server.put(pod(name, running("08:05")))
        found, items = stream(server)
        found._page = 2
        found.list()
    assert changes(items)[-3:] == [("LISTED", name) for name in "abc"]


def test_silence_is_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.agent.stream.SILENCE", 0.2)
    with WatchServer(hold=3, mangle=lambda _, lines: []) as server:
        found, _ = stream(server)
        found.list()
        with pytest.raises(BrokenError):
            found.watch()


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "Status", "metadata": {}}',
        b'{"metadata": {}, "items": []}',
        b'{"metadata": {}, "items": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_an_answer_without_a_version_is_no_empty_list(body: bytes) -> None:
    with WatchServer(faults={PATH: [Fault(200, body=body, times=None)]}) as server:
        found, items = stream(server)
        with pytest.raises(ApiError, match="no list"):
            found.cycle()
    assert not any(isinstance(item, Alive) for item in items)


@pytest.mark.parametrize("status", [400, 504, 0])
def test_a_version_that_the_server_will_never_know_is_given_up(status: int) -> None:
    """As after a restore of etcd; 0 stands for an ERROR on a good connection."""
    error = b'{"type": "ERROR", "object": {"code": 504, "reason": "Timeout"}}\n'
    faults = {f"{PATH}?watch": [Fault(status, times=None)]} if status else {}
    with WatchServer(faults=faults, mangle=lambda *_: [error]) as server:
        server.put(pod("a", running("08:05")))
        found, _ = stream(server)
        found.list()
        for _ in range(STUCK - 1):
            with pytest.raises((ApiError, BrokenError)):
                found.watch()
            assert found.version
        with pytest.raises(ExpiredError):
            found.watch()
        assert found.version is None


def test_a_jump_of_the_clock_is_no_time() -> None:
    wall, ticks = iter([NOW, NOW + timedelta(hours=1)]), iter([5.0, 7.0])
    clock = Clock(steady(lambda: next(wall), lambda: next(ticks)))
    assert clock() == NOW + timedelta(seconds=2)
