"""Pods whose samples bear no uid are those that the API names."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder


@pytest.mark.parametrize(
    ("uids", "paid"),
    [
        ((), {"research/p": 4, None: 4}),  # samples alone
        (("a",), {"a": 4, None: 4}),  # the API's uid, the samples' life
        (("a", "b"), {"a": 4, "b": 4}),  # which of them samples mean is not known
    ],
)
def test_a_pod_holds_its_cards_once(
    new_day: type[DayBuilder],
    cost_by: Callable[..., dict[Any, Decimal]],
    uids: tuple[str, ...],
    paid: dict[str | None, int],
) -> None:
    day = new_day().node(end=1, interval=60).line("l")
    day.pod("research/p", end=0.5, interval=60, pod="p", gpus=8)
    day.pod("other", end=1, interval=60)
    for number, uid in enumerate(uids):
        day.pod(uid, number / 2, (number + 1) / 2, pod="p", gpus=8)
    day.use("research/p", "cpu_usage", 0, 1.0)
    assert cost_by(day.attribute().costs, "uid") == paid
