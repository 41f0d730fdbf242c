"""One collection of the benchmark's day, measured from outside."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.cluster import victoria
from benchmarks.cluster.options import Options
from benchmarks.cluster.proxy import Exchange, counting, exchanges

CLUSTER = "train-a"
CORES = 2


@dataclass(frozen=True)
class Run:
    """What a collection took.

    Args:
        exit_code: Of the command.
        seconds: Wall clock, from the command's start to its end.
        cpu: Seconds of processor time of the command.
        peak_rss: The command's largest resident set, in bytes.
        server_cpu: Seconds of processor time of the server meanwhile.
        server_rss: The server's resident set at the end, in bytes.
        load: Load average of the machine at the end: how busy others kept it.
        exchanges: What the server was asked and how large the answers were.
        output: What the command said.
    """

    exit_code: int
    seconds: float
    cpu: float
    peak_rss: int
    server_cpu: float
    server_rss: float
    load: float
    exchanges: list[Exchange]
    output: str


def collect(options: Options, store: Path, copy: Path, folder: Path) -> Run:
    """Run the command ``collect`` for the day.

    Args:
        options: The world.
        store: Folder of the filled store, which stays as it is.
        copy: A new folder for the copy that is served.
        folder: Where settings, ledger and logs go.
    """
    shutil.copytree(store / "data", copy / "data", ignore=shutil.ignore_patterns("cache"))
    log = folder / "exchanges.jsonl"
    log.touch()
    with _few_cores(), victoria.running(copy) as (url, _), counting(url, log) as proxy:
        config = _settings(options, proxy, folder)
        before = victoria.metrics(url)
        begin = time.perf_counter()
        code, cpu, peak = _child(config, options, folder / "output")
        seconds = time.perf_counter() - begin
        after = victoria.metrics(url)
    name = "process_cpu_seconds_total"
    return Run(
        exit_code=code,
        seconds=seconds,
        cpu=cpu,
        peak_rss=peak,
        server_cpu=after[name] - before[name],
        server_rss=after["process_resident_memory_peak_bytes"],
        load=round(os.getloadavg()[0], 1),
        exchanges=exchanges(log),
        output=(folder / "output").read_text("utf-8"),
    )


@contextmanager
def _few_cores() -> Iterator[None]:
    """Children run on two cores where the machine has more."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(before) <= CORES:
        yield
        return
    os.sched_setaffinity(0, sorted(before)[:CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _settings(options: Options, url: str, folder: Path) -> Path:
    config = folder / "runbill.yaml"
    block = {"name": CLUSTER, "prometheus": {"url": url}}
    text = yaml.safe_dump({"ledger": str(folder / "ledger"), "clusters": [block]})
    config.write_text(text, "utf-8")
    return config


def _child(config: Path, options: Options, output: Path) -> tuple[int, float, int]:
    """Exit code, processor seconds and largest resident set of the command."""
    program = str(Path(sys.executable).with_name("runbill"))
    arguments = ["collect", "--config", str(config), "--day", f"{options.day}"]
    with output.open("wb") as log:
        process = os.posix_spawn(
            program,
            [program, *arguments],
            {**os.environ, "POLARS_MAX_THREADS": str(CORES)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
            ],
        )
        _, status, used = os.wait4(process, 0)
    scale = 1 if sys.platform == "darwin" else 1024
    return (
        os.waitstatus_to_exitcode(status),
        used.ru_utime + used.ru_stime,
        used.ru_maxrss * scale,
    )


def table(done: Run, rows: int) -> str:
    """The questions in order, with what each took; then what the command said."""
    lines = [f"{'at':>7} {'first':>7} {'seconds':>8} {'MB':>7} {'wire':>7}  question"]
    begin = min((one.begin for one in done.exchanges), default=0.0)
    for one in sorted(done.exchanges, key=lambda one: one.begin)[:rows]:
        status = "" if one.status == 200 else f"{one.status} "
        lines.append(
            f"{one.begin - begin:7.1f} {one.first:7.2f} {one.seconds:8.2f} "
            f"{one.plain / 1e6:7.2f} {one.wire / 1e6:7.2f}  "
            f"{status}{one.path.removeprefix('/api/v1/')} {' '.join(one.query.split())[:180]}"
        )
    return "\n".join([*lines, done.output, ""])
