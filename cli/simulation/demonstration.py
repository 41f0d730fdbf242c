"""The demo: simulate, close, report, and compare with the truth that was worked out apart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from attribution.query.answer import Query
from attribution.query.answer import query as ask
from cli import exits
from cli.document import Cell, Column, Document, Section
from cli.documents.commands import command
from cli.documents.reporting import run_documents
from cli.render import render
from cli.simulation.worldly import MARK, check_folder, options_of, simulate_into
from cli.stages.pipeline import run
from cli.streams import Progress, write_file
from cli.wiring import Context, context_of
from collector.simulate.write import settings_of
from ledger.load import load_settings
from ledger.window import Window

_COLUMNS = (
    Column("experiment", "Experiment"),
    Column("cost", "runbill", "money"),
    Column("truth", "Truth", "money"),
    Column("difference", "Difference", "money"),
    Column("stated_error", "Stated error", "money"),
    Column("agrees", "Agrees"),
)


@dataclass(frozen=True)
class Comparison:
    """Figures beside the truth, one row per experiment and special target."""

    rows: tuple[dict[str, Cell], ...]

    @property
    def agrees(self) -> bool:
        """Whether every figure is exact, or within its stated error."""
        return all(row["agrees"] for row in self.rows)

    @property
    def verdict(self) -> str:
        """One line for people."""
        wrong = [str(row["experiment"]) for row in self.rows if not row["agrees"]]
        if wrong:
            return f"✗ differs from the known truth: {', '.join(wrong)}"
        near = [str(row["experiment"]) for row in self.rows if row["difference"]]
        if near:
            return (
                "✓ equals the known truth to the last digit, but for "
                f"{', '.join(near)}: within the error stated for lives between two scrapes"
            )
        return "✓ equals the known truth to the last digit"


def demonstrate(
    folder: Path, size: Mapping[str, object], progress: Progress
) -> tuple[list[Document], int]:
    """Simulate into a folder, close every day, write the report and compare with the truth.

    Returns:
        The documents and the exit code; a figure that differs from the truth is a fault of ours.

    Raises:
        UsageError: A flag is out of range, or the folder holds other files.
    """
    options = options_of(size)
    check_folder(folder)
    books = folder / "ledger"
    if (folder / MARK).is_file() and books.is_dir() and not books.is_symlink():
        shutil.rmtree(books)  # of an earlier demo: another world's days must not stay
    progress.step("simulate", 0, 1)
    simulate_into(folder, size)
    # As flags, so that no RUNBILL_LEDGER of the environment turns the demo onto real books.
    loaded = load_settings(folder / "runbill.yaml", settings_of(options))
    context = context_of(loaded, create=True)
    result = run(context, list(options.window.days()), progress)
    found = compare(context, options.window, json.loads((folder / MARK).read_text("utf-8")))
    report = folder / "report.html"
    documents = [
        _with_truth(document, found, context, folder) for document in run_documents(context, result)
    ]
    write_file(report, render(documents, "html"))
    return documents, result.code or (exits.OK if found.agrees else exits.FAULT)


def compare(context: Context, window: Window, truth: Mapping[str, Any]) -> Comparison:
    """The cost by experiment beside ``truth.json``."""
    request = Query(window, by=("experiment",), currency=truth["currency"])
    costs = {
        row["experiment"]: row["cost"] or Decimal(0)
        for result in ask(context.ledger, request)
        for row in result.rows
    }
    expected = {
        target["experiment"]: (Decimal(target["cost"]), Decimal(target["stated_error"]))
        for target in truth["targets"]
    }
    zero = Decimal(0)
    rows = []
    for name in sorted(costs.keys() | expected.keys()):
        cost, (right, error) = costs.get(name, zero), expected.get(name, (zero, zero))
        rows.append(
            {
                "experiment": name,
                "cost": cost,
                "truth": right,
                "difference": cost - right,
                "stated_error": error,
                "agrees": abs(cost - right) <= error,
            }
        )
    return Comparison(tuple(rows))


def _with_truth(document: Document, found: Comparison, context: Context, folder: Path) -> Document:
    section = Section(
        "truth", "Against the known truth", _COLUMNS, found.rows, brief=False, tone="agrees"
    )
    data = {
        **document.data,
        "truth": {"agrees": found.agrees, "rows": _plain(found.rows)},
        "report": str(folder / "report.html"),
    }
    remarks = (
        found.verdict,
        *document.remarks,
        f"Report: {folder / 'report.html'}",
        f"Ask more: {command(context.loaded, 'query', '--by', 'experiment,phase')}",
    )
    return replace(document, data=data, sections=(*document.sections, section), remarks=remarks)


def _plain(rows: Sequence[Mapping[str, Cell]]) -> list[dict[str, Cell]]:
    return [dict(row) for row in rows]
