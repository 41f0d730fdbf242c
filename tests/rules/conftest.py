"""A small world of ledger tables that the rule tests write and the rules read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ledger.schema import TABLES
from ledger.settings import Settings
from ledger.store import Ledger, conform
from ledger.window import Window
from rules.rb102_idle_nodes import IdleNodesRule
from rules.rule import Context, RuleTables, Verdict

CLUSTER = "c"
HOUR = timedelta(hours=1)
QUARTER = timedelta(minutes=15)
FORTNIGHT = Window(datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 16, tzinfo=UTC))
"""Two full weeks, Monday to Sunday."""


def steps(window: Window, step: timedelta) -> Iterator[datetime]:
    moment = window.start
    while moment < window.end:
        yield moment
        moment += step


class World:
    """Rows of ledger tables, day by day as the stages write them."""

    def __init__(self, window: Window = FORTNIGHT) -> None:
        self.window = window
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def _by_day(self, table: str, span: Window, row: Mapping[str, Any]) -> None:
        for day in span.days():
            whole = Window.of_day(day)
            self.rows[table].append(
                {
                    "cluster": CLUSTER,
                    "day": day,
                    "start": max(span.start, whole.start),
                    "end": min(span.end, whole.end),
                    **row,
                }
            )

    def node(
        self,
        name: str = "n1",
        gpus: int | None = 8,
        span: Window | None = None,
        source: str = "kubernetes/c",
        **extra: object,
    ) -> World:
        sampled = 30.0 if source.startswith("prometheus") else None
        self._by_day(
            "nodes",
            span or self.window,
            {"source": source, "node": name, "gpus": gpus, "interval_seconds": sampled, **extra},
        )
        return self

    def pod(
        self,
        uid: str = "u-1",
        node: str = "n1",
        gpus: int | None = 8,
        span: Window | None = None,
        source: str = "prometheus/c",
        **extra: object,
    ) -> World:
        self._by_day(
            "workloads",
            span or self.window,
            {
                "source": source,
                "uid": uid,
                "pod": uid,
                "namespace": "train",
                "node": node,
                "gpus": gpus,
                "state": "running",
                "interval_seconds": 30.0,
                **extra,
            },
        )
        return self

    def activity(
        self,
        span: Window,
        value: float,
        node: str = "n1",
        devices: int = 8,
        step: timedelta = QUARTER,
        expected: int = 1,
    ) -> World:
        self.rows["usage"] += [
            {
                "day": moment.date(),
                "source": "prometheus/c",
                "cluster": CLUSTER,
                "node": node,
                "device": str(device),
                "meter": "gpu_activity",
                "slot": moment,
                "mean": value,
                "min": value,
                "max": value,
                "last": value,
                "samples": expected,
                "expected": expected,
            }
            for moment in steps(span, step)
            for device in range(devices)
        ]
        return self

    def cost(
        self, per_hour: str | None, node: str = "n1", span: Window | None = None, **extra: object
    ) -> World:
        amount = None if per_hour is None else Decimal(per_hour)
        self.rows["costs"] += [
            {
                "day": moment.date(),
                "x_Source": "billing/aws",
                "x_LineId": f"{node}-{moment}",
                "x_Part": 0,
                "x_Basis": "billed",
                "BillingCurrency": "USD",
                "ChargeCategory": "Usage",
                "cluster": CLUSTER,
                "node": node,
                "ChargePeriodStart": moment,
                "ChargePeriodEnd": moment + HOUR,
                "resource": "gpu",
                "target": "__idle__",
                "experiment": "__idle__",
                "owner": "__idle__",
                "ListCost": Decimal("9.80"),
                "EffectiveCost": amount,
                **extra,
            }
            for moment in steps(span or self.window, HOUR)
        ]
        return self

    def commitment(self) -> World:
        """Every cost row so far comes from a line that a commitment covers."""
        self.rows["charges"] += [
            {
                "day": row["day"],
                "x_Source": row["x_Source"],
                "x_LineId": row["x_LineId"],
                "x_Part": row["x_Part"],
                "x_Basis": "billed",
                "BillingCurrency": "USD",
                "ChargeCategory": "Usage",
                "CommitmentDiscountId": "ri-1",
                "ChargePeriodStart": row["ChargePeriodStart"],
                "ChargePeriodEnd": row["ChargePeriodEnd"],
            }
            for row in self.rows["costs"]
        ]
        return self

    def frame(self, name: str) -> pl.DataFrame:
        table, rows = TABLES[name], self.rows[name]
        known = {key for row in rows for key in row}
        schema = {key: kind for key, kind in table.schema.items() if key in known}
        return conform(table, pl.DataFrame(rows, schema=schema)) if rows else table.empty()

    def frames(self) -> dict[str, pl.DataFrame]:
        return {table.name: self.frame(table.name) for table in IdleNodesRule.needs}

    def judge(
        self,
        settings: Settings | None = None,
        frames: Mapping[str, pl.DataFrame] | None = None,
        lacking: Mapping[str, str] | None = None,
    ) -> Verdict:
        """What RB102 says of this world."""
        tables = RuleTables(
            {name: frame.lazy() for name, frame in (frames or self.frames()).items()}
        )
        return IdleNodesRule().evaluate(
            tables, Context(settings or Settings(), self.window, lacking or {})
        )

    def write(self, ledger: Ledger) -> None:
        """Put the facts and costs into a ledger."""
        for table in IdleNodesRule.needs:
            frame = self.frame(table.name)
            column = table.source_column
            sources = sorted(set(frame[column])) if column else [None]
            for source in sources:
                rows = frame.filter(pl.col(column) == source) if column else frame
                ledger.replace(table, rows, self.window, source)


def of(*days: int) -> list[Window]:
    """Whole days of March 2026."""
    return [Window.of_day(date(2026, 3, day)) for day in days]


def weekend_world() -> World:
    """A node busy Monday to Friday day and night, and empty on two weekends."""
    world = World().node()
    for day in FORTNIGHT.days():
        world.activity(Window.of_day(day), 0.0 if day.weekday() >= 5 else 0.85)
    return world


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def weekends() -> World:
    return weekend_world()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(str(tmp_path / "ledger"), create=True)
