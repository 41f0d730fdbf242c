"""The worlds, seen once for all tests of them."""

from __future__ import annotations

import pytest

from tests.worlds.views import Seen, see_all


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Every world through every view, and the two labels that collide."""
    return see_all(tmp_path_factory.mktemp("worlds"))
