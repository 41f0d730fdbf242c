from __future__ import annotations

import csv
import html
import io
import json
import re
from datetime import date, timedelta
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from cli.document import Bars, Column, Document, Section, Tile, envelope
from cli.documents.checks import evidence_line
from cli.render import render
from cli.render.markdown import LIMIT
from cli.render.table import to_table
from cli.render.text import money, percent, visible
from ledger.schema import IDLE
from ledger.window import Window
from rules.rule import Evidence

LONG = "x" * 3000
HOSTILE = [
    "[/rank0]",
    "[bold]gone[/bold]",
    "<script>alert(1)</script>",
    "</style></title>",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "+1",
    "-1",
    "a\nb",
    "tab\tcell",
    "\x1b[31mred",
    "\x9b2J",
    "back`tick",
    "pipe|pipe",
    "a & b",
    '"quoted"',
    "\u202ereversed",
    "name,with,commas",
    "é—漢字",
    "<!-- x -->",
    "{{ 7*7 }}",
    LONG,
]


def document(names: list[str], currency: str = "USD") -> Document:
    rows = tuple(
        {"experiment": name, "cost": Decimal("1234.5"), "share": 0.5, "reason": name}
        for name in names
    )
    columns = (
        Column("experiment", "Experiment"),
        Column("cost", "Cost", "money"),
        Column("share", "Share", "ratio"),
        Column("reason", "Why"),
    )
    window = {"start": "2026-11-30T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
    data = envelope(
        "query",
        window=window,
        rows=[dict(row) for row in rows],
        coverage=[{"source": "b", "ratio": 0.5, "gaps": []}],
    )
    section = Section(
        "rows",
        "Rows",
        columns,
        rows,
        tone="reason",
        bars=Bars("By", ("rollout",), tuple((1.0,) for _ in rows), currency),
    )
    finding_columns = (
        Column("severity", "Severity"),
        Column("title", "Finding"),
        Column("status", "Status"),
        Column("remedy", "Remedy"),
        Column("owner", "Owner"),
    )
    findings = tuple(
        {
            "severity": "high",
            "title": name,
            "status": "new",
            "owner": name,
            "remedy": name,
            "commands": [name],
            "guardrail": name,
        }
        for name in names
    )
    return Document(
        "query",
        names[0] if names else "empty",
        data,
        (Tile("Window", "w", names[0] if names else ""), Tile("Label", "value")),
        (section, Section("findings", "Findings", finding_columns, findings)),
        currency,
    )


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(page: str) -> _Page:
    parser = _Page()
    parser.feed(page)
    return parser


def test_json_keeps_names_and_writes_money_as_text() -> None:
    data = json.loads(render([document(HOSTILE)], "json"))
    assert [row["experiment"] for row in data["rows"]] == HOSTILE
    assert data["rows"][0]["cost"] == "1234.5"
    assert (data["schema_version"], data["kind"]) == ("1", "query")


def test_json_is_one_text_whatever_the_number_of_currencies() -> None:
    alone = json.loads(render([document(["a"])], "json"))
    both = json.loads(render([document(["a"]), document(["b"], "EUR")], "json"))
    assert both[0] == alone
    assert [one["rows"][0]["experiment"] for one in both] == ["a", "b"]


def test_csv_holds_one_record_per_row_and_no_formula() -> None:
    records = list(csv.DictReader(io.StringIO(render([document(HOSTILE)], "csv"), newline="")))
    assert len(records) == len(HOSTILE)
    for name, record in zip(HOSTILE, records, strict=True):
        assert not record["experiment"].startswith(("=", "+", "-", "@", "\t", "\r"))
        assert record["experiment"].lstrip("'") == name.lstrip("'")
        assert record["cost_usd"] == "1234.5"
        assert record["window_start"] == "2026-11-30T00:00:00Z"
        assert record["coverage"] == "0.5"


def test_csv_leaves_negative_numbers_alone() -> None:
    row = {"cost": Decimal("-3.5"), "n": -2}
    section = Section(
        "rows", "Rows", (Column("cost", "C", "money"), Column("n", "N", "number")), (row,)
    )
    text = render([Document("query", "t", envelope("query"), (), (section,), "USD")], "csv")
    assert text == "cost_usd,n\n-3.5,-2\n"


def test_csv_of_two_currencies_has_a_column_for_each() -> None:
    text = render([document(["a"]), document(["b"], "EUR")], "csv")
    records = list(csv.DictReader(io.StringIO(text)))
    assert [(record["cost_usd"], record["cost_eur"]) for record in records] == [
        ("1234.5", ""),
        ("", "1234.5"),
    ]


def test_markdown_starts_with_a_marker_and_keeps_its_tables_whole() -> None:
    text = render([document(HOSTILE)], "markdown")
    assert text.startswith("<!-- runbill:query -->\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:5]} == {5}
    assert "<script" not in text
    assert "=cmd\\|" in text
    assert text.count("<details>") == text.count("</details>")


def test_markdown_stays_under_the_limit_of_forges() -> None:
    text = render([document([f"{number}-{'y' * 200}" for number in range(2000)])], "markdown")
    assert len(text) < 65_536
    assert text.count("<details>") == text.count("</details>")
    assert "Cut: the whole has" in text
    assert LIMIT < 65_536


def test_html_shows_hostile_names_as_text() -> None:
    page = render([document(HOSTILE)], "html")
    found = parse(page)
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "iframe", "object", "embed", "form", "base"}
    shown = "\n".join(found.text)
    assert "<script>alert(1)</script>" in shown
    assert "{{ 7*7 }}" in shown
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert LONG in shown


def test_html_asks_the_network_for_nothing() -> None:
    found = parse(render([document(HOSTILE)], "html"))
    for tag, attributes in found.tags:
        for name in ("src", "href", "action", "srcset", "poster", "data", "xlink:href"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for t, a in found.tags if a.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_html_is_accessible_without_script() -> None:
    found = parse(render([document(["a"])], "html"))
    count = [tag for tag, _ in found.tags].count
    assert count("table") == count("caption") == 1
    bars = [a for t, a in found.tags if t == "svg" and a.get("role") == "img"]
    assert len(bars) == 1
    assert count("title") >= 3  # the page, the bar, its part
    assert ("html", {"lang": "en"}) in found.tags


def test_html_of_a_large_window_stays_under_a_megabyte() -> None:
    page = render([document([f"experiment-{number:05}" for number in range(5000)])], "html")
    assert len(page.encode()) < 1_000_000
    assert "4500 more" in page


@pytest.mark.parametrize("output", ["table", "json", "csv", "markdown", "html"])
def test_every_format_ends_with_one_newline_and_repeats_itself(output: str) -> None:
    first = render([document(HOSTILE)], output)
    assert first == render([document(HOSTILE)], output)
    assert first.endswith("\n")
    assert not first.endswith("\n\n")


@pytest.mark.parametrize("output", ["table", "markdown", "html"])
def test_an_empty_table_says_so(output: str) -> None:
    section = Section("rows", "Rows", (Column("a", "A"),), (), empty="no cost in this window")
    text = render([Document("query", "t", envelope("query"), (), (section,))], output)
    assert "no cost in this window" in html.unescape(text)


def test_a_pipe_cuts_nothing_and_carries_no_markup() -> None:
    text = to_table([document(HOSTILE)])
    assert LONG in text
    assert "[/rank0]" in text
    assert "[bold]gone[/bold]" in text
    assert "\x1b" not in text
    assert "a\\nb" in text


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("color", [True, False])
def test_a_terminal_table_fits_and_loses_nothing(width: int, color: bool) -> None:
    text = to_table([document(["[/rank0]", "gpu-node-" + "z" * 150])], width=width, color=color)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert all(len(line) <= width for line in plain.splitlines())
    assert plain.count("z") >= 150 * 2
    assert "…" not in plain
    assert ("\x1b[" in text) is color


@pytest.mark.parametrize("width", [None, 60, 100])
def test_a_finding_is_a_few_short_lines_and_breaks_no_name(width: int | None) -> None:
    name = "node/train-a/gpu-with-a-long-name-0006"
    text = " ".join(["word"] * 60 + [name])
    row: dict[str, object] = {
        "severity": "high",
        "title": text,
        "status": "new",
        "resource": name,
        "owner": "lin",
    }
    row |= {"spent": Decimal(3), "saving_per_month": Decimal(40), "experiment": IDLE}
    row |= {"remedy": text, "commands": ["kubectl drain " + "x" * 20], "guardrail": text}
    keys = ("severity", "title", "status", "resource", "owner", "experiment", "remedy", "guardrail")
    columns = (
        *(Column(key, key) for key in keys),
        Column("spent", "Spent", "money"),
        Column("saving_per_month", "Saves", "money"),
    )
    section = Section("findings", "Findings", columns, (row,))
    shown = to_table(
        [Document("checklist", "t", envelope("checklist"), (), (section,), "USD")], width=width
    )
    lines = shown.splitlines()
    assert max(map(len, lines)) <= (width or 102)
    assert "    spent 3.00 USD, saves 40.00 USD a month" in lines
    assert f"    {name}, owner lin" in lines  # nobody is called __idle__
    assert "      kubectl drain " + "x" * 20 in lines
    assert shown.count("word") == 180
    assert shown.count(name) == 4


def test_unknown_values_are_no_zeros() -> None:
    columns = (Column("a", "A", "money"), Column("b", "B"))
    section = Section("rows", "Rows", columns, ({"a": None, "b": "x"},))
    found = Document("query", "t", envelope("query"), (), (section,), "USD")
    assert "–" in to_table([found])
    assert render([found], "csv").splitlines()[1] == ",x"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0", "0.00"),
        ("1234567.891", "1,234,567.89"),
        ("-5", "-5.00"),
        ("0.000000000001", "0.000000000001"),
        ("0.005", "0.005"),
        ("-0.005883569193", "-0.0059"),
        ("0.009999", "0.01"),
        ("1E+3", "1,000.00"),
    ],
)
def test_money(value: str, shown: str) -> None:
    assert money(Decimal(value)) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.0, "100.0 %"), (0.99999, "<100 %"), (0.0, "0.0 %"), (0.00001, ">0 %"), (0.123, "12.3 %")],
)
def test_percent_never_claims_all_or_nothing(ratio: float, shown: str) -> None:
    assert percent(ratio) == shown


