"""The page in a real browser: nothing is fetched, nothing runs, nothing is reported as an error."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.document import Bars, Column, Document, Section, Tile, envelope
from cli.render import render
from tests.conftest import missing

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--enable-logging=stderr --virtual-time-budget=3000 --dump-dom"
).split()


@pytest.fixture(scope="module")
def chromium() -> str:
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if not found:
        missing("no Chromium; apt-get install -y --no-install-recommends chromium")
    return str(found)


class Trap(ThreadingHTTPServer):
    """A server that notes every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Note)
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Note(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Trap)
        self.server.seen.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def trap() -> Iterator[Trap]:
    server = Trap()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def load(chromium: str, page: str, folder: Path) -> tuple[str, list[str]]:
    """The page's DOM after loading, and what it wrote to the console."""
    path = folder / "page.html"
    path.write_text(page)
    done = subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={folder / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def hostile(url: str) -> list[str]:
    return [
        f"<img src={url}/img>",
        f"<script src={url}/script></script>",
        "<script>boom()</script>",
        f"</title></style><link rel=stylesheet href={url}/css>",
        f"<iframe src={url}/frame>",
        f"<svg onload=fetch('{url}/svg')>",
        "'\"><b onmouseover=alert(1)>",
        "javascript:boom()",
    ]


def page(names: list[str]) -> str:
    rows = tuple(
        {
            "experiment": name,
            "cost": 1.0,
            "title": name,
            "severity": "high",
            "status": name,
            "remedy": name,
            "guardrail": name,
            "commands": [name],
        }
        for name in names
    )
    columns = (Column("experiment", "Experiment"), Column("cost", "Cost", "number"))
    bars = Bars("By phase", tuple(names), tuple((1.0,) * len(names) for _ in names), "USD")
    sections = (
        Section("experiments", names[0], columns, rows, bars=bars),
        Section("findings", names[1], columns, rows),
    )
    tiles = tuple(Tile(name, name, name, unit=name) for name in names)
    document = Document(
        "report", " ".join(names), envelope("report"), tiles, sections, "USD", tuple(names)
    )
    return render([document], "html")


def test_the_trap_catches_a_page_that_fetches(chromium: str, trap: Trap, tmp_path: Path) -> None:
    """A control: without escaping and policy the same names do fetch and do fail."""
    _, console = load(
        chromium, f"<!doctype html><body>{hostile(trap.url)[0]}<script>boom()</script>", tmp_path
    )
    assert "/img" in trap.seen
    assert console


def test_the_page_fetches_and_runs_nothing(chromium: str, trap: Trap, tmp_path: Path) -> None:
    names = hostile(trap.url)
    dom, console = load(chromium, page(names), tmp_path)
    assert trap.seen == []
    assert console == []
    assert "&lt;script&gt;boom()&lt;/script&gt;" in dom
    assert dom.count("<script") == 0


MEASURE = """<!doctype html><body><iframe srcdoc="{page}"
 style="width:{width}px;height:900px;border:0">
</iframe><script>onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  const cells = [...page.querySelectorAll("td span")].filter(cell => cell.textContent.length > 60);
  const narrowest = Math.min(...cells.map(cell => cell.getBoundingClientRect().width));
  document.title = `measured ${{page.documentElement.scrollWidth}} ${{narrowest}}`;
}}</script>"""


@pytest.mark.parametrize("width", [400, 700, 1280])
def test_running_text_keeps_its_width_and_the_page_does_not_scroll_sideways(
    chromium: str, tmp_path: Path, width: int
) -> None:
    keys = ("source", "status", "ratio", "days", "what", "detail")
    row = dict.fromkeys(keys, "kubernetes/train-a") | {"detail": "a dump carries no time " * 6}
    section = Section("gaps", "Gaps", tuple(Column(key, key.title()) for key in keys), (row,))
    shown = render([Document("report", "t", envelope("report"), (), (section,))], "html")
    dom, _ = load(chromium, MEASURE.format(page=html.escape(shown), width=width), tmp_path)
    found = re.search(r"<title>measured (\d+) ([\d.]+)</title>", dom)
    assert found, dom[-500:]
    assert int(found[1]) <= width
    assert float(found[2]) > 150  # a few words a line, not a letter
