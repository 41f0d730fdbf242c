"""Which days a run reads from which source: asked, missing and still to be had, or restated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from cli.clock import now
from cli.stages.guard import Failure, attempt
from cli.wiring import PRICES, Source
from ledger.schema import CLOSES
from ledger.store import Ledger
from ledger.window import Window

RETRIED = frozenset({"query_failed", "no_series", "partial_response", "no_samples", "failed"})
"""Gaps that may close when the day is read again: what was slow or away may be there by then."""
RETRY_DAYS = 14
"""How far back such days are read again; a hole that is older stays one."""


@dataclass(frozen=True)
class Task:
    """One call of a collector.

    Args:
        source: The source.
        window: Whole days.
        again: Whether these days were closed with gaps before, and are but tried once more.
    """

    source: Source
    window: Window
    again: bool = False


def explicit(sources: Sequence[Source], days: Sequence[date]) -> list[Task]:
    """Every source for exactly the asked days."""
    return [task for source in sources for task in tasks(source, days)]


def due(
    ledger: Ledger, sources: Sequence[Source], yesterday: date, reaches: Mapping[str, Window | None]
) -> list[Task]:
    """Yesterday, what is missing and still to be had, and what may be seen better by now.

    A source without any close is new: all that it still holds is read. A bill is also read again
    from the start of the month before, as providers restate open billing periods. A source that
    cannot tell what it holds (the Kubernetes API) is asked for the days that its neighbours fill.
    A day with gaps of ``RETRIED`` is tried again for ``RETRY_DAYS``.

    Args:
        ledger: The ledger.
        sources: The sources of the settings, without prices.
        yesterday: The last complete day.
        reaches: What each source still holds, by name; None if it cannot tell. A source that is
            not there could not be reached: it is asked for yesterday alone, and will say why.
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
        if source.cluster and source.name in reaches and reaches[source.name] is None:
            filled = _filled(sources, wanted, source.cluster)
            wanted[source.name] |= filled - closed.get(source.name, set())
    doubtful = _doubtful(ledger, yesterday)
    found: list[Task] = []
    for source in sources:
        days = wanted[source.name]
        again = _within(doubtful.get(source.name, set()), reaches, source.name) - days
        found += [*tasks(source, days), *tasks(source, again, again=True)]
    return found


def priced(
    ledger: Ledger, sources: Sequence[Source], days: Iterable[date], settings_hash: str
) -> list[Task]:
    """What the prices of the settings are read for: they hold for every day that is closed.

    Args:
        ledger: The ledger.
        sources: The sources of kind prices: one or none.
        days: The days that the other sources are read for.
        settings_hash: Of the settings in force. A closed day whose prices were read from others
            is read again; the digest of what was read then tells whether a price has changed.
    """
    closed = {day for found in closed_days(ledger).values() for day in found}
    known = ledger.scan(CLOSES).filter(
        (pl.col("stage") == "collect") & (pl.col("settings_hash") == settings_hash)
    )
    found: list[Task] = []
    for source in sources:
        fresh = known.filter(pl.col("source") == source.name).select("day").collect()["day"]
        found += tasks(source, (closed - set(fresh)) | set(days))
    return found


def _within(
    days: AbstractSet[date], reaches: Mapping[str, Window | None], name: str
) -> AbstractSet[date]:
    """The days that a source still holds, all of them if it cannot tell, none if it is away."""
    if name not in reaches:
        return set()
    reach = reaches[name]
    return days if reach is None else days & set(reach.days())


def _filled(sources: Sequence[Source], wanted: Mapping[str, set[date]], cluster: str) -> set[date]:
    """The days that any source of a cluster is going to be read for."""
    return {day for source in sources if source.cluster == cluster for day in wanted[source.name]}


def reach_of(source: Source) -> Window | Failure | None:
    """What a source still holds; None if it cannot tell."""
    return attempt(source.name, lambda: source.build().reach())


def closed_days(ledger: Ledger) -> dict[str, set[date]]:
    """The days that each source was collected for without failing; prices alone close no day.

    Nor is a day closed before it is over, though an agent already writes of it.
    """
    rows = (
        ledger.scan(CLOSES)
        .filter((pl.col("stage") == "collect") & (pl.col("status") != "failed"))
        .filter((pl.col("source") != PRICES) & (pl.col("day") < now().date()))
        .select("source", "day")
        .unique()
        .collect()
    )
    found: dict[str, set[date]] = {}
    for source, day in rows.iter_rows():
        found.setdefault(source, set()).add(day)
    return found


def _doubtful(ledger: Ledger, yesterday: date) -> dict[str, set[date]]:
    """The late days that each source was read for with gaps that may have closed since."""
    late = Window.of_days(yesterday - timedelta(days=RETRY_DAYS), yesterday)
    rows = (
        ledger.scan(CLOSES, late)
        .filter((pl.col("stage") == "collect") & (pl.col("status") != "closed"))
        .select("source", "day", "status", "gaps")
        .collect()
    )
    found: dict[str, set[date]] = {}
    for source, day, status, gaps in rows.iter_rows():
        reasons = {status} | {gap.get("reason") for gap in json.loads(gaps or "[]")}
        if reasons & RETRIED:
            found.setdefault(source, set()).add(day)
    return found


def tasks(source: Source, days: Iterable[date], *, again: bool = False) -> list[Task]:
    """The calls that read those days: one per day if days are large, else per unbroken run."""
    ordered = sorted(days)
    if source.per_day:
        return [Task(source, Window.of_day(day), again) for day in ordered]
    return [Task(source, window, again) for window in spans(ordered)]


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
