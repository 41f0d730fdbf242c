"""The checklist of a day is asked again when days that it looks back on arrive later."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

from cli.stages import pipeline
from ledger.schema import CLOSES, TABLES
from ledger.store import Ledger

Invoke = Callable[..., Result]
HALVES = ("2026-11-16..2026-11-23", "2026-11-23..2026-12-01")


@pytest.fixture(autouse=True)
def morning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The morning after the last simulated day."""
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 12, 1, 6, tzinfo=UTC))


def simulated(folder: Path, invoke: Invoke, days: int) -> Path:
    """The input files of the days up to the end of November, with one card per node."""
    small = ("--gpus", "1", "--interval", "300")
    done = invoke("simulate", folder / "w", "--days", str(days), "--end", "2026-11-30", *small)
    assert done.exit_code == 0, done.stderr
    return folder / "w"


def run(invoke: Invoke, world: Path, books: str, *flags: str) -> dict[str, object]:
    result = invoke(
        "--config", world / "runbill.yaml", "run", "-o", "json", *flags,
        env={"RUNBILL_LEDGER": str(world / books)},
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    data: dict[str, object] = json.loads(result.stdout)
    return data


def rows(world: Path, books: str) -> dict[str, pl.DataFrame]:
    ledger = Ledger.open(str(world / books))
    found = {}
    for name, table in TABLES.items():
        frame = ledger.scan(table).collect()
        if table is CLOSES:  # the settings name another ledger; a reading's notes tell its window
            frame = frame.drop("settings_hash", "notes")
        found[name] = frame.sort(pl.all(), nulls_last=True)
    return found


def asked(world: Path, books: str) -> list[date]:
    closes = Ledger.open(str(world / books)).scan(CLOSES).filter(pl.col("stage") == "checklist")
    return sorted(closes.collect()["day"])


@pytest.mark.soak
def test_halves_in_reversed_order_leave_the_rows_of_those_in_order(
    tmp_path: Path, invoke: Invoke
) -> None:
    world = simulated(tmp_path, invoke, 15)
    for books, order in (("there", HALVES), ("back", HALVES[::-1])):
        for half in order:
            run(invoke, world, books, "--window", half)
    there, back = rows(world, "there"), rows(world, "back")
    assert not there["findings"].is_empty()
    for name, frame in there.items():
        assert back[name].equals(frame), name
    # Findings stand although this run works out nothing again.
    again = ["--config", world / "runbill.yaml", "run", "--fail-on", "low"]
    for _ in range(2):  # the first also reads what the bill holds of the month
        done = invoke(*again, env={"RUNBILL_LEDGER": str(world / "back")})
    assert "nothing changed" in done.output
    assert done.exit_code == 1, done.stderr


@pytest.mark.soak
def test_what_was_cut_short_is_made_good_once(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = simulated(tmp_path, invoke, 2)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "due_checklists", lambda *_: [])
        run(invoke, world, "books")
    assert asked(world, "books") == []
    run(invoke, world, "books")
    assert asked(world, "books")[-2:] == [date(2026, 11, 29), date(2026, 11, 30)]
    monkeypatch.setattr(pipeline, "_ask_rules", lambda *_: pytest.fail("asked again"))
    run(invoke, world, "books")
