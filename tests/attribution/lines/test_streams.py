"""Log groups by the bytes of their streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.settings import Identity, Settings
from tests.attribution.conftest import DAY, at
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
SOME = examples(15)
GROUP = "/train/grpo"
ARN = f"arn:aws:logs:us-east-1:123456789012:log-group:{GROUP}"
INGEST = {"SkuMeter": "USE1-DataProcessing-Bytes", "ConsumedUnit": "GB"}
KEPT = {"SkuMeter": "USE1-TimedStorage-ByteHrs", "ConsumedUnit": "GB-Mo"}


def wrote(
    day: DayBuilder, stream: str, size: int | None, hour: float = 0, **fields: object
) -> DayBuilder:
    base = {"day": DAY, "source": "logs/cw", "resource": GROUP, "stream": stream, "level": "info"}
    day.rows["log_volume"].append(base | {"hour": at(hour), "bytes": size, "lines": 1} | fields)
    return day


@pytest.mark.parametrize("resource", [ARN, f"{ARN}:*", GROUP])
def test_bytes_split_a_group(new_day: type[DayBuilder], cost_by: Sums, resource: str) -> None:
    day = new_day().node(gpus=0).pod("u", labels={"experiment": "a"})
    wrote(wrote(day, "s1", 3, cluster="c1", uid="u"), "s1", 3, 5, cluster="c1", uid="u")
    wrote(day, "s2", 2, level="debug").line("in", resource, 0, 24, **INGEST)
    costs = day.attribute().costs.filter(x_LineId="in")
    keys = ("target", "experiment", "uid", "resource", "path", "confidence")
    assert cost_by(costs, keys) == {
        ("workload", "a", "u", "logs", "s1", "low"): Decimal(6),
        ("__unattributed__", "__unattributed__", None, "logs", "s2", "high"): Decimal(2),
    }


def test_a_group_of_another_region_is_another(new_day: type[DayBuilder]) -> None:
    day = wrote(new_day(), "s", 1, resource=ARN)
    costs = day.line("in", ARN.replace("us-east-1", "eu-west-1"), 0, 24, **INGEST).attribute().costs
    assert costs["path"].to_list() == [None]


def test_labels_then_paths_then_tags(new_day: type[DayBuilder], cost_by: Sums) -> None:
    rules = ("label:experiment", "path:/train/grpo/{experiment}", "default:none")
    named = Settings(identity=Identity(experiment=rules, owner=("tag:owner",)))
    day = wrote(new_day(), "a/worker-0", 1, labels=json.dumps({"experiment": "labelled"}))
    wrote(wrote(day, "b/worker-0", 2, labels="{}"), "c", 5, resource="loki")
    day.line("in", GROUP, 0, 24, "3", Tags='{"owner":"lin"}', **INGEST)
    day.line("loki", "loki", 0, 24, "5", Tags='{"experiment":"tagged"}', **INGEST)
    costs = day.attribute(named).costs
    assert cost_by(costs, ("experiment", "owner", "path")) == {
        ("labelled", "lin", "a/worker-0"): Decimal(1),
        ("b", "lin", "b/worker-0"): Decimal(2),
        ("tagged", "__unattributed__", "c"): Decimal(5),
    }


def test_what_is_kept_splits_by_what_is_kept(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = wrote(wrote(new_day(), "s1", 100, stored_bytes=10), "s1", 100, 1, stored_bytes=10)
    wrote(day, "s2", 0, stored_bytes=30).line("kept", GROUP, 0, 24, **KEPT)
    costs = day.attribute().costs
    assert cost_by(costs, ("path", "confidence")) == {("s1", "high"): 2, ("s2", "high"): 6}
    day.rows["log_volume"][2] |= {"stored_bytes": None, "bytes": 30}
    assert cost_by(day.attribute().costs, ("path", "confidence")) == {
        ("s1", "low"): 2,
        ("s2", "low"): 6,
    }


def test_an_hourly_line_splits_by_the_bytes_of_its_hours(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = wrote(wrote(new_day(), "s1", 1, 3), "s2", 1, 4).line("in", GROUP, 4, 5, **INGEST)
    assert cost_by(day.attribute().costs, "path") == {"s2": Decimal(8)}
    day.line("dark", GROUP, 9, 10, Tags='{"experiment":"a"}', **INGEST)
    books = day.attribute()
    dark = books.costs.filter(x_LineId="dark")
    assert cost_by(dark, ("experiment", "path", "confidence")) == {("a", None, "low"): Decimal(8)}
    assert any("bytes of log streams" in note for note in books.notes)


def test_a_label_that_changes_splits_the_stream(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=0, interval=60)
    day.pod("u", 0, 12, interval=60, labels={"experiment": "a"})
    day.pod("u", 12, 24, interval=60, labels={"experiment": "b"})
    wrote(wrote(day, "s", 1, 3, cluster="c1", uid="u"), "s", 3, 14, cluster="c1", uid="u")
    costs = day.line("in", GROUP, 0, 24, **INGEST).attribute().costs.filter(x_LineId="in")
    assert cost_by(costs) == {"a": Decimal(2), "b": Decimal(6)}


def test_a_stream_of_an_unknown_pod_keeps_its_labels(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = wrote(new_day(), "s", 1, cluster="c1", uid="gone", labels='{"experiment":"a"}')
    costs = day.line("in", GROUP, 0, 24, **INGEST).attribute().costs
    assert cost_by(costs, ("target", "experiment", "tags")) == {
        ("charge", "a", '{"experiment":"a"}'): Decimal(8)
    }


@settings(max_examples=SOME)
@given(
    streams=st.lists(
        st.tuples(
            st.sampled_from(["s1", "s2", "s3"]),
            st.one_of(st.none(), st.integers(0, 2**50)),
            st.integers(0, 23),
            st.sampled_from([None, "u", "gone"]),
        ),
        max_size=12,
        unique_by=lambda row: (row[0], row[2]),
    ),
    spans=st.lists(st.tuples(st.integers(0, 23), st.booleans()), min_size=1, max_size=5),
    turn=st.integers(0, 11),
)
def test_parts_add_up_whatever_the_order(
    new_day: type[DayBuilder],
    streams: list[tuple[str, int | None, int, str | None]],
    spans: list[tuple[int, bool]],
    turn: int,
) -> None:
    day = new_day().node(gpus=0).pod("u", 2, 9)
    for stream, size, hour, uid in streams:
        wrote(day, stream, size, hour, uid=uid, cluster=uid and "c1")
    for number, (hour, kept) in enumerate(spans):
        words = KEPT if kept else INGEST
        cost = f"{'-' if number % 2 else ''}1.000000000007"
        day.line(f"l{number}", GROUP, hour, 24, cost, **words)
    books = day.attribute()
    for line in day.rows["charges"]:
        parts = books.costs.filter(x_LineId=line["x_LineId"])
        assert parts["EffectiveCost"].sum() == line["EffectiveCost"]
    for rows in day.rows.values():
        rows[:] = rows[turn:] + rows[:turn]
    assert day.attribute().costs.equals(books.costs)
