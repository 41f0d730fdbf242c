"""HTTP to an API server: authentication by the official client, retries by one rule.

The official client is used for what it is best at (kubeconfig, exec plugins, TLS, tokens). Its
models are not: they take seconds to load a large list and refuse it whole for one odd field.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import stamina

from ledger.errors import SourceError
from ledger.settings import KubernetesSource, resolve_path
from ledger.text import without_credentials

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""An object without specification and status if the server offers that, else the whole one."""
METADATA_LIST = METADATA.replace("Metadata;", "MetadataList;")
"""A list of such objects; a server refuses to write a list in the form of one, and vice versa."""

TIMEOUT = (5.0, 60.0)  # seconds to connect, and between two reads
ATTEMPTS = 5
LONGEST_WAIT = 30.0  # seconds; a server that asks for more is taken at its word only so far
PATIENCE = 180.0  # seconds for all attempts of one request
LONGEST_LOSS = 300.0  # seconds spent on requests that failed; from then on each is tried once,
# and after twice as long none is made any more
NOT_ACCEPTABLE = 406
EXPIRED = 410
"""Statuses that a reader of lists has an answer to."""
# What the official client raises over a kubeconfig of another shape than it expects.
_ODD = (ValueError, TypeError, AttributeError, LookupError)


class ApiError(Exception):
    """A request that failed for good.

    Args:
        status: HTTP status; 0 if there was no answer.
        message: Why, in one line.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __repr__(self) -> str:
        """The message alone: a log of retries shows causes in this form."""
        return str(self)


class _Transient(ApiError):
    """A request that may succeed if it is made again."""

    def __init__(self, status: int, message: str, wait: float | None = None) -> None:
        super().__init__(status, message)
        self.wait = wait


def _again(error: Exception) -> bool | float:
    """Whether to try again, or after how many seconds (the server's own word)."""
    if not isinstance(error, _Transient):
        return False
    return True if error.wait is None else error.wait


class Api:
    """Read access to one API server.

    Args:
        source: The settings' block, with one of context, kubeconfig, in_cluster or server.
        base: Folder that a relative kubeconfig path refers to.

    Raises:
        SourceError: The kubeconfig or the service account cannot be used.
    """

    def __init__(self, source: KubernetesSource, base: Path) -> None:
        # Half a second of imports that a run on dumps does not need.
        from kubernetes.client.api_client import ApiClient

        self._client = ApiClient(_configuration(source, base))
        self.clock: datetime | None = None
        self._lost = 0.0
        self._told: dict[str, bytes | ApiError] = {}

    def __enter__(self) -> Self:
        """The server itself; its connections are closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self._client.close()

    @property
    def host(self) -> str:
        """Base URL of the server, without credentials."""
        return without_credentials(str(self._client.configuration.host))

    def get(
        self, path: str, query: Mapping[str, str | int] | None = None, accept: str = JSON
    ) -> bytes:
        """The body of a GET; the server's clock is kept in ``clock``.

        ``accept`` says in which forms, e.g. ``METADATA``, the best first. A server that refuses to
        choose (406) is asked for plain JSON.

        Retries no answer, 429 and 5xx, up to ``ATTEMPTS`` times, and waits as long as
        ``Retry-After`` says (at most ``LONGEST_WAIT`` seconds).

        Raises:
            ApiError: The answer is not 2xx, or there is none.
        """
        url = f"{path}?{urlencode(query)}" if query else path
        begun = time.monotonic()
        try:
            return self._patiently(url, accept)
        except ApiError as error:
            if isinstance(error, _Transient):
                self._lost += time.monotonic() - begun
            if error.status != NOT_ACCEPTABLE or accept == JSON:
                raise
        return self.get(path, query)

    def told(self, path: str) -> bytes:
        """The body of a GET that is made once: what a server says of itself does not change.

        Raises:
            ApiError: The answer is not 2xx, or there is none.
        """
        if path not in self._told:
            try:
                self._told[path] = self.get(path)
            except ApiError as error:
                self._told[path] = error
        known = self._told[path]
        if isinstance(known, ApiError):
            raise known
        return known

    def _patiently(self, url: str, accept: str) -> bytes:
        if self._lost > 2 * LONGEST_LOSS:
            raise _Transient(0, f"{self.host} is not asked any more: it failed for too long")
        if self._lost > LONGEST_LOSS:
            # A server that fails us again and again is not waited for anew at each of its kinds.
            return self._once(url, accept)
        for attempt in stamina.retry_context(on=_again, attempts=ATTEMPTS, timeout=PATIENCE):
            with attempt:
                return self._once(url, accept)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, url: str, accept: str) -> bytes:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        client: Any = self._client
        request = client.param_serialize(
            "GET",
            url,
            header_params={"Accept": accept},
            query_params=[],
            auth_settings=["BearerToken"],
        )
        try:
            answer = client.call_api(*request, _request_timeout=TIMEOUT)
            body: bytes = answer.read()
        except ApiException as error:  # a TLS failure: the certificate will not change
            raise ApiError(0, f"{self.host}: {_line(error.reason)}") from error
        except (HTTPError, OSError) as error:
            raise _Transient(0, f"{self.host}: {_line(error)}") from error
        self._note_clock(answer.headers.get("Date"))
        if 200 <= answer.status <= 299:
            return body
        message = f"{url.partition('?')[0]} answered {answer.status} {answer.reason}"
        if answer.status == 429 or answer.status >= 500:
            raise _Transient(answer.status, message, _wait(answer.headers.get("Retry-After")))
        raise ApiError(answer.status, message)

    def _note_clock(self, date: str | None) -> None:
        try:
            self.clock = parsedate_to_datetime(date or "").astimezone(UTC)
        except ValueError:
            self.clock = datetime.now(UTC)


def _configuration(source: KubernetesSource, base: Path) -> Any:  # noqa: ANN401 - untyped library
    from kubernetes import config
    from kubernetes.client.configuration import Configuration
    from yaml import YAMLError

    settings = Configuration()
    try:
        if source.in_cluster:
            config.load_incluster_config(settings)
        elif source.server:
            settings.host = source.server.rstrip("/")
        else:
            path = resolve_path(source.kubeconfig, base) if source.kubeconfig else None
            config.load_kube_config(path, source.context, settings, persist_config=False)
    except (config.ConfigException, YAMLError, OSError, *_ODD) as error:
        raise SourceError(
            f"cannot log in to the cluster: {_line(error)}",
            "check context and kubeconfig, or in_cluster",
        ) from error
    settings.retries = False  # retries are ours: two layers of them would multiply
    return settings


def _wait(retry_after: str | None) -> float | None:
    if retry_after and retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after[:6]), LONGEST_WAIT)
    return None


def _line(error: object) -> str:
    """An error's text on one line; the client likes to write several."""
    return without_credentials(" ".join(str(error).split()))[:300] or type(error).__name__
