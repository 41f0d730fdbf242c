"""Cases of the field about prices: from the settings, or a price list, to the books of a day."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.day import DayCosts
from collector.prices import from_settings
from ledger.settings import Settings
from ledger.window import Window
from tests.attribution.conftest import DAY
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

GIB = 2**30
Case = Mapping[str, Any]


@pytest.fixture(scope="session")
def cases(shared: Path) -> Mapping[str, Case]:
    return allocation_cases(shared)


def settings_of(**prices: object) -> Settings:
    """Settings as a file has them."""
    return Settings.model_validate({"prices": prices})


def close(day: DayBuilder, settings: Settings) -> DayCosts:
    """The books of a day whose prices are collected from the settings."""
    source = from_settings(settings)
    assert source is not None
    rows = source.collect(Window.of_day(DAY)).tables["prices"]
    day.rows["prices"] += [row | {"source": source.name} for row in rows.to_dicts()]
    return day.pod("elsewhere", node=None).attribute(settings)


def cost(costs: pl.DataFrame, **where: object) -> float:
    return float(costs.filter(**where)["EffectiveCost"].sum())


def named(books: DayCosts) -> list[dict[str, Any]]:
    return [gap.as_dict() for gap in books.gaps]


@pytest.mark.parametrize("name", ["S6-e", "S6-f", "S6-g"])
def test_the_price_of_the_cards_of_a_node(
    cases: Mapping[str, Case], new_day: type[DayBuilder], name: str
) -> None:
    given, expect = cases[name]["given"], cases[name]["expect"]
    day = new_day().node(gpus=given["gpu_count"], gpu_model="H100", end=given["hours"])
    settings = settings_of(gpu={"H100": given["gpu_price_hour"]}, vcpu=0, gib=0)
    books = close(day, settings)
    reasons = [{"reason": gap["reason"]} for gap in named(books)]
    assert reasons == expect["gaps"]
    if expect["cost"] is None:
        assert books.costs.is_empty()
    else:
        assert cost(books.costs) == pytest.approx(expect["cost"], abs=cases[name]["tolerance"])


def monthly(given: Case) -> dict[str, object]:
    month = given["month_price"]
    found = {"gpu": {"default": month["gpu"]}, "vcpu": month["vcpu"], "gib": month["gb"]}
    if "storage_gib" in month:
        found["storage_gib"] = month["storage_gib"]
    return found | {"per": "month", "host": "apart"}


def hourly(settings: Settings) -> dict[str, float]:
    """The prices per hour that the ledger gets."""
    source = from_settings(settings)
    assert source is not None
    rows = source.collect(Window.of_day(DAY)).tables["prices"]
    names = {"gpu_alone": "gpu", "gib": "gb"}
    prices = rows.select("resource", pl.col("price_per_hour").cast(pl.Float64)).iter_rows()
    return {names.get(str(resource), str(resource)): float(price) for resource, price in prices}


@pytest.mark.parametrize("name", ["S6-h", "B03-a", "B03-b"])
def test_prices_by_the_month_are_used_as_they_are(
    cases: Mapping[str, Case], new_day: type[DayBuilder], name: str
) -> None:
    given, expect = cases[name]["given"], cases[name]["expect"]
    settings = settings_of(**monthly(given))
    assert hourly(settings) == pytest.approx(expect["hour_price"], abs=cases[name]["tolerance"])
    day = new_day()
    wanted = {each: hour for each, hour in expect.get("node_hour", {}).items()}
    for node in given.get("nodes", ()):
        size = node["capacity"]
        day.node(
            node["node"],
            end=1,
            gpus=size["gpu"],
            cpu_millicores=size["vcpu"] * 1000,
            memory_bytes=size["gb"] * GIB,
        )
    if "gpu_count" in given:
        # Only the cards are asked for: a host without a size adds nothing.
        day.node("cards", end=1, gpus=given["gpu_count"], cpu_millicores=0, memory_bytes=0)
        wanted["cards"] = expect["node_gpu_hour"]
    costs = close(day, settings).costs
    found = {node: cost(costs, node=node) for node in wanted}
    assert found == pytest.approx(wanted, abs=cases[name]["tolerance"])


@pytest.mark.parametrize("where", ["list", "gpu"])
def test_types_without_a_price_are_gaps(
    cases: Mapping[str, Case], new_day: type[DayBuilder], where: str
) -> None:
    given, expect = cases["B05"]["given"], cases["B05"]["expect"]
    day, prices = new_day(), []
    for node in given["nodes"]:
        day.node(node["node"], end=given["hours"], instance_type=node["type"], gpus=node["gpus"])
        day.pod(f"u-{node['node']}", node=node["node"], gpus=node["gpus"], end=given["hours"])
        prices.append({"instance_type": node["type"], "price": node["gpu_price_hour"]})
    settings = settings_of(list=prices) if where == "list" else settings_of(gpu={"default": 0})
    books = close(day, settings)
    found = [{key: gap[key] for key in ("reason", "type", "gpu_hours")} for gap in named(books)]
    assert found == expect["gaps"]
    assert sum(gap["gpu_hours"] for gap in found) == expect["unpriced_gpu_hours"]
    assert books.costs.height == expect["zero_cost_rows"]


@pytest.mark.parametrize("name", ["B13-a", "B13-b"])
def test_a_block_that_was_paid_in_advance(
    cases: Mapping[str, Case], new_day: type[DayBuilder], name: str
) -> None:
    given, expect = cases[name]["given"], cases[name]["expect"]
    block, job = given["block"], given["job"]
    fee = {"fee": block["upfront"], "hours": block["hours"], "nodes": block["nodes"]}
    day = new_day().node(
        end=given["day"]["hours"],
        gpus=block["gpus_per_node"],
        instance_type="p5.48xlarge",
        capacity_type="reserved",
    )
    for hour in range(given["day"]["hours"]):
        day.line(f"l{hour:02}", hour=hour, effective=str(block["hourly_line"]))
    day.pod(job["pod"], end=job["hours"], gpus=job["gpus"], labels={"experiment": job["pod"]})
    entry = {"instance_type": "p5.48xlarge", "capacity_type": "capacity-block", "upfront": fee}
    books = close(day, settings_of(gpu={"default": 99}, list=[entry]))
    estimated = books.costs.filter(x_Basis="estimated")
    if expect["day_cost"] is None:
        assert estimated.is_empty()
        found = [{k: gap[k] for k in ("reason", "gpu_hours")} for gap in named(books)]
        assert found == expect["gaps"]
        return
    tolerance = cases[name]["tolerance"]
    assert cost(estimated) == pytest.approx(expect["day_cost"], abs=tolerance)
    rows = {who: cost(estimated, experiment=who) for who in expect["rows"]}
    assert rows == pytest.approx(expect["rows"], abs=tolerance)
    hours = float(estimated["gpu_seconds"].sum()) / 3600
    assert cost(estimated) / hours == pytest.approx(expect["gpu_price_hour"], abs=tolerance)
    assert set(estimated["x_PriceSource"]) == {"upfront"}


def test_the_operating_system_is_part_of_the_key(
    cases: Mapping[str, Case], new_day: type[DayBuilder]
) -> None:
    given, expect = cases["B21-a"]["given"], cases["B21-a"]["expect"]
    day = new_day().node(
        end=given["hours"],
        gpus=0,
        instance_type=given["type"],
        labels=f'{{"kubernetes.io/os":"{given["os"]}"}}',
    )
    prices = [
        {
            "instance_type": given["type"],
            "operating_system": price["os"],
            "price": price["hour"],
        }
        for price in given["prices"]
    ]
    books = close(day, settings_of(list=prices))
    assert cost(books.costs) == pytest.approx(expect["cost"], abs=cases["B21-a"]["tolerance"])


def test_a_metric_that_is_wild_is_put_aside(
    cases: Mapping[str, Case], new_day: type[DayBuilder]
) -> None:
    given, expect = cases["B21-b"]["given"], cases["B21-b"]["expect"]
    day = new_day()
    for node in given["nodes"]:
        day.node(
            node["node"],
            end=given["hours"],
            gpus=0,
            instance_type=node["type"],
            region=node["region"],
            capacity_type=node["capacity_type"],
            labels=f'{{"kubernetes.io/os":"{node["os"]}"}}',
        )
        metric = str(node["metric_hour"])
        day.price("node", metric, node=node["node"], kind="metric", source="prometheus/c1")
    prices = [
        {
            "instance_type": price["type"],
            "region": price["region"],
            "operating_system": price["os"],
            "capacity_type": price["capacity_type"],
            "price": price["hour"],
            "kind": "list",
        }
        for price in given["prices"]
    ]
    books = close(day, settings_of(list=prices))
    found = {node: cost(books.costs, node=node) / given["hours"] for node in expect["price_hour"]}
    assert found == pytest.approx(expect["price_hour"], abs=cases["B21-b"]["tolerance"])
    assert cost(books.costs) == pytest.approx(expect["cost"], abs=cases["B21-b"]["tolerance"])
    assert [gap["node"] for gap in named(books)] == expect["outliers"]
    assert {gap["reason"] for gap in named(books)} == {"price_outlier"}


@pytest.mark.parametrize("name", ["B19-a", "B19-b"])
def test_a_bill_without_matching_lines_is_idle_and_a_named_rest(
    cases: Mapping[str, Case], new_day: type[DayBuilder], name: str
) -> None:
    given, expect = cases[name]["given"], cases[name]["expect"]
    # A node of nothing but CPU, of a millicore for the smallest part of money: shares are exact.
    node, held = Decimal(given["node_cost"]), Decimal(given["workload_cost"])
    scale = 10 ** max(-int(node.as_tuple().exponent), -int(held.as_tuple().exponent))
    size: dict[str, Any] = {"gpus": 0, "memory_bytes": 0, "cpu_millicores": int(node * scale)}
    day = new_day().node(end=1, instance_type="t3.medium", provider_id=None, **size)
    labels = {"experiment": "workloads"}
    day.pod("u", end=1, cpu_millicores=int(held * scale), labels=labels)
    day.line(
        "l",
        None,
        effective=given["bill"],
        until=24,
        ServiceCategory="Compute",
        BillingCurrency=given["currency"],
    )
    entry = {
        "instance_type": "t3.medium",
        "price": given["node_cost"],
        "currency": given["currency"],
    }
    books = close(day, settings_of(list=[entry]))
    sums = books.costs.group_by("experiment").agg(pl.col("EffectiveCost").sum())
    wanted = {who: Decimal(amount) for who, amount in expect["rows"].items()}
    assert dict(sums.iter_rows()) == wanted
    assert sum(wanted.values()) == Decimal(expect["total"])
    assert set(books.costs["x_Basis"]) == {"billed"}


def test_two_currencies_are_neither_compared_nor_added(
    cases: Mapping[str, Case], new_day: type[DayBuilder]
) -> None:
    given, expect = cases["B19-c"]["given"], cases["B19-c"]["expect"]
    estimate = given["estimate"]
    day = new_day().node(end=1, instance_type="t3.medium", gpus=0)
    day.line("l", effective=given["bill"], BillingCurrency=given["currency"])
    entry = {"instance_type": "t3.medium", "price": estimate["amount"]}
    books = close(day, settings_of(list=[entry | {"currency": estimate["currency"]}]))
    totals = books.costs.group_by("BillingCurrency").agg(pl.col("EffectiveCost").sum())
    assert dict(totals.iter_rows()) == {
        currency: Decimal(amount) for currency, amount in expect["totals"].items()
    }
    assert [{"reason": gap["reason"]} for gap in named(books)] == expect["gaps"]
    assert not any("scaled by" in note for note in books.notes)


def test_unit_rates_that_do_not_add_up_to_the_bill_are_scaled_and_it_is_said(
    cases: Mapping[str, Case], new_day: type[DayBuilder]
) -> None:
    given, expect = cases["S11"]["given"], cases["S11"]["expect"]
    size, rates = given["capacity"], given["rates"]
    prices = {"gpu": {"default": rates["gpu"]}, "vcpu": rates["vcpu"], "gib": rates["gb"]}
    settings = settings_of(host="apart", **prices)

    def node() -> DayBuilder:
        return new_day().node(
            end=1,
            gpus=size["gpu"],
            cpu_millicores=size["vcpu"] * 1000,
            memory_bytes=size["gb"] * GIB,
            instance_type="g4dn.xlarge",
        )

    tolerance = cases["S11"]["tolerance"]
    assert cost(close(node(), settings).costs) == pytest.approx(expect["raw_sum"], abs=tolerance)
    books = close(node().line("l", effective=str(given["node_price_hour"])), settings)
    assert cost(books.costs) == pytest.approx(expect["sum"], abs=tolerance)
    [note] = [note for note in books.notes if "scaled by" in note]
    assert "unit prices of g4dn.xlarge add to 0.18 % above the bill of the node" in note
    assert float(note.rpartition(" ")[2]) == pytest.approx(expect["factor"], abs=1e-5)
