"""An agent at work on one cluster: a thread per stream, a queue, one place that takes it all."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from collector.agent.access import WATCHED
from collector.agent.connection import BrokenError, Clock, WatchApi
from collector.agent.lineage import Lineage
from collector.agent.state import Watch
from collector.agent.stream import ExpiredError, Item, Stream, pauses
from collector.kubernetes.client import ApiError
from collector.kubernetes.environment import allowed
from collector.kubernetes.frames import Row
from collector.kubernetes.kinds import Kind
from collector.kubernetes.objects import Pod
from collector.kubernetes.workloads import pod_facts, pod_request
from ledger.errors import SettingsError
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Cluster, Identity

WAITING = 10_000
"""Items that wait to be taken; beyond that the connections wait, and the server with them."""
_STEP = 0.5


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong with a stream, which goes on all the same.

    Args:
        kind: The stream's kind.
        message: What, in one line.
        status: HTTP status of an answer that refuses; 0 without one; None if it was only cut.
    """

    kind: Kind
    message: str
    status: int | None = None


class Runner:
    """The agent of one cluster.

    Args:
        cluster: Its block of the settings.
        base: Folder that relative paths refer to.
        now: Our own clock.
        identity: Identity rules; variables that they name are kept.
        describe: Columns of ``workloads`` of a pod; by default with its owners, asked one by one.

    Raises:
        SettingsError: The settings name no API server of it.
        SourceError: The kubeconfig or service account cannot be used.
    """

    def __init__(
        self,
        cluster: Cluster,
        base: Path,
        now: Callable[[], datetime],
        identity: Identity | None = None,
        describe: Callable[[Pod], Row] | None = None,
    ) -> None:
        source = cluster.kubernetes
        if source is None or source.dump is not None:
            raise SettingsError(
                f"cluster {cluster.name}: an agent needs an API server",
                "name context, kubeconfig, in_cluster or server under `kubernetes:`",
            )
        self.cluster = cluster.name
        self.clock = Clock(now)
        # Each thread has a connection of its own: a client is not made for several.
        self._apis = {kind.plural: WatchApi(source, base) for kind in WATCHED}
        lineage = Lineage(WatchApi(source, base), self.clock)
        keep, rules = source.annotations, identity or Identity()
        names = allowed(rule for key in IDENTITY_KEYS for rule in getattr(rules, key))

        def own(pod: Pod) -> Row:
            return pod_facts(pod, cluster.name, pod_request(pod), lineage(pod), keep, names)

        self.watch = Watch(cluster.name, describe or own, self.clock().date())
        self._queue: queue.Queue[Item | Trouble] = queue.Queue(WAITING)
        self._stop = threading.Event()

    def restore(
        self, day: date, configuration: str, pods: Sequence[Row], nodes: Sequence[Row]
    ) -> None:
        """Go on where an agent stood; arguments of ``Watch.restore``."""
        self.watch.restore(day, configuration, pods, nodes)

    def begin(self) -> None:
        """Start to watch, in threads that end with the process."""
        for kind in WATCHED:
            stream = self._stream(kind, self._put)
            name = f"{self.cluster}/{kind.plural}"
            threading.Thread(target=self._follow, args=(stream,), name=name, daemon=True).start()

    def stop(self) -> None:
        """Let the threads end when they next look."""
        self._stop.set()

    def take(self, timeout: float) -> Trouble | Item | None:
        """Take in what comes next; None if nothing comes in time."""
        try:
            item = self._queue.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(item, Trouble):
            return item
        try:
            self.watch.take(item)
        except Exception as error:  # noqa: BLE001  one object must not end the watch
            return Trouble(item.kind, f"fault: {type(error).__name__}: {error}")
        return item

    def once(self, seconds: int) -> list[Trouble]:
        """Catch up with each kind and come back.

        Args:
            seconds: How long to wait for what happened since the last time.
        """
        found: list[Trouble] = []
        for kind in WATCHED:
            stream = self._stream(kind, self.watch.take)
            try:
                try:
                    stream.catch_up(seconds)
                except ExpiredError:
                    stream.catch_up(seconds)
            except BrokenError as error:
                found.append(Trouble(kind, str(error)))
            except ApiError as error:
                found.append(Trouble(kind, str(error), error.status))
        return found

    def _stream(self, kind: Kind, sink: Callable[[Item], None]) -> Stream:
        book = self.watch.book(kind.plural)
        api = self._apis[kind.plural]
        return Stream(kind, api, self.clock, sink, book.version, book.synced)

    def _follow(self, stream: Stream) -> None:
        waits = pauses()
        while not self._stop.is_set():
            before = stream.version
            try:
                stream.cycle()
            except BrokenError as error:
                self._put(Trouble(stream.kind, str(error)))
            except ExpiredError as error:
                self._put(Trouble(stream.kind, f"too old, listing again: {error}"))
            except ApiError as error:
                self._put(Trouble(stream.kind, str(error), error.status))
            except Exception as error:  # noqa: BLE001  a fault must not end the watch for good
                self._put(Trouble(stream.kind, f"fault: {type(error).__name__}: {error}"))
            if stream.version is not None and stream.version != before:
                waits = pauses()  # it has come forward
            self._stop.wait(next(waits))

    def _put(self, item: Item | Trouble) -> None:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_STEP)
            except queue.Full:
                continue
            return
