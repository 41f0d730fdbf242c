"""Books for questions: rows of ``costs_daily``, written straight."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from ledger.money import UNITS
from ledger.schema import COSTS_DAILY, IDENTITY_KEYS, IDLE
from ledger.store import Ledger
from ledger.window import Window

DAY = date(2026, 11, 30)
_RESOURCES = {"ram": "memory", "pv": "storage", "net": "network", "lb": "load_balancer"}


def row(cost: Decimal | int | str | None, **fields: object) -> dict[str, Any]:
    """A row of ``costs_daily``: a workload's, if nothing else is said."""
    target = fields.get("target", "workload")
    special = str(target).startswith("__")
    known = None if cost is None else Decimal(cost)
    base: dict[str, Any] = {
        "day": DAY,
        "x_Source": "aws",
        "x_Basis": "billed",
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "target": target,
        "confidence": "high",
        **{key: target if special else None for key in IDENTITY_KEYS},
        **{name: known for name in ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost")},
        "ActiveCost": None if known is None else Decimal(0) if special else known,
        "gpu_seconds": Decimal(0),
        **{f"{name}Cost_unknown": int(known is None) for name in ("Billed", "Effective")},
        **{f"{name}Cost_unknown": int(known is None) for name in ("Contracted", "List")},
    }
    return base | fields


def write(ledger: Ledger, rows: Iterable[Mapping[str, object]]) -> Ledger:
    """Write rows, day by day."""
    frame = pl.DataFrame(list(rows), schema=COSTS_DAILY.schema)
    for (day,), part in frame.group_by("day", maintain_order=True):
        assert isinstance(day, date)
        ledger.replace(COSTS_DAILY, part, Window.of_day(day))
    return ledger


def topology(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the topology of the S1 cases: containers and the idle of their nodes."""
    rows = [
        row(
            container[resource],
            resource=_RESOURCES.get(resource, resource),
            cluster=container["cluster"],
            node=container["node"],
            namespace=container["namespace"],
            root_kind=container.get("controllerKind"),
            root_name=container.get("controller"),
            tags=json.dumps(container.get("labels", {})),
            annotations=json.dumps(container.get("annotations", {})),
        )
        for container in given["containers"]
        for resource in given["resources"]
    ]
    for cluster, idle in given["idle_by_cluster"].items():
        nodes = sorted({c["node"] for c in given["containers"] if c["cluster"] == cluster})
        for resource in given["idle_resources"]:
            parts = [Fraction(given["idle_by_node"][node][resource]) for node in nodes]
            assert sum(parts) == idle[resource]
            edges = [int(sum(parts[:n]) * UNITS) for n in range(len(parts) + 1)]
            for node, start, end in zip(nodes, edges, edges[1:], strict=False):
                rows.append(
                    row(
                        Decimal(end - start).scaleb(-12),
                        target=IDLE,
                        resource=_RESOURCES.get(resource, resource),
                        cluster=cluster,
                        node=node,
                    )
                )
    return rows


def days_before(count: int) -> date:
    """A day before the last one."""
    return DAY - timedelta(days=count)
