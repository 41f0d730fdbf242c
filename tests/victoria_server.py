"""A real VictoriaMetrics for tests: filled from OpenMetrics text, on a free loopback port."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import free_port, missing

INSTALL = "apt-get install --no-install-recommends victoria-metrics"
MORE_LABELS = "-maxLabelsPerTimeseries=100"
"""Of the labels of a GPU node, more than the usual 30 are dropped without a word."""


def require_victoria(*programs: str) -> None:
    """Skip (in CI: fail) without the programs of the Debian package."""
    wanted = programs or ("victoria-metrics",)
    absent = [name for name in wanted if shutil.which(name) is None]
    if absent:
        missing(f"no {' and no '.join(absent)} on the path; {INSTALL}")


@contextmanager
def running_victoria(
    folder: Path, openmetrics: Iterable[Path], *flags: str, prefix: str = ""
) -> Iterator[str]:
    """Fill and serve; yields the base URL.

    Args:
        folder: An empty folder for storage and log.
        openmetrics: Files that end with ``# EOF``.
        flags: More flags for the server, e.g. ``-search.maxSamplesPerQuery=1000``.
        prefix: What all its paths begin with, e.g. ``/select/0/prometheus``.
    """
    require_victoria()
    address = f"127.0.0.1:{free_port()}"
    command = [
        "victoria-metrics",
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr={address}",
        "-retentionPeriod=100y",
        "-memory.allowedBytes=200MB",
        MORE_LABELS,
        *([f"-http.pathPrefix={prefix}"] if prefix else []),
        *flags,
    ]
    url = f"http://{address}{prefix}"
    with serving(command, folder / "log", f"{url}/health"):
        for path in openmetrics:
            fill(url, path)
        yield url


def fill(url: str, openmetrics: Path) -> None:
    """Import an OpenMetrics file, whose times are seconds: VictoriaMetrics reads milliseconds."""
    lines = openmetrics.read_text("utf-8").splitlines()
    parts = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    body = "".join(f"{sample} {round(float(at) * 1000)}\n" for sample, _, at in parts)
    request = urllib.request.Request(f"{url}/api/v1/import/prometheus", body.encode())
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert reply.status == 204
    with urllib.request.urlopen(f"{url}/internal/force_flush", timeout=60) as reply:
        assert reply.status == 200


@contextmanager
def serving(command: list[str], log: Path, health: str) -> Iterator[None]:
    """Run a server from when its health page answers until the end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as lines:
        server = subprocess.Popen(command, stdout=lines, stderr=lines)
        try:
            _wait(health, server, log)
            yield
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait(health: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text("utf-8")[-2000:]
        try:
            with urllib.request.urlopen(health, timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"no answer at {health}: {log.read_text('utf-8')[-2000:]}")