def test_control_characters_become_visible() -> None:
    assert visible("a\nb\x1b") == "a\\nb\\x1b"
    assert visible("漢字 é") == "漢字 é"


def test_floats_that_are_no_numbers_are_refused() -> None:
    bad = Document("query", "t", envelope("query", x=float("nan")))
    with pytest.raises(ValueError, match="JSON"):
        render([bad], "json")


def test_dates_in_json() -> None:
    found = Document("query", "t", envelope("query", x=date(2026, 1, 2)))
    assert json.loads(render([found], "json"))["x"] == "2026-01-02"


FINDING_COLUMNS = (
    Column("severity", "Severity"),
    Column("title", "Finding"),
    Column("status", "Status"),
    Column("spent", "Spent", "money"),
    Column("spent_in", "Spent in"),
    Column("evidence", "Evidence"),
    Column("method", "How the money was worked out"),
)


@pytest.mark.parametrize("output", ["table", "csv", "markdown", "html"])
def test_every_format_has_what_a_finding_rests_on(output: str) -> None:
    window = Window.of_days(date(2026, 11, 15), date(2026, 11, 30))
    evidence = (
        Evidence("hours", "prometheus/a", window, 196, 2, 94, 98),
        Evidence("held", "ledger/workloads", window, None),
        Evidence("<b>|`", "x", Window(window.start, window.start + timedelta(hours=1)), "\x1b[31m"),
    )
    row = {
        "severity": "high",
        "title": "t",
        "status": "new",
        "spent": Decimal("16484.13"),
        "spent_in": "2026-11-15..2026-12-01",
        "evidence": tuple(map(evidence_line, evidence)),
        "method": "cost of the hours",
    }
    section = Section("findings", "Findings", FINDING_COLUMNS, (row,))
    text = render(
        [Document("checklist", "t", envelope("checklist"), (), (section,), "USD")], output
    )
    plain = html.unescape(text.replace("\\", "")) if output in ("markdown", "html") else text
    assert (
        "hours: 196 (threshold 2); 94 of 98 samples; 2026-11-15..2026-12-01; prometheus/a" in plain
    )
    assert "held: unknown; 2026-11-15..2026-12-01; ledger/workloads" in plain
    assert "2026-11-15T00:00:00Z..2026-11-15T01:00:00Z" in plain
    assert "cost of the hours" in text
    if output == "table":
        assert "spent 16,484.13 USD in 2026-11-15..2026-12-01" in text
    if output != "csv":
        assert "\x1b" not in text
        assert "<b>" not in text or output == "table"
