"""How much of a window was seen, and which holes there are."""

from __future__ import annotations

from datetime import UTC, timedelta

import polars as pl

from collector.prometheus.samples.chains import clip
from ledger.facts import Gap
from ledger.window import Window, iso


def holes(seen: pl.DataFrame, window: Window, grain: timedelta) -> list[Window]:
    """The spans of the window that no interval covers.

    Args:
        seen: ``start``, ``end``: disjoint and sorted.
        window: The window.
        grain: Usual distance of samples; a hole at an end of the window that is no longer is the
            grain of sampling, not a hole.
    """
    inside = clip(seen, window)
    starts = [*(moment.astimezone(UTC) for moment in inside["start"]), window.end]
    ends = [window.start, *(moment.astimezone(UTC) for moment in inside["end"])]
    spans = [(low, high) for low, high in zip(ends, starts, strict=True) if low < high]
    return [
        Window(low, high)
        for low, high in spans
        if high - low > grain or (low > window.start and high < window.end)
    ]


def ratio(missing: list[Window], window: Window) -> float:
    """Seen over expected time, 0 to 1."""
    return 1 - sum(hole.seconds for hole in missing) / window.seconds


def gaps(missing: list[Window], reach: Window | None) -> list[Gap]:
    """One gap per hole; what lies before the oldest sample held is lost to retention."""
    found: list[Gap] = []
    for hole in missing:
        lost = reach is not None and hole.start < reach.start
        if lost and reach is not None and reach.start < hole.end:
            found.append(_gap("retention", Window(hole.start, reach.start), reach))
            found.append(_gap("no_samples", Window(reach.start, hole.end), reach))
        else:
            found.append(_gap("retention" if lost else "no_samples", hole, reach))
    return found


def _gap(reason: str, hole: Window, reach: Window | None) -> Gap:
    hours = round(hole.seconds / 3600, 6)
    detail = f"no samples of any node in {hole} ({hours:g} h)"
    if reason == "retention" and reach is not None:
        detail += f"; the oldest sample held is of {iso(reach.start)}"
    return Gap(reason, detail, {"hours": hours})
