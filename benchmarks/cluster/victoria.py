"""A VictoriaMetrics of its own, and the world's samples in it."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import local
from urllib.error import URLError

from benchmarks.cluster.lines import all_lines
from benchmarks.cluster.ports import free_port
from benchmarks.cluster.world import World

PROGRAM = "victoria-metrics"
LINES = 300
"""Series of a request."""

WRITERS = 3
MEMORY = 2_000_000_000
"""Bytes that the server may use for caches; what is unbounded is not measured."""


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, int]]:
    """Serve the store of a folder; yields base URL and process id.

    Raises:
        FileNotFoundError: The program is not installed.
        RuntimeError: It does not start.
    """
    if shutil.which(PROGRAM) is None:
        raise FileNotFoundError(f"no {PROGRAM} on the path; apt-get install {PROGRAM}")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        command = [
            PROGRAM,
            f"-storageDataPath={folder / 'data'}",
            f"-httpListenAddr=127.0.0.1:{port}",
            f"-memory.allowedBytes={MEMORY}",
            "-retentionPeriod=100y",
            "-maxLabelsPerTimeseries=100",  # nodes have more than the 30 that are usual
        ]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(url, server)
            yield url, server.pid
        finally:
            server.terminate()
            code = server.wait(timeout=120)
        if code:  # what was in memory is lost
            raise RuntimeError(f"{PROGRAM} ended with {code}: {folder / 'log'}")


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):  # noqa: S310 - loopback
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"{PROGRAM} did not start")


def load(world: World, url: str) -> int:
    """Import the world's samples; returns how many.

    JSON lines are as fast as remote write, and need no packing: the server takes a million samples
    a second and core.

    Raises:
        RuntimeError: The server did not take them all.
    """
    connection = local()

    def send(body: bytes) -> None:
        link = getattr(connection, "link", None)
        if link is None:
            link = connection.link = http.client.HTTPConnection(url.removeprefix("http://"))
        link.request("POST", "/api/v1/import", body)
        reply = link.getresponse()
        reply.read()
        if reply.status != http.client.NO_CONTENT:
            raise RuntimeError(f"the import answers {reply.status}")

    total = 0
    batch: list[bytes] = []
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        for line in all_lines(world):
            text, count = line.encoded()
            total += count
            batch.append(text)
            if len(batch) >= LINES:
                waiting.append(pool.submit(send, b"".join(batch)))
                batch = []
            while len(waiting) > 2 * WRITERS:
                waiting.pop(0).result()
        waiting.append(pool.submit(send, b"".join(batch)))
        for one in waiting:
            one.result()
    with urllib.request.urlopen(f"{url}/internal/force_flush") as reply:  # noqa: S310 - loopback
        reply.read()
    taken = metrics(url)['vm_rows_inserted_total{type="vmimport"}']
    if taken != total:
        raise RuntimeError(f"the server took {taken:.0f} of {total} samples")
    return total


def metrics(url: str) -> dict[str, float]:
    """What the server tells of itself, by name with labels."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:  # noqa: S310 - loopback
        lines = reply.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def cached(world: World, folder: Path) -> dict[str, float]:
    """Fill the folder's store unless that is done; returns samples and seconds of the import."""
    done = folder / "loaded.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with running(folder) as (url, _):
            begin = time.perf_counter()
            samples = load(world, url)
            seconds = time.perf_counter() - begin
        done.write_text(json.dumps({"samples": samples, "seconds": round(seconds, 1)}))
    told: dict[str, float] = json.loads(done.read_text())
    return told
