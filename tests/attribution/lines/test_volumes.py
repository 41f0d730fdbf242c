"""Persistent volumes over the pods that mount them, and volumes that no bill line pays for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attribution.bill.resource_ids import resource_id
from collector.prices import SettingsPrices
from ledger.money import from_units, split, to_units
from ledger.schema import COST_COLUMNS
from ledger.settings import Cluster, Prices, PrometheusSource, Settings
from ledger.window import Window
from tests.attribution.conftest import DAY, at
from tests.effort import examples
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from attribution.day import DayCosts
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
GIB = 2**30
SOME = examples(15)


def clock(text: str) -> float:
    hours, minutes = (int(part) for part in text.split(":"))
    return hours + minutes / 60


def volume(
    day: DayBuilder, start: float, end: float, name: str = "pv", **fields: object
) -> DayBuilder:
    base: dict[str, object] = {
        "cluster": "c1",
        "source": "kubernetes/c1",
        "volume": name,
        "handle": "vol-0a",
        "labels": '{"app":"store"}',
        "namespace": "research",
    }
    row = base | {"day": DAY, "start": at(start), "end": at(end)} | fields
    day.rows["volumes"].append(row)
    return day


def mount(day: DayBuilder, *uids: str, name: str = "pv", cluster: str = "c1") -> DayBuilder:
    day.rows["mounts"] += [
        {
            "day": DAY,
            "source": f"kubernetes/{cluster}",
            "cluster": cluster,
            "volume": name,
            "uid": u,
        }
        for u in uids
    ]
    return day


def of_case(new_day: type[DayBuilder], given: Mapping[str, Any]) -> DayBuilder:
    """A volume and its pods as a case gives them, on a node that costs nothing."""
    day = new_day().node(gpus=0)
    start, end = map(clock, given["pvc"])
    volume(day, start, end)
    for name, (born, died) in given["pods"].items():
        day.pod(name, clock(born), clock(died))
    return mount(day, *given["pods"])


def by_pod(books: DayCosts, cost: str = "EffectiveCost") -> dict[str, float]:
    """Cost of volumes by pod, or by special target and reason."""
    who = pl.coalesce("uid", pl.concat_str("target", pl.lit(":"), "reason"))
    rows = books.costs.filter(pl.col("resource") == "storage").group_by(who.alias("who"))
    return {name: float(cost) for name, cost in rows.agg(pl.col(cost).sum()).iter_rows()}


@pytest.mark.parametrize("name", ["S3-a", "S3-b", "S3-c", "S3-d", "S3-e"])
def test_coefficients(shared: Path, new_day: type[DayBuilder], name: str) -> None:
    case = allocation_cases(shared)[name]
    day = of_case(new_day, case["given"])
    start, end = map(clock, case["given"]["pvc"])
    day.line("disk", "vol-0a", start, end, "1", ServiceCategory="Storage")
    rows = by_pod(day.attribute())
    assert rows == pytest.approx(case["expect"]["coefficients"], abs=case["tolerance"])
    assert sum(rows.values()) == pytest.approx(case["expect"]["sum"], abs=case["tolerance"])


def test_a_volume_without_a_life_is_a_gap(
    shared: Path, new_day: type[DayBuilder], cost_by: Sums
) -> None:
    case = allocation_cases(shared)["S3-f"]
    assert case["expect"]["error"]
    books = of_case(new_day, case["given"]).line("disk", "vol-0a", 8, 9, "1").attribute()
    disk = books.costs.filter(x_LineId="disk")
    assert cost_by(disk, ("target", "reason")) == {("__unattributed__", "no_samples"): Decimal(1)}
    assert [gap.reason for gap in books.gaps if "pv" in gap.detail] == ["no_samples"]


@pytest.mark.parametrize("lines", ["hourly", "daily"])
def test_hours_add_up_to_days(shared: Path, new_day: type[DayBuilder], lines: str) -> None:
    case = allocation_cases(shared)["B25-a"]
    given = case["given"]
    step = given["window_hours"] if lines == "hourly" else 24
    starts = list(range(0, given["hours"], step))
    whole = pl.DataFrame({"cost": [Decimal(str(given["asset_cost"]))] * len(starts), "at": starts})
    units = whole.with_columns(to_units(pl.col("cost")).alias("units"), one=1, asset=0).lazy()
    cut = split(units, group=["asset"], amounts=["units"], weight="one", order=["at"])
    parts = cut.select(from_units(pl.col("units")).alias("cost")).collect()["cost"]
    rows: dict[str, float] = {"__unattributed__:unmounted": 0.0}
    for number in range(given["hours"] // 24):
        day = new_day().node(interval=given["step_s"]).pod("mounted", interval=given["step_s"])
        volume(mount(day, "mounted"), 0, 24, interval_seconds=given["step_s"])
        for hour in range(0, 24, step):
            cost = parts[(number * 24 + hour) // step]
            day.line(f"disk-{hour}", "vol-0a", hour, hour + step, str(cost))
        for who, cost in by_pod(day.attribute()).items():
            rows[who] = rows.get(who, 0.0) + cost
    assert rows == pytest.approx(case["expect"]["rows"], abs=case["tolerance"])


def test_parts_of_an_estimated_volume_add_up_to_it(shared: Path, new_day: type[DayBuilder]) -> None:
    case = allocation_cases(shared)["B25-b"]
    pv = case["given"]["pv"]
    day = volume(new_day().node(gpus=0), 0, pv["hours"], bytes=pv["gib"] * GIB)
    mount(day.pod("mounted", 0, case["given"]["mounted_hours"]), "mounted")
    books = day.price("storage_gib", str(pv["price_gib_hour"])).attribute()
    rows = by_pod(books)
    assert rows == pytest.approx(case["expect"]["rows"], abs=case["tolerance"])
    assert sum(rows.values()) == pytest.approx(case["expect"]["asset"], abs=case["tolerance"])
    disks = books.costs.filter(pl.col("resource") == "storage")
    assert disks["x_Basis"].unique().to_list() == ["estimated"]
    assert disks["x_PriceSource"].unique().to_list() == ["settings"]
    assert disks["BilledCost"].null_count() == disks.height
    assert "1 volume without a bill line: priced from `prices`, estimated" in books.notes


@pytest.mark.parametrize("name", ["B37-a", "B37-b"])
def test_a_shared_volume_counts_once(shared: Path, new_day: type[DayBuilder], name: str) -> None:
    case = allocation_cases(shared)[name]
    given = case["given"]
    start, end = map(clock, given["pvc"])
    day = of_case(new_day, given)
    for hour in range(int(start), int(end)):
        day.line(f"disk-{hour}", "vol-0a", hour, effective=str(given["price_hour"]))
    rows = by_pod(day.attribute())
    assert rows == pytest.approx(case["expect"]["rows"], abs=case["tolerance"])
    assert sum(rows.values()) == pytest.approx(case["expect"]["total"], abs=case["tolerance"])


def test_a_pod_of_two_containers_pays_for_its_whole_volume(
    shared: Path, new_day: type[DayBuilder]
) -> None:
    """The ledger's unit is the pod: one mount per uid, however many containers are in it."""
    case = allocation_cases(shared)["B37-c"]
    day = volume(new_day().node(gpus=0).pod("s"), 0, 24)
    for _container in case["given"]["pods"]:
        mount(day, "s")
    for hour in range(24):
        day.line(f"disk-{hour}", "vol-0a", hour, effective=f"{case['given']['price_hour']:.12f}")
    assert by_pod(day.attribute()) == pytest.approx(
        {"s": case["expect"]["total"]}, abs=case["tolerance"]
    )


