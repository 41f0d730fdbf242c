"""One connection to a Prometheus-compatible server, through prometheus-api-client.

The client gives no default time-out, drops warnings and partial-response flags, sends the query
of a POST in the URL, and retries on its own. The session under it puts this right: a reply is read
no further than ``LARGEST``, decoded once (``decode``), and an error becomes one of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Lock
from time import monotonic
from types import MappingProxyType
from typing import Any

import msgspec
import requests
import stamina
from prometheus_api_client import PrometheusConnect
from urllib3.exceptions import DecodeError, ProtocolError, ReadTimeoutError
from urllib3.util import Retry

from collector.prometheus.access import Access
from collector.prometheus.decode import Answer, Decoder
from collector.prometheus.echoes import without_echoes
from collector.prometheus.limits import is_limit, refuse_late_error
from collector.prometheus.source import QueryError, SlowError, TooMuchError
from ledger.errors import AccessError, SourceError
from ledger.text import without_credentials

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
LARGEST = 50_000_000  # bytes of an answer, unpacked; more is asked for in parts
_NO_MORE: Mapping[str, str] = MappingProxyType({})
_END = 4096  # characters of a message, from either end
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


class _Error(msgspec.Struct):
    error: str = ""


@dataclass
class Tally:
    """What all connections to one server have in common.

    Args:
        answered: Set once the server has answered anything. A time-out before that is an
            unreachable server, one after it a query that is too much.
        asked: Number of requests so far, repeated ones included.
        largest: Bytes of the largest answer so far, unpacked.
    """

    answered: Event = field(default_factory=Event)
    asked: int = 0
    largest: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def ask(self) -> None:
        """Count a request."""
        with self._lock:
            self.asked += 1

    def take(self, size: int) -> None:
        """Count an answer."""
        with self._lock:
            self.largest = max(self.largest, size)


class _Reply(requests.Response):
    """A response whose JSON is decoded into a table, keeping what the client would drop."""

    def __init__(self, response: requests.Response, content: bytes, decoder: Decoder) -> None:
        super().__init__()
        self.__dict__.update(response.__dict__)
        self._content = content
        self.answer = Answer()
        self._decoder = decoder

    def json(self, **_: object) -> dict[str, dict[str, list[object]]]:
        """The part that the client reads; the points are in ``answer``."""
        try:
            self.answer = self._decoder.decode(self.content)
        except (msgspec.DecodeError, UnicodeError) as error:
            refuse_late_error(self.content, _place(self.url))
            raise QueryError(
                f"the reply of {_place(self.url)} is not Prometheus' JSON: {error}",
                "does the URL name the API of a Prometheus server?",
            ) from None
        self._content = b""  # tens of megabytes that nobody reads again
        return {"data": {"result": []}}


class _Session(requests.Session):
    """Sends POST parameters in the body, and turns errors into ours.

    Args:
        tally: Of the server.
    """

    last: _Reply

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self._tally = tally
        self._decoder = Decoder()

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
        self._tally.ask()
        until = monotonic() + _patience(kwargs.get("timeout"))
        try:
            response = super().request(method, url, *args, **{**kwargs, "stream": True})
            content = _content(response, until)
        except requests.exceptions.SSLError as error:
            raise SourceError(
                f"{place}: {_short(error)}", "prometheus.ca names a CA bundle"
            ) from error
        except requests.exceptions.ReadTimeout as error:
            if self._tally.answered.is_set():
                raise SlowError(f"{place} gave no reply in time") from error
            raise TransientError(f"{place} gave no reply in time", unreachable=True) from error
        except (requests.ConnectionError, requests.Timeout) as error:
            raise TransientError(
                f"{place} cannot be reached: {_short(error)}", unreachable=True
            ) from error
        except requests.exceptions.ChunkedEncodingError as error:
            raise TransientError(f"{place} broke off its reply") from error
        except (OSError, ValueError) as error:  # RequestException is an OSError; so is a missing CA
            raise SourceError(f"{place}: {_short(error)}") from error
        self._tally.answered.set()
        self._tally.take(len(content))
        self.last = _Reply(response, content, self._decoder)
        _refuse(self.last, place)
        return self.last


def _patience(timeout: object) -> float:
    """Seconds that a whole reply may take; time-outs of a connection only limit its pauses."""
    parts = timeout if isinstance(timeout, tuple) else (timeout,)
    return sum(part for part in parts if isinstance(part, int | float)) or float("inf")


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """A body as it comes in: who waits for a full buffer waits for a drip forever."""
    try:
        while piece := response.raw.read1(2**20, decode_content=True):
            yield piece
    except ReadTimeoutError as error:
        raise requests.exceptions.ReadTimeout from error
    except (ProtocolError, DecodeError) as error:
        raise requests.exceptions.ChunkedEncodingError from error


def _content(response: requests.Response, until: float) -> bytes:
    """The body of a response, unpacked; one that is too large or too slow is not read to its end.

    Args:
        response: Not read yet.
        until: When to give up, by the monotonic clock.
    """
    parts, size = [], 0
    with response:
        for part in _pieces(response):
            size += len(part)
            if size > LARGEST:
                raise TooMuchError(f"{_place(response.url)} answers more than {LARGEST:,} bytes")
            if monotonic() > until:
                raise requests.exceptions.ReadTimeout
            parts.append(part)
    return b"".join(parts)


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
        told = reply.text
    told = _ends(without_echoes(told, reply.request.headers))
    text = f"{place} answers {reply.status_code}: {' '.join(told.split())[:300]}"
    if reply.status_code in (401, 403) or "auth token" in told:  # vmauth answers 400
        raise AccessError(text, "check token, username, password and headers of prometheus")
    if is_limit(reply.status_code, told):
        raise TooMuchError(text)
    if reply.status_code in _TRANSIENT:
        raise TransientError(text, after=_seconds(reply.headers.get("Retry-After")))
    raise QueryError(text)


def _ends(text: str) -> str:
    """A message without its middle: servers repeat a long query, and tell the cause after it."""
    return text if len(text) <= 2 * _END else f"{text[:_END]} ... {text[-_END:]}"


def _seconds(text: str | None) -> float | None:
    return min(float(text), 60.0) if text and text.isdecimal() else None


class Link:
    """A connection; not to be shared between threads.

    Args:
        access: How the server is reached.
        tally: Shared by all connections to one server.
    """

    def __init__(self, access: Access, tally: Tally) -> None:
        self._access = access
        self._session = _Session(tally)
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
