"""Fractions of one card never add up to more than the card, however many cards its node has."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]


def fractional(
    day: DayBuilder, uid: str, part: str, groups: tuple[str, ...], start: float, end: float
) -> None:
    annotations = {"gpu-fraction": part, "gpu-fraction-num-devices": str(len(groups))}
    key = "runai-gpu-group" if len(groups) == 1 else "runai-gpu-group/{}"
    labels = {key.format(group): group for group in groups}
    told = json.dumps(annotations)
    day.pod(uid, start, end, labels=labels | {"experiment": uid}, annotations=told)


@pytest.mark.parametrize("cards", [1, 2, 8])
def test_tenants_of_a_card_are_scaled_to_the_card(
    new_day: type[DayBuilder], cost_by: Sums, cards: int
) -> None:
    day = new_day().node(gpus=cards, end=1).line("l", effective=str(26 * cards))
    fractional(day, "a", "0.7", ("g1",), 0, 1)
    fractional(day, "b", "0.6", ("g1",), 0, 0.5)
    books = day.attribute()
    half = Decimal(13)  # what a card costs in half an hour
    paid = {"a": half * 7 / 13 + half * 7 / 10, "b": half * 6 / 13}
    free = 26 * cards - sum(paid.values())
    found = cost_by(books.costs)
    assert found == {
        name: pytest.approx(cost, abs=Decimal("1e-9"))
        for name, cost in (paid | {"__idle__": free}).items()
    }
    (gap,) = (gap for gap in books.gaps if gap.reason == "over_commit")
    assert gap.amounts["gpu_hours"] == pytest.approx(0.15)


def test_a_full_card_leaves_nothing_and_each_card_of_a_pod_counts_apart(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=2, end=1).line("l", effective="2")
    fractional(day, "a", "0.5", ("g1", "g2"), 0, 1)
    fractional(day, "b", "0.7", ("g1",), 0, 1)
    fractional(day, "c", "0.5", ("g2",), 0, 1)
    found = cost_by(day.attribute().costs)
    parts = {"a": Decimal(5) / 12 + Decimal("0.5"), "b": Decimal(7) / 12, "c": Decimal("0.5")}
    assert found == {k: pytest.approx(v, abs=Decimal("1e-9")) for k, v in parts.items()}


def test_fractions_that_fit_are_left_alone(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=2, end=1).line("l", effective="2")
    fractional(day, "a", "0.5", ("g1",), 0, 1)
    fractional(day, "b", "0.5", ("g1",), 0.25, 1)
    books = day.attribute()
    assert cost_by(books.costs) == {
        "a": Decimal("0.5"),
        "b": Decimal("0.375"),
        "__idle__": Decimal("1.125"),
    }
    assert not [gap for gap in books.gaps if gap.reason == "over_commit"]


@pytest.mark.parametrize(
    "key",
    [
        "hami.io/vgpu-devices-allocated",
        "volcano.sh/vgpu-ids-new",
        "annotation_hami_io_vgpu_devices_allocated",
    ],
)
def test_virtual_cards_of_one_card_are_scaled_to_it(
    new_day: type[DayBuilder], cost_by: Sums, key: str
) -> None:
    day = new_day().node(gpus=8, end=1, gpu_memory_mib=81920).line("l", effective="8")
    for uid, memory, cores in (("a", 8192, 80), ("b", 65536, 10)):  # the larger part of each is .8
        request = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores}
        day.pod(
            uid,
            end=1,
            labels={"experiment": uid},
            gpu_request=json.dumps(request),
            annotations=json.dumps({key: f"GPU-0,NVIDIA,{memory},{cores}:;"}),
        )
    assert cost_by(day.attribute().costs) == {
        "a": Decimal("0.5"),
        "b": Decimal("0.5"),
        "__idle__": 7,
    }
