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


def bench(containers: int = 10_000, gpu_nodes: int = 1_000) -> dict[str, object]:
    """Attribute one simulated day.

    Returns:
        ``containers``, ``gpu_nodes``, ``facts_rows``, ``rows`` of costs, ``rows_daily``,
        ``seconds`` (wall) and ``peak_mb`` (resident set of the whole process).
    """
    arguments = [sys.executable, "-m", "benchmarks.attribute_day", str(containers), str(gpu_nodes)]
    run = subprocess.run(
        arguments, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True
    )
    result: dict[str, object] = json.loads(run.stdout)
    return result


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
    return {
        "facts_rows": sum(frame.height for frame in tables.values()),
        "rows": books.costs.height,
        "rows_daily": books.daily.height,
        "seconds": round(seconds, 3),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
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
