"""A day's books: who pays, what is named, and what is told about it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution import reconcile
from attribution.day import DayCosts
from ledger.errors import RunbillError
from ledger.settings import Identity, Prices, Settings

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]


def reasons(books: DayCosts) -> set[str]:
    return {gap.reason for gap in books.gaps}


def test_a_late_bill_line_is_split_like_the_others(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=2).pod("u", end=1, gpus=2, labels={"experiment": "a"})
    day.line("use", effective="8").line("credit", until=2, effective="-4", ChargeCategory="Credit")
    assert cost_by(day.attribute().costs) == {"a": Decimal("1.5"), "__idle__": Decimal("2.5")}


def test_unseen_time_is_named_and_not_idle(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=0.5, interval=60).line("l", effective="8")
    day.pod("u", 0, 0.5, gpus=8, labels={"experiment": "a"}, interval=60)
    books = day.attribute()
    assert cost_by(books.costs, ("experiment", "reason")) == {
        ("a", None): Decimal(4),
        ("__unattributed__", "no_samples"): Decimal(4),
    }
    assert books.coverage == 0.5
    gap = next(gap for gap in books.gaps if gap.reason == "no_samples")
    assert gap.amounts == {"node_hours": 0.5, "gpu_hours": 4.0}
    assert "00:30:00-24:00:00" in gap.detail


def test_a_node_that_boots_inside_its_paid_hour_is_idle_before(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node("n2").node(start=0.75, end=2)
    day.line("l", effective="4", ConsumedQuantity=Decimal("0.5"), ConsumedUnit="Hrs")
    day.pod("u", 0.75, 1, gpus=8, labels={"experiment": "a"})
    assert cost_by(day.attribute().costs) == {"a": Decimal(2), "__idle__": Decimal(2)}


def test_cards_that_the_node_does_not_know_make_it_unattributed(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=None, end=2).line("l").pod("u", end=1, gpus=8)
    books = day.attribute()
    assert cost_by(books.costs, ("target", "reason", "resource")) == {
        ("__unattributed__", "capacity_unknown", None): Decimal(8)
    }
    assert "capacity_unknown" in reasons(books)


def test_a_node_without_cpu_capacity_is_unattributed(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=0, cpu_millicores=None).line("l").pod("u", cpu_millicores=1000)
    assert cost_by(day.attribute().costs, "reason") == {"capacity_unknown": Decimal(8)}


def test_node_hours_without_a_line_are_estimated(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=0.5, gpu_model="NVIDIA-H100-80GB-HBM3")
    day.price("gpu", "2.5", gpu_model="H100").price("gpu", "1", gpu_model="default")
    day.price("gpu", "9", gpu_model="H10").pod("u", end=0.5, gpus=6, labels={"experiment": "a"})
    costs = day.attribute().costs
    assert cost_by(costs) == {"a": Decimal("7.5"), "__idle__": Decimal("2.5")}
    assert costs["x_Basis"].unique().to_list() == ["estimated"]
    assert costs["BilledCost"].null_count() == costs.height


def test_a_line_ends_the_estimate_of_its_hour(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=2, gpu_model="H100").price("gpu", "1", gpu_model="H100").line("l")
    assert cost_by(day.attribute().costs, "x_Basis") == {
        "billed": Decimal(8),
        "estimated": Decimal(8),
    }


@pytest.mark.parametrize("second", [None, "3"])
def test_an_unknown_or_ambiguous_price_is_a_gap_with_its_card_hours(
    new_day: type[DayBuilder], second: str | None
) -> None:
    day = new_day().node(end=2, gpu_model="B300").price("gpu", "1", gpu_model="H100")
    if second:
        day.price("gpu", "2", gpu_model="B300").price("gpu", second, gpu_model="B300")
    books = day.attribute()
    assert books.costs.is_empty()
    gap = next(gap for gap in books.gaps if gap.reason == "unpriced")
    assert gap.amounts == {"node_hours": 2.0, "gpu_hours": 16.0}


def test_cards_of_an_unknown_number_are_not_priced_as_cpu(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=None, gpu_model="NVIDIA-A100-MIG-1g.5gb", end=2)
    day.price("vcpu", "0.03").price("gib", "0.004").price("gpu", "2", gpu_model="A100")
    books = day.pod("u", end=1, cpu_millicores=1000).attribute()
    assert books.costs.is_empty()
    # The price is known and the number is not: one condition, one name.
    assert "capacity_unknown" in reasons(books)
    assert "unpriced" not in reasons(books)


def test_cards_of_an_unknown_number_are_not_split_as_cpu(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=None, gpu_model="NVIDIA-A100-MIG-1g.5gb", end=1).line("l")
    day.pod("u", end=1, cpu_millicores=1000)
    assert cost_by(day.attribute().costs, "reason") == {"capacity_unknown": Decimal(8)}


def test_a_cpu_node_is_estimated_by_its_size(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=0, cpu_millicores=4000, memory_bytes=16 * 2**30, end=1)
    day.price("vcpu", "0.031611").price("gib", "0.004237").pod("u", node=None)
    assert cost_by(day.attribute().costs) == {"__idle__": Decimal("0.194236")}


def test_other_lines_go_to_their_tags(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day()
    day.line("a", "s3-a", Tags='{"user:experiment":"a","owner":"lin"}')
    day.line("b", "s3-b", Tags='{"owner":"lin"}').line("c", "s3-c").line("d", None)
    day.line("e", "plan", CommitmentDiscountStatus="Unused", Tags='{"experiment":"a"}')
    keys = ("target", "experiment", "owner", "reason")
    assert cost_by(day.attribute().costs, keys) == {
        ("charge", "a", "lin", None): Decimal(8),
        ("charge", "__unattributed__", "lin", "no_rule"): Decimal(8),
        ("__unattributed__", "__unattributed__", "__unattributed__", "no_rule"): Decimal(16),
        ("__shared__", "__shared__", "__shared__", None): Decimal(8),
    }


def test_a_pod_that_no_rule_names_stays_a_workload(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    costs = new_day().node(end=1).line("l").pod("u", end=1, gpus=8).attribute().costs
    assert cost_by(costs, ("target", "experiment", "reason", "project", "phase")) == {
        ("workload", "__unattributed__", "no_rule", "research", "unknown"): Decimal(8)
    }


def test_labels_that_change_split_the_cost_there(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1).line("l").pod("u", 0, 0.25, gpus=8, labels={"experiment": "a"})
    day.pod("u", 0.25, 1, gpus=8, labels={"experiment": "b"})
    assert cost_by(day.attribute().costs) == {"a": Decimal(2), "b": Decimal(6)}


def test_active_cost_follows_the_cards_of_the_pod(new_day: type[DayBuilder]) -> None:
    day = new_day().node(end=1).line("l").pod("u", 0, 1, gpus=2, labels={"experiment": "a"})
    day.pod("dark", 0, 1, gpus=2, labels={"experiment": "b"})
    day.pod("rider", 0, 1, cpu_millicores=1000, labels={"experiment": "c"})
    for slot in range(4):
        day.use("u", "gpu_activity", slot / 4, 1.5, device="0")
        day.use("u", "gpu_activity", slot / 4, 0.5, device="1")
    costs = day.attribute().costs
    active = {
        row["experiment"]: (row["EffectiveCost"], row["ActiveCost"])
        for row in costs.iter_rows(named=True)
    }
    gpu = (Decimal(8) - Decimal("0.031611")) / 4
    assert active == {
        "a": (gpu, gpu * Decimal("0.75")),
        "b": (gpu, None),
        "c": (Decimal("0.031611"), Decimal("0.031611")),
        "__idle__": (2 * gpu, Decimal(0)),
    }


@pytest.mark.parametrize(
    ("cards", "slots", "samples", "active"),
    [
        (2, 4, 15, "6"),
        (2, 4, 14, "6"),  # a tenth may be missing
        (2, 4, 10, None),
        (2, 3, 15, None),
        (1, 4, 15, None),
    ],
)
def test_activity_of_a_part_of_the_cards_or_the_time_is_not_that_of_all(
    new_day: type[DayBuilder], cards: int, slots: int, samples: int, active: str | None
) -> None:
    day = new_day().node(gpus=2, end=1).line("l").pod("u", end=1, gpus=2)
    for slot in range(slots):
        for card in range(cards):
            told: dict[str, Any] = {"device": str(card), "samples": samples, "expected": 15}
            day.use("u", "gpu_activity", slot / 4, 0.75, **told)
    (found,) = day.attribute().costs["ActiveCost"]
    assert found == (None if active is None else Decimal(active))


def test_the_edges_of_a_short_life_may_miss_two_samples(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=1, end=1).line("l").pod("u", 0, 0.1, gpus=1)
    day.use("u", "gpu_activity", 0, 0.5, device="0", samples=4, expected=15)
    (found,) = day.attribute().costs.filter(target="workload")["ActiveCost"]
    assert found == Decimal("0.4")


def test_whether_a_machine_without_a_node_worked_is_not_known(new_day: type[DayBuilder]) -> None:
    day = new_day().line("vm", "x", ServiceCategory="Compute", Tags='{"experiment":"a"}')
    day.line("untagged", "y", ServiceCategory="Compute").line("s3", "z", ServiceCategory="Storage")
    day.line("unused", "plan", ServiceCategory="Compute", CommitmentDiscountStatus="Unused")
    costs = day.attribute().costs
    assert dict(costs.select("x_LineId", "ActiveCost").iter_rows()) == {
        "vm": None,
        "untagged": None,
        "s3": Decimal(8),
        "unused": Decimal(0),
    }


def test_card_seconds_stand_on_one_line(new_day: type[DayBuilder]) -> None:
    day = new_day().node(end=1).pod("u", end=1, gpus=6, labels={"experiment": "a"})
    day.line("small", effective="1").line("big", effective="7").line("credit", effective="-2")
    costs = day.attribute().costs
    rows = costs.filter(pl.col("gpu_seconds").is_not_null())
    assert rows["x_LineId"].unique().to_list() == ["big"]
    assert dict(rows.select("experiment", "gpu_seconds").iter_rows()) == {
        "a": Decimal(6 * 3600),
        "__idle__": Decimal(2 * 3600),
    }


def test_dimension_follows_the_phase(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1).line("l")
    for phase in ("reward", "data", "evaluation", "update"):
        day.pod(phase, end=1, gpus=2, labels={"phase": phase})
    assert cost_by(day.attribute().costs, "x_Dimension") == {
        "evaluation": Decimal(4),
        "data": Decimal(2),
        "compute": Decimal(2),
    }


def test_currencies_are_split_apart(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1).pod("r", end=1, cpu_millicores=1_000_000)
    day.line("l").line("m", effective="100", BillingCurrency="CNY")
    keys = ("BillingCurrency", "resource")
    assert cost_by(day.attribute().costs, keys) == {
        ("USD", "cpu"): Decimal(4),
        ("USD", "gpu"): Decimal(4),
        ("CNY", "cpu"): Decimal(50),
        ("CNY", "gpu"): Decimal(50),
    }


def test_riders_of_another_currency_pay_by_the_weights_of_their_node(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).pod("r", end=1, cpu_millicores=4000, memory_bytes=16 * 2**30)
    books = day.line("m", effective="449.6", BillingCurrency="CNY").attribute()
    # Of 90 per card, 9 per vCPU and 1 per GiB the node has 4496, the pod 36 and 16.
    assert cost_by(books.costs, "resource") == {
        "cpu": Decimal("3.6"),
        "memory": Decimal("1.6"),
        "gpu": Decimal("444.4"),
    }
    assert any("CNY" in note and "aws-split" in note for note in books.notes)
    own = Settings(currency="CNY", prices=Prices(vcpu=Decimal(1), gib=Decimal(0)))
    books = day.attribute(own)
    assert cost_by(books.costs, "resource")["cpu"] == 4
    assert not any("aws-split" in note for note in books.notes)


def test_the_built_in_rates_are_not_used_in_silence(new_day: type[DayBuilder]) -> None:
    day = new_day().node(gpus=0, end=1).price("vcpu", "0.031611").price("gib", "0.004237")
    notes = day.attribute(Settings(prices=Prices(gpu={"H100": Decimal(2)}))).notes
    assert any("built-in reference rates" in note for note in notes)
    own = Prices(vcpu=Decimal("0.031611"), gib=Decimal("0.004237"))
    assert not any("built-in" in note for note in day.attribute(Settings(prices=own)).notes)


def test_the_provider_is_who_serves_and_not_who_sells(new_day: type[DayBuilder]) -> None:
    day = new_day().line("a", "x", ProviderName="Reseller", ServiceProviderName="AWS")
    day.line("b", "y", ProviderName="Oracle")
    assert set(day.attribute().costs["ProviderName"]) == {"AWS", "Oracle"}


def test_a_price_in_a_small_currency_does_not_overflow(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).pod("u", end=1, gpus=2, labels={"experiment": "a"})
    day.pod("r", end=1, cpu_millicores=1000, labels={"experiment": "r"})
    rows = cost_by(day.line("l", effective="400000000").attribute().costs)
    assert sum(rows.values()) == 400_000_000
    assert float(rows["a"]) == pytest.approx(100_000_000)


def test_unknown_columns_stay_unknown_and_are_counted(new_day: type[DayBuilder]) -> None:
    day = new_day().node(end=1).pod("u", end=1, gpus=4).line("l", ListCost=None)
    books = day.attribute()
    assert books.costs["ListCost"].null_count() == books.costs.height
    assert books.daily["ListCost"].null_count() == books.daily.height
    assert books.daily["ListCost_unknown"].sum() == books.costs.height


def test_what_does_not_meet_is_named(new_day: type[DayBuilder]) -> None:
    day = new_day().node().node("n2").line("l").pod("x", node="nowhere", gpus=1)
    day.pod("y", labels={"label_experiment_conflict1": "a", "label_experiment_conflict2": "b"})
    assert {"unmatched_node", "unknown_node", "ambiguous_label", "unpriced"} <= reasons(
        day.attribute()
    )


def test_rules_of_the_settings_replace_the_defaults(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).line("l").pod("u", end=1, gpus=8, namespace="team-a")
    settings = Settings(
        identity=Identity(owner=("label:owner", "default:unowned"), experiment=("namespace",))
    )
    assert cost_by(day.attribute(settings).costs, ("experiment", "owner")) == {
        ("team-a", "unowned"): Decimal(8)
    }


@pytest.mark.parametrize(
    ("provider", "resource"),
    [
        ("aws:///us-east-1a/i-0abc", "i-0abc"),
        ("aws:///us-east-1a/i-0abc", "arn:aws:ec2:us-east-1:1:instance/i-0abc"),
        ("gce://proj/us-c1/vm", "//compute.googleapis.com/projects/proj/zones/us-c1/instances/vm"),
        (
            "azure:///subscriptions/S/resourceGroups/R/providers/x/VM",
            "/subscriptions/s/resourcegroups/r/providers/X/vm",
        ),
        ("slurm://gpu-1", "slurm://gpu-1"),
    ],
)
def test_provider_ids_meet_resource_ids(
    new_day: type[DayBuilder], provider: str, resource: str
) -> None:
    day = new_day().node(provider_id=provider).line("l", resource).line("o", resource + "0")
    costs = day.attribute().costs
    assert costs.filter(node="n1")["x_LineId"].unique().to_list() == ["l"]


def test_books_that_do_not_balance_are_refused() -> None:
    lines = pl.DataFrame({"line": [1, 2], "units": [10, None]})
    good = pl.DataFrame({"line": [1, 1, 2], "units": [4, 6, None]})
    reconcile.check(lines, good, ("units",))
    for units in ([4, 5, None], [4, None, None], [4, 6, 0]):
        with pytest.raises(RunbillError, match="1 bill lines"):
            reconcile.check(lines, good.with_columns(units=pl.Series(units)), ("units",))
    with pytest.raises(RunbillError):
        reconcile.check(lines, good.filter(pl.col("line") == 1), ("units",))


def test_an_empty_day_is_an_empty_book(new_day: type[DayBuilder]) -> None:
    books = new_day().attribute()
    assert (books.costs.height, books.daily.height, books.gaps, books.coverage) == (0, 0, (), None)
