"""Tables at the width of a terminal: what is broken, what is left out, and what says so."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from cli.document import Column, Document, Section, envelope
from cli.render import render
from cli.render.table import to_table

COLUMNS = (
    Column("experiment", "Experiment"),
    Column("phase", "Phase"),
    Column("cost", "Cost", "money"),
    Column("active_cost", "Of it active", "money", known="active_cost_known_share"),
    Column("share", "Share", "ratio"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("basis", "Basis"),
    Column("confidence", "Confidence"),
)


def document(confidence: str = "high", known: float = 1.0) -> Document:
    rows = tuple(
        {
            "experiment": name,
            "phase": "__unattributed__",
            "cost": Decimal("4917.27"),
            "active_cost": Decimal("4104.73") if known == 1 else None,
            "active_cost_known_share": known,
            "share": 0.5,
            "gpu_hours": 562.8000000000001,
            "basis": "billed",
            "confidence": each,
        }
        for name, each in (("sft-14b-full-3-004", "high"), ("grpo-7b", confidence))
    )
    section = Section("rows", "Cost by phase", COLUMNS, rows)
    return Document("query", "Cost by phase", envelope("query"), (), (section,), "USD")


@pytest.mark.parametrize("width", [50, 60, 70, 80, 100, 200])
@pytest.mark.parametrize("confidence", ["high", "low"])
def test_no_name_figure_or_heading_is_broken(width: int, confidence: str) -> None:
    text = to_table([document(confidence)], width=width)
    assert all(len(line) <= width for line in text.splitlines())
    words = text.split()
    for word in ("sft-14b-full-3-004", "__unattributed__", "4,917.27", "Experiment", "Phase"):
        assert word in words


def test_what_is_left_out_is_said_and_the_least_important_goes_first() -> None:
    text = to_table([document("low")], width=80)
    assert "Left out for want of width: Share, GPU-hours; " in " ".join(text.split())
    assert "4,104.73" in text
    assert "50.0 %" not in text
    assert "Left out" not in to_table([document("low")], width=200)


def test_a_word_that_all_rows_repeat_is_said_once_on_a_terminal() -> None:
    text = to_table([document()], width=200)
    assert text.count("billed") == 1
    assert "  Basis: billed; Confidence: high\n" in text
    mixed = to_table([document("low")], width=200)
    assert "Basis: billed\n" in mixed
    assert {"Confidence", "low"} <= set(mixed.split())


@pytest.mark.parametrize("color", [True, False])
def test_a_pipe_keeps_every_column(color: bool) -> None:
    text = to_table([document()], color=color)
    assert text.count("billed") == text.count("50.0 %") == 2
    assert "Left out" not in text


@pytest.mark.parametrize("output", ["table", "markdown", "html"])
def test_a_figure_that_is_known_in_part_is_marked(output: str) -> None:
    assert "– (94.5 % known)" in render([document(known=0.945)], output)
    assert "known)" not in render([document()], output)
    assert "known)" not in render([document(known=0.0)], output)


def test_csv_has_the_known_share_and_no_noise_of_binary_fractions() -> None:
    (first, _) = csv.DictReader(io.StringIO(render([document(known=0.945)], "csv")))
    assert first["active_cost_known_share"] == "0.945"
    assert first["active_cost_usd"] == ""
    assert first["gpu_hours"] == "562.8"


@pytest.mark.parametrize(
    ("output", "times"), [("table", 1), ("markdown", 1), ("html", 3)], ids=lambda value: str(value)
)
def test_a_title_is_not_said_twice(output: str, times: int) -> None:
    text = render([document()], output)
    assert text.count("Cost by phase") == times  # a page has a title and a caption besides
    assert to_table([document()], width=80).count("Cost by phase") == 1
