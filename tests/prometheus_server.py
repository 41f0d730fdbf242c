"""A real Prometheus for tests: back-filled from OpenMetrics text, on a free loopback port."""

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

INSTALL = "apt-get install --no-install-recommends prometheus"


def require_prometheus() -> None:
    """Skip (in CI: fail) without the two programs of the Debian package."""
    absent = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if absent:
        missing(f"no {' and no '.join(absent)} on the path; {INSTALL}")


def backfill(openmetrics: Iterable[Path], storage: Path) -> None:
    """Turn OpenMetrics files into blocks; they carry no staleness markers."""
    require_prometheus()
    storage.mkdir(parents=True, exist_ok=True)
    for path in openmetrics:
        done = subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(path), str(storage)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def running_prometheus(folder: Path, openmetrics: Iterable[Path], *flags: str) -> Iterator[str]:
    """Back-fill and serve; yields the base URL.

    Args:
        folder: An empty folder for storage, configuration and log.
        openmetrics: Files that end with ``# EOF``.
        flags: More flags for the server, e.g. ``--query.max-samples=1000``.
    """
    storage, config, port = folder / "tsdb", folder / "prometheus.yml", free_port()
    backfill(openmetrics, storage)
    config.write_text("scrape_configs: []\n", "utf-8")
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={storage}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{port}",
                *flags,
            ],
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_ready(url, server, folder / "log")
            yield url
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait_until_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text("utf-8")[-2000:]
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"Prometheus is not ready: {log.read_text('utf-8')[-2000:]}")
