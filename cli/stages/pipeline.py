"""The stages in their order: collect → attribute → checklist, each alone or all as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from cli import exits
from cli.clock import now
from cli.stages import backfill, collecting
from cli.stages.backfill import Task
from cli.stages.closes import attributed
from cli.stages.codes import code_of
from cli.stages.collecting import Collected
from cli.stages.guard import Failure
from cli.streams import Progress
from cli.wiring import AGENTS, Context, Source, chosen, sources
from ledger.errors import LedgerError, UsageError
from ledger.schema import COSTS_DAILY
from ledger.window import Window

if TYPE_CHECKING:
    from attribution.run import DayClose
    from rules.checklist import Checklist


@dataclass(frozen=True)
class Run:
    """What a run did.

    Args:
        asked: The days that the report is about.
        collected: How each source went.
        attributed: The days whose costs were worked out (again).
        checklists: The checklist of each of these days, and of those that look back on one of
            them, in order.
        standing: The checklist of the last asked day as it stands now, worked out again or not.
        code: The exit code that all this stands for.
    """

    asked: tuple[date, ...]
    collected: tuple[Collected, ...]
    attributed: tuple[DayClose, ...]
    checklists: tuple[Checklist, ...]
    standing: Checklist | None
    code: int

    def exit_code(self, fail_on: str | None) -> int:
        """The code of the run; 1 if nothing else is wrong and a finding reaches ``fail_on``."""
        return self.code or (code_of(self.standing, fail_on) if self.standing else exits.OK)


def run(context: Context, days: Sequence[date] | None, progress: Progress) -> Run:
    """Close the asked days, or yesterday and all that is missing, and what changed since.

    Raises:
        SettingsError: The settings name no source.
        RunbillError: The ledger cannot be written.
    """
    first_run = all(name.startswith(AGENTS) for name in backfill.closed_days(context.ledger))
    plan = plan_tasks(context, days, progress)
    collected = collect(context, plan, progress)
    changed = due_days(context, days)
    attributed = attribute(context, changed, progress)
    checklists = due_checklists(context, changed, progress)
    code = collecting.exit_code(collected, context.loaded.settings.quarantine_limit)
    asked = tuple(days) if days else _reported(context, first_run)
    standing = _standing(context, max(asked))
    done = Run(asked, tuple(collected), tuple(attributed), tuple(checklists), standing, code)
    return replace(done, code=done.exit_code(None))


def _standing(context: Context, day: date) -> Checklist | None:
    from rules.engine import read_checklist

    try:
        return read_checklist(context.ledger, day)
    except LedgerError:  # the day has none: nothing could be closed
        return None


def plan_tasks(
    context: Context, days: Sequence[date] | None, progress: Progress, names: Sequence[str] = ()
) -> list[Task]:
    """What to read: the asked days of every (named) source, or what is due.

    Raises:
        UsageError: A name fits no source.
    """
    found = chosen(sources(context.loaded), names)
    prices = [source for source in found if source.kind == "prices"]
    others = [source for source in found if source.kind != "prices"]
    yesterday = now().date() - timedelta(days=1)
    if days:
        plan = backfill.explicit(others, days)
    else:
        plan = backfill.due(context.ledger, others, yesterday, _reaches(others, progress))
    read = {day for task in plan for day in task.window.days()} | set(days or (yesterday,))
    return plan + backfill.priced(context.ledger, prices, read, context.loaded.settings.digest())


def _reaches(found: Sequence[Source], progress: Progress) -> dict[str, Window | None]:
    """What each source that can be reached still holds."""
    reaches = {}
    for number, source in enumerate(found):
        progress.step(f"asking {source.name}", number, len(found))
        answer = backfill.reach_of(source)
        if not isinstance(answer, Failure):
            reaches[source.name] = answer
    return reaches


def collect(context: Context, plan: Sequence[Task], progress: Progress) -> list[Collected]:
    """Read the sources, one after the other; a source that fails does not stop the others."""
    outcomes = []
    for number, task in enumerate(plan):
        progress.step(f"collect {task.source.name}", number, len(plan))
        outcomes.append(collecting.collect(context, task))
    return outcomes


def attribute(context: Context, days: Sequence[date], progress: Progress) -> list[DayClose]:
    """Work out the costs of each day."""
    from attribution.run import attribute as attribute_days

    closes: list[DayClose] = []
    for number, day in enumerate(days):
        progress.step(f"attribute {day}", number, len(days))
        closes += attribute_days(
            context.ledger, context.loaded.settings, [day], version=context.version
        )
    return closes


def checklist(context: Context, days: Sequence[date], progress: Progress) -> list[Checklist]:
    """Ask the rules of each day, in order, as a finding's first sighting looks back."""
    found = []
    for number, day in enumerate(sorted(days)):
        progress.step(f"checklist {day}", number, len(days))
        found.append(_ask_rules(context, day))
    return found


def due_checklists(context: Context, days: Sequence[date], progress: Progress) -> list[Checklist]:
    """Ask the rules of the days, and of every day whose answer is missing or out of date.

    A rule looks back over days: what changes one of them makes the later ones out of date. Oldest
    first, as what is found on one day is the history of the next.
    """
    from rules.engine import stale_checklists

    found: list[Checklist] = []
    waiting = set(days)
    while True:
        waiting |= set(stale_checklists(context.ledger, context.loaded.settings))
        waiting -= {done.day for done in found}
        if not waiting:
            return found
        progress.step(f"checklist {min(waiting)}", len(found), len(found) + len(waiting))
        found.append(_ask_rules(context, min(waiting)))


def _ask_rules(context: Context, day: date) -> Checklist:
    from rules.engine import run_checklist

    return run_checklist(context.ledger, context.loaded.settings, day, version=context.version)


def due_days(context: Context, days: Sequence[date] | None) -> list[date]:
    """The collected days to attribute: those asked for, and those whose inputs changed since."""
    from attribution.run import stale_days

    closed = {day for found in backfill.closed_days(context.ledger).values() for day in found}
    stale = set(stale_days(context.ledger, context.loaded.settings))
    return sorted(closed & (stale | set(days or ())))


def attributed_days(context: Context, days: Sequence[date] | None) -> list[date]:
    """The asked days that were attributed; the last one if none is asked for.

    Raises:
        UsageError: None of the asked days has been attributed.
        LedgerError: No day has been.
    """
    held = attributed(context.ledger)
    kept = [day for day in held if day in days] if days else held[-1:]
    if not kept:
        span = f"attributed days: {held[0]} to {held[-1]}"
        raise UsageError("no asked day has been attributed", f"{span}; close one: runbill run")
    return kept


def _reported(context: Context, first_run: bool) -> tuple[date, ...]:
    """The days a default run reports: on a first run all that hold costs, else yesterday."""
    held = context.ledger.days(COSTS_DAILY) if first_run else []
    return (held[0], held[-1]) if held else (now().date() - timedelta(days=1),)
