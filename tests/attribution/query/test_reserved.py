"""``query --quota``: from the tables to rows; what is reserved leaves idle and nothing is added."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from attribution.query.answer import Match, Query, Share, Sharing, query
from ledger.schema import COSTS, NODES, RESOURCES
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.query_books import DAY, days_before, row, write

WINDOW = Window.of_day(DAY)
QUOTA = {
    "hard": {"requests.cpu": "10", "memory": "32Gi", "limits.cpu": "90", "pods": "10"},
    "used": {"requests.cpu": "1500m", "memory": "8Gi"},
}
"""Of the case S18; what pods use, 2 cores, is more than they ask for."""
EVERYTHING = {"hard": {"cpu": "1E"}, "used": {"cpu": "0"}}
SIZE = {"cpu_millicores": 20_000, "memory_bytes": 64 * 2**30}


def books(
    tmp_path: Path, quotas: dict[str, Any], rows: list[dict[str, Any]], **node: object
) -> Ledger:
    """A node of 20 cores at 0.05 and 64 GiB at 0.01, of which 12 and 30 are idle for a day."""
    ledger = write(Ledger.open(str(tmp_path / "ledger"), create=True), rows)
    day = WINDOW.start
    seen = {"day": DAY, "cluster": "c", "node": "n", "start": day, "end": day + timedelta(days=1)}
    nodes = pl.DataFrame([{**seen, **SIZE, **node}], schema_overrides={"gpus": pl.Int64})
    for source in ("kubernetes", "prometheus"):  # both see it: it is there once
        ledger.replace(NODES, _full(nodes, NODES.schema), WINDOW, source)
    found = [
        {
            "day": DAY,
            "cluster": "c",
            "kind": "ResourceQuota",
            "namespace": name.split("/")[0],
            "name": name,
            "configuration": json.dumps(quota),
        }
        for name, quota in quotas.items()
    ]
    ledger.replace(RESOURCES, _full(pl.DataFrame(found), RESOURCES.schema), WINDOW, "kubernetes")
    return ledger


def _full(frame: pl.DataFrame, schema: Any) -> pl.DataFrame:  # noqa: ANN401
    own = {name: dtype for name, dtype in schema.items() if name != "source"}
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in own.items()
    )


def on(resource: str, cost: str, **fields: object) -> dict[str, Any]:
    return row(cost, cluster="c", node="n", resource=resource, **fields)


ROWS = [
    on("cpu", "9.6", namespace="team", requested=Decimal(36), used=Decimal(48)),
    on("memory", "8.16", namespace="team", requested=Decimal(100), used=Decimal(100)),
    on("cpu", "14.4", target="__idle__"),
    on("memory", "7.2", target="__idle__"),
]


def costs(ledger: Ledger, request: Query) -> dict[tuple[str, ...], Decimal]:
    (result,) = query(ledger, request)
    assert result.total == result.window_total
    return {tuple(each[key] for key in request.by): each["cost"] for each in result.rows}


def test_what_is_reserved_stands_at_its_namespace(tmp_path: Path) -> None:
    ledger = books(tmp_path, {"team/q": QUOTA}, ROWS)
    request = Query(WINDOW, ("namespace", "target", "resource"), quota=True)
    assert costs(ledger, request) == {
        ("team", "workload", "cpu"): Decimal("9.6"),
        ("team", "quota", "cpu"): Decimal("9.6"),
        ("__idle__", "__idle__", "cpu"): Decimal("4.8"),
        ("team", "workload", "memory"): Decimal("8.16"),
        ("team", "quota", "memory"): Decimal("5.76"),
        ("__idle__", "__idle__", "memory"): Decimal("1.44"),
    }
    plain = replace(request, by=("namespace",), quota=False)
    assert costs(ledger, plain) == {("team",): Decimal("17.76"), ("__idle__",): Decimal("21.6")}


@pytest.mark.parametrize(
    ("quotas", "moved"),
    [
        ({"a/q": EVERYTHING}, "14.4"),
        ({"a/q": {"hard": {"cpu": "1"}, "used": {"cpu": "0"}}}, "1.2"),
        ({"a/q": {"hard": {"cpu": "1"}}}, "0"),  # nobody says what is used of it
        ({"a/q": {"hard": {"cpu": "1"}, "used": {"cpu": "2"}}}, "0"),
        ({"a/q": {"hard": {"cpu": "9"}, "used": {"cpu": "0"}, "scopes": ["BestEffort"]}}, "0"),
        ({"a/q": {"hard": {"cpu": "many"}, "used": {"cpu": "0"}}}, "0"),
        (
            {
                "a/q": {"hard": {"cpu": "9", "requests.cpu": "3"}, "used": {"cpu": "1"}},
                "a/r": {"hard": {"cpu": "2"}, "used": {"cpu": "1"}},
            },
            "1.2",
        ),
    ],
)
def test_never_more_than_is_free_and_known(
    tmp_path: Path, quotas: dict[str, Any], moved: str
) -> None:
    found = costs(books(tmp_path, quotas, ROWS), Query(WINDOW, ("namespace",), quota=True))
    assert found.get(("a",), 0) == Decimal(moved)
    assert sum(found.values()) == Decimal("39.36")


def test_cards_of_a_quota_are_priced_by_all_cards(tmp_path: Path) -> None:
    rows = [
        on("gpu", "96", namespace="a", gpu_seconds=Decimal(345600)),
        on("gpu", "96", target="__idle__", gpu_seconds=Decimal(345600)),
        on("cpu", "3", namespace="b"),  # rides on cards: no price of a core
    ]
    quota = {
        "hard": {"requests.nvidia.com/gpu": "5", "cpu": "9"},
        "used": {"requests.nvidia.com/gpu": "2", "cpu": "0"},
    }
    request = Query(WINDOW, ("namespace",), quota=True)
    card = {"gpus": 8, "gpu_resource": "nvidia.com/gpu"}
    found = costs(books(tmp_path / "whole", {"a/q": quota}, rows, **card), request)
    assert found == {("a",): 168, ("__idle__",): 24, ("b",): 3}
    units = {"gpu_units": '{"nvidia.com/gpu":"1/7"}'}
    found = costs(books(tmp_path / "parts", {"a/q": quota}, rows, **card, **units), request)
    assert found == {("a",): 96, ("__idle__",): 96, ("b",): 3}


def test_every_cost_column_and_credit_is_cut_alike(tmp_path: Path) -> None:
    rows = [
        *ROWS,
        on("cpu", "-4.4", target="__idle__", x_LineType="credit"),
        on("cpu", "4.4", target="__idle__", BilledCost=None, BilledCost_unknown=1),
    ]
    ledger = books(tmp_path, {"team/q": QUOTA, "all/q": EVERYTHING}, rows)
    for cost in ("effective", "billed", "list"):
        request = Query(WINDOW, ("namespace", "line_type"), cost=cost, quota=True)
        (with_quota,) = query(ledger, request)
        (plain,) = query(ledger, replace(request, quota=False))
        assert (with_quota.total, with_quota.unknown) == (plain.total, plain.unknown)


def test_hours_hold_what_their_day_does(tmp_path: Path) -> None:
    rows = [*ROWS, on("cpu", "4.4", target="__idle__", BilledCost=None, BilledCost_unknown=1)]
    ledger = books(tmp_path, {"team/q": QUOTA}, rows)
    hour = {"ChargePeriodStart": WINDOW.start, "ChargePeriodEnd": WINDOW.start + timedelta(hours=1)}
    shares = [each | hour | {"x_LineId": str(place)} for place, each in enumerate(rows)]
    ledger.replace(COSTS, _full(pl.DataFrame(shares), COSTS.schema), WINDOW)
    request = Query(WINDOW, ("namespace", "target"), cost="billed", quota=True)
    (day,) = query(ledger, request)
    (hours,) = query(ledger, replace(request, by=(*request.by, "hour")))
    known = [
        (each["namespace"], each["target"], each["cost"], each["unknown"]) for each in day.rows
    ]
    assert known == [
        (each["namespace"], each["target"], each["cost"], each["unknown"]) for each in hours.rows
    ]


def test_a_filter_changes_no_row_and_sharing_no_total(tmp_path: Path) -> None:
    rows = [*ROWS, row(5, target="__shared__", day=days_before(1)), row(5, target="__shared__")]
    ledger = books(tmp_path, {"team/q": QUOTA, "b/q": QUOTA}, rows)
    for how in (
        Sharing(),
        Sharing(idle=True, policies=(Share((Match("target", "__shared__"),)),)),
    ):
        request = Query(WINDOW, ("namespace",), quota=True, sharing=how)
        whole = costs(ledger, request)
        assert sum(whole.values()) == Decimal("44.36")
        (some,) = query(ledger, replace(request, filters=(Match("namespace", "b"),)))
        shown = {each["namespace"]: each["cost"] for each in some.rows}
        assert shown["b"] == whole["b",]
