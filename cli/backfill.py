"""Which days a run reads from which source: asked, missing and still to be had, or restated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from cli.guard import Failure, attempt
from cli.wiring import Source
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.window import Window


@dataclass(frozen=True)
class Task:
    """One call of a collector: a source and a window of whole days."""

    source: Source
    window: Window


def explicit(sources: Sequence[Source], days: Sequence[date]) -> list[Task]:
    """Every source for exactly the asked days."""
    return [task for source in sources for task in tasks(source, days)]


def due(
    ledger: Ledger, sources: Sequence[Source], yesterday: date, reaches: Mapping[str, Window | None]
) -> list[Task]:
    """Yesterday, and what is missing and still to be had.

    A source without any close is new: all that it still holds is read. A bill is also read again
    from the start of the month before, as providers restate open billing periods. A source that
    cannot tell what it holds (the Kubernetes API) is asked for the days that its neighbours fill.

    Args:
        ledger: The ledger.
        sources: The sources of the settings.
        yesterday: The last complete day.
        reaches: What each source still holds, by name; None if it cannot tell.
    """
    closed = closed_days(ledger)
    wanted: dict[str, set[date]] = {}
    for source in sources:
        done = closed.get(source.name, set())
        held = _held(reaches.get(source.name), yesterday)
        wanted[source.name] = {day for day in held if day not in done} | {yesterday}
        if source.kind == "billing":
            wanted[source.name] |= {day for day in held if day >= _restated_from(yesterday)}
    for source in sources:
        if reaches.get(source.name) is None and source.cluster:
            filled = _filled(sources, wanted, source.cluster)
            wanted[source.name] |= filled - closed.get(source.name, set())
    return [task for source in sources for task in tasks(source, wanted[source.name])]


def _filled(sources: Sequence[Source], wanted: Mapping[str, set[date]], cluster: str) -> set[date]:
    """The days that any source of a cluster is going to be read for."""
    return {day for source in sources if source.cluster == cluster for day in wanted[source.name]}


def reach_of(source: Source) -> Window | None:
    """What a source still holds; None if it cannot tell or cannot be reached."""
    answer = attempt(source.name, lambda: source.build().reach())
    return None if isinstance(answer, Failure) else answer  # collecting it will say why


def closed_days(ledger: Ledger) -> dict[str, set[date]]:
    """The days that each source was collected for without failing, by source."""
    rows = (
        ledger.scan(CLOSES)
        .filter((pl.col("stage") == "collect") & (pl.col("status") != "failed"))
        .select("source", "day")
        .unique()
        .collect()
    )
    found: dict[str, set[date]] = {}
    for source, day in rows.iter_rows():
        found.setdefault(source, set()).add(day)
    return found


def tasks(source: Source, days: Iterable[date]) -> list[Task]:
    """The calls that read those days: one per day if days are large, else per unbroken run."""
    ordered = sorted(days)
    if source.per_day:
        return [Task(source, Window.of_day(day)) for day in ordered]
    return [Task(source, window) for window in spans(ordered)]


def spans(days: Sequence[date]) -> list[Window]:
    """Windows that hold exactly the given days, as long as they can be."""
    found: list[Window] = []
    for day in sorted(days):
        if found and found[-1].end == Window.of_day(day).start:
            found[-1] = Window(found[-1].start, Window.of_day(day).end)
        else:
            found.append(Window.of_day(day))
    return found


def _held(reach: Window | None, yesterday: date) -> list[date]:
    return [day for day in reach.days() if day <= yesterday] if reach else []


def _restated_from(yesterday: date) -> date:
    return (yesterday.replace(day=1) - timedelta(days=1)).replace(day=1)
