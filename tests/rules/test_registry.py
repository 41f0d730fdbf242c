"""A walk over all rules: codes, names, documentation pages, and a world for each state."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from ledger.errors import SettingsError, UsageError
from ledger.schema import TABLES
from ledger.settings import Settings
from rules.registry import RULES, check_rules, find_rule
from rules.rule import SECTIONS, Rule

if TYPE_CHECKING:
    from tests.rules.conftest import World

States = dict[str, Callable[["World"], "World"]]
WORLDS: dict[str, States] = {
    "RB102": {
        "finding": lambda world: world.node().activity(world.window, 0.0),
        "clean": lambda world: world.node().activity(world.window, 0.8),
        "unknown": lambda world: world.node(),
    },
}
"""Code to a world for each state; a rule without all three fails the walk."""


def test_codes_and_names_are_unique_and_well_formed() -> None:
    codes, names = [rule.code for rule in RULES], [rule.name for rule in RULES]
    assert sorted(set(codes)) == sorted(codes)
    assert sorted(set(names)) == sorted(names)
    assert all(re.fullmatch(r"RB\d{3}", code) for code in codes)
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_documents_itself(rule: Rule) -> None:
    sections = rule.sections()
    assert tuple(sections) == SECTIONS
    assert all(len(text) > 40 for text in sections.values())
    assert rule.title.endswith("?")
    assert all(table in TABLES.values() for table in rule.needs)
    assert rule.window_days >= 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
@pytest.mark.parametrize("state", ["finding", "clean", "unknown"])
def test_a_rule_can_give_every_state(rule: Rule, state: str, world: World) -> None:
    verdict = WORLDS[rule.code][state](world).judge()
    assert {answer.status for answer in verdict.answers} == {state}
    assert bool(verdict.findings) == (state == "finding")


@pytest.mark.parametrize("text", ["RB102", "rb102", "gpu.idle-nodes", "GPU.Idle-Nodes"])
def test_a_rule_is_found_by_code_or_name(text: str) -> None:
    assert find_rule(text).code == "RB102"


@pytest.mark.parametrize("text", ["RB12", "gpu.idle-node", "idle-nodes"])
def test_an_unknown_rule_names_the_nearest(text: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean (RB102|gpu\.idle-nodes)") as caught:
        find_rule(text)
    assert caught.value.exit_code == 2


def test_nothing_near_lists_all() -> None:
    with pytest.raises(UsageError, match=r"there are RB102, gpu\.idle-nodes"):
        find_rule("zzz")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"rules": {"RB102": {"night": "22:00-22:00"}}}, "22:00-22:00"),
        ({"rules": {"RB102": {"weekend": "Caturday"}}}, "Caturday"),
        (
            {
                "exceptions": [
                    {"rule": "RB999", "resource": "*", "reason": "x", "until": "2027-01-01"}
                ]
            },
            "RB999",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_before_a_day_is_closed(
    settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint):
        check_rules(Settings.model_validate(settings))
    check_rules(Settings())
