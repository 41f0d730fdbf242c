"""One connection to a Prometheus-compatible server, through prometheus-api-client.

The client gives no default time-out, drops warnings and partial-response flags, sends the query
of a POST in the URL, and retries on its own. The session under it puts this right: every reply is
decoded once, typed, and an error becomes one of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any

import msgspec
import requests
import stamina
from prometheus_api_client import PrometheusConnect
from urllib3.util import Retry

from collector.prometheus.access import Access
from collector.prometheus.source import QueryError
from ledger.errors import AccessError, SourceError
from ledger.text import without_credentials

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


class TransientError(QueryError):
    """A fault that may pass: time-out, busy or restarting server.

    Args:
        message: What happened.
        after: Seconds that the server asks to wait, if it says so.
        unreachable: Whether nothing answered at all.
    """

    def __init__(
        self, message: str, *, after: float | None = None, unreachable: bool = False
    ) -> None:
        super().__init__(message)
        self.after = after
        self.unreachable = unreachable


class TooMuchError(QueryError):
    """The amount of samples or the time was too much; a shorter range may do."""


class Matrix(msgspec.Struct):
    """A series of a reply: labels, and pairs of Unix seconds and text."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


class _Data(msgspec.Struct):
    result: list[Matrix] = msgspec.field(default_factory=list)


class _Envelope(msgspec.Struct):
    """The API's envelope: https://prometheus.io/docs/prometheus/latest/querying/api/."""

    data: _Data = msgspec.field(default_factory=_Data)
    warnings: list[str] | None = None
    infos: list[str] | None = None
    isPartial: bool | None = None  # VictoriaMetrics


class _Error(msgspec.Struct):
    error: str = ""


@dataclass(frozen=True)
class Answer:
    """The series of a reply, and what the server said beside them."""

    series: list[Matrix]
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()


class _Reply(requests.Response):
    """A response whose JSON is decoded into typed series, keeping what the client would drop."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__()
        self.__dict__.update(response.__dict__)
        self.answer = Answer([])

    def json(self, **_: object) -> dict[str, dict[str, list[Matrix]]]:
        """The part that the client reads."""
        try:
            envelope = msgspec.json.decode(self.content, type=_Envelope)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise QueryError(
                f"the reply of {_place(self.url)} is not Prometheus' JSON: {error}",
                "does the URL name the API of a Prometheus server?",
            ) from None
        partial = ("the reply is partial",) if envelope.isPartial else ()
        self.answer = Answer(
            envelope.data.result,
            (*(envelope.warnings or ()), *partial),
            tuple(envelope.infos or ()),
        )
        return {"data": {"result": envelope.data.result}}


class _Session(requests.Session):
    """Sends POST parameters in the body, and turns errors into ours.

    Args:
        answered: Set once the server has answered anything. A time-out before that is an
            unreachable server, one after it a query that is too much.
    """

    last: _Reply

    def __init__(self, answered: Event) -> None:
        super().__init__()
        self._answered = answered

    def request(  # the parent's twenty keywords go through unseen
        self,
        method: str,
        url: str | bytes,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> _Reply:
        """The parent's ``request``; a reply that is an error is raised."""
        if method == "POST":
            kwargs["data"] = kwargs.pop("params", None)
        place = _place(str(url))
        try:
            response = super().request(method, url, *args, **kwargs)
        except requests.exceptions.SSLError as error:
            raise SourceError(
                f"{place}: {_short(error)}", "prometheus.ca names a CA bundle"
            ) from error
        except requests.exceptions.ReadTimeout as error:
            if self._answered.is_set():
                raise TooMuchError(f"{place} gave no reply in time") from error
            raise TransientError(f"{place} gave no reply in time", unreachable=True) from error
        except (requests.ConnectionError, requests.Timeout) as error:
            raise TransientError(
                f"{place} cannot be reached: {_short(error)}", unreachable=True
            ) from error
        except requests.exceptions.ChunkedEncodingError as error:
            raise TransientError(f"{place} broke off its reply") from error
        except (OSError, ValueError) as error:  # RequestException is an OSError; so is a missing CA
            raise SourceError(f"{place}: {_short(error)}") from error
        self._answered.set()
        self.last = _Reply(response)
        _refuse(self.last, place)
        return self.last


def _place(url: str | None) -> str:
    """A URL without credentials and query."""
    return without_credentials(url or "").partition("?")[0]


def _short(error: Exception) -> str:
    cause = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    text = without_credentials(str(cause))
    return text.splitlines()[0].rpartition(": ")[2][:200] if text else "no details"


def _refuse(reply: requests.Response, place: str) -> None:
    """Raise what a status that is not 200 means."""
    if reply.status_code == requests.codes.ok:
        return
    try:
        told = msgspec.json.decode(reply.content, type=_Error).error
    except (msgspec.DecodeError, UnicodeError):
        told = reply.text[:120]
    text = f"{place} answers {reply.status_code}: {' '.join(told.split())[:300]}"
    if reply.status_code in (401, 403):
        raise AccessError(text, "check token, username, password and headers of prometheus")
    if "too many samples" in told or "timed out" in told or reply.status_code == 413:
        raise TooMuchError(text)
    if reply.status_code in _TRANSIENT:
        raise TransientError(text, after=_seconds(reply.headers.get("Retry-After")))
    raise QueryError(text)


def _seconds(text: str | None) -> float | None:
    return min(float(text), 60.0) if text and text.isdecimal() else None


class Link:
    """A connection; not to be shared between threads.

    Args:
        access: How the server is reached.
        answered: Shared by all connections to one server; set once it has answered anything.
    """

    def __init__(self, access: Access, answered: Event) -> None:
        self._access = access
        self._session = _Session(answered)
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

    def query(self, promql: str, at: datetime) -> Answer:
        """An instant query.

        Raises:
            AccessError: The server refuses us.
            SourceError: The server cannot be reached.
            TooMuchError: It would have to read more than it allows.
            QueryError: It cannot answer this query.
        """
        params = {"time": f"{at.timestamp():.3f}", "timeout": f"{self._access.timeout:g}s"}
        for attempt in _attempts():
            with attempt, _final(last=attempt.num == ATTEMPTS):
                self._client.custom_query(promql, params=dict(params))
        return self._session.last.answer

    def query_range(self, promql: str, start: datetime, end: datetime, step: float) -> Answer:
        """A range query; only for overviews, as it looks back from every step.

        Raises:
            AccessError, SourceError, QueryError: As ``query``.
        """
        for attempt in _attempts():
            with attempt, _final(last=attempt.num == ATTEMPTS):
                self._client.custom_query_range(promql, start, end, f"{step:g}")
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