def test_bytes_at_a_monthly_price(shared: Path, new_day: type[DayBuilder]) -> None:
    case = allocation_cases(shared)["B37-d"]
    given = case["given"]
    prices = Prices.model_validate({"storage_gib": str(given["month_price_gib"]), "per": "month"})
    day = volume(new_day().node(gpus=0).pod("p", 0, 1), 0, given["hours"], bytes=given["bytes"])
    mount(day, "p")
    rows = SettingsPrices(prices, "USD").collect(Window.of_day(DAY)).tables["prices"]
    day.rows["prices"] += rows.with_columns(source=pl.lit("prices/settings")).to_dicts()
    assert by_pod(day.attribute()) == pytest.approx(
        {"p": case["expect"]["cost"]}, abs=case["tolerance"]
    )
    day.rows["prices"].clear()
    books = day.attribute()
    assert by_pod(books) == {}
    (gap,) = (gap for gap in books.gaps if "volume" in gap.detail)
    assert (gap.reason, gap.amounts["gib_hours"]) == ("unpriced", case["expect"]["gib"])


def test_a_row_says_which_pod_and_volume(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=0).pod("u", 6, 12, labels={"experiment": "a", "owner": "lin"})
    day.pod("u", 0, 6, state="held", labels={"experiment": "a", "owner": "lin"})
    volume(mount(day, "u"), 0, 24).line("disk", "vol-0a", 0, 24, "24")
    costs = day.attribute().costs.filter(x_LineId="disk")
    kept = costs.select(
        "target", "reason", "experiment", "owner", "phase", "cluster", "namespace", "uid", "pod",
        "resource", "path", "tags", "EffectiveCost",
    ).rows()  # fmt: skip
    pod = ("c1", "research", "u", "pod-u", "storage", "pv", '{"experiment": "a", "owner": "lin"}')
    nobody = ("__unattributed__",) * 3
    free = ("c1", "research", None, None, "storage", "pv", '{"app":"store"}')
    assert sorted(kept, key=str) == sorted(
        [
            ("workload", None, "a", "lin", "wait", *pod, Decimal(6)),
            ("workload", None, "a", "lin", "unknown", *pod, Decimal(6)),
            ("__unattributed__", "unmounted", *nobody, *free, Decimal(12)),
        ],
        key=str,
    )


