"""The coverage block: what the closes of a window say, per source."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import polars as pl

from cli.documents.coverage import coverage_of, coverage_tile
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.window import Window

WINDOW = Window.of_days(date(2026, 11, 26), date(2026, 11, 30))


def close(
    ledger: Ledger, day: int, source: str, status: str = "closed", ratio: float | None = 1.0
) -> None:
    gaps = [{"reason": "no_samples", "detail": "x"}] if status == "gaps" else []
    frame = pl.DataFrame(
        {
            "day": [date(2026, 11, day)],
            "status": [status],
            "coverage": [ratio],
            "gaps": [json.dumps(gaps)],
            "notes": ["[]"],
        },
        schema_overrides={"coverage": pl.Float64},
    )
    stage = "attribute" if source == "attribution" else "collect"
    window = Window.of_day(date(2026, 11, day))
    ledger.replace(CLOSES, frame, window, source, stage=stage)


def test_the_block_of_a_window(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    for day, status, ratio in ((27, "gaps", 0.5), (28, "gaps", 0.6), (30, "closed", 1.0)):
        close(ledger, day, "prometheus/a", status, ratio)
        close(ledger, day, "attribution")
    close(ledger, 28, "old", "failed", 0.0)
    found = {each["source"]: each for each in coverage_of(ledger, WINDOW, {"prometheus/a"})}
    assert found.keys() == {"attribution", "old", "prometheus/a", "runbill"}
    series = found["prometheus/a"]
    assert (series["status"], series["days"]) == ("gaps", 3)
    assert abs(series["ratio"] - 2.1 / 5) < 1e-9  # two of five days were never read
    assert found["runbill"]["ratio"] == 3 / 5
    assert series["gaps"] == [{"reason": "no_samples", "detail": "x", "days": 2}]
    assert found["runbill"]["gaps"] == [
        {"reason": "not_closed", "detail": "never closed: 2026-11-26, 2026-11-29", "days": 2}
    ]
    assert (found["old"]["status"], found["old"]["gaps"]) == ("closed", [])
    assert "no longer counted" in found["old"]["notes"][0]


def test_days_in_a_row_are_named_by_their_ends(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    close(ledger, 30, "attribution")
    gap = coverage_of(ledger, WINDOW)[-1]["gaps"][0]
    assert gap["detail"] == "never closed: 2026-11-26..2026-11-29"


def test_closed_days_that_a_source_was_not_read_for_are_its_gap(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    for day in range(26, 31):
        close(ledger, day, "b")
        close(ledger, day, "attribution", ratio=None)
    close(ledger, 30, "prometheus/a")
    named = {"b", "prometheus/a", "kubernetes/a"}
    coverage = coverage_of(ledger, WINDOW, named)
    found = {each["source"]: each for each in coverage}
    assert (found["b"]["status"], found["b"]["ratio"]) == ("closed", 1.0)
    gap = {"reason": "not_closed", "detail": "never read: 2026-11-26..2026-11-29", "days": 4}
    assert found["prometheus/a"]["gaps"] == [gap]
    assert found["prometheus/a"]["ratio"] == 1 / 5
    assert (found["kubernetes/a"]["status"], found["kubernetes/a"]["days"]) == ("gaps", 0)
    tile = coverage_tile(coverage)
    assert (tile.value, tile.tone) == ("0.0 %", "warn")
    assert tile.detail == "gaps: kubernetes/a, prometheus/a"
