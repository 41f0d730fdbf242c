"""Ingest faults met in the field: those of the shared cases that concern a FOCUS reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.billing import from_settings
from ledger.facts import Facts
from ledger.settings import Bill
from ledger.text import counted

# B01 re-read, B03 a month written twice, B11 a crash, B13 unknown costs, B21 tag keys, B27 won,
# B31 an adjustment of a day.
CASES = ("B01", "B03", "B11", "B13", "B21", "B27", "B31")
MEASURES: dict[str, pl.Expr] = {
    "billed": pl.col("BilledCost"),
    "effective": pl.col("EffectiveCost"),
    "contracted": pl.col("ContractedCost"),
    "negotiated_saving": pl.col("ListCost") - pl.col("ContractedCost"),
    "commitment_saving": pl.col("ContractedCost") - pl.col("EffectiveCost"),
}
KEYS: dict[str, pl.Expr] = {
    "currency": pl.col("BillingCurrency"),
    "billing_month": pl.col("BillingPeriodStart").dt.strftime("%Y-%m"),
    "charge_day": pl.col("day").dt.strftime("%Y-%m-%d"),
}
ATTRIBUTED = {"charge_hour"}
"""Keys that only attribution can answer."""


@pytest.fixture(params=CASES)
def case(shared: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    cases: list[dict[str, Any]] = json.loads((shared / "cases/billing.json").read_text())["cases"]
    return next(case for case in cases if case["id"] == request.param)


def ingested(case: dict[str, Any], folder: Path) -> Iterator[Facts | None]:
    """What each step leaves; None where the process died before it wrote."""
    for path, lines in case["given"]["files"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(lines) + "\n")
    for step in case["given"]["steps"]:
        source = from_settings(Bill(name="aws", path=step["paths"][0]), folder)
        for _ in range(step.get("repeat", 1)):
            reach = source.reach()
            assert reach is not None
            facts = source.collect(reach)
        yield None if step.get("fail") else facts


def key(by: str) -> pl.Expr:
    if by.startswith("tag:"):
        value = pl.col("Tags").str.json_path_match(f"$['{by.removeprefix('tag:')}']")
        return value.fill_null("(untagged)")
    return KEYS[by]


def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    states = list(ingested(case, tmp_path))
    for check in case["expect"]:
        facts = states[check.get("after", -1)]
        if check.get("by") in ATTRIBUTED:
            continue
        if unknown := check.get("unknown"):
            assert facts is not None
            nulls = facts.tables["charges"][unknown["column"]].null_count()
            assert nulls == int(unknown["rows"])
            assert any(
                f"{unknown['column']} is 0 on {counted(nulls, 'line')}" in n for n in facts.notes
            )
        elif check["measure"] == "rows":
            rows = 0 if facts is None else facts.tables["charges"].height
            assert rows == int(check["is"]["rows"])
        else:
            assert facts is not None
            by = key(check.get("by", "currency")).alias("key")
            sums = facts.tables["charges"].group_by(by).agg(MEASURES[check["measure"]].sum())
            assert dict(sums.iter_rows()) == {k: Decimal(v) for k, v in check["is"].items()}


def test_every_other_case_is_for_another_reader(shared: Path) -> None:
    cases = json.loads((shared / "cases/billing.json").read_text())["cases"]
    focus = [case["id"] for case in cases
             if any(str(step.get("format", "")).startswith("focus")
                    for step in case["given"].get("steps", []))]  # fmt: skip
    assert sorted(focus) == sorted(CASES)
