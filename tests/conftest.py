"""What all tests share: the folder of sample data, and honest skips."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing where others use the machine too.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).parents[1]
NOBODY = 65534


def missing(reason: str) -> None:
    """Skip for want of something outside the project; in CI that is a failure."""
    if os.environ.get("RUNBILL_CI") == "1":
        pytest.fail(f"not allowed to skip in CI: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with sample bills and cases (``RUNBILL_SHARED``)."""
    folder = Path(os.environ.get("RUNBILL_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        missing(f"no sample data at {folder}; set RUNBILL_SHARED")
    return folder


@contextmanager
def unprivileged(*folders: Path) -> Iterator[None]:
    """Act as a user whom permissions bind, also where the tests run as root.

    Args:
        folders: Folders that this user must be able to reach; their parents are opened to pass.
    """
    if os.geteuid() != 0:
        yield
        return
    for folder in folders:
        for parent in folder.parents:
            if parent.stat().st_mode & 0o055 != 0o055:
                parent.chmod(parent.stat().st_mode | 0o055)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a moto server in a process of its own (in-process, delta-rs would deadlock on it)."""
    port = free_port()
    log = (tmp_path_factory.mktemp("moto") / "log").open("wb")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_open(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()
        log.close()


def _wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"the server on port {port} ended with {server.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"the server on port {port} did not open")


@pytest.fixture
def s3(moto_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket's ``s3://`` URI; boto3, polars and delta-rs find the server by environment."""
    for name, value in {
        "AWS_ENDPOINT_URL": moto_server,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    import boto3

    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return f"s3://{bucket}"
