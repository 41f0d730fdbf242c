"""The page of questions is made of the code that asks."""

from __future__ import annotations

from pathlib import Path

from collector.prometheus.series.catalogue import ALL
from collector.prometheus.series.questions import page

PAGE = Path(__file__).parents[4] / "docs" / "prometheus.md"


def test_the_page_is_what_the_code_asks() -> None:
    told = PAGE.read_text("utf-8")
    assert told == page(), "python -m collector.prometheus.series.questions > docs/prometheus.md"


def test_every_series_stands_there_with_its_reason() -> None:
    text = page()
    assert all(f"`{name}`" in text for one in ALL for name in one.names)
    assert all(one.blind in text for one in ALL)
