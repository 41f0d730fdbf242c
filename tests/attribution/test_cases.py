"""Cases of the field: arithmetic (S), and faults of other tools with the right answer (B)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.query.answer import Query, query
from attribution.run import attribute
from ledger.errors import UsageError
from ledger.settings import NodePool, PoolMatch, Prices, Settings
from ledger.store import Ledger
from ledger.window import Window
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

GIB = 2**30
NAMED = Settings()


@pytest.fixture(scope="session")
def cases(shared: Path) -> Mapping[str, Any]:
    return allocation_cases(shared)


def clock(text: str) -> float:
    hours, minutes, *seconds = (int(part) for part in text.split(":"))
    return hours + minutes / 60 + (seconds[0] if seconds else 0) / 3600


def by_pod(costs: pl.DataFrame) -> dict[str, float]:
    """Cost by pod, the free capacity as __idle__ (0 if there is none)."""
    sums = (
        costs.with_columns(pl.coalesce("uid", "target").alias("who"))
        .group_by("who")
        .agg(pl.col("EffectiveCost").sum().cast(pl.Float64))
    )
    return {"__idle__": 0.0} | dict(sums.iter_rows())


def approx(case: Mapping[str, Any], expected: Mapping[str, Any]) -> Any:  # noqa: ANN401
    return pytest.approx(expected, abs=case["tolerance"])


@pytest.mark.parametrize("name", ["S5-a", "S5-b", "S5-c", "S5-d", "S5-e", "S5-f", "S5-g"])
def test_a_pod_pays_for_the_larger_of_request_and_use(
    cases: Mapping[str, Any], new_day: type[DayBuilder], name: str
) -> None:
    """A node of 100 cores or 100 million KiB at 100 dollars: a dollar each, so cost is the basis.

    The case counts memory in units of its own; here they are KiB, the unit of shares. No request is
    one of 0: null would be a request that nobody knows.
    """
    case = cases[name]
    told = case["given"]
    cpu = told["resource"] == "cpu"
    size, meter, unit = (100, "cpu_usage", 1000) if cpu else (10**8, "memory_working_set", 1024)
    asked = int((told["request"] or 0) * unit)
    cores, memory = (size * unit, 0) if cpu else (0, size * unit)
    day = new_day().node(gpus=0, end=1, cpu_millicores=cores, memory_bytes=memory)
    day.line("l", effective="100")
    of_cpu, of_memory = (asked, 0) if cpu else (0, asked)
    day.pod("u", end=1, cpu_millicores=of_cpu, memory_bytes=of_memory)
    if told["usage"] is not None:
        for slot in range(4):
            day.use("u", meter, slot / 4, told["usage"] * (1 if cpu else unit))
    paid = by_pod(day.attribute().costs).get("u", 0.0)
    assert paid * size / 100 == approx(case, case["expect"]["basis"])


def test_a_total_is_the_exact_sum_of_its_parts(
    cases: Mapping[str, Any],
    new_day: type[DayBuilder],
    ledger: Ledger,
    write_day: Callable[..., None],
) -> None:
    case = cases["S10-a"]
    told, hours = case["given"], int(case["given"]["hours"])
    cards = int(told["gpu_hours"]) // hours
    day = new_day().node(gpus=cards).pod("u", gpus=cards, labels={"experiment": "a"})
    day.line("gpu", until=hours, effective=told["gpu"])
    for part in ("cpu", "ram", "network", "pv"):
        day.line(part, f"x-{part}", until=hours, effective=told[part], Tags='{"experiment":"a"}')
    write_day(ledger, day)
    attribute(ledger, NAMED, [date(2026, 11, 30)], version="test")
    window = Window.of_day(date(2026, 11, 30))
    (result,) = query(ledger, Query(window, by=("experiment",)))
    (row,) = result.rows
    assert (row["cost"], result.total) == (Decimal(case["expect"]["total"]),) * 2
    assert row["gpu_hours"] / hours == float(case["expect"]["gpus"])


@pytest.mark.parametrize("name", ["S15-a", "S15-b"])
def test_aws_weights(cases: Mapping[str, Any], new_day: type[DayBuilder], name: str) -> None:
    case = cases[name]
    given, size = case["given"], case["given"]["capacity"]
    day = new_day().node(
        gpus=size.get("gpu"),
        cpu_millicores=size["vcpu"] * 1000,
        memory_bytes=size["gb"] * GIB,
        labels='{"pool":"x"}',
        end=1,
    )
    day.line("l", effective=str(given["node_price_hour"]))
    day.pod("vcpu", end=1, cpu_millicores=1000).pod("gb", end=1, memory_bytes=GIB)
    if "gpu" in size:
        day.pod("gpu", end=1, gpus=1)
    pool = NodePool(match=PoolMatch(label="pool=*"), split="aws-split")
    books = day.attribute(Settings(node_pools=(pool,)))
    rows = by_pod(books.costs)
    rates = {key: rows[key] for key in case["expect"]["rates"]}
    assert rates == approx(case, case["expect"]["rates"])
    assert float(books.costs["EffectiveCost"].sum()) == case["expect"]["sum"]


@pytest.mark.parametrize("name", ["S15-c", "S15-d", "S15-e"])
def test_gpu_first(cases: Mapping[str, Any], new_day: type[DayBuilder], name: str) -> None:
    case = cases[name]
    given, size, rates = (
        case["given"],
        case["given"]["capacity"],
        case["given"]["reference_rates"],
    )
    day = new_day().node(
        gpus=size["gpu"], cpu_millicores=size["vcpu"] * 1000, memory_bytes=size["gib"] * GIB, end=1
    )
    day.line("l", effective=str(given["node_price_hour"]))
    for pod in given["pods"]:
        day.pod(
            pod["pod"],
            end=1,
            gpus=pod["gpu"],
            cpu_millicores=pod["vcpu"] * 1000,
            memory_bytes=pod["gib"] * GIB,
        )
    prices = Prices(vcpu=Decimal(str(rates["vcpu"])), gib=Decimal(str(rates["gib"])))
    costs = day.attribute(Settings(prices=prices)).costs
    assert by_pod(costs) == approx(case, case["expect"]["rows"])
    card = float(costs.filter(resource="gpu")["EffectiveCost"].sum()) / size["gpu"]
    assert card == approx(case, case["expect"]["card_hour"])


def test_a_pod_that_pulls_its_image_holds_its_cards(
    cases: Mapping[str, Any], new_day: type[DayBuilder]
) -> None:
    case = cases["B07-a"]
    pod, price = case["given"]["pod"], case["given"]["gpu_price_hour"]
    bound, running, finished = (clock(pod[key]) for key in ("bound", "running", "finished"))
    day = new_day().node(start=bound, end=finished, gpus=pod["gpus"])
    for hour in range(int(bound), int(finished)):
        day.line(f"l{hour}", hour=hour, effective=str(price * pod["gpus"]))
    what = {"gpus": pod["gpus"], "labels": {"owner": pod["owner"]}, "role": "ray-group:trainer"}
    day.pod("u", bound, running, state="held", reason=pod["waiting_reason"], **what)
    day.pod("u", running, finished, **what)
    costs = day.attribute().costs
    sums = costs.group_by("owner", "phase").agg(
        pl.col("EffectiveCost").sum().cast(pl.Float64), pl.col("gpu_seconds").sum() / 3600
    )
    found = {(owner, phase): (cost, float(hours)) for owner, phase, cost, hours in sums.iter_rows()}
    cost, hours = case["expect"]["cost"], case["expect"]["gpu_hours"]
    assert found == {
        ("lin", "wait"): (cost["wait"], hours["wait"]),
        ("lin", "update"): (cost["running"], hours["running"]),
    }


def test_a_pod_in_the_queue_costs_nothing(
    cases: Mapping[str, Any], new_day: type[DayBuilder]
) -> None:
    """It holds nothing: no row has its name, and no hour."""
    case = cases["B07-b"]
    pod, expect = case["given"]["pod"], case["expect"]
    day = new_day().node(end=1).line("l")
    day.pod(
        "u",
        clock(pod["created"]),
        clock(pod["finished"]),
        node=None,
        state="held",
        gpus=pod["gpus"],
        labels={"owner": pod["owner"]},
    )
    costs = day.attribute().costs
    assert by_pod(costs) == {"__idle__": 8.0}
    own = costs.filter(pl.col("owner") == pod["owner"])
    assert own.is_empty()
    assert {expect["owner_cost"], *expect["cost"].values(), *expect["gpu_hours"].values()} == {0}


def test_over_commit(cases: Mapping[str, Any], new_day: type[DayBuilder]) -> None:
    case = cases["B15"]
    node = case["given"]["node"]
    day = new_day().node(gpus=0, cpu_millicores=node["vcpu"] * 1000, memory_bytes=0, end=1)
    day.line("l", effective=str(Decimal(str(node["price_vcpu_hour"])) * node["vcpu"]))
    for pod in case["given"]["pods"]:
        day.pod(pod["pod"], end=1, cpu_millicores=pod["request"] * 1000)
        for slot in range(4):
            day.use(pod["pod"], "cpu_usage", slot / 4, pod["usage"])
    books = day.attribute()
    assert by_pod(books.costs) == approx(case, case["expect"]["rows"])
    gap = next(gap for gap in books.gaps if gap.reason == "over_commit")
    assert gap.amounts["core_hours"] == case["expect"]["overcommit_core_hours"]


@pytest.mark.parametrize("name", ["B27-a", "B27-b"])
def test_the_hole_of_a_pod_name_is_not_charged(
    cases: Mapping[str, Any], new_day: type[DayBuilder], name: str
) -> None:
    case = cases[name]
    given, expect = case["given"], case["expect"]
    day = new_day().node(gpus=given["gpus"], interval=60)
    for hour in range(24):
        day.line(f"l{hour:02}", hour=hour, effective=str(given["gpu_price_hour"]))
    for life in given["lives"]:
        day.pod(
            life["uid"] or "u",
            clock(life["start"]),
            clock(life["end"]),
            gpus=given["gpus"],
            pod=given["name"],
            interval=given["step_s"],
        )
    costs = day.attribute().costs
    held = costs.filter(target="workload")
    assert float(held["EffectiveCost"].sum()) == expect["cost"]
    assert float(held["gpu_seconds"].sum()) / 60 == expect["minutes"]
    hole = costs.filter(pl.col("ChargePeriodStart").dt.hour().is_in([17, 18]), target="__idle__")
    assert float(hole["gpu_seconds"].sum()) / 60 == expect["hole_minutes"]


def test_a_pod_between_two_scrapes(cases: Mapping[str, Any], new_day: type[DayBuilder]) -> None:
    case = cases["B29-a"]
    given, (start, end) = case["given"], (clock(t) for t in case["given"]["event_times"])
    day = new_day().node(gpus=given["gpus"], interval=given["scrape_s"])
    day.line("l", hour=12, effective=str(given["gpus"] * given["gpu_price_hour"]))
    day.pod("u", start, end, gpus=given["gpus"])
    row = day.attribute().costs.filter(uid="u").row(0, named=True)
    assert float(row["EffectiveCost"]) == approx(case, case["expect"]["cost"])
    assert row["confidence"] == case["expect"]["confidence"]
    assert float(row["gpu_seconds"]) == case["expect"]["seconds"] * given["gpus"]


def labelled(
    ledger: Ledger, day: DayBuilder, write_day: Callable[..., None], key: str
) -> dict[str, float]:
    write_day(ledger, day)
    attribute(ledger, NAMED, [date(2026, 11, 30)], version="test")
    window = Window.of_day(date(2026, 11, 30))
    result = query(ledger, Query(window, by=(f"label:{key}",)))[0]
    return {row[f"label:{key}"]: float(row["cost"]) for row in result.rows}


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("key", ["foo-bar", "foo_bar"])
def test_label_keys_that_differ_in_punctuation(
    cases: Mapping[str, Any],
    new_day: type[DayBuilder],
    ledger: Ledger,
    write_day: Callable[..., None],
    key: str,
    step: int,
) -> None:
    case = cases["B31"]
    assert case["expect"]["same_for_any_order"]
    pods = case["given"]["pods"][::step]
    total = sum(pod["cost"] for pod in pods)
    day = new_day().node(gpus=total, end=1).line("l", effective=str(total))
    for pod in pods:
        day.pod(pod["pod"], end=1, gpus=pod["cost"], labels=dict([*pod["labels"].items()][::step]))
    assert labelled(ledger, day, write_day, key) == case["expect"][key]


def test_a_label_that_nobody_has(
    cases: Mapping[str, Any],
    new_day: type[DayBuilder],
    ledger: Ledger,
    write_day: Callable[..., None],
) -> None:
    expect = cases["B33-b"]["expect"]
    day = new_day().node(gpus=expect["total"], end=1).line("l", effective=str(expect["total"]))
    day.pod("u", end=1, gpus=expect["rows"]["__unattributed__"], labels={"app": "x"})
    assert labelled(ledger, day, write_day, "nosuch") == expect["rows"]


def test_an_empty_label_key_is_refused(cases: Mapping[str, Any], ledger: Ledger) -> None:
    case = cases["B33-a"]
    with pytest.raises(UsageError) as caught:
        query(ledger, Query(Window.of_day(date(2026, 11, 30)), by=tuple(case["when"]["by"])))
    assert caught.value.exit_code == case["expect"]["exit_code"]
