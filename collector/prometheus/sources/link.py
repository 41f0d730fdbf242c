"""One connection to a Prometheus-compatible server, through prometheus-api-client.

The client gives no default time-out, drops warnings and partial-response flags, sends the query
of a POST in the URL, and retries on its own. The session under it puts this right: a reply is read
no further than ``LARGEST``, decoded once (``decode``), and an error becomes one of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any

import stamina
from prometheus_api_client import PrometheusConnect
from urllib3.util import Retry

from collector.prometheus.sources.access import Access
from collector.prometheus.sources.decode import Answer
from collector.prometheus.sources.session import Session, Tally, TransientError
from ledger.errors import SourceError

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
_NO_MORE: Mapping[str, str] = MappingProxyType({})


class Link:
    """A connection; not to be shared between threads.

    Args:
        access: How the server is reached.
        tally: Shared by all connections to one server.
    """

    def __init__(self, access: Access, tally: Tally) -> None:
        self._access = access
        self._session = Session(tally)
        self._session.verify = access.ca or True
        self._session.cert = access.certificate
        self._client = PrometheusConnect(
            access.url.rstrip("/"),
            headers=dict(access.headers),
            auth=access.auth,
            session=self._session,
            retry=Retry(0),
            method="POST",
            timeout=(min(CONNECT_SECONDS, access.timeout), access.timeout),
        )

    def query(self, promql: str, at: datetime, more: Mapping[str, str] = _NO_MORE) -> Answer:
        """An instant query, with more parameters if the server knows any.

        Raises:
            AccessError: The server refuses us.
            SourceError: The server cannot be reached.
            TooMuchError: It would have to read more than it allows.
            QueryError: It cannot answer this query.
        """
        params = {"time": f"{at.timestamp():.3f}", **self._timeout, **more}
        for attempt in _attempts():
            with attempt, _final(last=attempt.num == ATTEMPTS):
                self._client.custom_query(promql, params=dict(params))
        return self._session.last.answer

    @property
    def _timeout(self) -> dict[str, str]:
        return {"timeout": f"{self._access.timeout:g}s"}

    def query_range(
        self,
        promql: str,
        start: datetime,
        end: datetime,
        step: float,
        more: Mapping[str, str] = _NO_MORE,
    ) -> Answer:
        """A range query, from and to whole seconds.

        Raises:
            AccessError, SourceError, QueryError: As ``query``.
        """
        for attempt in _attempts():
            with attempt, _final(last=attempt.num == ATTEMPTS):
                self._client.custom_query_range(
                    promql, start, end, f"{step:g}", params={**self._timeout, **more}
                )
        return self._session.last.answer

    def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """The body of ``/api/v1/<path>``.

        Raises:
            AccessError, SourceError, QueryError: As ``query``.
        """
        for attempt in _attempts():
            with attempt, _final(last=attempt.num == ATTEMPTS):
                self._session.request(
                    "GET",
                    f"{self._client.url}/api/v1/{path}",
                    params=dict(params or {}),
                    auth=self._client.auth,
                    headers=self._client.headers,
                    timeout=self._access.timeout,
                )
        return self._session.last.content


def _attempts() -> Iterator[Any]:
    return iter(
        stamina.retry_context(
            on=_worth_retrying, attempts=ATTEMPTS, timeout=None, wait_initial=0.5, wait_max=8.0
        )
    )


def _worth_retrying(error: Exception) -> bool | float:
    if not isinstance(error, TransientError):
        return False
    return error.after if error.after is not None else True


@contextmanager
def _final(*, last: bool) -> Iterator[None]:
    """After the last try, an unreachable server is an unreachable source."""
    try:
        yield
    except TransientError as error:
        if last and error.unreachable:
            raise SourceError(
                error.message, "is prometheus.url right, and the server up?"
            ) from error
        raise
