"""What was seen of a window, per source: the ``coverage`` block of every document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any

import polars as pl

from cli.document import Column, Section, Tile, Tone
from cli.render.text import percent
from cli.stages.backfill import spans
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.window import Window, iso

_COLUMNS = (
    Column("source", "Source"),
    Column("status", "Status"),
    Column("ratio", "Coverage", "ratio"),
    Column("days", "Days", "number"),
    Column("what", "What"),
    Column("detail", "Detail"),
)
_WORST = ("failed", "gaps", "closed")


def coverage_of(
    ledger: Ledger, window: Window, named: AbstractSet[str] = frozenset()
) -> list[dict[str, Any]]:
    """One entry per source that closed a day of the window, or should have, by name.

    Args:
        ledger: The ledger.
        window: What was asked for.
        named: The sources of the settings; of any other it is said that its rows do not count.
            A day of the window that one of them was never read for is a gap, and covered by 0.

    Returns:
        ``source, status, ratio`` (mean over the days of the window; None = not applicable),
        ``days``, ``gaps`` (each different one once, with the number of days), ``quarantine`` and
        ``notes``, likewise.
    """
    rows = (
        ledger.scan(CLOSES, window)
        .filter(pl.col("stage") != "checklist")
        .sort("source", "stage", "day")
        .collect()
    )
    by_source: dict[str, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        by_source.setdefault(row["source"], []).append(row)
    done = {row["day"] for row in by_source.get("attribution", ())}
    missing = [day for day in window.days() if day not in done]
    if done:
        by_source |= {source: [] for source in named if source not in by_source}
    found = [
        _entry(source, closes)
        if source == "attribution" or not named
        else _read_entry(source, closes, done, missing)
        if source in named
        else _orphan(source, closes)
        for source, closes in sorted(by_source.items())
    ]
    return [*found, _not_closed(missing, window)] if missing else found


def _read_entry(
    source: str,
    rows: Sequence[Mapping[str, Any]],
    done: AbstractSet[date],
    missing: Sequence[date],
) -> dict[str, Any]:
    """A source of the settings; closed days that it was not read for are a gap of it.

    Args:
        source: Its name.
        rows: Its closes.
        done: Days of the window that were closed.
        missing: Days of the window that were not.
    """
    entry = _entry(source, rows)
    read = {row["day"] for row in rows}
    unread = sorted(done - read)
    away = len(unread) + len(set(missing) - read)
    if entry["ratio"] is not None:
        entry["ratio"] *= len(read) / (len(read) + away)
    if not unread:
        return entry
    gap = {"reason": "not_closed", "detail": f"never read: {_named_all(unread)}"}
    return {
        **entry,
        "status": "failed" if entry["status"] == "failed" else "gaps",
        "ratio": entry["ratio"] if read else 0.0,
        "gaps": [*entry["gaps"], {**gap, "days": len(unread)}],
    }


def _orphan(source: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A source that left the settings: its rows stay in the ledger and are attributed no more."""
    note = "not in the settings any more: its rows are no longer counted"
    return {
        "source": source,
        "status": "closed",
        "ratio": None,
        "days": len({row["day"] for row in rows}),
        "gaps": [],
        "quarantine": [],
        "notes": [note],
        "data_through": None,
    }


def _not_closed(days: Sequence[date], window: Window) -> dict[str, Any]:
    detail = f"never closed: {_named_all(days)}"
    gap = {"reason": "not_closed", "detail": detail, "days": len(days)}
    return {
        "source": "runbill",
        "status": "gaps",
        "ratio": 1 - len(days) / len(list(window.days())),
        "days": len(days),
        "gaps": [gap],
        "quarantine": [],
        "notes": [],
        "data_through": None,
    }


def _named_all(days: Sequence[date]) -> str:
    return ", ".join(_named(window) for window in spans(days))


def _named(window: Window) -> str:
    """A run of days by its first and last."""
    first, *more = window.days()
    return f"{first}..{more[-1]}" if more else str(first)


def _entry(source: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ratios = [row["coverage"] for row in rows if row["coverage"] is not None]
    return {
        "source": source,
        "status": min((row["status"] for row in rows), key=_WORST.index, default="closed"),
        "ratio": sum(ratios) / len(ratios) if ratios else None,
        "days": len({row["day"] for row in rows}),
        "gaps": _distinct(rows, "gaps", ("reason", "detail")),
        "quarantine": _distinct(rows, "quarantine", ("reason", "where", "count")),
        "notes": sorted({note for row in rows for note in json.loads(row["notes"] or "[]")}),
        "data_through": max(filter(None, (row["data_through"] for row in rows)), default=None),
    }


def _distinct(
    rows: Sequence[Mapping[str, Any]], column: str, same: Sequence[str]
) -> list[dict[str, Any]]:
    """Entries of a JSON column, equal ones once, with the number of days that have them."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        for entry in json.loads(row[column] or "[]"):
            key = tuple(entry.get(name) for name in same)
            known = found.setdefault(key, {**entry, "days": 0})
            known["days"] += 1
    return list(found.values())


def coverage_tile(coverage: Sequence[Mapping[str, Any]]) -> Tile:
    """The lowest coverage of all sources, and how many have gaps."""
    if not coverage:
        return Tile("Coverage", "nothing closed", "no source was read in this window", "bad")
    ratios = [(entry["ratio"], entry["source"]) for entry in coverage if entry["ratio"] is not None]
    troubled = [entry["source"] for entry in coverage if entry["status"] != "closed"]
    failed = any(entry["status"] == "failed" for entry in coverage)
    detail = f"gaps: {', '.join(troubled)}" if troubled else "no gaps"
    tone: Tone = "bad" if failed else "warn" if troubled else "good"
    value = percent(min(ratios)[0]) if ratios else ("with gaps" if troubled else "complete")
    return Tile("Coverage", value, detail, tone)


def gaps_section(
    coverage: Sequence[Mapping[str, Any]], window: Window, blind: Iterable[tuple[str, str]] = ()
) -> Section:
    """What could not be seen or had to be put aside, and why.

    Args:
        coverage: The coverage block.
        window: What was asked for.
        blind: Sources that the settings do not name, and what is blind without them.
    """
    rows = (
        *(row for entry in coverage for row in _gap_rows(entry, window)),
        *(
            {"source": name, "status": "not configured", "what": "blind", "detail": detail}
            for name, detail in blind
        ),
    )
    return Section(
        "gaps",
        "What was not seen",
        _COLUMNS,
        rows,
        tone="status",
        empty="every source was read without a gap",
    )


def _gap_rows(entry: Mapping[str, Any], window: Window) -> Iterator[dict[str, Any]]:
    base = {key: entry[key] for key in ("source", "status", "ratio")}
    through = entry["data_through"]
    if through is not None and through < window.end:
        detail = f"data delivered through {iso(through)}; nothing is known of what comes after"
        yield {**base, "what": "not delivered yet", "days": entry["days"], "detail": detail}
    for gap in entry["gaps"]:
        yield {**base, "what": gap["reason"], "days": gap["days"], "detail": gap["detail"]}
    for aside in entry["quarantine"]:
        example = f", e.g. {aside['example']}" if aside.get("example") else ""
        yield {
            **base,
            "what": f"put aside: {aside['reason']}",
            "days": aside["days"],
            "detail": f"{aside['count']} in {aside['where']}{example}",
        }
    for note in entry["notes"]:
        yield {**base, "what": "note", "days": entry["days"], "detail": note}
