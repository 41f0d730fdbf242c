"""The peer of attribution in ``make bench`` works out the same rows; only its time is another."""

from __future__ import annotations

from pathlib import Path

from benchmarks import attribute_day, peer


def test_a_day_joined_by_hand_has_our_rows(tmp_path: Path) -> None:
    facts, ours, theirs = (tmp_path / name for name in ("facts", "ours", "theirs"))
    for folder in (facts, ours, theirs):
        folder.mkdir()
    attribute_day.write_facts(100, 10, facts)
    attribute_day.attribute(facts, ours)
    peer.attribute(facts, theirs)
    assert peer.compare(ours, theirs) > 2000
