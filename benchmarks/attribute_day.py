"""A day of 10,000 containers on 1,000 GPU nodes, attributed in a fresh process.

The bound is 10 s and 2 GB on two cores. Reading the facts is not timed, holding them in memory is
measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ELSEWHERE = True
TARGET_SECONDS = 10.0
TARGET_MB = 2000


def bench(containers: int = 10_000, gpu_nodes: int = 1_000) -> dict[str, object]:
    """Attribute one simulated day.

    Returns:
        ``containers``, ``gpu_nodes``, ``facts_rows``, ``rows`` of costs, ``rows_daily``,
        ``seconds`` (wall), ``peak_rss_mb`` (resident set of the process that attributes, MB of 10^6
        bytes), their targets, and whether both are ``met``.
    """
    arguments = [sys.executable, "-m", "benchmarks.attribute_day", str(containers), str(gpu_nodes)]
    run = subprocess.run(
        arguments, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True
    )
    result = json.loads(run.stdout)
    met = result["seconds"] < TARGET_SECONDS and result["peak_rss_mb"] < TARGET_MB
    targets = {"target_seconds": TARGET_SECONDS, "target_peak_rss_mb": TARGET_MB, "met": met}
    return {**result, **targets}


def _write_facts(containers: int, gpu_nodes: int, folder: Path) -> None:
    from collector.simulate.facts import facts
    from collector.simulate.options import WorldOptions
    from collector.simulate.world import simulate

    options = WorldOptions.scaled(containers, gpu_nodes)
    for name, frame in facts(simulate(options), options.end).items():
        frame.write_parquet(folder / f"{name}.parquet")


def _attribute(folder: Path) -> dict[str, object]:
    import polars as pl

    from attribution.day import attribute_day
    from attribution.facts import DayFacts
    from collector.simulate.options import WorldOptions
    from ledger.settings import Settings

    tables = {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
    facts = DayFacts.of_tables(WorldOptions.scaled().end, tables)
    start = time.perf_counter()
    books = attribute_day(facts, Settings())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
    return {
        "facts_rows": sum(frame.height for frame in tables.values()),
        "rows": books.costs.height,
        "rows_daily": books.daily.height,
        "seconds": round(seconds, 3),
        "peak_rss_mb": round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6),
    }


def main(arguments: list[str]) -> None:
    """Measure in this process, on facts that another process has written."""
    import tempfile

    if arguments[0] == "attribute":
        sys.stdout.write(json.dumps(_attribute(Path(arguments[1]))))
        return
    containers, gpu_nodes = (int(text) for text in arguments)
    with tempfile.TemporaryDirectory() as folder:
        _write_facts(containers, gpu_nodes, Path(folder))
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.attribute_day", "attribute", folder],
            check=True,
            capture_output=True,
            text=True,
        )
    sizes = {"containers": containers, "gpu_nodes": gpu_nodes}
    sys.stdout.write(json.dumps(sizes | json.loads(run.stdout)))


if __name__ == "__main__":
    main(sys.argv[1:])
