"""A simulated day attributed by us and by the same join written by hand in DuckDB.

10,000 containers on 1,000 GPU nodes must take less than 10 s and 2 GB, 100,000 on 10,000 less than
100 s and 4 GB, on two cores, and at most twice the time of the peer (``peer_attribution.sql``).

Both sides read the same Parquet files of facts, use two threads, and leave rows of ``costs`` and
``costs_daily`` as Parquet files. Each runs in a process of its own, in turn with the other; times
are medians, memory is the largest resident set of the process. Starting Python and importing is not
timed. The rows of both are compared and must be equal, all cost columns to the last digit.

Ours does all that attribution does: lives of any two sources, node-hours that no line pays for,
methods, prices, gaps, notes, and the check that the books balance. The peer does what this one day
needs: its lives, node-hours, pools, claims, exact splits of all four cost columns, identity,
activity, the roll-up and the same check. It needs no confidence, no gaps and no removal of copies.
"""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

ELSEWHERE = True


class Size(NamedTuple):
    """A day, the bounds of its attribution, and how often each side runs."""

    containers: int
    gpu_nodes: int
    seconds: float
    peak_rss_mb: int
    runs: int = 3


SIZES = (Size(10_000, 1_000, 10.0, 2000), Size(100_000, 10_000, 100.0, 4000))
TARGET_RATIO = 2.0
THREADS = 2
_CHUNK = 1_000
"""Nodes whose facts are written together."""


def bench() -> dict[str, object]:
    """Attribute a day of each size.

    Returns:
        By number of containers what ``measure`` returns, and whether all of it is ``met``.
    """
    results = {str(size.containers): measure(size) for size in SIZES}
    return {**results, "met": all(result["met"] for result in results.values())}


def measure(size: Size) -> dict[str, Any]:
    """Attribute one simulated day by both sides, in turn.

    Returns:
        ``gpu_nodes``, ``facts_rows``, ``rows`` of costs; ``seconds`` (median, wall) and
        ``peak_rss_mb`` (largest, MB of 10^6 bytes) of ours and, as ``peer_…``, of the peer; their
        ``ratio``; the bounds, and whether they are ``met``.
    """
    with tempfile.TemporaryDirectory() as place:
        facts = Path(place) / "facts"
        facts.mkdir()
        written = _elsewhere("facts", str(size.containers), str(size.gpu_nodes), str(facts))
        sides: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
        for _ in range(size.runs):
            for side, found in sides.items():
                result = Path(place) / side
                result.mkdir(exist_ok=True)
                found.append(_elsewhere(side, str(facts), str(result)))
        parts = max(1, size.containers // 10_000)
        equal = _elsewhere("compare", f"{place}/ours", f"{place}/peer", str(parts))
    ours, peer = (
        {
            "seconds": round(statistics.median(run["seconds"] for run in found), 3),
            "peak_rss_mb": max(run["peak_rss_mb"] for run in found),
        }
        for found in sides.values()
    )
    ratio = round(ours["seconds"] / peer["seconds"], 3)
    in_time = ours["seconds"] < size.seconds and ratio <= TARGET_RATIO
    return {
        "gpu_nodes": size.gpu_nodes,
        **written,
        "rows": equal["rows"],
        **ours,
        **{f"peer_{name}": value for name, value in peer.items()},
        "ratio": ratio,
        "runs": size.runs,
        "target_seconds": size.seconds,
        "target_peak_rss_mb": size.peak_rss_mb,
        "target_ratio": TARGET_RATIO,
        "met": in_time and ours["peak_rss_mb"] < size.peak_rss_mb,
    }


def _elsewhere(*arguments: str) -> dict[str, Any]:
    """Do one step in a process of its own, with two threads."""
    import os

    environment = {**os.environ, "POLARS_MAX_THREADS": str(THREADS)}
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.attribute_day", *arguments],
        cwd=Path(__file__).parents[1],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def write_facts(containers: int, gpu_nodes: int, folder: Path) -> int:
    """Write a simulated day as ``TABLE-*.parquet``, the nodes in chunks, to save memory.

    Returns:
        The number of rows.
    """
    from collector.simulate.facts import facts
    from collector.simulate.options import WorldOptions
    from collector.simulate.world import simulate

    options = WorldOptions.scaled(containers, gpu_nodes)
    world = simulate(options)
    chunk = {node.name: index // _CHUNK for index, node in enumerate(world.nodes)}
    pods: dict[int, list[Any]] = {}
    for pod in world.pods:
        pods.setdefault(chunk[pod.node], []).append(pod)
    parts = [replace(world, nodes=(), pods=())]
    for index in sorted(set(chunk.values())):
        nodes = tuple(node for node in world.nodes if chunk[node.name] == index)
        parts.append(replace(world, nodes=nodes, pods=tuple(pods.get(index, ())), lines=()))
    rows = 0
    for index, part in enumerate(parts):
        for name, frame in facts(part, options.end).items():
            if frame.height:
                frame.write_parquet(folder / f"{name}-{index:03d}.parquet")
            rows += frame.height
    return rows


def attribute(facts: Path, result: Path) -> None:
    """Attribute a day from Parquet to Parquet.

    Args:
        facts: A folder of ``TABLE-*.parquet``.
        result: A folder for ``costs-*.parquet`` and ``daily.parquet``.
    """
    import polars as pl

    from attribution.day import close_day
    from attribution.facts import DayFacts
    from benchmarks.peer import TABLES
    from collector.simulate.options import WorldOptions
    from ledger.settings import Settings

    tables = {name: pl.scan_parquet(facts / f"{name}-*.parquet") for name in TABLES}
    day = DayFacts.of_tables(WorldOptions.scaled().end, tables)
    count = 0

    def write(rows: pl.DataFrame) -> None:
        nonlocal count
        rows.write_parquet(result / f"costs-{count:04d}.parquet", compression="lz4")
        count += 1

    books = close_day(day, Settings(), write)
    books.daily.write_parquet(result / "daily.parquet", compression="lz4")


def _timed(side: str, facts: Path, result: Path) -> dict[str, Any]:
    from benchmarks import peer

    importlib.import_module("attribution.day")  # before the clock starts
    work = attribute if side == "ours" else peer.attribute
    start = time.perf_counter()
    work(facts, result)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
    scale = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "peak_rss_mb": round(peak * scale / 1e6)}


def main(arguments: list[str]) -> None:
    """One step: ``facts``, ``ours``, ``peer`` or ``compare``; JSON on stdout."""
    from benchmarks import peer

    match arguments:
        case ["facts", containers, gpu_nodes, folder]:
            done = {"facts_rows": write_facts(int(containers), int(gpu_nodes), Path(folder))}
        case ["compare", ours, theirs, parts]:
            done = {"rows": peer.compare(Path(ours), Path(theirs), int(parts))}
        case ["ours" | "peer" as side, facts, result]:
            done = _timed(side, Path(facts), Path(result))
        case _:
            raise SystemExit(f"no step {arguments}")
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1:])
