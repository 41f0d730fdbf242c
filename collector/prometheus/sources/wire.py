"""All connections to one server, and which series of it are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from queue import Empty, LifoQueue

from collector.prometheus.sources.access import Access
from collector.prometheus.sources.decode import Answer
from collector.prometheus.sources.link import Link
from collector.prometheus.sources.session import Tally


class Wire:
    """A server, asked from several threads.

    Args:
        access: How it is reached.
        cluster: Name of the cluster, if a label tells clusters apart.
        cluster_label: That label.
    """

    def __init__(
        self, access: Access, cluster: str | None = None, cluster_label: str | None = None
    ) -> None:
        self._access = access
        # Series without the label are asked for as well: they are to be counted, not overlooked.
        self.ours = f'{cluster_label}=~"|{literal(cluster)}"' if cluster and cluster_label else ""
        self.tally = Tally()
        self.more: dict[str, str] = {}
        """Parameters of every query."""
        self._links: LifoQueue[Link] = LifoQueue()

    def matcher(self, extra: str = "") -> str:
        """``{…}`` of the cluster's series and what is asked beside; nothing if neither is."""
        both = ",".join(part for part in (extra, self.ours) if part)
        return f"{{{both}}}" if both else ""

    def query(self, promql: str, at: datetime) -> Answer:
        """An instant query.

        Raises:
            As ``Link.query``.
        """
        with self._link() as link:
            return link.query(promql, at, self.more)

    def query_range(self, promql: str, start: datetime, end: datetime, step: timedelta) -> Answer:
        """A range query, both ends included.

        Raises:
            As ``Link.query``.
        """
        with self._link() as link:
            return link.query_range(promql, start, end, step.total_seconds(), self.more)

    def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """The body of ``/api/v1/<path>``.

        Raises:
            As ``Link.get``.
        """
        with self._link() as link:
            return link.get(path, params)

    @contextmanager
    def _link(self) -> Iterator[Link]:
        """A connection that nobody else uses meanwhile; kept for the next."""
        try:
            link = self._links.get_nowait()
        except Empty:
            link = Link(self._access, self.tally)
        try:
            yield link
        finally:
            self._links.put(link)


def literal(text: str) -> str:
    """A text inside a regular expression inside a PromQL string."""
    return re.escape(text).replace("\\", "\\\\").replace('"', '\\"')
