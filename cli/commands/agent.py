"""``runbill agent``: watch clusters and record them."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from cli import exits
from cli.options import Globals, global_command
from cli.streams import note

if TYPE_CHECKING:
    from types import FrameType

    from cli.stages.watching import Pace
    from ledger.load import LoadedSettings
    from ledger.settings import Cluster

_UNITS = {"s": 1, "m": 60, "h": 3600}
SHORTEST = 10.0
"""Seconds; a ledger that is written more often grows for nothing."""


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smh])", value)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not SHORTEST <= seconds <= 3600:
        raise click.BadParameter(f"{value!r} is no time between 10s and 1h, like 5m")
    return seconds


@click.command()
@click.argument("cluster", nargs=-1)
@click.option("--once", is_flag=True, help="Catch up, write and end.")
@click.option(
    "--flush",
    default="5m",
    show_default=True,
    metavar="TIME",
    callback=_seconds,
    help="How often the ledger is written, between 10s and 1h.",
)
@global_command
def command(options: Globals, cluster: Sequence[str], once: bool, flush: float) -> None:
    """Watch clusters, and record pods and when they lived.

    For clusters without kube-state-metrics, or whose Prometheus forgets within a day. It watches
    every cluster with `agent: true` in the settings, or the CLUSTERs that are named. SIGTERM makes
    it write once more and end with 0. docs/agent.md has its role.
    """
    from cli.stages.watching import Pace
    from cli.wiring import load

    loaded = load(options)
    chosen = _chosen(loaded, cluster)

    def tell(line: str) -> None:
        if options.verbose:
            note(options, line)

    pace = Pace(flush, lambda line: note(options, line), tell)
    stop, ended_by = threading.Event(), list[int]()
    with _signals(stop, ended_by):
        codes = _watch(loaded, chosen, pace, stop, once=once)
    interrupted = signal.SIGINT in ended_by
    code = exits.INTERRUPTED if interrupted else max(codes, default=exits.OK)
    click.get_current_context().exit(code)


def _chosen(loaded: LoadedSettings, names: Sequence[str]) -> list[Cluster]:
    """The clusters that are named, or all that are to be watched.

    Raises:
        UsageError: A name fits none.
        SettingsError: There is none, or it is not marked as watched.
    """
    from ledger.errors import SettingsError, UsageError

    watched = {each.name: each for each in loaded.settings.clusters if each.watched}
    if not watched:
        raise SettingsError(
            "the settings name no cluster with an agent",
            "add `agent: true` to the cluster, so that runs count its rows",
        )
    for name in names:
        if name not in watched:
            known = ", ".join(watched)
            raise UsageError(f"no cluster {name!r} with `agent: true`", f"there are: {known}")
    return [watched[name] for name in dict.fromkeys(names or watched)]


class _signals:
    """SIGTERM and SIGINT set an event instead of ending the process; only in the main thread."""

    def __init__(self, stop: threading.Event, ended_by: list[int]) -> None:
        self._stop, self._ended_by = stop, ended_by
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._set)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _set(self, number: int, _: FrameType | None) -> None:
        self._ended_by.append(number)
        self._stop.set()


def _watch(
    loaded: LoadedSettings,
    clusters: Sequence[Cluster],
    pace: Pace,
    stop: threading.Event,
    *,
    once: bool,
) -> list[int]:
    """Watch all of them, each with a ledger of its own; the first that fails ends the others."""
    works = [_work(loaded, cluster, pace, stop, once=once) for cluster in clusters]
    if len(works) == 1:
        return [works[0]()]
    codes: list[int] = []
    errors: list[BaseException] = []

    def run(work: Callable[[], int]) -> None:
        try:
            codes.append(work())
        except BaseException as error:  # noqa: BLE001  carried over to the main thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # signals reach the main thread between two looks
            thread.join(0.5)
    if errors:
        raise errors[0]
    return codes


def _work(
    loaded: LoadedSettings, cluster: Cluster, pace: Pace, stop: threading.Event, *, once: bool
) -> Callable[[], int]:
    from cli.clock import now
    from cli.stages import watching
    from cli.wiring import context_of
    from collector.agent.connection import steady
    from collector.agent.runner import Runner

    watched = cluster.watched
    required = watched.required if watched else True
    context = context_of(loaded, create=True)
    runner = Runner(cluster, loaded.base, steady(now), loaded.settings.identity)
    if once:
        return lambda: watching.once(context, runner, pace, required=required)
    return lambda: watching.follow(context, runner, pace, stop, required=required)
