"""What a single stage did, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cli.document import Column, Document, Section, Tile, envelope
from cli.render.text import scalar
from cli.stages.collecting import Collected
from ledger.facts import Gap
from ledger.window import Window

if TYPE_CHECKING:
    from attribution.run import DayClose

_COLLECTED = (
    Column("source", "Source"),
    Column("window", "Window"),
    Column("status", "Status"),
    Column("coverage", "Coverage", "ratio"),
    Column("rows", "Rows", "number"),
    Column("quarantined", "Put aside", "number"),
    Column("gaps", "Gaps"),
)
_ATTRIBUTED = (
    Column("day", "Day"),
    Column("status", "Status"),
    Column("coverage", "Coverage", "ratio"),
    Column("rows", "Rows", "number"),
    Column("restated", "Restated", "number"),
    Column("gaps", "Gaps"),
)


def collect_document(outcomes: Sequence[Collected]) -> Document:
    """How reading each source went."""
    rows = tuple(
        {
            "source": each.source,
            "window": str(each.window),
            "status": each.status,
            "coverage": each.facts.coverage if each.facts else 0.0,
            "rows": each.facts.rows if each.facts else None,
            "quarantined": each.facts.quarantined if each.facts else None,
            "gaps": _text(each.gaps),
        }
        for each in outcomes
    )
    data = envelope("collect", window=_hull(outcomes), sources=[_source(each) for each in outcomes])
    tiles = (Tile("Window", _shown(outcomes)), Tile("Coverage", _tally(outcomes)))
    section = Section(
        "sources", "Sources", _COLLECTED, rows, tone="status", empty="nothing was due"
    )
    return Document("collect", "What was collected", data, tiles, (section,))


def attribute_document(closes: Sequence[DayClose]) -> Document:
    """How attributing each day went."""
    rows = tuple(
        {
            "day": each.day,
            "status": each.status,
            "coverage": each.coverage,
            "rows": each.rows,
            "restated": each.restated.height,
            "gaps": _text(each.gaps),
        }
        for each in closes
    )
    days = [
        {
            "day": scalar(each.day),
            "status": each.status,
            "coverage": each.coverage,
            "rows": each.rows,
            "restated": each.restated.height,
            "gaps": [gap.as_dict() for gap in each.gaps],
            "notes": list(each.notes),
        }
        for each in closes
    ]
    window = Window.of_days(closes[0].day, closes[-1].day) if closes else None
    data = envelope("attribute", window=window.as_dict() if window else None, days=days)
    tiles = (
        Tile("Window", str(window) if window else "no day was due"),
        Tile(
            "Coverage",
            f"{sum(not each.gaps for each in closes)} of {len(closes)} days without a gap",
        ),
    )
    section = Section(
        "days",
        "Days",
        _ATTRIBUTED,
        rows,
        tone="status",
        empty="no day's inputs changed since it was attributed",
    )
    return Document("attribute", "What was attributed", data, tiles, (section,))


def _source(each: Collected) -> dict[str, object]:
    facts = each.facts
    return {
        "source": each.source,
        "required": each.required,
        "window": each.window.as_dict(),
        "status": each.status,
        "ratio": facts.coverage if facts else 0.0,
        "rows": facts.rows if facts else None,
        "gaps": [gap.as_dict() for gap in each.gaps],
        "quarantine": [entry.as_dict() for entry in facts.quarantine] if facts else [],
        "residue": {name: scalar(lost) for name, lost in facts.residue.items()} if facts else {},
        "notes": list(facts.notes) if facts else [],
    }


def _hull(outcomes: Sequence[Collected]) -> dict[str, str] | None:
    if not outcomes:
        return None
    return Window(
        min(each.window.start for each in outcomes), max(each.window.end for each in outcomes)
    ).as_dict()


def _shown(outcomes: Sequence[Collected]) -> str:
    hull = _hull(outcomes)
    return f"{hull['start']}..{hull['end']}" if hull else "nothing was due"


def _tally(outcomes: Sequence[Collected]) -> str:
    count = len({each.source for each in outcomes})
    troubled = {each.source for each in outcomes if each.status != "closed"}
    return f"{count - len(troubled)} of {count} sources without a gap"


def _text(gaps: Iterable[Gap]) -> str | None:
    return "; ".join(f"{gap.reason}: {gap.detail}" for gap in gaps) or None
