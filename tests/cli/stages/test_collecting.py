"""The collect stage against a real ledger, with sources that say what a test needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import exits
from cli.stages.backfill import Task
from cli.stages.collecting import Collected, collect, exit_code
from cli.stages.digest import digests
from cli.wiring import Context, Source
from collector.source import Permissions, Probe
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.facts import Facts, Gap, Quarantine
from ledger.load import LoadedSettings
from ledger.schema import CHARGES, CLOSES, NODES, WORKLOADS
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window

DAY = date(2026, 11, 30)
WINDOW = Window.of_day(DAY)
NAME = "kubernetes/a"


@dataclass
class Stub:
    """A collector that hands over what it was given, or raises it."""

    answers: list[Facts | Exception]
    snapshot: bool = False
    name: str = NAME
    required: bool = True
    permissions: Permissions = field(default_factory=Permissions)

    def collect(self, window: Window) -> Facts:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def probe(self) -> Sequence[Probe]:
        return ()

    def reach(self) -> Window | None:
        return None


def pods(*names: str) -> pl.DataFrame:
    rows = [
        {
            "day": DAY,
            "cluster": "a",
            "uid": name,
            "namespace": "n",
            "pod": name,
            "start": WINDOW.start,
            "end": WINDOW.end,
            "state": "running",
        }
        for name in names
    ]
    schema: dict[str, Any] = {
        key: WORKLOADS.columns[key].dtype
        for key in ("day", "cluster", "uid", "namespace", "pod", "start", "end", "state")
    }
    return pl.DataFrame(rows, schema=schema)


def facts(*names: str) -> Facts:
    return Facts(WINDOW, {"workloads": pods(*names)})


@pytest.fixture
def context(tmp_path: Path) -> Context:
    loaded = LoadedSettings(Settings(), None, tmp_path, {})
    return Context(loaded, Ledger.open(str(tmp_path / "ledger"), create=True), "1.2.3")


def read(
    context: Context, stub: Stub, kind: str = "kubernetes", window: Window = WINDOW
) -> Collected:
    return collect(context, Task(Source(kind, stub.name, True, False, lambda: stub), window))


def uids(context: Context) -> list[str]:
    rows = context.ledger.scan(WORKLOADS, WINDOW).collect()
    return sorted(rows["uid"].to_list())


def closing(context: Context) -> dict[str, Any]:
    rows = context.ledger.scan(CLOSES, WINDOW).collect()
    assert rows.height == 1
    return rows.row(0, named=True)


def test_a_snapshot_keeps_pods_that_are_gone(context: Context) -> None:
    stub = Stub([facts("a", "b"), facts("b", "c")], snapshot=True)
    read(context, stub)
    read(context, stub)
    assert uids(context) == ["a", "b", "c"]


def test_a_snapshot_tells_a_pod_once(context: Context) -> None:
    """A pod whose start was seen otherwise before must not live twice."""
    later = WINDOW.start + timedelta(hours=6)
    stub = Stub([facts("a", "b"), facts("b")], snapshot=True)
    moved = pods("b").with_columns(start=pl.lit(later).cast(pl.Datetime("us", "UTC")))
    stub.answers[1] = Facts(WINDOW, {"workloads": moved})
    read(context, stub)
    read(context, stub)
    rows = context.ledger.scan(WORKLOADS, WINDOW).sort("uid").select("uid", "start").collect()
    assert list(rows.iter_rows()) == [("a", WINDOW.start), ("b", later)]


TWO = Window.of_days(DAY - timedelta(days=1), DAY)
REFUSED = Gap("unreadable_file", "b.csv: no CSV")


def charges(cost: str, *days: date) -> pl.DataFrame:
    rows = [
        {
            "day": day,
            "x_LineId": f"{day}",
            "x_Part": 0,
            "x_Basis": "billed",
            "BillingCurrency": "USD",
            "ChargeCategory": "Usage",
            "ChargePeriodStart": Window.of_day(day).start,
            "ChargePeriodEnd": Window.of_day(day).end,
            "EffectiveCost": Decimal(cost),
        }
        for day in days
    ]
    return pl.DataFrame(
        rows, schema={name: CHARGES.columns[name].dtype for name in ROW}, orient="row"
    )


ROW = (
    "day",
    "x_LineId",
    "x_Part",
    "x_Basis",
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "EffectiveCost",
)


def bill(cost: str, window: Window, *gaps: Gap, coverage: float = 1.0) -> Facts:
    table = charges(cost, *window.days())
    return Facts(window, {"charges": table}, coverage, gaps)


def costs(context: Context) -> dict[date, Decimal]:
    rows = context.ledger.scan(CHARGES, TWO).select("day", "EffectiveCost").collect()
    return dict(rows.iter_rows())


def closes(context: Context) -> dict[date, dict[str, Any]]:
    rows = context.ledger.scan(CLOSES, TWO).collect()
    return {row["day"]: row for row in rows.iter_rows(named=True)}


def reasons(close: dict[str, Any]) -> list[str]:
    return [gap["reason"] for gap in json.loads(close["gaps"])]


@pytest.mark.parametrize("between", ["nothing", "cut", "failed"])
def test_a_bill_that_is_cut_later_erases_no_good_row(context: Context, between: str) -> None:
    first = Window.of_day(DAY - timedelta(days=1))
    cut = bill("2", TWO, REFUSED, coverage=0.5)
    also: dict[str, list[Facts | Exception]] = {
        "nothing": [],
        "cut": [cut],
        "failed": [SourceError("gone", "come back")],
    }
    stub = Stub([bill("9", first), *also[between], cut, bill("3", TWO)], name="b")
    read(context, stub, "billing", first)
    before = closes(context)[DAY - timedelta(days=1)]
    for _ in also[between]:
        read(context, stub, "billing", TWO)
    outcome = read(context, stub, "billing", TWO)
    assert costs(context) == {DAY - timedelta(days=1): 9, DAY: 2}  # it had no earlier reading
    kept, fresh = (closes(context)[DAY - timedelta(days=n)] for n in (1, 0))
    assert (kept["status"], fresh["status"], outcome.status) == ("gaps", "gaps", "gaps")
    assert reasons(kept) == ["unreadable_file", "earlier_rows_stand"]
    assert reasons(fresh) == ["unreadable_file"]
    assert (kept["digest"], kept["rows"]) == (before["digest"], before["rows"])
    assert exit_code([outcome], 1) == exits.GAPS
    read(context, stub, "billing", TWO)  # whole again: it replaces all
    assert costs(context) == {DAY - timedelta(days=1): 3, DAY: 3}
    assert closes(context)[DAY]["status"] == "closed"


def test_a_bill_that_never_was_whole_is_replaced(context: Context) -> None:
    stub = Stub([bill(cost, TWO, REFUSED, coverage=0.5) for cost in ("1", "2")], name="b")
    for _ in range(2):
        read(context, stub, "billing", TWO)
    assert set(costs(context).values()) == {2}


SHORT = Gap("retention", "no samples of any node before noon")
BROKEN = Gap("query_failed", "kube_pod_labels: 500")
FOREVER = Gap("no_series", "DCGM_FI_PROF_GR_ENGINE_ACTIVE has no samples")


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(((), 1.0), ((SHORT,), 0.5), id="forgotten"),
        pytest.param(((), 1.0), ((BROKEN,), 1.0), id="broken"),
        pytest.param(((FOREVER,), 0.9), ((FOREVER, BROKEN), 0.9), id="broken besides"),
        pytest.param(((BROKEN,), 0.9), ((BROKEN,), 0.4), id="forgotten besides"),
        pytest.param(((), 1.0), None, id="unreachable"),
    ],
)
def test_series_that_tell_less_than_before_erase_nothing(
    context: Context,
    before: tuple[tuple[Gap, ...], float],
    now: tuple[tuple[Gap, ...], float] | None,
    between: bool,
) -> None:
    def told(name: str, answer: tuple[tuple[Gap, ...], float] | None) -> Facts | Exception:
        if answer is None:
            return SourceError("gone", "come back")
        return replace(facts(name), gaps=answer[0], coverage=answer[1])

    answers = [told("good", before), told("poor", now), *([told("poor", now)] * between)]
    stub = Stub([*answers, told("better", ((), 1.0))], name="prometheus/a")
    for _ in answers:
        outcome = read(context, stub, "prometheus")
    assert uids(context) == ["good"]
    close = closing(context)
    assert reasons(close)[-1] == "earlier_rows_stand"
    assert close["coverage"] == before[1]
    assert exit_code([outcome], 1) == (exits.GAPS if now else exits.UNREACHABLE)
    read(context, stub, "prometheus")
    assert uids(context) == ["better"]
    assert closing(context)["status"] == "closed"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(((SHORT,), 0.5), ((SHORT,), 0.5), id="as before"),
        pytest.param(((BROKEN,), 1.0), ((BROKEN,), 1.0), id="both broken"),
        pytest.param(((), 1.0), ((FOREVER,), 1.0), id="less is there"),
    ],
)
def test_series_that_tell_as_much_replace_the_day(
    context: Context, before: tuple[tuple[Gap, ...], float], now: tuple[tuple[Gap, ...], float]
) -> None:
    answers = [
        replace(facts(name), gaps=gaps, coverage=coverage)
        for name, (gaps, coverage) in (("a", before), ("b", now))
    ]
    stub = Stub([*answers], name="prometheus/a")
    for _ in answers:
        read(context, stub, "prometheus")
    assert uids(context) == ["b"]


def test_what_is_known_of_a_whole_reading_adds_up_once(context: Context) -> None:
    facts = replace(
        bill("1", TWO),
        quarantine=(Quarantine("bad_number", "b.csv", 4, "row 2"),),
        residue={"EffectiveCost": Decimal("1E-13")},
        notes=("a note",),
    )
    read(context, Stub([facts], name="b"), "billing", TWO)
    rows = closes(context)
    assert sum(row["quarantined"] for row in rows.values()) == 4
    assert sum(
        Decimal(lost) for row in rows.values() for lost in json.loads(row["residue"]).values()
    ) == Decimal("1E-13")
    first, other = rows[DAY - timedelta(days=1)], rows[DAY]
    assert (len(json.loads(first["quarantine"])), other["quarantine"]) == (1, "[]")
    assert json.loads(first["notes"]) == ["a note"]
    assert str(first["day"]) in json.loads(other["notes"])[-1]


def test_a_history_replaces_the_day(context: Context) -> None:
    stub = Stub([facts("a", "b"), facts("b", "c")])
    read(context, stub)
    read(context, stub)
    assert uids(context) == ["b", "c"]


def test_a_failed_source_erases_nothing_and_keeps_its_digest(context: Context) -> None:
    stub = Stub([facts("a"), SourceError("gone", "come back")])
    read(context, stub)
    before = closing(context)
    outcome = read(context, stub)
    after = closing(context)
    assert uids(context) == ["a"]
    assert (outcome.status, after["status"], after["coverage"]) == ("failed", "failed", 0.0)
    assert json.loads(after["gaps"]) == [{"reason": "SourceError", "detail": "gone (come back)"}]
    assert (after["digest"], after["rows"]) == (before["digest"], before["rows"])


def test_a_table_that_could_not_be_read_keeps_its_rows(context: Context) -> None:
    stub = Stub([facts("a"), Facts(WINDOW, {"nodes": NODES.empty().drop("source")})])
    read(context, stub)
    read(context, stub)
    assert uids(context) == ["a"]


def test_a_close_says_all_that_a_reader_must_know(context: Context) -> None:
    through = datetime(2026, 11, 30, 12, tzinfo=UTC)
    read(
        context,
        Stub(
            [
                replace(
                    facts("a", "b"),
                    coverage=0.5,
                    gaps=(Gap("no_samples", "from 1 to 2", {"hours": 1.0}),),
                    quarantine=(Quarantine("nan", "series x", 3, "x{}"),),
                    notes=("a note",),
                    residue={"BilledCost": Decimal("1E-13")},
                    data_through=through,
                )
            ]
        ),
    )
    close = closing(context)
    assert {
        key: close[key]
        for key in (
            "stage",
            "source",
            "status",
            "required",
            "coverage",
            "rows",
            "quarantined",
            "data_through",
            "version",
        )
    } == {
        "stage": "collect",
        "source": NAME,
        "status": "gaps",
        "required": True,
        "coverage": 0.5,
        "rows": 2,
        "quarantined": 3,
        "data_through": through,
        "version": "1.2.3",
    }
    assert json.loads(close["gaps"])[:1] == [
        {"reason": "no_samples", "detail": "from 1 to 2", "hours": 1.0}
    ]
    assert json.loads(close["quarantine"])[0]["count"] == 3
    assert json.loads(close["residue"]) == {"BilledCost": "0.0000000000001"}
    assert close["settings_hash"] == Settings().digest()


def outcome(
    status: str,
    *,
    required: bool = True,
    put_aside: int = 0,
    code: int = 0,
    read: int | None = None,
    kind: str = "prometheus",
    again: bool = False,
) -> Collected:
    failure = Gap("x", "y") if status == "failed" else None
    gaps = (Gap("x", "y"),) if status == "gaps" else ()
    aside = (Quarantine("nan", "x", put_aside),) if put_aside else ()
    said = replace(facts("a", "b"), gaps=gaps, quarantine=aside, read=read)
    return Collected(
        "s", required, WINDOW, None if failure else said, failure, code, kind=kind, again=again
    )


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], exits.OK),
        ([outcome("closed")], exits.OK),
        ([outcome("gaps")], exits.GAPS),
        ([outcome("gaps", required=False)], exits.OK),
        ([outcome("closed"), outcome("failed", code=5)], exits.GAPS),
        ([outcome("closed"), outcome("failed", code=4)], exits.GAPS),
        ([outcome("closed"), outcome("failed", required=False, code=5)], exits.OK),
        ([outcome("failed", code=5)], exits.UNREACHABLE),
        ([outcome("failed", code=5), outcome("failed", code=4)], exits.ACCESS),
        ([outcome("failed", code=70), outcome("failed", code=4)], exits.FAULT),
        ([outcome("closed", put_aside=1)], exits.GAPS),
        ([outcome("closed", put_aside=1, required=False)], exits.OK),
        ([outcome("failed", code=5), outcome("closed", kind="prices")], exits.UNREACHABLE),
        ([outcome("failed", code=4), outcome("closed", kind="prices")], exits.ACCESS),
        ([outcome("closed", kind="prices")], exits.OK),
        ([outcome("closed"), outcome("gaps", again=True)], exits.OK),
        ([outcome("closed"), outcome("failed", code=5, again=True)], exits.OK),
    ],
)
def test_exit_codes(outcomes: list[Collected], expected: int) -> None:
    assert exit_code(outcomes, 0.1) == expected


def test_quarantine_counts_against_all_rows_seen() -> None:
    assert exit_code([outcome("closed", put_aside=1)], 1 / 3) == exits.OK
    assert exit_code([outcome("closed", put_aside=1)], 0.33) == exits.GAPS


def test_quarantined_samples_count_against_samples_not_rows() -> None:
    """Two rows of a table may stand for a thousand samples."""
    assert exit_code([outcome("closed", put_aside=1, read=1000)], 0.001) == exits.OK
    assert exit_code([outcome("closed", put_aside=2, read=1000)], 0.001) == exits.GAPS


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AccessError("no"), exits.ACCESS),
        (BadInputError("no"), exits.UNREACHABLE),
        (ConnectionError("no"), exits.UNREACHABLE),
        (KeyError("no"), exits.FAULT),
    ],
)
def test_every_failure_is_a_gap_that_names_its_type(
    context: Context, error: Exception, code: int
) -> None:
    found = read(context, Stub([error]))
    assert (found.code, found.gaps[0].reason) == (code, type(error).__name__)


@given(st.lists(st.text(max_size=3), unique=True, max_size=8), st.randoms())
def test_the_digest_does_not_depend_on_order(names: list[str], dice: Random) -> None:
    shuffled = list(names)
    dice.shuffle(shuffled)
    assert digests({"workloads": pods(*names)}) == digests({"workloads": pods(*shuffled)})


def test_the_digest_tells_apart_what_differs() -> None:
    frames = [
        pods("a"),
        pods("b"),
        pods("a", "a"),
        pods("a", "b"),
        pods("a").with_columns(state=pl.lit("held")),
    ]
    found = [digests({"workloads": frame})[DAY] for frame in frames]
    found.append(digests({"nodes": pods("a")})[DAY])
    assert len(set(found)) == len(found)
