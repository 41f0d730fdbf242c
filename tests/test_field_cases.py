"""Every case of the field has a test that names its number."""

from __future__ import annotations

import re
from pathlib import Path

from tests.field_cases import allocation_cases

TESTS = Path(__file__).parent


def test_every_allocation_case_has_a_test(shared: Path) -> None:
    sources = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    named = set(re.findall(r'"([SB]\d+(?:-?[a-z0-9]+)?)"', sources))
    assert sorted(allocation_cases(shared).keys() - named) == []
