"""Running the checklist on a real ledger: states, history, exceptions, faults, documents."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import pytest

from ledger.errors import LedgerError, SettingsError
from ledger.schema import CLOSES, FINDINGS, OUTCOMES, USAGE
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window
from rules.engine import read_checklist, run_checklist
from rules.rb102_idle_nodes import IdleNodesRule
from rules.rule import Context, RuleTables, Severity, Stage, Verdict

if TYPE_CHECKING:
    from rules.checklist import Checklist
    from tests.rules.conftest import World

DAY = date(2026, 3, 15)
NEXT = DAY + timedelta(days=1)
CLUSTER = {"name": "c", "prometheus": {"url": "http://127.0.0.1:9090"}}


def run(ledger: Ledger, settings: Settings | None = None, day: date = DAY) -> Checklist:
    return run_checklist(ledger, settings or Settings(), day, version="0.0.0")


def state(checklist: Checklist) -> tuple[str, str | None]:
    (own,) = checklist.states
    return own.status, own.reason


def idle(node: str, until: str = "2027-01-01", rule: str = "RB102") -> Settings:
    return Settings.model_validate(
        {
            "exceptions": [
                {"rule": rule, "resource": f"node/*/{node}", "reason": "reserved", "until": until}
            ]
        }
    )


def test_the_answers_are_written_and_read_back(ledger: Ledger, weekends: World) -> None:
    weekends.node("n2").activity(weekends.window, 0.9, "n2").node("cpu-1", 0).cost("7")
    weekends.write(ledger)
    found = run(ledger)
    assert found == read_checklist(ledger, DAY)
    assert state(found) == ("finding", None)
    assert [(o.resource, o.status) for o in found.outcomes] == [
        (None, "finding"),
        ("node/c/n1", "finding"),
        ("node/c/n2", "clean"),
    ]
    assert found.states[0].skipped == 1
    assert str(found.savings["USD"]) == "1440.000000000000"
    close = ledger.scan(CLOSES).filter(pl.col("stage") == "checklist").collect().row(0, named=True)
    assert (close["status"], close["coverage"], close["rows"]) == ("closed", 1.0, 4)
    assert (close["settings_hash"], close["version"]) == (Settings().digest(), "0.0.0")


def test_running_twice_leaves_the_same_rows(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    run(ledger)
    first = [ledger.scan(table).collect() for table in (OUTCOMES, FINDINGS, CLOSES)]
    run(ledger)
    second = [ledger.scan(table).collect() for table in (OUTCOMES, FINDINGS, CLOSES)]
    assert all(a.equals(b) for a, b in zip(first, second, strict=True))


def later(ledger: Ledger, world: World, activity: float | None) -> None:
    """The day after: Monday, with the node at work, idle, or unseen."""
    world.window = Window.of_day(NEXT)
    world.rows = {name: [] for name in world.rows}
    world.node().cost("7")
    if activity is not None:
        world.activity(world.window, activity)
    world.write(ledger)


def test_a_finding_goes_on_and_keeps_its_first_day(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    assert run(ledger).findings[0].status == "new"
    later(ledger, weekends, 0.9)
    (finding,) = run(ledger, day=NEXT).findings
    assert (finding.status, finding.first_seen) == ("ongoing", DAY)


def test_what_ends_is_resolved_once_and_leaves_the_sums(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    run(ledger)
    weekends.rows["usage"] = [row | {"max": 0.9} for row in weekends.rows["usage"]]
    weekends.write(ledger)
    later(ledger, weekends, 0.9)
    found = run(ledger, day=NEXT)
    assert [(f.status, f.saving_per_month) for f in found.findings] == [("resolved", Decimal(0))]
    assert found.savings == {}
    later(ledger, weekends, 0.9)
    assert run(ledger, day=NEXT + timedelta(days=1)).findings == ()


def test_unknown_is_not_resolved(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    run(ledger)
    usage = weekends.frame("usage")
    ledger.replace(USAGE, usage.clear(), weekends.window, "prometheus/c")
    later(ledger, weekends, None)
    unknown = run(ledger, day=NEXT)
    assert state(unknown) == ("unknown", "no_series")
    assert unknown.findings == ()
    ledger.replace(USAGE, usage, Window.of_days(date(2026, 3, 2), DAY), "prometheus/c")
    (again,) = run(ledger, day=NEXT).findings
    assert (again.status, again.first_seen) == ("ongoing", DAY)


def test_an_exception_is_shown_and_leaves_the_sums(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    found = run(ledger, idle("n1"))
    (finding,) = found.findings
    assert finding.exception is not None
    assert (finding.status, finding.exception.reason) == ("excepted", "reserved")
    assert (finding.saving_per_month, finding.money.saving_per_month) == (Decimal(0), Decimal(1440))
    assert found.savings == {}
    assert state(found) == ("finding", None)


def test_an_exception_ends_and_says_so(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    last = run(ledger, idle("n?", until=DAY.isoformat()))
    assert last.findings[0].status == "excepted"
    over = run(ledger, idle("n?", until="2026-03-14"))
    assert over.findings[0].status == "new"
    assert "expired on 2026-03-14" in over.notes[0]


def test_an_exception_for_another_resource_or_rule_does_not_hold(
    ledger: Ledger, weekends: World
) -> None:
    weekends.cost("7").write(ledger)
    assert run(ledger, idle("m*")).findings[0].status == "new"
    other = run(ledger, idle("n1", rule="RB999"))
    assert other.findings[0].status == "new"
    assert "no such rule" in other.notes[0]


@pytest.mark.parametrize(
    ("clusters", "required"),
    [
        ([], False),
        ([CLUSTER], True),
        ([CLUSTER | {"prometheus": {"url": "http://x", "required": False}}], False),
    ],
)
def test_unknown_in_a_required_source_is_marked(
    ledger: Ledger, world: World, clusters: list[object], required: bool
) -> None:
    world.node().cost("7").write(ledger)
    found = run(ledger, Settings.model_validate({"clusters": clusters}))
    assert state(found) == ("unknown", "no_series")
    assert found.lacks_required is required


def test_an_empty_ledger_with_a_required_cluster_is_a_gap(ledger: Ledger) -> None:
    optional = {"name": "a", "prometheus": {"url": "http://x", "required": False}}
    found = run(ledger, Settings.model_validate({"clusters": [optional, CLUSTER]}))
    assert state(found) == ("unknown", "no_series")
    assert found.lacks_required
    assert not run(ledger).lacks_required


def test_why_a_source_was_not_read_comes_from_its_closes(ledger: Ledger, world: World) -> None:
    world.node().write(ledger)
    row = {
        "day": DAY,
        "stage": "collect",
        "status": "failed",
        "required": True,
        "gaps": json.dumps([{"reason": "access_denied", "detail": "403"}]),
    }
    kinds = {name: CLOSES.schema[name] for name in row}
    ledger.replace(
        CLOSES,
        pl.DataFrame([row], schema=kinds),
        Window.of_day(DAY),
        "prometheus/c",
        stage="collect",
    )
    assert state(run(ledger)) == ("unknown", "access_denied")


class Broken(IdleNodesRule):
    """A rule with a fault."""

    code: ClassVar[str] = "RB999"
    name: ClassVar[str] = "test.broken"
    severity: ClassVar[Severity] = "low"
    stage: ClassVar[Stage] = Stage.STOP

    def evaluate(self, tables: RuleTables, context: Context) -> Verdict:
        raise ZeroDivisionError("one over nothing")


def test_a_fault_in_one_rule_leaves_the_others_alone(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    found = run_checklist(ledger, Settings(), DAY, version="0", rules=(Broken(), IdleNodesRule()))
    assert [(o.rule, o.status, o.reason) for o in found.states] == [
        ("RB102", "finding", None),
        ("RB999", "unknown", "error"),
    ]
    assert found.lacks_required
    assert found.gaps[0]["detail"] == "RB999: ZeroDivisionError: one over nothing"


def test_settings_without_meaning_are_refused_before_anything_is_written(ledger: Ledger) -> None:
    for rule in ({"night": "03:00-03:00"}, {"weekend": "Sat-Foo"}):
        settings = Settings.model_validate({"rules": {"RB102": rule}})
        with pytest.raises(SettingsError, match=next(iter(rule.values()))):
            run(ledger, settings)
    assert ledger.days(OUTCOMES) == []


def test_a_day_without_a_checklist_says_what_to_do(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="runbill checklist"):
        read_checklist(ledger, DAY)


def test_the_document_is_json_with_money_as_text(ledger: Ledger, weekends: World) -> None:
    weekends.cost("7").write(ledger)
    found = run(ledger)
    document = json.loads(json.dumps(found.as_document()))
    assert document["kind"] == "checklist"
    assert document["window"] == {"start": "2026-03-02T00:00:00Z", "end": "2026-03-16T00:00:00Z"}
    (outcome,) = document["outcomes"]
    assert outcome == {
        "rule": "RB102",
        "name": "gpu.idle-nodes",
        "status": "finding",
        "resource": None,
        "reason": None,
        "skipped": 0,
        "required": False,
    }
    (finding,) = document["findings"]
    assert {
        key: finding[key]
        for key in (
            "rule",
            "resource",
            "severity",
            "spent",
            "saving_per_month",
            "own_saving_per_month",
            "basis",
            "money_reason",
            "confidence",
            "first_seen",
            "status",
            "exception",
        )
    } == {
        "rule": "RB102",
        "resource": "node/c/n1",
        "severity": "high",
        "spent": "672.000000000000",
        "saving_per_month": "1440.000000000000",
        "own_saving_per_month": "1440.000000000000",
        "basis": "billed",
        "money_reason": None,
        "confidence": "high",
        "first_seen": "2026-03-15",
        "status": "new",
        "exception": None,
    }
    assert finding["claims"] == [
        {"cluster": "c", "node": "n1", "start": start, "end": end}
        for start, end in (
            ("2026-03-07T00:00:00Z", "2026-03-09T00:00:00Z"),
            ("2026-03-14T00:00:00Z", "2026-03-16T00:00:00Z"),
        )
    ]
    verbose = json.loads(json.dumps(found.as_document(verbose=True)))
    assert [each["resource"] for each in verbose["outcomes"]] == [None, "node/c/n1"]


def test_the_same_waste_has_the_same_fingerprint_with_other_numbers(
    ledger: Ledger, weekends: World
) -> None:
    weekends.cost("7").write(ledger)
    before = run(ledger).findings[0]
    weekends.rows["costs"] = []
    weekends.cost("9").write(ledger)
    after = run(ledger).findings[0]
    assert before.fingerprint == after.fingerprint
    assert before.money.spent != after.money.spent
