"""A day from an agent alone: what it wrote is attributed, and what nobody watched is a gap."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import polars as pl
import pytest

from attribution.run import attribute
from cli import exits
from cli.stages import backfill, pipeline
from cli.stages.collecting import collect, exit_code
from cli.stages.watching import write
from cli.wiring import Context, context_of, sources
from collector.agent.state import Watch
from collector.agent.stream import Alive, Seen, Started
from collector.agent.wire import EVENTS, NODES, PODS
from collector.kubernetes.decode import decode
from collector.kubernetes.kinds import Kind
from ledger.errors import ConflictError, SourceError
from ledger.load import LoadedSettings
from ledger.schema import CLOSES, COSTS, WORKLOADS
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window
from tests.collector.agent.lives_world import Json, world
from tests.collector.agent.replay import describe
from tests.collector.kubernetes.builders import node

DAY = datetime(2026, 11, 30, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    settings = Settings.model_validate(
        {
            "ledger": str(tmp_path / "ledger"),
            "clusters": [{"name": "train-a", "agent": True}],
            "prices": {"gpu": {"H100": "2.50"}, "vcpu": "0.03", "gib": "0.004"},
        }
    )
    context = context_of(LoadedSettings(settings, None, tmp_path, {}), create=True)
    for source in sources(context.loaded):
        if source.kind == "prices":
            collect(context, backfill.Task(source, Window.of_day(DAY.date())))
    return context


def lists(watch: Watch, kind: Kind, items: Iterable[Json], at: datetime) -> None:
    watch.take(Started(kind, at))
    for item in items:
        sees(watch, kind, "LISTED", item, at)
    watch.take(Alive(kind, at, "1", listed=True))


def sees(watch: Watch, kind: Kind, change: str, item: Json, at: datetime) -> None:
    raw = msgspec.Raw(json.dumps(item).encode())
    watch.take(Seen(kind, change, decode(kind, raw), at, None if change == "LISTED" else "2"))


def watched(*spans: tuple[datetime, datetime]) -> tuple[Watch, dict[str, int]]:
    """An agent that watched 40 pods in some spans, and the true card-seconds in them by experiment.

    Each span begins with a list, as after a version that the server has forgotten.
    """
    pods = world(Random(3), 40, DAY + timedelta(hours=1), timedelta(hours=12))
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    # More cards than pods: whoever shares a card is another test's business.
    size = {"cpu": "99", "memory": "512Gi", "nvidia.com/gpu": "48"}
    nodes = [node(f"gpu-{n}", created="00:00", labels=labels, capacity=size) for n in range(20)]
    changes = sorted((each for pod in pods for each in pod.changes), key=lambda each: each.at)
    watch = Watch("train-a", describe, DAY.date())
    for begin, end in spans:
        lists(watch, NODES, nodes, begin)
        lists(watch, EVENTS, [], begin)
        now = {each.item["metadata"]["uid"]: each for each in changes if each.at <= begin}
        lists(watch, PODS, (each.item for each in now.values() if not each.removed), begin)
        for each in changes:
            if begin < each.at <= end:
                change = "DELETED" if each.removed else "MODIFIED"
                sees(watch, PODS, change, each.item, each.at)
        watch.take(Alive(PODS, end, "3"))
    truth: dict[str, int] = {}
    for begin, end in spans:
        for start, stop, _, name in (each for pod in pods for each in pod.truth(min(end, NEXT))):
            seconds = int((stop - max(start, begin)).total_seconds())
            truth[name] = truth.get(name, 0) + max(seconds, 0)
    return watch, truth


def card_seconds(ledger: Ledger) -> dict[str, int]:
    rows = ledger.scan(COSTS, Window.of_day(DAY.date())).filter(pl.col("gpu_seconds").is_not_null())
    sums = rows.group_by("experiment").agg(pl.col("gpu_seconds").sum()).collect()
    return {name: round(seconds) for name, seconds in sums.iter_rows()}


def test_a_day_that_was_watched_is_attributed_to_the_second(context: Context) -> None:
    watch, truth = watched((DAY, NEXT + timedelta(minutes=1)))
    write(context, watch, required=True)
    attribute(context.ledger, context.loaded.settings, [DAY.date()], version="test")
    found = card_seconds(context.ledger)
    idle = found.pop("__idle__")
    assert found == truth
    assert idle + sum(truth.values()) == 20 * 48 * 86_400
    rows = context.ledger.scan(COSTS).filter(pl.col("target") == "__idle__").collect()
    assert set(rows["confidence"]) == {"high"}


def test_what_nobody_watched_is_unattributed_and_a_gap(context: Context) -> None:
    hours = [DAY + timedelta(hours=hour) for hour in (0, 8, 14, 18)]
    watch, truth = watched((hours[0], hours[1]), (hours[2], hours[3]))
    write(context, watch, required=True)
    [source] = [each for each in sources(context.loaded) if each.kind == "agent"]
    outcome = collect(context, backfill.Task(source, Window.of_day(DAY.date())))
    assert [gap.reason for gap in outcome.gaps if gap.reason == "not_watched"] == [
        "not_watched"
    ] * 2
    assert outcome.facts is not None
    assert outcome.facts.coverage == pytest.approx(0.5)
    assert exit_code([outcome], 0.001) == exits.GAPS
    # Looking twice, or after the gap is told, changes nothing.
    again = collect(context, backfill.Task(source, Window.of_day(DAY.date())))
    assert again.gaps == outcome.gaps
    assert again.facts is not None
    assert again.facts.coverage == pytest.approx(outcome.facts.coverage)
    attribute(context.ledger, context.loaded.settings, [DAY.date()], version="test")
    found = card_seconds(context.ledger)
    assert found["__unattributed__"] == 20 * 48 * 6 * 3600  # the hole: nodes were there, unseen
    assert {name: found[name] for name in truth} == truth


def test_a_day_without_a_word_is_a_failure_that_the_agent_may_still_mend(context: Context) -> None:
    [source] = [each for each in sources(context.loaded) if each.kind == "agent"]
    task = backfill.Task(source, Window.of_day(DAY.date()))
    assert exit_code([collect(context, task)], 0.001) == exits.UNREACHABLE
    closes = context.ledger.scan(CLOSES, source="agent/train-a").collect()
    close = closes.row(0, named=True)
    assert (close["status"], json.loads(close["gaps"])[0]["reason"]) == ("failed", "not_watched")
    watch, _ = watched((DAY, NEXT))
    write(context, watch, required=True)
    assert collect(context, task).status == "closed"


def test_the_day_that_is_not_over_is_not_attributed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.stages.backfill.now", lambda: DAY + timedelta(hours=13))
    watch, _ = watched((DAY, DAY + timedelta(hours=12)))
    write(context, watch, required=True)
    assert pipeline.due_days(context, None) == []
    monkeypatch.setattr("cli.stages.backfill.now", lambda: NEXT + timedelta(hours=1))
    assert pipeline.due_days(context, None) == [DAY.date()]


def test_a_ledger_that_cannot_be_written_loses_nothing(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = watched((DAY, NEXT))
    kept = len(watch.pods.known)

    def refuse(*_: object, **__: object) -> None:
        raise SourceError("the ledger is away")

    with monkeypatch.context() as away:
        away.setattr(Ledger, "replace", refuse)
        with pytest.raises(SourceError):
            write(context, watch, required=True)
    assert len(watch.pods.known) == kept
    write(context, watch, required=True)
    assert context.ledger.scan(WORKLOADS).select(pl.col("uid").n_unique()).collect().item() > 30
    assert len(watch.pods.known) < kept


def test_of_two_agents_the_second_to_write_ends(context: Context) -> None:
    one, _ = watched((DAY, DAY + timedelta(hours=12)))
    other, _ = watched((DAY, DAY + timedelta(hours=6)))
    write(context, one, required=True)
    rows = context.ledger.scan(WORKLOADS).collect()
    with pytest.raises(ConflictError, match="another one writes"):
        write(context, other, required=True)
    assert context.ledger.scan(WORKLOADS).collect().equals(rows)
    write(context, one, required=True)
