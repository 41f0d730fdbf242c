"""A watch that is cut, expires and resumes loses no pod."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import polars as pl
import pytest

from collector.agent import state
from collector.agent.lives import END_NOT_SEEN
from tests.collector.agent.lives_world import Change, Interval, Pod, world
from tests.collector.agent.replay import Agent
from tests.collector.agent.role import role
from tests.collector.agent.watchserver import WatchServer
from tests.effort import SOAK

START = datetime(2026, 11, 30, 20, tzinfo=UTC)
PODS = 500


class Mishaps:
    """Cuts the answers of watches at random, also in the middle of a line."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.likely = 0.3

    def __call__(self, path: str, lines: list[bytes]) -> list[bytes]:
        if self.random.random() >= self.likely:
            return lines
        kept = lines[: self.random.randrange(len(lines))]
        if self.random.random() < 0.5:
            line = lines[len(kept)]
            kept.append(line[: self.random.randrange(1, len(line))])
        elif self.random.random() < 0.2:
            kept.append(b'{"type": "MODIFIED", "object": {"kind": \n')
        return kept


def clipped(rows: list[Interval], spans: list[tuple[datetime, datetime]]) -> list[Interval]:
    """The parts inside some spans; parts that meet and say the same are one."""
    found: list[Interval] = []
    for start, end, *what in rows:
        for first, last in spans:
            a, b = max(start, first), min(end, last)
            if a >= b:
                continue
            if found and found[-1][1] == a and list(found[-1][2:]) == what:
                a = found.pop()[0]
            found.append((a, b, what[0], what[1]))
    return found


def told(rows: pl.DataFrame) -> dict[str, list[Interval]]:
    """What was written of each pod while it was bound."""
    label = pl.col("labels").str.json_path_match("$.experiment").alias("experiment")
    bound = (
        rows.drop_nulls("node").sort("uid", "start").select("uid", "start", "end", "state", label)
    )
    found: dict[str, list[Interval]] = {}
    for uid, *interval in bound.iter_rows():
        found.setdefault(uid, []).append((interval[0], interval[1], interval[2], interval[3]))
    return found


def replay(seed: int, count: int, *, expiries: float) -> None:
    random = Random(seed)
    length = timedelta(hours=8)
    pods = world(random, count, START, length)
    changes = sorted((each for pod in pods for each in pod.changes), key=lambda each: each.at)
    now = START - timedelta(minutes=1)
    mishaps = Mishaps(random)
    with WatchServer(mangle=mishaps) as server:
        agent = Agent(server.url, lambda: now, page=random.choice((7, 100, 500)))
        server.now = now.timestamp()
        agent.cycle()
        position = 0
        while position < len(changes) or now < START + length:
            now += timedelta(seconds=random.choice((1, 5, 30, 120, 600, 1500)))
            server.now = now.timestamp()
            position = _apply(server, changes, position, now)
            what = random.random()
            if what < expiries:
                server.forget("/api/v1/pods")
            if what > 0.9:
                agent.flush() if what > 0.95 else None
                agent.start()  # what was not written is told again, or is a hole
            elif what > 0.6:
                agent.flush()
            if random.random() < 0.8:
                agent.cycle()
        mishaps.likely = 0
        for _ in range(3):
            agent.cycle()
        agent.flush()
    assert agent.watch.until == now
    compare(agent, pods, now)


def _apply(server: WatchServer, changes: list[Change], position: int, now: datetime) -> int:
    while position < len(changes) and changes[position].at <= now:
        change = changes[position]
        (server.remove if change.removed else server.put)(change.item)
        position += 1
    return position


def compare(agent: Agent, pods: list[Pod], now: datetime) -> None:
    rows = agent.rows("workloads")
    found = told(rows)
    watched = sorted(
        (datetime.fromisoformat(a), datetime.fromisoformat(b))
        for text in agent.rows("resources")["configuration"]
        for a, b in json.loads(text)["watched"]
    )
    lost = set(rows.filter(pl.col("reason") == END_NOT_SEEN)["uid"])
    for pod in pods:
        truth = pod.truth(now)
        mine = found.get(pod.uid, [])
        assert clipped(mine, watched) == clipped(truth, watched), pod.uid
        if not mine:
            continue
        assert all(a[1] <= b[0] for a, b in pairwise(mine)), pod.uid
        if pod.uid in lost:  # counted for as long as it was seen, not beyond its end
            assert pod.end is not None
            assert mine[-1][1] in {end for _, end in watched}
            assert mine[-1][1] <= pod.end
        else:
            assert (mine[0][0], mine[-1][1]) == (truth[0][0], truth[-1][1]), pod.uid
    hours = sum((b - a).total_seconds() for a, b in watched) / 3600
    assert hours > 4


@pytest.mark.parametrize("seed", range(12 if SOAK else 1))
def test_no_pod_is_lost_over_cuts_and_restarts(seed: int) -> None:
    replay(seed, PODS, expiries=0)


@pytest.mark.parametrize("seed", range(12 if SOAK else 1))
def test_nothing_is_made_up_where_versions_expire(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "TOLERATED", timedelta(0))
    replay(100 + seed, PODS, expiries=0.1)


def test_the_role_is_what_the_agent_says_it_needs() -> None:
    file = Path(__file__).parents[3] / "deploy/agent-role.yaml"
    assert file.read_text() == role(), "deploy/agent-role.yaml: tests.collector.agent.role"
