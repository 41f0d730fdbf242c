"""A day of 10,000 pods on 1,000 nodes of 8 cards, collected from a real server.

The samples lie in a VictoriaMetrics, whose time counts: collector and server share two cores. They
are made once and kept (``RUNBILL_BENCH_CACHE``, else the cache folder of the user); each run works
on a copy of the store, with nothing in the server's caches. The collector is the ordinary command
in a process of its own, with a proxy before the server that counts questions and answers. What is
collected is held against what is true of the world.

Bounds: 120 s, 1.5 GB, no answer over 50 MB, at most 150 questions, as many with ten times the
experiments.

Usage: ``python -m benchmarks.collect_day [--pods N] [--nodes N] [--experiments N] ...`` for a table
of the questions, too; ``python benchmarks/run.py collect_day`` for JSON alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchmarks.cluster import check, run, victoria
from benchmarks.cluster.options import Options
from benchmarks.cluster.world import World, make_world

ELSEWHERE = True
SECONDS = 120.0
PEAK_RSS_MB = 1500
ANSWER_MB = 50.0
QUESTIONS = 150
SMALL = Options(pods=1_000, nodes=100, experiments=30)
"""Large enough that no question has nothing to answer; the number of questions is that of any."""


def bench() -> dict[str, Any]:
    """Collect the day, and a small one with few and with many experiments.

    Returns:
        What ``measure`` returns of the day; ``questions_by_experiments`` of the small ones; and
        whether all of it is ``met``.
    """
    day, _ = measure(Options())
    counts = {}
    for times in (1, 10):
        small = replace(SMALL, experiments=SMALL.experiments * times)
        counts[str(small.experiments)] = measure(small)[0]["questions"]
    same = len(set(counts.values())) == 1
    return {**day, "questions_by_experiments": counts, "met": day["met"] and same}


def measure(options: Options, keep: Path | None = None) -> tuple[dict[str, Any], run.Run]:
    """Collect one day.

    Args:
        options: The world.
        keep: A new folder for ledger, log and answers; a temporary one if none is named.

    Returns:
        Figures (``seconds`` wall, ``cpu_seconds`` of both sides, ``peak_rss_mb`` of the collector,
        ``questions``, ``largest_answer_mb`` of 10^6 bytes, unpacked), bounds, how far the facts are
        from the truth, and whether all bounds are ``met``; and the run itself.
    """
    world = make_world(options)
    store = cache() / options.fingerprint
    loaded = victoria.cached(world, store)
    with tempfile.TemporaryDirectory(dir=cache()) as place:
        folder = keep or Path(place)
        done = run.collect(options, store, Path(place) / "store", folder)
        facts = check.check(world, folder / "ledger")
    return {**_size(world, loaded), **_figures(done), **facts, **_bounds(done, facts)}, done


def cache() -> Path:
    """Where stores are kept between runs."""
    named = os.environ.get("RUNBILL_BENCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "runbill-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _size(world: World, loaded: dict[str, float]) -> dict[str, Any]:
    options = world.options
    return {
        "pods": len(world.pods),
        "gpu_nodes": len(world.nodes),
        "experiments": options.experiments,
        "samples": int(loaded["samples"]),
        "import_seconds": loaded["seconds"],
    }


def _figures(done: run.Run) -> dict[str, Any]:
    sizes = [one.plain for one in done.exchanges]
    return {
        "exit_code": done.exit_code,
        "seconds": round(done.seconds, 1),
        "collector_cpu_seconds": round(done.cpu, 1),
        "server_cpu_seconds": round(done.server_cpu, 1),
        "load_average": done.load,
        "peak_rss_mb": round(done.peak_rss / 1e6),
        "server_peak_rss_mb": round(done.server_rss / 1e6),
        "questions": len(done.exchanges),
        "answers_mb": round(sum(sizes) / 1e6, 1),
        "answers_wire_mb": round(sum(one.wire for one in done.exchanges) / 1e6, 1),
        "largest_answer_mb": round(max(sizes, default=0) / 1e6, 1),
    }


def _bounds(done: run.Run, facts: dict[str, Any]) -> dict[str, Any]:
    largest = max((one.plain for one in done.exchanges), default=0) / 1e6
    met = (
        done.exit_code == 0
        and done.seconds <= SECONDS
        and done.peak_rss / 1e6 <= PEAK_RSS_MB
        and largest <= ANSWER_MB
        and len(done.exchanges) <= QUESTIONS
        and facts["true"]
    )
    return {
        "target_seconds": SECONDS,
        "target_peak_rss_mb": PEAK_RSS_MB,
        "target_answer_mb": ANSWER_MB,
        "target_questions": QUESTIONS,
        "met": met,
    }


def main(arguments: list[str]) -> None:
    """Measure a world of one's own size; a table of the questions, then the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in fields(Options):
        if field.name == "day":
            continue
        default = getattr(Options(), field.name)
        kind = {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(f"--{field.name.replace('_', '-')}", default=default, **kind)
    parser.add_argument("--no-oddities", dest="oddities", action="store_false")
    parser.add_argument("--keep", type=Path, help="folder for ledger, log and exchanges.jsonl")
    parser.add_argument("--rows", type=int, default=200, help="questions to show")
    told = vars(parser.parse_args(arguments))
    keep, rows = told.pop("keep"), told.pop("rows")
    if keep is not None:
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir(parents=True)
    figures, done = measure(Options(**told), keep)
    sys.stderr.write(run.table(done, rows))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
