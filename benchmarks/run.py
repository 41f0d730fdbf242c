"""Run the benchmarks and print one JSON document.

Every module beside this one that has a function ``bench() -> dict`` is a benchmark; its name is the
module's. Each runs in a process of its own, so that peak memory is its own too; a module that says
``ELSEWHERE = True`` starts further processes for the work, and measures what it wants of them.

Usage: ``python benchmarks/run.py [NAME ...]`` (all, if none is named; ``make bench``).
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent
ONE = "--in-this-process"


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a benchmark failed, 2 if there is no such benchmark."""
    if arguments[:1] == [ONE]:
        sys.stdout.write(json.dumps(measure(arguments[1])))
        return 0
    known = sorted(path.stem for path in FOLDER.glob("*.py") if path != Path(__file__).resolve())
    if unknown := set(arguments) - set(known):
        sys.stderr.write(f"no benchmark {', '.join(sorted(unknown))}; there are {known}\n")
        return 2
    results = {name: in_own_process(name) for name in arguments or known}
    found = {name: result for name, result in results.items() if result is not None}
    document = {"schema_version": "1", "kind": "benchmarks", "machine": machine(), "results": found}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return 1 if any("error" in result for result in found.values()) else 0


def in_own_process(name: str) -> dict[str, Any] | None:
    """The result of one benchmark; its error if it failed; None if the module is none."""
    sys.stderr.write(f"{name} ...\n")
    command = [sys.executable, __file__, ONE, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"error": f"exit code {done.returncode}"}
    result: dict[str, Any] | None = json.loads(done.stdout)
    return result


def measure(name: str) -> dict[str, Any] | None:
    """Run a benchmark; add this process's peak memory (MB of 10^6 bytes) if it works here."""
    module = load(name)
    bench = getattr(module, "bench", None)
    if bench is None:
        return None
    result: dict[str, Any] = bench()
    if getattr(module, "ELSEWHERE", False):
        return result
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
    return {**result, "peak_rss_mb": round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6)}


def load(name: str) -> ModuleType:
    """Import a module of this folder by its path: the folder is no package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cores = os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return {"python": platform.python_version(), "system": platform.platform(), "cores": cores}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
