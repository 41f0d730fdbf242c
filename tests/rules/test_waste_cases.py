"""The waste cases of RB102: an adapter writes ``given`` into ledger frames and reads the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from ledger.errors import SettingsError
from ledger.settings import Settings
from ledger.window import Window, iso
from rules.calendar import WeeklyWindow, zone_of
from rules.rule import Finding, Verdict

if TYPE_CHECKING:
    from tests.rules.conftest import World

NODE_CASES = ("W07", "W15a", "W17a")
NIGHT_CASES = ("W23a", "W23b", "W25a", "W27")


@pytest.fixture(scope="session")
def cases(shared: Path) -> dict[str, dict[str, Any]]:
    data = json.loads((shared / "cases" / "waste.json").read_text())
    return {case["id"]: case for case in data["cases"] if case["rule"] == "RB102"}


def test_every_case_of_the_rule_is_tested(cases: Mapping[str, Any]) -> None:
    assert sorted(cases) == sorted([*NODE_CASES, *NIGHT_CASES, "W25b", "W25c"])


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def span(pair: list[str]) -> Window:
    return Window(moment(pair[0]), moment(pair[1]))


def fill(world: World, given: Mapping[str, Any]) -> World:
    """Write the tables that a case describes."""
    world.window = span(given["window"])
    until = moment(given["data_through"])
    for node in given["nodes"]:
        up = span(node["up"])
        world.node(node["node"], node["gpus"], up, capacity_type=node.get("purchase"))
        world.cost(
            node["cost_per_hour"],
            node["node"],
            Window(up.start, min(up.end, until)),
            **({"ListCost": Decimal(node["list_per_hour"])} if "list_per_hour" in node else {}),
        )
    for pod in given.get("workloads", []):
        world.pod(
            pod["uid"],
            pod["node"],
            pod["gpus"],
            Window(max(moment(pod["start"]), world.window.start), world.window.end),
        )
    gpus = {node["node"]: node["gpus"] for node in given["nodes"]}
    for series in given["series"]:
        assert (series["unit"], series["labels"]["gpu"]) == ("ratio", "*")
        for start, end, value in series["segments"]:
            node = series["labels"]["node"]
            world.activity(
                span([start, end]),
                float(value),
                node,
                gpus[node],
                timedelta(seconds=series["step_s"]),
            )
    return world


def found(verdict: Verdict) -> Finding:
    (finding,) = verdict.findings
    return finding


def evidence(finding: Finding, metric: str) -> object:
    return next(each.value for each in finding.evidence if each.metric == metric)


CHECKS: dict[str, Callable[[Verdict, Any], bool]] = {
    "resource": lambda v, want: v.answers[0].resource == want.replace("node/", "node/c/"),
    "status": lambda v, want: v.answers[0].status == want,
    "reason": lambda v, want: v.answers[0].reason == want,
    "intervals": lambda v, want: str(evidence(found(v), "idle_intervals")).split(", ") == want,
    "idle_hours": lambda v, want: evidence(found(v), "idle_hours") == want,
    "spent": lambda v, want: found(v).money.spent == Decimal(want),
    "saving_per_month": lambda v, want: found(v).money.saving_per_month == Decimal(want),
    # Unknown capacity has no idle cost at all, so none below zero.
    "idle_cost_not_below": lambda v, want: v.findings == () and want == "0",
}


@pytest.mark.parametrize("name", NODE_CASES)
def test_nodes(cases: Mapping[str, Any], world: World, name: str) -> None:
    given, expect = cases[name]["given"], cases[name]["expect"]
    verdict = fill(world, given).judge(Settings(timezone=given["timezone"]))
    assert len(verdict.answers) == 1
    wrong = {key: want for key, want in expect.items() if not CHECKS[key](verdict, want)}
    assert wrong == {}, verdict


@pytest.mark.parametrize("name", NIGHT_CASES)
def test_nights_are_intervals_of_instants(cases: Mapping[str, Any], name: str) -> None:
    given, expect = cases[name]["given"]["calendar"], cases[name]["expect"]
    one = isinstance(given, dict)
    nights = [given] if one else given
    wanted = zip(
        [expect["utc"]] if one else expect["utc"],
        [expect["hours"]] if one else expect["hours"],
        strict=True,
    )
    for night, (utc, hours) in zip(nights, wanted, strict=True):
        found = WeeklyWindow.parse(night["night"]).on(
            date.fromisoformat(night["date"]), zone_of(night["timezone"])
        )
        assert found is not None
        assert [iso(found.start), iso(found.end)] == utc
        assert found.seconds == int(hours) * 3600


def test_windows_pass_midnight_and_sunday(cases: Mapping[str, Any]) -> None:
    case = cases["W25b"]
    for given, contains, hours in zip(
        case["given"]["calendar"],
        case["expect"]["contains"],
        case["expect"]["hours_per_week"],
        strict=True,
    ):
        weekly = WeeklyWindow.parse(given["window"])
        around = Window(datetime(2026, 4, 27, tzinfo=UTC), datetime(2026, 5, 11, tzinfo=UTC))
        intervals = weekly.intervals(around, ZoneInfo(given["timezone"]))
        moments = [moment(text) for text in given["contains"]]
        assert [any(i.start <= m < i.end for i in intervals) for m in moments] == contains
        assert weekly.minutes_per_week == int(hours) * 60


def test_what_has_no_meaning_is_named(cases: Mapping[str, Any]) -> None:
    case = cases["W25c"]
    for given, error in zip(case["given"]["calendar"], case["expect"]["error"], strict=True):
        with pytest.raises(SettingsError) as caught:
            read(given["timezone"], given["window"])
        assert all(word in str(caught.value) for word in error["must_name"])
        assert caught.value.exit_code == case["expect"]["exit_code"]


def read(timezone: str, window: str) -> None:
    zone_of(timezone)
    WeeklyWindow.parse(window)
