"""Jobs of Slurm inside pods: each is paid by its job, nothing twice, what no job holds is idle."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.schema import RESOURCES
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
HOSTNAME = "nodeset.slinky.slurm.net/pod-hostname"
GIB = 2**30


def told(day: DayBuilder, start: float = 0, end: float = 24) -> DayBuilder:
    """Accounting tells every job of that time."""
    from tests.attribution.conftest import DAY, at

    spans = [[(at(0) + timedelta(hours=each)).isoformat() for each in (start, end)]]
    row = {
        "day": DAY,
        "source": "slurm/c1",
        "cluster": "c1",
        "kind": "SlurmAccounting",
        "name": "c1",
        "configuration": json.dumps({"covered": spans}),
    }
    day.rows[RESOURCES.name].append(row)
    return day


def worker(day: DayBuilder, uid: str = "w", host: str = "slinky-0", **fields: object) -> DayBuilder:
    """A pod of a node set with all cards of its node."""
    base: dict[str, Any] = {"gpus": 8, "gpu_resource": "nvidia.com/gpu", "root_kind": "NodeSet"}
    return day.pod(uid, **{"labels": {HOSTNAME: host}, "root_name": "gpu", **base, **fields})


def job(
    day: DayBuilder,
    name: str,
    start: float,
    end: float,
    gpus: int | None,
    node: str = "slinky-0",
    **fields: object,
) -> DayBuilder:
    """A job on a node of Slurm."""
    request = None if gpus is None else json.dumps({"gres/gpu": gpus}, separators=(",", ":"))
    base: dict[str, object] = {
        "source": "slurm/c1",
        "pod": name,
        "gpus": gpus,
        "gpu_resource": "gres/gpu",
        "gpu_request": request,
        "root_kind": "SlurmJob",
        "root_name": f"run-{name}",
    }
    more: dict[str, Any] = base | fields
    labels = {"slurm/job-id-raw": name, "slurm/user": "lin"}
    text = json.dumps(labels, sort_keys=True, separators=(",", ":"))
    day.pod(f"slurm/{name}", start, end, node=node, interval=0, **more)
    day.rows["workloads"][-1]["labels"] = text
    return day


def priced(new_day: type[DayBuilder]) -> DayBuilder:
    """A node of 8 cards for a day at 192: one per card-hour."""
    return new_day().node(gpus=8).line("l", until=24, effective="192")


def test_jobs_pay_for_their_cards_and_the_rest_is_idle(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = told(worker(priced(new_day)))
    job(day, "1", 2, 6, 4)
    job(day, "2", 4, 10, 4)
    costs = day.attribute().costs
    assert cost_by(costs) == {
        "run-1": Decimal(16),
        "run-2": Decimal(24),
        "__idle__": Decimal(152),
    }
    assert cost_by(costs, "owner")["lin"] == Decimal(40)
    assert set(costs.filter(pl.col("uid").is_not_null())["node"]) == {"n1"}


def test_where_not_every_job_is_told_the_pod_keeps_the_rest(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = told(worker(priced(new_day)), 0, 12)
    job(day, "1", 10, 14, 6)
    assert cost_by(day.attribute().costs) == {
        "run-1": Decimal(24),
        "gpu": Decimal(2 * 2 + 10 * 8),  # of 12:00 to 14:00, and after
        "__idle__": Decimal(10 * 8 + 2 * 2),
    }


def test_without_accounting_the_pod_holds_all(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = worker(priced(new_day))
    assert cost_by(day.attribute().costs) == {"gpu": Decimal(192)}


def test_a_node_set_without_jobs_is_idle(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = told(worker(priced(new_day)))
    assert cost_by(day.attribute().costs) == {"__idle__": Decimal(192)}


def test_jobs_that_claim_more_than_their_pod_are_scaled_to_it(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = told(worker(priced(new_day), gpus=4)).pod("x", gpus=4, root_name="other")
    job(day, "1", 0, 24, 4)
    job(day, "2", 0, 24, 4)
    assert cost_by(day.attribute().costs) == {
        "run-1": Decimal(48),
        "run-2": Decimal(48),
        "other": Decimal(96),
    }


def test_a_pod_that_asks_for_no_card_sees_those_of_its_node(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = told(worker(priced(new_day), gpus=0, gpu_resource=None))
    job(day, "1", 0, 12, 8)
    assert cost_by(day.attribute().costs) == {"run-1": Decimal(96), "__idle__": Decimal(96)}


def test_jobs_are_found_by_pod_name_sanitised_label_and_host_network(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    sanitised = {"label_nodeset_slinky_slurm_net_pod_hostname": "slinky-0"}
    for labels, node, pod in (
        (sanitised, "slinky-0", "any"),
        ({}, "worker-0", "worker-0"),
        ({"nodeset.slinky.slurm.net/pod-index": "0"}, "n1", "any"),
    ):
        day = told(worker(priced(new_day), labels=labels, pod=pod))
        job(day, "1", 0, 12, 8, node=node)
        assert cost_by(day.attribute().costs) == {"run-1": Decimal(96), "__idle__": Decimal(96)}


def test_a_job_outside_the_life_of_its_pod_is_named(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = told(worker(priced(new_day), start=0, end=12))
    job(day, "1", 6, 18, 8)
    books = day.attribute()
    assert cost_by(books.costs) == {"run-1": Decimal(48), "__idle__": Decimal(144)}
    assert [(gap.reason, gap.amounts["gpu_hours"]) for gap in books.gaps] == [("no_samples", 48.0)]


def test_a_pod_that_slurm_placed_counts_once(new_day: type[DayBuilder], cost_by: Sums) -> None:
    """slurm-bridge: the job stands in accounting, and its pod names it."""
    day = told(priced(new_day))
    bridged = {"scheduler.slinky.slurm.net/slurm-jobid": "7"}
    day.pod("p", 0, 12, gpus=8, labels=bridged, root_name="bridged")
    job(day, "7", 0, 12, 8, node="n1")
    assert cost_by(day.attribute().costs) == {"bridged": Decimal(96), "__idle__": Decimal(96)}


def test_what_a_job_holds_is_not_known(new_day: type[DayBuilder]) -> None:
    day = told(worker(priced(new_day)))
    job(day, "1", 0, 1, None)
    books = day.attribute()
    assert [gap.reason for gap in books.gaps] == ["no_samples"]
    lost = books.costs.filter(reason="no_samples")["EffectiveCost"].sum()
    assert lost == Decimal(8)


def test_cpu_of_nodes_without_cards(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=0, cpu_millicores=10_000, memory_bytes=10 * GIB, end=1)
    day.line("l", effective="10")
    told(worker(day, end=1, gpus=0, gpu_resource=None, cpu_millicores=8000, memory_bytes=8 * GIB))
    for name in "12":  # together they claim 10 of the pod's 8 cores
        job(day, name, 0, 1, 0, cpu_millicores=5000, memory_bytes=2 * GIB)
    assert cost_by(day.attribute().costs) == {
        "run-1": Decimal("3.8"),  # 9 of 10 for CPU: 4 of 10 cores; 1 of 10 for 2 of 10 GiB
        "run-2": Decimal("3.8"),
        "__idle__": Decimal("2.4"),
    }


def test_a_job_alone_in_its_pod_did_what_the_cards_did(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=1, end=3).line("l", until=3, effective="3")
    told(worker(day, end=3, gpus=1))
    job(day, "1", 0, 1, 1)
    job(day, "2", 1, 1.9, 1)  # the last quarter is the job's in part only
    for quarter in range(8):
        day.use("w", "gpu_activity", quarter / 4, 0.5, device="GPU-0")
    costs = day.attribute().costs
    active = cost_by(costs.filter(pl.col("ActiveCost").is_not_null()), cost="ActiveCost")
    assert active["run-1"] == Decimal("0.5")
    assert "run-2" not in active


@settings(max_examples=examples(15))
@given(
    st.lists(
        st.tuples(st.integers(0, 23), st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=5
    ),
    st.sampled_from([2, 4, 8]),
    st.integers(0, 24),
)
def test_the_shares_of_jobs_and_their_pod_add_up_to_what_the_pod_holds(
    jobs: list[tuple[int, int, int]], size: int, until: int
) -> None:
    from tests.attribution.conftest import DayBuilder, sums

    day = told(worker(priced(DayBuilder), gpus=size), 0, until)
    held = [0.0] * 24
    for number, (start, length, gpus) in enumerate(jobs):
        end = min(start + length, 24)
        job(day, str(number), start, end, gpus)
        for hour in range(start, end):
            held[hour] += gpus
    found = sums(day.attribute().costs)
    of_jobs = sum(cost for name, cost in found.items() if name.startswith("run-"))
    expected = sum(min(each, size) for each in held)
    assert float(of_jobs) == pytest.approx(expected, abs=1e-9)
    rest = sum(max(size - held[hour], 0) for hour in range(until, 24))
    assert float(found.get("gpu", 0)) == pytest.approx(rest, abs=1e-9)
    assert sum(found.values()) == Decimal(192)
