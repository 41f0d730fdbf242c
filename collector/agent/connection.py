"""HTTP for a watch: answers that do not end, line by line, and the clock of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from collector.kubernetes.client import JSON, Api, ApiError
from ledger.text import without_credentials

CONNECT = 5.0
"""Seconds to connect."""
LONGEST_LINE = 32 * 2**20
"""Bytes; an object of the API server has at most some 1.5 MB."""
_DRIFT = timedelta(seconds=5)
"""What two clocks may differ before the server's counts: its Date has no parts of seconds."""


Clocked = Callable[[], datetime]
"""Tells what time it is."""


class BrokenError(Exception):
    """A watch that ended otherwise than by its time limit; it can be resumed."""


class WatchApi(Api):
    """Read access to one API server, also by watching."""

    def once(self, path: str, accept: str = JSON) -> bytes:
        """The body of a GET, tried once.

        Raises:
            ApiError: The answer is not 2xx, or there is none (status 0).
        """
        return self._once(path, accept)

    @contextmanager
    def watch(self, path: str, query: Mapping[str, str | int], silence: float) -> Iterator[Lines]:
        """Open an answer that goes on; it is closed at the end of the block.

        Args:
            path: The list's path.
            query: Parameters.
            silence: Seconds without a byte after which it counts as broken.

        Raises:
            ApiError: The answer is not 2xx, or there is none (status 0).
        """
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        client: Any = self._client
        request = client.param_serialize(
            "GET",
            f"{path}?{urlencode(query)}",
            header_params={"Accept": "application/json"},
            query_params=[],
            auth_settings=["BearerToken"],
        )
        try:
            answer = client.call_api(*request, _request_timeout=(CONNECT, silence))
        except (ApiException, HTTPError, OSError) as error:
            text = without_credentials(" ".join(str(error).split()))[:300]
            raise ApiError(0, f"{self.host}: {text or type(error).__name__}") from error
        response = answer.response
        try:
            if not 200 <= answer.status <= 299:
                raise ApiError(answer.status, f"{path} answered {answer.status} {answer.reason}")
            yield Lines(response.read1, answer.headers.get("Date"))
        finally:
            response.close()


class Lines:
    """The lines of an answer as they come.

    Args:
        read: Returns what has come, waiting for at least a byte; nothing at the end.
        date: The header that says what time it is at the server.
    """

    def __init__(self, read: Callable[[], bytes], date: str | None) -> None:
        self._read = read
        self.date = date

    def __iter__(self) -> Iterator[bytes]:
        """Whole lines, without their ends; what the end of the answer cuts is not one.

        Raises:
            BrokenError: The connection was cut, was silent for too long, or sends no lines.
        """
        from urllib3.exceptions import HTTPError

        parts: list[bytes] = []
        size = 0
        while True:
            try:
                got = self._read()
            except (HTTPError, OSError, ValueError) as error:
                raise BrokenError(f"{type(error).__name__}: {error}") from error
            if not got:
                if size:
                    raise BrokenError("the answer ended in the middle of a line")
                return
            *whole, rest = got.split(b"\n")
            if whole:
                yield b"".join((*parts, whole[0]))
                yield from whole[1:]
                parts, size = [], 0
            if rest:
                parts.append(rest)
                size += len(rest)
            if size > LONGEST_LINE:
                raise BrokenError(f"a line of more than {LONGEST_LINE} bytes")


def steady(now: Callable[[], datetime], ticks: Callable[[], float] = monotonic) -> Clocked:
    """A clock that goes on from now whatever is done to the machine's: no jump is time watched."""
    begun, first = now(), ticks()
    return lambda: begun + timedelta(seconds=ticks() - first)


class Clock:
    """The time at the API server: our own clock, moved by what its answers say.

    Args:
        local: Our own clock.
    """

    def __init__(self, local: Callable[[], datetime]) -> None:
        self._local = local
        self._off = timedelta(0)

    def note(self, date: str | None) -> None:
        """Compare with the Date of an answer that has just come."""
        try:
            there = parsedate_to_datetime(date or "").astimezone(UTC)
        except ValueError:
            return
        off = there - self._local()
        self._off = off if abs(off) > _DRIFT else timedelta(0)

    def __call__(self) -> datetime:
        """The present, in whole microseconds of UTC."""
        return self._local() + self._off