def test_time_in_which_nobody_looked_is_not_unmounted(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=0, start=6, interval=60).pod("u", 6, 12, interval=60)
    volume(mount(day, "u"), 0, 24).line("disk", "vol-0a", 0, 24, "24")
    books = day.attribute()
    assert cost_by(books.costs.filter(x_LineId="disk"), ("uid", "reason")) == {
        ("u", "no_rule"): Decimal(6),
        (None, "unmounted"): Decimal(12),
        (None, "no_samples"): Decimal(6),
    }
    (gap,) = (gap for gap in books.gaps if gap.reason == "unmounted")
    assert gap.amounts["volume_hours"] == 12


def test_a_blind_day_has_no_unmounted_volumes(new_day: type[DayBuilder], cost_by: Sums) -> None:
    source = PrometheusSource(url="http://127.0.0.1:9")
    blind = Settings(clusters=(Cluster(name="c1", prometheus=source),))
    day = volume(new_day().node(gpus=0), 0, 24).line("disk", "vol-0a", 0, 24, "24")
    disk = day.attribute(blind).costs.filter(x_LineId="disk")
    assert cost_by(disk, "reason") == {"no_samples": Decimal(24)}


def test_one_disk_in_two_clusters_is_one_disk(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=0).node("n2", cluster="c2", gpus=0).pod("a")
    day.pod("b", 12, 24, cluster="c2", node="n2")
    volume(mount(day, "a"), 0, 24)
    volume(mount(day, "b", name="other", cluster="c2"), 0, 24, "other", cluster="c2")
    books = day.line("disk", "vol-0a", 0, 24, "24").attribute()
    assert by_pod(books) == {"a": 18, "b": 6}


def test_credits_follow_their_volume(new_day: type[DayBuilder]) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a", 0, 8), "a"), 0, 24)
    day.line("disk", "vol-0a", 0, 24, "24").line("credit", "vol-0a", 0, 24, "-12")
    assert by_pod(day.attribute()) == {"a": 4, "__unattributed__:unmounted": 8}


@pytest.mark.parametrize(
    ("handle", "resource"),
    [
        ("vol-0a", "arn:aws:ec2:us-east-1:123456789012:volume/vol-0a"),
        ("aws://us-east-1a/vol-0a", "vol-0a"),
        ("projects/p/zones/z/disks/d", "//compute.googleapis.com/projects/p/zones/z/disks/d"),
        (
            "projects/p/zones/z/disks/d",
            "https://www.googleapis.com/compute/v1/projects/p/zones/z/disks/d",
        ),
        (
            "/subscriptions/S/resourceGroups/R/providers/Microsoft.Compute/disks/D",
            "https://management.azure.com/subscriptions/s/resourcegroups/r/providers/"
            "microsoft.compute/disks/d",
        ),
        ("fs-0a::fsap-0b", "arn:aws:elasticfilesystem:us-east-1:123456789012:file-system/fs-0a"),
        ("fs-0a:/home", "fs-0a"),
        ("fs-0a.efs.us-east-1.amazonaws.com", "fs-0a"),
        ("modeInstance/us-central1/share/vol1", "projects/p/locations/us-central1/instances/share"),
    ],
)
def test_a_handle_meets_its_line(new_day: type[DayBuilder], handle: str, resource: str) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a"), "a"), 0, 24, handle=handle)
    assert by_pod(day.line("disk", resource, 0, 24).attribute()) == {"a": 8}


def test_names_of_other_things_stay_as_they_are() -> None:
    names = ["i-0abc", "arn:aws:ec2:us-east-1:1:natgateway/nat-0a", "vol", "fsx", "my-vol-0a.x", ""]
    frame = pl.DataFrame({"name": names})
    assert frame.select(resource_id("name"))["name"].to_list() == names


def test_two_sources_speak_of_one_volume(new_day: type[DayBuilder]) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a", 0, 6), "a"), 0, 24, bytes=GIB)
    seen: dict[str, Any] = {
        "source": "prometheus/c1",
        "interval_seconds": 60.0,
        "bytes": None,
        "labels": None,
    }
    volume(day, 0.5, 23.5, handle=None, **seen)
    volume(day, 1, 23, handle="d", **seen).price("storage_gib", "1")
    assert by_pod(day.attribute()) == {"a": 6, "__unattributed__:unmounted": 18}
    day.line("disk", "vol-0a", 0, 24, "48", ServiceCategory="Storage")
    assert by_pod(day.attribute()) == {"a": 12, "__unattributed__:unmounted": 36}


