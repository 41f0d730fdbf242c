"""How requests to a server are authorised."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import stamina
from pydantic import ValidationError

from collector.prometheus.series.catalogue import NODE_INFO
from collector.prometheus.sources.server import Server
from ledger.errors import AccessError
from ledger.settings import PrometheusSource
from ledger.window import Window
from tests.collector.prometheus.builders import at
from tests.collector.prometheus.stub import Request, matrix, serving

HOUR = Window(at("1:00"), at("2:00"))
NODE = ({"__name__": "kube_node_info", "node": "gpu-0"}, [(HOUR.end.timestamp(), "1")])
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


def asked(folder: Path = Path(), **options: Any) -> list[Request]:  # noqa: ANN401 (block's fields)
    """What a server is sent for one hour of samples and one look at its index."""
    with serving(lambda _: matrix(NODE)) as stub:
        server = Server.from_settings(PrometheusSource(url=stub.url, **options), "train-a", folder)
        assert server.samples(NODE_INFO, HOUR).frame.collect().height == 1
        server.held(["kube_node_info"], HOUR)
    return stub.requests


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def signature(request: Request, body: bytes, region: str, service: str) -> str:
    """Signature Version 4 by AWS's manual ("Create a signed AWS API request")."""
    told = request.headers["Authorization"]
    names = told.partition("SignedHeaders=")[2].partition(",")[0]
    headers = {key.lower(): value.strip() for key, value in request.headers.items()}
    query = "&".join(sorted(urlsplit(f"?{request.in_url}").query.split("&")))
    canonical = "\n".join(
        [
            request.method,
            request.path,
            query,
            *(f"{name}:{headers[name]}" for name in names.split(";")),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    date = headers["x-amz-date"]
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


@pytest.mark.usefixtures("keys")
def test_requests_are_signed_as_aws_asks_body_and_query_alike() -> None:
    requests = asked(sigv4={"region": "eu-central-1"})
    assert {request.method for request in requests} == {"POST", "GET"}
    for request in requests:
        told = request.headers["Authorization"]
        assert "Credential=AKIDEXAMPLE/" in told
        assert "/eu-central-1/aps/aws4_request" in told
        expected = signature(request, request.body, "eu-central-1", "aps")
        assert told.rpartition("Signature=")[2] == expected


@pytest.mark.usefixtures("keys")
def test_a_session_token_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "temporary")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    request = asked(sigv4={})[0]
    assert request.headers["X-Amz-Security-Token"] == "temporary"
    assert "/us-west-2/aps/" in request.headers["Authorization"]


@pytest.mark.usefixtures("keys")
def test_without_a_region_the_error_says_so() -> None:
    with pytest.raises(AccessError, match="no region"):
        asked(sigv4={})


def test_a_tenant_has_the_header_of_mimir_and_of_thanos_unless_headers_say_other() -> None:
    headers = asked(tenant="train", headers={"THANOS-TENANT": "other"})[0].headers
    assert (headers["X-Scope-OrgID"], headers["THANOS-TENANT"]) == ("train", "other")


def test_a_token_file_is_read_for_every_request(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("rotated\n", "utf-8")
    requests = asked(tmp_path, token_file="token")
    assert {one.headers["Authorization"] for one in requests} == {"Bearer rotated"}


def test_a_token_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"token file .*gone cannot be read"):
        asked(tmp_path, token_file="gone")


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "a", "username": "b"},
        {"token_file": "a", "sigv4": {}},
        {"client_certificate": "a"},
        {"client_key": "a"},
    ],
)
def test_two_logins_and_half_a_certificate_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"name one of|belong together"):
        PrometheusSource(url="http://x", **fields)
