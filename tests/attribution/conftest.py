"""A day built row by row, in hours of the clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from attribution.day import DayCosts, attribute_day
from attribution.facts import TABLES as FACTS
from attribution.facts import DayFacts
from ledger.schema import CHARGES, CLAIMS, CLOSES, NODES, PRICES, TABLES, USAGE, WORKLOADS, Table
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window

DAY = date(2026, 11, 30)
GIB = 2**30


def at(hours: float) -> datetime:
    """Hours after midnight of the day, to the millisecond."""
    midnight = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    return midnight + timedelta(milliseconds=round(hours * 3_600_000))


class DayBuilder:
    """Rows of the fact tables; what is not said is null."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def node(
        self,
        name: str = "n1",
        start: float = 0,
        end: float = 24,
        *,
        interval: float | None = None,
        **fields: object,
    ) -> DayBuilder:
        base: dict[str, object] = {
            "cluster": "c1",
            "provider_id": f"aws:///us-east-1a/i-{name}",
            "cpu_millicores": 192_000,
            "memory_bytes": 2048 * GIB,
            "gpus": 8,
            "labels": "{}",
        }
        return self._add(
            NODES,
            base
            | {
                "source": _source(interval),
                "node": name,
                "start": at(start),
                "end": at(end),
                "interval_seconds": interval,
            }
            | fields,
        )

    def pod(
        self,
        uid: str,
        start: float = 0,
        end: float = 24,
        *,
        node: str | None = "n1",
        interval: float | None = None,
        labels: dict[str, str] | None = None,
        **fields: object,
    ) -> DayBuilder:
        base: dict[str, object] = {
            "cluster": "c1",
            "namespace": "research",
            "pod": f"pod-{uid}",
            "state": "running",
            "cpu_millicores": 0,
            "memory_bytes": 0,
            "gpus": 0,
            "labels": json.dumps(labels or {}, sort_keys=True),
        }
        return self._add(
            WORKLOADS,
            base
            | {
                "source": _source(interval),
                "uid": uid,
                "node": node,
                "start": at(start),
                "end": at(end),
                "interval_seconds": interval,
            }
            | fields,
        )

    def line(
        self,
        name: str,
        resource: str | None = "i-n1",
        hour: float = 0,
        until: float | None = None,
        effective: str | None = "8",
        **fields: object,
    ) -> DayBuilder:
        cost = None if effective is None else Decimal(effective)
        base: dict[str, object] = {
            "x_Source": "aws",
            "x_Part": 0,
            "x_Basis": "billed",
            "x_Dimension": "compute",
            "BillingCurrency": "USD",
            "ChargeCategory": "Usage",
            "BilledCost": cost,
            "EffectiveCost": cost,
            "ContractedCost": cost,
            "ListCost": cost,
        }
        return self._add(
            CHARGES,
            base
            | {
                "x_LineId": name,
                "ResourceId": resource,
                "ChargePeriodStart": at(hour),
                "ChargePeriodEnd": at(hour + 1 if until is None else until),
            }
            | fields,
        )

    def use(
        self, uid: str | None, meter: str, slot: float, mean: float, **fields: object
    ) -> DayBuilder:
        base: dict[str, object] = {
            "source": "prometheus/c1",
            "cluster": "c1",
            "node": "n1",
            "samples": 15,
        }
        return self._add(
            USAGE, base | {"uid": uid, "meter": meter, "slot": at(slot), "mean": mean} | fields
        )

    def price(self, resource: str, price: str, **fields: object) -> DayBuilder:
        base: dict[str, object] = {
            "source": "prices",
            "currency": "USD",
            "start": at(0),
            "end": at(24),
        }
        return self._add(
            PRICES, base | {"resource": resource, "price_per_hour": Decimal(price)} | fields
        )

    def claim(
        self,
        uid: str,
        start: float = 0,
        end: float = 24,
        *,
        pods: Iterable[str] = (),
        **fields: object,
    ) -> DayBuilder:
        base: dict[str, object] = {
            "source": "kubernetes/c1",
            "cluster": "c1",
            "namespace": "research",
            "claim": f"claim-{uid}",
            "node": "n1",
            "cards": "1",
        }
        span = {"uid": uid, "start": at(start), "end": at(end), "pods": json.dumps(list(pods))}
        return self._add(CLAIMS, base | span | fields)

    def facts(self) -> DayFacts:
        """The facts so far."""
        return DayFacts.of_tables(
            DAY,
            {name: self.frame(TABLES[name]) for name in (table.name for table in FACTS)},
        )

    def frame_of(self, name: str) -> pl.DataFrame:
        """The rows of a table by its name."""
        return self.frame(TABLES[name])

    def frame(self, table: Table) -> pl.DataFrame:
        """The rows of one table."""
        return pl.DataFrame(self.rows[table.name], schema=table.schema)

    def attribute(self, settings: Settings | None = None) -> DayCosts:
        """The books of the day."""
        return attribute_day(self.facts(), settings or Settings())

    def _add(self, table: Table, row: dict[str, object]) -> DayBuilder:
        self.rows[table.name].append({"day": DAY} | row)
        return self


def _source(interval: float | None) -> str:
    return "kubernetes/c1" if interval is None else "prometheus/c1"


def sums(
    frame: pl.DataFrame, by: str | Iterable[str] = "experiment", cost: str = "EffectiveCost"
) -> dict[Any, Decimal]:
    """Cost by key or keys."""
    keys = [by] if isinstance(by, str) else list(by)
    rows = frame.group_by(keys).agg(pl.col(cost).sum()).iter_rows()
    return {row[0] if len(keys) == 1 else row[:-1]: row[-1] for row in rows}


@pytest.fixture(scope="session")
def new_day() -> type[DayBuilder]:
    """An empty day per call."""
    return DayBuilder


@pytest.fixture(scope="session")
def cost_by() -> Callable[..., dict[Any, Decimal]]:
    """``sums``."""
    return sums


def write(ledger: Ledger, day: DayBuilder, *, digest: str = "d1") -> None:
    """Write the rows of a day as its collectors would, each with a close."""
    window = Window.of_day(DAY)
    for name in ("charges", "prices", "nodes", "workloads", "usage"):
        table = TABLES[name]
        frame = day.frame(table)
        column = table.source_column or ""
        for (source,), rows in frame.group_by(column):
            ledger.replace(table, rows.drop(column), window, str(source))
    for source in ("focus/aws", "kubernetes/c1"):
        row = {"day": DAY, "status": "closed", "coverage": 1.0, "digest": digest, "gaps": "[]"}
        close = pl.DataFrame([row], schema={name: CLOSES.columns[name].dtype for name in row})
        ledger.replace(CLOSES, close, window, source, stage="collect")


@pytest.fixture(scope="session")
def write_day() -> Callable[..., None]:
    """``write``."""
    return write


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty ledger."""
    return Ledger.open(str(tmp_path / "ledger"), create=True)