def test_volumes_of_one_server_are_priced_apart(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=0).pod("a").pod("b")
    volume(mount(day, "a", name="one"), 0, 24, "one", handle="10.0.0.9", bytes=GIB)
    volume(mount(day, "b", name="two"), 0, 24, "two", handle="10.0.0.9", bytes=2 * GIB)
    assert by_pod(day.price("storage_gib", "1").attribute()) == {"a": 24, "b": 48}


def test_a_volume_with_a_line_is_not_priced_again(new_day: type[DayBuilder]) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a"), "a"), 0, 24, bytes=GIB)
    day.price("storage_gib", "1").line("disk", "vol-0a", 0, 6, "6", ServiceCategory="Storage")
    books = day.attribute()
    assert by_pod(books) == {"a": 6 + 18}


def test_a_volume_is_not_priced_beside_a_line_that_may_pay_for_it(
    new_day: type[DayBuilder],
) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a"), "a"), 0, 24, bytes=GIB)
    day.price("storage_gib", "1")
    day.line("all", None, 0, 24, "9", ServiceCategory="Storage", ServiceName="Elastic Block Store")
    books = day.attribute()
    assert by_pod(books) == {}
    (gap,) = (gap for gap in books.gaps if gap.reason == "unpriced" and "volume" in gap.detail)
    assert gap.amounts == {"volume_hours": 24.0, "gib_hours": 24.0}
    day.rows["charges"][0]["ResourceId"] = "vol-0other"
    assert by_pod(day.attribute()) == {"a": 24}
    day.rows["charges"][0] |= {"ResourceId": "rollouts", "ServiceName": "Amazon S3"}
    assert by_pod(day.attribute()) == {"a": 24}


def test_the_price_of_the_class_wins_and_two_are_none(new_day: type[DayBuilder]) -> None:
    day = volume(mount(new_day().node(gpus=0).pod("a"), "a"), 0, 24, bytes=GIB, storage_class="io2")
    day.price("storage_gib", "1").price("storage_gib", "2", instance_type="io2")
    day.price("storage_gib", "3", instance_type="gp3")
    day.price("storage_gib", "4", instance_type="io2", kind="list")
    assert by_pod(day.attribute()) == {"a": 48}
    day.price("storage_gib", "5", instance_type="io2")
    assert by_pod(day.attribute()) == {}


spans = st.tuples(st.integers(0, 24), st.integers(0, 24)).map(sorted)
costs = st.one_of(st.none(), st.decimals(-100, 100, places=5))


@settings(max_examples=SOME)
@given(
    life=spans,
    pods=st.lists(spans, max_size=30),
    lines=st.lists(st.tuples(spans, st.tuples(costs, costs, costs, costs)), max_size=4),
    seed=st.integers(),
)
def test_parts_add_up_whatever_the_order(
    new_day: type[DayBuilder],
    life: list[int],
    pods: list[list[int]],
    lines: list[tuple[list[int], tuple[Decimal | None, ...]]],
    seed: int,
) -> None:
    day = volume(new_day().node(gpus=0), life[0], life[1])
    for number, (born, died) in enumerate(pods):
        day.pod(f"u{number}", born, died)
        mount(day, f"u{number}")
    day.line("whole", "vol-0a", life[0], life[1], "1")
    for number, ((start, end), amounts) in enumerate(lines):
        money: dict[str, Any] = dict(zip(COST_COLUMNS, amounts, strict=True))
        day.line(f"l{number}", "vol-0a", start, max(end, start + 1), **money)
    books = day.attribute()
    for line in day.rows["charges"]:
        parts = books.costs.filter(x_LineId=line["x_LineId"])
        for name in COST_COLUMNS:
            if line[name] is None:
                assert parts[name].null_count() == parts.height > 0
            else:
                assert parts[name].sum() == line[name]
                sign = 1 if line[name] >= 0 else -1
                assert (parts[name].cast(pl.Float64) * sign >= 0).all()
    assert sum(by_pod(books).values()) == pytest.approx(
        float(sum(line["EffectiveCost"] or 0 for line in day.rows["charges"]))
    )
    for rows in day.rows.values():
        random.Random(seed).shuffle(rows)
    assert day.attribute().costs.equals(books.costs)


def test_thousands_of_pods_on_one_volume_stay_small(new_day: type[DayBuilder]) -> None:
    day = volume(new_day().node(gpus=0), 0, 24)
    for number in range(3000):
        day.pod(f"u{number:04}", number / 300, 12 + number / 300)
    mount(day, *(f"u{number:04}" for number in range(3000)))
    costs = day.line("disk", "vol-0a", 0, 24, "24").attribute().costs.filter(x_LineId="disk")
    assert costs.height == 3001
    assert costs["EffectiveCost"].sum() == Decimal(24)
