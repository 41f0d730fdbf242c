"""What the schedule promises: who runs where and when, within the capacity of the nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.simulate import World, WorldOptions, simulate
from collector.simulate.options import HOUR, MINUTE, moment
from ledger.errors import UsageError

END = date(2026, 11, 30)

worlds = st.builds(
    WorldOptions,
    seed=st.integers(0, 2**32),
    days=st.integers(1, 9),
    nodes=st.integers(3, 9),
    gpus_per_node=st.integers(1, 8),
    interval=st.sampled_from([30, 60, 300]),
    end=st.dates(date(2024, 1, 5), date(2026, 12, 31)),
    timezone=st.sampled_from(["Asia/Shanghai", "UTC", "America/New_York", "Asia/Kolkata"]),
)


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(WorldOptions(end=END))


def gpu_hours_held(world: World, pool: str) -> Iterator[tuple[str, int, int]]:
    """Node, start and end (ms) of each pod with cards on the nodes of a pool."""
    names = {node.name for node in world.nodes if node.pool == pool}
    yield from (
        (pod.node, pod.bound, pod.finished) for pod in world.pods if pod.gpus and pod.node in names
    )


@settings(max_examples=40, deadline=None)
@given(options=worlds)
def test_cards_are_never_given_twice(options: WorldOptions) -> None:
    world = simulate(options)
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for pod in world.pods:
        changes[pod.node] += [(pod.bound, pod.gpus), (pod.finished, -pod.gpus)]
    capacity = {node.name: node.gpus for node in world.nodes}
    for node, moves in changes.items():
        held = 0
        for _, cards in sorted(moves):
            held += cards
            assert held <= capacity[node]


@settings(max_examples=40, deadline=None)
@given(options=worlds)
def test_every_situation_is_in_every_world(options: WorldOptions) -> None:
    world = simulate(options)
    inside = [
        pod
        for pod in world.pods
        if options.start_ms <= pod.bound and pod.finished <= options.end_ms
    ]
    named = {pod.name: pod for pod in inside}
    held = named["sweep-0"]
    assert held.started - held.bound >= 30 * MINUTE
    assert held.gpus > 0
    first, second = (pod for pod in inside if pod.name == "ablation-0")
    assert first.uid != second.uid
    assert first.finished < second.bound
    short = named["smoke-test"]
    assert short.finished - short.bound == 40_000
    assert sum(not pod.in_api for pod in inside) == 3
    assert any(pod.experiment is None and pod.gpus and not pod.owners for pod in inside)
    assert {pod.node for pod in world.pods}.isdisjoint(
        {node.name for node in world.nodes if node.pool == "spare"}
    )
    kinds = {owner.kind for pod in world.pods for owner in pod.owners}
    assert kinds == {
        "RayCluster",
        "RayJob",
        "PyTorchJob",
        "Job",
        "JobSet",
        "DaemonSet",
        "ReplicaSet",
        "Deployment",
    }


@settings(max_examples=20, deadline=None)
@given(options=worlds)
def test_lives_lie_on_the_sample_grid_but_for_the_short_one(options: WorldOptions) -> None:
    for pod in simulate(options).pods:
        times = (pod.bound, pod.started, pod.finished)
        assert pod.bound <= pod.started <= pod.finished
        if pod.name != "smoke-test":
            assert all(at % options.step == 0 for at in times)
        assert all(at % 1000 == 0 for at in times)


def test_the_short_pod_fits_between_two_scrapes(world: World) -> None:
    short = next(pod for pod in world.pods if pod.name == "smoke-test")
    assert short.bound // world.options.step == short.finished // world.options.step
    assert short.bound % world.options.step


def test_research_nodes_are_empty_at_night_and_on_weekends(world: World) -> None:
    zone = ZoneInfo(world.options.timezone)
    spans = list(gpu_hours_held(world, "research"))
    assert spans
    for _, start, end in spans:
        first, last = moment(start).astimezone(zone), moment(end).astimezone(zone)
        assert first.date() == last.date()
        assert first.weekday() < 5
        assert 8 <= first.hour
        assert last.hour < 22


def test_training_nodes_are_busy_at_all_hours(world: World) -> None:
    by_node: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for node, start, end in gpu_hours_held(world, "train"):
        by_node[node].append((start, end))
    assert set(by_node) == {node.name for node in world.nodes if node.pool == "train"}
    for spans in by_node.values():
        starts = sorted(set(spans))
        assert starts[0][0] <= world.options.start_ms
        assert max(end for _, end in spans) >= world.options.end_ms
        assert all(later[0] - earlier[1] < HOUR for earlier, later in pairwise(starts))


def test_seeds_vary_the_content_and_nothing_else_does() -> None:
    one, same, other = (simulate(WorldOptions(end=END, days=3, seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert {pod.uid for pod in one.pods}.isdisjoint(pod.uid for pod in other.pods)
    assert [pod.finished for pod in one.pods] != [pod.finished for pod in other.pods]
    assert [line.effective for line in one.lines] != [line.effective for line in other.lines]


def test_the_uniform_load_has_the_size_that_was_asked_for() -> None:
    world = simulate(WorldOptions.scaled(containers=300, gpu_nodes=20))
    assert len(world.pods) == 300
    assert len([node for node in world.nodes if node.gpus]) == 20
    assert len({pod.uid for pod in world.pods}) == 300


@pytest.mark.parametrize(
    "wrong",
    [
        {"days": 0},
        {"nodes": 2},
        {"gpus_per_node": 0},
        {"interval": 7},
        {"interval": 400},
        {"containers": 0},
        {"outage_hours": 13},
    ],
)
def test_a_size_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        WorldOptions(end=END, **wrong)  # type: ignore[arg-type]  # all of them are integers
