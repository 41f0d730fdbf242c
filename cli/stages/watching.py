"""The agent at work: what it knows is written into the ledger every few minutes, and at the end.

What cannot be written stays in memory and is tried again; beyond a limit the oldest pods that have
ended are dropped, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from threading import Event
from typing import TYPE_CHECKING

import polars as pl

from cli import exits
from cli.stages import closes
from cli.stages.collecting import Collected
from cli.wiring import Context
from collector.agent.merge import TABLES, merge
from collector.agent.runner import Runner, Trouble
from collector.agent.state import FURTHEST, STATE
from ledger.errors import AccessError, ConflictError, RunbillError, SourceError
from ledger.schema import NODES, RESOURCES, WORKLOADS
from ledger.window import Window

if TYPE_CHECKING:
    from collector.agent.state import Watch

SHARE = 20
"""A writing is followed by at least this many times its own length without one."""
RETRY = 30.0
"""Seconds until a writing that failed is tried again."""
PENDING = 200_000
"""Pods in memory beyond which those that have ended and cannot be written are dropped."""
CATCH_UP = 10
"""Seconds that ``--once`` gives the server to tell what has happened."""


@dataclass(frozen=True)
class Pace:
    """How an agent goes about it.

    Args:
        flush: Seconds between two writings.
        say: Takes a line for the log.
        tell: Takes a line for a talkative log.
    """

    flush: float
    say: Callable[[str], None]
    tell: Callable[[str], None]


class TakenError(ConflictError):
    """Another agent writes the rows of this one."""


def resume(context: Context, runner: Runner) -> datetime | None:
    """Take up what an earlier agent wrote; until when that had watched, None if there was none.

    Raises:
        SourceError, LedgerError: The ledger cannot be read.
    """
    source, today = runner.watch.source, runner.watch.day
    # Our own clock may be wrong, either way; the server's is known only once it has answered.
    recent = Window.of_days(today - FURTHEST, today + FURTHEST)
    states = _states(context, source, recent)
    if not states:
        return None
    day = max(states)
    window = Window.of_day(day)
    pods = context.ledger.scan(WORKLOADS, window, source).sort("uid", "start").collect()
    nodes = context.ledger.scan(NODES, window, source).sort("node", "start").collect()
    runner.restore(day, states[day], pods.to_dicts(), nodes.to_dicts())
    runner.watch.written = states
    return runner.watch.until


def _states(context: Context, source: str, window: Window) -> dict[date, str]:
    """Where an agent stood at its last writing of each day."""
    rows = context.ledger.scan(RESOURCES, window, source).filter(pl.col("kind") == STATE)
    return dict(rows.select("day", "configuration").collect().rows())


def _alone(context: Context, watch: Watch) -> None:
    """Two agents on one cluster would take each other's rows: who writes second ends.

    Raises:
        TakenError: The ledger does not stand as this agent found or left it.
    """
    days = watch.days()
    if not days:
        return
    found = _states(context, watch.source, Window.of_days(days[0], days[-1]))
    if any(found.get(day) != watch.written.get(day) for day in days):
        raise TakenError(
            f"{watch.source}: not as this agent left it: another one writes, this one ends",
            "run one per cluster: one replica, strategy Recreate; started anew it goes on",
        )


def write(context: Context, watch: Watch, *, required: bool) -> int:
    """Write the days that are not finished; how many rows of them are new or changed.

    Raises:
        TakenError: Another agent has written since.
        SourceError, LedgerError: The ledger cannot be written; nothing is dropped from memory.
    """
    until, count = watch.until, 0
    _alone(context, watch)
    for day in watch.days():
        count += _write_day(context, watch, day, required=required)
    if until is not None:
        watch.settle(until)
    return count


def _write_day(context: Context, watch: Watch, day: date, *, required: bool) -> int:
    window, source = Window.of_day(day), watch.source
    facts = watch.facts(window)
    earlier = {
        table.name: context.ledger.scan(table, window, source).drop("source") for table in TABLES
    }
    tables = merge(watch, facts, earlier)
    for table in TABLES:
        context.ledger.replace(table, tables[table.name], window, source=source)
    watch.written[day] = tables[RESOURCES.name]["configuration"].item()
    # The close comes last: where it is missing, the day is not finished.
    written = replace(facts, tables=tables, read=None)
    outcome = Collected(source, required, window, written, kind="agent")
    closes.write(context, outcome.limited(context.loaded.settings.quarantine_limit), {})
    return facts.rows


def once(context: Context, runner: Runner, pace: Pace, *, required: bool) -> int:
    """Catch up, write, and end.

    Raises:
        AccessError, SourceError: Pods cannot be read.
        LedgerError: The ledger cannot be written.
    """
    since = resume(context, runner)
    pace.tell(_resumed(runner, since))
    troubles = runner.once(CATCH_UP)
    for trouble in troubles:
        pace.say(_line(runner, trouble))
    if not runner.watch.ready:
        raise _refusal(runner, troubles)
    rows = write(context, runner.watch, required=required)
    pace.tell(f"{runner.cluster}: wrote {rows} rows, watched until {runner.watch.until:%FT%TZ}")
    return (
        exits.GAPS if required and any(each.kind.name == "Pod" for each in troubles) else exits.OK
    )


def follow(context: Context, runner: Runner, pace: Pace, stop: Event, *, required: bool) -> int:
    """Watch until told to stop; then write once more.

    Raises:
        AccessError: The server refuses us from the start.
        TakenError: Another agent writes the same rows.
        LedgerError, SourceError: What an earlier agent wrote cannot be read.
    """
    pace.say(_resumed(runner, resume(context, runner)))
    runner.begin()
    due = time.monotonic() + pace.flush
    try:
        while not stop.is_set():
            item = runner.take(min(1.0, max(0.0, due - time.monotonic())))
            if isinstance(item, Trouble):
                _heed(runner, item, pace)
            if time.monotonic() >= due or _day_over(runner):
                due = _flush(context, runner, pace, required=required)
    finally:
        runner.stop()
    _flush(context, runner, pace, required=required)
    return exits.OK


def _day_over(runner: Runner) -> bool:
    until = runner.watch.until
    return until is not None and until.date() > runner.watch.day


def _heed(runner: Runner, trouble: Trouble, pace: Pace) -> None:
    """Say what is wrong; end if the server has refused us before anything was seen."""
    pace.say(_line(runner, trouble))
    refused = trouble.status in (401, 403) and trouble.kind.name == "Pod"
    if refused and runner.watch.until is None:
        raise _refusal(runner, [trouble])


def _flush(context: Context, runner: Runner, pace: Pace, *, required: bool) -> float:
    """Write; when to write next."""
    started = time.monotonic()
    if not runner.watch.ready:
        return started + min(pace.flush, RETRY)
    try:
        rows = write(context, runner.watch, required=required)
    except TakenError:
        raise
    except (RunbillError, OSError) as error:
        pace.say(f"{runner.cluster}: not written, trying again: {error}")
        dropped = runner.watch.pods.shed(PENDING)
        if dropped:
            pace.say(f"{runner.cluster}: {dropped} pods that had ended are dropped unwritten")
        return time.monotonic() + min(pace.flush, RETRY)
    took = time.monotonic() - started
    pace.tell(
        f"{runner.cluster}: wrote {rows} rows in {took:.1f} s, "
        f"watched until {runner.watch.until:%FT%TZ}"
    )
    return time.monotonic() + max(pace.flush, SHARE * took)


def _resumed(runner: Runner, since: datetime | None) -> str:
    if since is None:
        return f"{runner.cluster}: begins to watch"
    return f"{runner.cluster}: goes on from {since:%FT%TZ}"


def _line(runner: Runner, trouble: Trouble) -> str:
    return f"{runner.cluster}: {trouble.kind.plural}: {trouble.message}"


def _refusal(runner: Runner, troubles: list[Trouble]) -> SourceError:
    text = "; ".join(_line(runner, each) for each in troubles) or f"{runner.cluster}: no pods"
    if any(each.status in (401, 403) for each in troubles):
        return AccessError(text, "grant get, list and watch on pods and nodes: docs/agent.md")
    return SourceError(text, "is the server up and the address right?")
