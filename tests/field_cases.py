"""The cases of the field by their number: inputs with right answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any


@lru_cache
def allocation_cases(shared: Path) -> Mapping[str, Mapping[str, Any]]:
    """All cases of ``cases/allocation.json`` by id; ``given.from`` is filled in.

    Args:
        shared: The folder of the fixture of that name.
    """
    rows = json.loads((shared / "cases" / "allocation.json").read_text())
    cases = {row["id"]: row for row in rows}
    for row in rows:
        origin = row["given"].get("from")
        if origin:
            row["given"] = {**cases[origin]["given"], **row["given"]}
    return cases
