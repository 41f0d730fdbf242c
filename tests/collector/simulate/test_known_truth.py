"""The truth: worked by hand for small worlds, and adding up to the bill for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.simulate import WorldOptions, simulate
from collector.simulate.bills import build_lines
from collector.simulate.document import truth_document
from collector.simulate.model import Container, Line, Node, Pod, World
from collector.simulate.nodes import GIB
from collector.simulate.options import DAY, HOUR, MINUTE
from collector.simulate.shares import money, units
from collector.simulate.truth import IDLE, UNATTRIBUTED, work_out

END = date(2026, 11, 30)
OPTIONS = WorldOptions(end=END, days=1)
START = OPTIONS.start_ms
GPU_NODE = Node(
    name="gpu",
    pool="train",
    instance_type="p5.48xlarge",
    instance_id="i-1",
    zone="us-east-1a",
    cpu_millicores=192_000,
    memory_bytes=2048 * GIB,
    gpus=8,
    gpu_model="H100",
    launched=START - DAY,
    created=START - DAY,
    rate=Decimal("98.32"),
    discount=0,
)
CPU_NODE = replace(
    GPU_NODE,
    name="cpu",
    gpus=0,
    gpu_model=None,
    instance_id="i-2",
    cpu_millicores=4000,
    memory_bytes=16 * GIB,
    rate=Decimal(1),
)


def hour_line(node: Node, price: str, hours: str = "1", **facts: str) -> Line:
    cost = Decimal(price)
    return Line(
        node=node.name,
        resource_id=node.resource_id,
        resource_type="Instance",
        service="Amazon Elastic Compute Cloud",
        start=START,
        end=START + HOUR,
        billed=cost,
        effective=cost,
        contracted=cost,
        listed=cost,
        description="hour",
        quantity=Decimal(hours),
        unit="Hours",
        **facts,  # type: ignore[arg-type]  # category is a text, too
    )


def pod(name: str, node: Node, cards: int, millicores: int, memory: int, **facts: int) -> Pod:
    times = {"bound": START, "started": START, "finished": START + HOUR, **facts}
    return Pod(
        uid=name,
        namespace="n",
        name=name,
        node=node.name,
        experiment=name,
        phase="update",
        containers=(Container("main", millicores, memory, cards),),
        bound=times["bound"],
        started=times["started"],
        finished=times["finished"],
    )


def costs(
    pods: Sequence[Pod],
    lines: Sequence[Line],
    options: WorldOptions = OPTIONS,
    nodes: Sequence[Node] = (GPU_NODE, CPU_NODE),
) -> dict[str, str]:
    """Effective cost by target, phase or reason."""
    truth = work_out(World(options, tuple(nodes), tuple(pods), tuple(lines)))
    sums: dict[str, int] = defaultdict(int)
    for rows in truth.days.values():
        for key, amount in rows.items():
            sums["/".join(filter(None, (key.target, key.phase, key.reason)))] += amount.effective
    return {name: money(amount) for name, amount in sums.items()}


def test_riders_pay_reference_rates_and_cards_the_rest() -> None:
    """p5.48xlarge at 98.32: a 4-vCPU, 16-GiB exporter pays .194236, a card 12.2657205."""
    found = costs(
        [pod("rider", GPU_NODE, 0, 4000, 16 * GIB), pod("run", GPU_NODE, 6, 9000, GIB)],
        [hour_line(GPU_NODE, "98.32")],
    )
    assert found == {
        "rider/update": "0.194236000000",
        "run/update": "73.594323000000",
        IDLE: "24.531441000000",
    }


def test_a_cpu_node_splits_nine_to_one() -> None:
    """m5.xlarge (4 vCPU, 16 GiB) at 1: 9/52 a vCPU-hour, 1/52 a GiB-hour."""
    found = costs(
        [pod("a", CPU_NODE, 0, 1000, 0), pod("b", CPU_NODE, 0, 0, GIB)], [hour_line(CPU_NODE, "1")]
    )
    assert found == {
        "a/update": "0.173076923077",
        "b/update": "0.019230769231",
        IDLE: "0.807692307692",
    }


@pytest.mark.parametrize(
    ("price", "millicores", "gibibytes", "paid"),
    [
        ("100", 150_000, 1000, "8.978650000000"),  # what they asked for, at the reference rates
        ("100", 300_000, 3000, "14.746688000000"),  # all that the node's CPU and memory are worth
        ("10", 150_000, 1000, "5.000000000000"),  # half of the node
    ],
)
def test_riders_are_capped(price: str, millicores: int, gibibytes: int, paid: str) -> None:
    found = costs(
        [pod("rider", GPU_NODE, 0, millicores, gibibytes * GIB)], [hour_line(GPU_NODE, price)]
    )
    assert found == {"rider/update": paid, IDLE: f"{Decimal(price) - Decimal(paid):.12f}"}


def test_a_held_pod_waits_at_its_owners_cost() -> None:
    held = pod("run", GPU_NODE, 8, 0, 0, started=START + 45 * MINUTE)
    assert costs([held], [hour_line(GPU_NODE, "8")]) == {
        "run/wait": "6.000000000000",
        "run/update": "2.000000000000",
    }


def test_overcommit_shares_and_idle_stays_at_nothing() -> None:
    found = costs(
        [pod("a", CPU_NODE, 0, 6000, 8 * GIB), pod("b", CPU_NODE, 0, 2000, 8 * GIB)],
        [hour_line(CPU_NODE, "52")],
    )
    assert found == {"a/update": "35.000000000000", "b/update": "17.000000000000"}


def test_a_credit_is_split_like_the_charge() -> None:
    found = costs(
        [pod("run", GPU_NODE, 2, 0, 0)],
        [hour_line(GPU_NODE, "8"), hour_line(GPU_NODE, "-1", category="Credit")],
    )
    assert found == {"run/update": "1.750000000000", IDLE: "5.250000000000"}


def test_a_node_of_half_an_hour_is_paid_for_half_an_hour() -> None:
    young = replace(GPU_NODE, created=START + 30 * MINUTE)
    run = pod(
        "run",
        GPU_NODE,
        8,
        0,
        0,
        bound=START + 30 * MINUTE,
        started=START + 30 * MINUTE,
        finished=START + 45 * MINUTE,
    )
    found = costs([run], [hour_line(GPU_NODE, "4", "0.5")], nodes=[young])
    assert found == {"run/update": "2.000000000000", IDLE: "2.000000000000"}


def test_what_nobody_saw_is_neither_idle_nor_anybodys() -> None:
    blind = WorldOptions(end=END, days=1, outage_hours=1)
    assert blind.outage is not None
    at = blind.outage[0]
    line = replace(hour_line(GPU_NODE, "8"), start=at - HOUR, end=at + HOUR)
    run = pod("run", GPU_NODE, 4, 0, 0, bound=at - HOUR, started=at - HOUR, finished=at + HOUR)
    assert costs([run], [line], blind) == {
        "run/update": "2.000000000000",
        IDLE: "2.000000000000",
        f"{UNATTRIBUTED}/no_samples": "4.000000000000",
    }


def test_a_pod_that_nobody_can_name_is_unattributed() -> None:
    nameless = replace(pod("x", GPU_NODE, 8, 0, 0), experiment=None)
    assert costs([nameless], [hour_line(GPU_NODE, "8")]) == {
        f"{UNATTRIBUTED}/no_rule": "8.000000000000"
    }


def test_only_the_pod_between_two_scrapes_may_be_missed() -> None:
    truth = work_out(simulate(WorldOptions(end=END, days=7)))
    assert set(truth.errors) == {"smoke-test", IDLE}
    cost = sum(
        amount.effective
        for rows in truth.days.values()
        for key, amount in rows.items()
        if key.target == "smoke-test"
    )
    assert 0 < cost < truth.errors["smoke-test"] < 2 * cost


worlds = st.builds(
    WorldOptions,
    seed=st.integers(0, 2**32),
    days=st.integers(1, 3),
    nodes=st.integers(3, 8),
    gpus_per_node=st.integers(1, 8),
    cpu_nodes=st.integers(1, 2),
    end=st.dates(date(2024, 1, 5), date(2026, 12, 31)),
    outage_hours=st.integers(0, 3),
    interval=st.sampled_from([30, 60, 300]),
    timezone=st.sampled_from(["Asia/Shanghai", "UTC", "America/New_York"]),
)


@settings(max_examples=25, deadline=None)
@given(options=worlds)
def test_every_day_adds_up_to_its_bill(options: WorldOptions) -> None:
    world = simulate(options)
    truth = work_out(world)
    assert len(truth.days) == options.days
    for day, rows in truth.days.items():
        today = [
            line for line in world.lines if day <= line.start < day + DAY and line.end <= day + DAY
        ]
        fees = [
            line
            for line in world.lines
            if line.end - line.start > DAY and line.start <= day < line.end
        ]
        for column, name in enumerate(("effective", "billed")):
            bill = sum(units(getattr(line, name)) for line in today)
            fee = sum(units(getattr(line, name)) * DAY / (line.end - line.start) for line in fees)
            total = sum(amount[column] for amount in rows.values())
            assert abs(total - bill - fee) <= 2 + fee * 1e-12
        assert all(amount.effective >= 0 for key, amount in rows.items() if key.target == IDLE)


def test_a_months_fee_adds_up_over_the_month() -> None:
    november = WorldOptions(end=END, days=30)
    fees = [line for line in build_lines(november, ()) if "Support" in line.service]
    truth = work_out(World(november, (), (), tuple(fees)))
    assert len(fees) == 1
    assert sum(amount.billed for rows in truth.days.values() for amount in rows.values()) == units(
        fees[0].billed
    )


def test_the_document_adds_up_to_its_totals() -> None:
    world = simulate(WorldOptions(end=END, days=3, outage_hours=2))
    document = truth_document(world, work_out(world))

    def total(figures: object, column: str) -> Decimal:
        assert isinstance(figures, dict)
        parts = ("nodes", "idle", "unattributed", "lines")
        return sum((Decimal(row[column]) for part in parts for row in figures[part]), Decimal(0))

    whole = document["total"]
    assert isinstance(whole, dict)
    assert isinstance(document["days"], list)
    for figures in (whole, *document["days"]):
        for column in ("cost", "billed"):
            assert total(figures, column) == Decimal(figures[column])
    assert isinstance(document["targets"], list)
    assert sum(Decimal(row["cost"]) for row in document["targets"]) == Decimal(whole["cost"])
    assert sum(Decimal(day["cost"]) for day in document["days"]) == Decimal(whole["cost"])


@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_names_what_the_story_tells(seed: int) -> None:
    truth = work_out(simulate(WorldOptions(seed=seed, end=END, days=7)))
    found = {(key.target, key.phase) for rows in truth.days.values() for key in rows}
    assert {
        ("grpo-7b", "rollout"),
        ("grpo-7b", "update"),
        ("grpo-7b", "wait"),
        ("sft-7b-lora", "update"),
        ("eval-math", "evaluation"),
        ("sft-data", "data"),
        ("judge-rm", "reward"),
        ("ablation", "wait"),
        ("smoke-test", "unknown"),
    } <= found
    assert any(target.startswith("sft-14b-full") for target, _ in found)
