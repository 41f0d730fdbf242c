"""Trackable resources: units, types of cards, and what is refused."""

from __future__ import annotations

import pytest

from collector.slurm.tres import Tres, TresError, as_text, parse

GIB = 1 << 30


def test_typed_and_untyped_cards_are_the_same_cards() -> None:
    found = parse("billing=64,cpu=64,gres/gpu=8,gres/gpu:a100=8,mem=512G,node=2")
    assert found == Tres(64, 512 * GIB, 8, {"a100": 8}, {}, 2)
    assert found.model == "a100"


def test_typed_cards_alone_add_up() -> None:
    found = parse("gres/gpu:a100=2,gres/gpu:h100=3")
    assert (found.cards, found.model) == (5, None)


@pytest.mark.parametrize(
    ("text", "memory"),
    [("mem=1", 1 << 20), ("mem=1000M", 1000 << 20), ("mem=1.5T", 3 << 39), ("mem=2048K", 2 << 20)],
)
def test_memory(text: str, memory: int) -> None:
    assert parse(text).memory == memory


def test_parts_of_cards_and_no_card() -> None:
    assert parse("cpu=1,gres/shard=4").parts == {"gres/shard": 4}
    assert parse("cpu=1").cards is None
    assert parse("gres/gpu=0").cards == 0


@pytest.mark.parametrize("text", ["cpu=64,mem=5+", "cpu", "=3", "mem=4Gn", "cpu=-1", "cpu=1e99"])
def test_refuses(text: str) -> None:
    with pytest.raises(TresError):
        parse(text)


def test_entries_of_json() -> None:
    entries = [("cpu", "", 4), ("mem", "", {"set": True, "number": 1024}), ("gres", "gpu", -2)]
    assert as_text(entries) == "cpu=4,mem=1024"
    assert parse(as_text(entries)).memory == GIB
