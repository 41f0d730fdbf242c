"""A session that reads one reply no further than it may, decodes it, and turns errors into ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from time import monotonic
from typing import Any

import msgspec
import requests
from urllib3.exceptions import DecodeError, ProtocolError, ReadTimeoutError

from collector.prometheus.sources.decode import Answer, Decoder
from collector.prometheus.sources.echoes import without_echoes
from collector.prometheus.sources.limits import is_limit, refuse_late_error
from collector.prometheus.sources.source import QueryError, SlowError, TooMuchError
from ledger.errors import AccessError, SourceError
from ledger.text import without_credentials

LARGEST = 50_000_000  # bytes of an answer, unpacked; more is asked for in parts
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


class Session(requests.Session):
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
