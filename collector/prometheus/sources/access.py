"""How a Prometheus-compatible server is reached, and how requests to it are authorised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth

from ledger.errors import AccessError
from ledger.settings import PrometheusSource, resolve_path

TENANT_HEADERS = ("X-Scope-OrgID", "THANOS-TENANT")
"""What Mimir, Cortex and Loki, and what Thanos call the header that names a tenant."""


@dataclass(frozen=True)
class Signing:
    """AWS Signature Version 4, as Amazon Managed Service for Prometheus asks for.

    Args:
        region: AWS region of the workspace; empty = that of the environment.
        service: Signed service name.
        profile: Profile of the AWS configuration; None = the usual chain of credentials.
        role: ARN of a role to assume first.
    """

    region: str = ""
    service: str = "aps"
    profile: str | None = None
    role: str | None = None


@dataclass(frozen=True)
class Access:
    """How a server is reached.

    Args:
        url: Base URL.
        timeout: Seconds to wait for a reply.
        headers: Sent with every request.
        token: Bearer token.
        token_file: File with a bearer token; read for every request, as such tokens rotate.
        login: User name and password.
        signing: How requests are signed for AWS.
        ca: Path of a CA bundle.
        certificate: Paths of a client certificate and its key.
    """

    url: str = field(repr=False)  # may hold a password
    timeout: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    login: tuple[str, str] | None = field(default=None, repr=False)
    signing: Signing | None = None
    ca: str | None = None
    certificate: tuple[str, str] | None = None

    @property
    def auth(self) -> AuthBase:
        """What authorises each request; ``~/.netrc`` is never asked."""
        if self.signing:
            return _Signed(self.signing)
        if self.login:
            return HTTPBasicAuth(*self.login)
        return _Bearer(self.token, self.token_file)


def from_block(block: PrometheusSource, base: Path) -> Access:
    """The access that a settings block with a ``url`` describes.

    Args:
        block: The block.
        base: Folder that relative paths refer to.
    """

    def path(name: str | None) -> str | None:
        return resolve_path(name, base) if name else None

    tenant = dict.fromkeys(TENANT_HEADERS, block.tenant) if block.tenant else {}
    signing = block.sigv4
    certificate, key = path(block.client_certificate), path(block.client_key)
    return Access(
        url=block.url or "",
        timeout=block.timeout_seconds,
        headers={**tenant, **block.headers},
        token=block.token,
        token_file=path(block.token_file),
        login=(block.username, block.password or "") if block.username else None,
        signing=Signing(signing.region or "", signing.service, signing.profile, signing.role_arn)
        if signing
        else None,
        ca=path(block.ca),
        certificate=(certificate, key) if certificate and key else None,
    )


class _Bearer(AuthBase):
    """Sets the token, or nothing."""

    def __init__(self, token: str | None, file: str | None) -> None:
        self._token = token
        self._file = file

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        token = self._token or self._read()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return request

    def _read(self) -> str | None:
        if self._file is None:
            return None
        try:
            return Path(self._file).read_text("utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise AccessError(
                f"the token file {self._file} cannot be read: {_cause(error)}",
                "check prometheus.token_file",
            ) from error


class _Signed(AuthBase):
    """Signs each request with the credentials that AWS tools would use."""

    def __init__(self, signing: Signing) -> None:
        self._signing = signing
        self._signer: Any = None

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        from botocore.awsrequest import AWSRequest

        if self._signer is None:
            self._signer = _signer(self._signing)
        # AWS reads a plus as a plus; requests writes blanks of a query as one.
        request.url = (request.url or "").replace("+", "%20")
        signed = AWSRequest(method=request.method, url=request.url, data=request.body or b"")
        self._signer.add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


def _signer(signing: Signing) -> Any:  # noqa: ANN401 - botocore is untyped
    from boto3.session import Session
    from botocore.auth import SigV4Auth
    from botocore.exceptions import BotoCoreError

    hint = "check prometheus.sigv4 and the credentials of the environment"
    try:
        session = Session(profile_name=signing.profile)
        credentials = session.get_credentials()
        region = signing.region or session.region_name
        if signing.role:
            credentials = _assumed(session, signing.role, region)
    except BotoCoreError as error:
        raise AccessError(f"requests cannot be signed for AWS: {_cause(error)}", hint) from error
    if credentials is None or not region:
        raise AccessError(
            f"requests cannot be signed for AWS: no {'region' if credentials else 'credentials'}",
            hint,
        )
    return SigV4Auth(credentials, signing.service, region)


def _assumed(session: Any, role: str, region: str | None) -> Any:  # noqa: ANN401 - as above
    """Credentials of a role, renewed before they end: a back-fill may take hours."""
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

    core = session._session

    def client(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        return core.create_client(*args, **{"region_name": region, **kwargs})

    source = session.get_credentials()
    if source is None:
        return None
    fetcher = AssumeRoleCredentialFetcher(client, source, role)
    return DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
