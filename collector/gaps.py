"""Gaps about several things of one kind, in one line that names a few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.cards import Cards, Label, of_other_makers, physical, shares
from ledger.facts import Gap

_NAMED = 3  # how many of a kind a message names


def about(reason: str, what: str, places: Sequence[str]) -> Iterator[Gap]:
    """The gap that concerns some places, if there are any.

    Args:
        reason: Stable name.
        what: What is the matter with them, behind their number.
        places: Their names.
    """
    if places:
        more = ", ..." if len(places) > _NAMED else ""
        yield Gap(reason, f"{len(places)} {what}: {', '.join(places[:_NAMED])}{more}")


def of_cards(nodes: Sequence[tuple[str, Cards, Label]]) -> Iterator[Gap]:
    """What cannot be told of the cards of some nodes.

    Args:
        nodes: Name, card resource and labels; a name may stand more than once.
    """

    def named(wanted: Sequence[str]) -> list[str]:
        return sorted(set(wanted))

    shared = [
        (name, physical(found, label)) for name, found, label in nodes if shares(found, label)
    ]
    yield from about(
        "capacity_unknown",
        "nodes share their cards (MIG, time-slicing) and do not say how many they have",
        named([name for name, count in shared if count is None]),
    )
    yield from about(
        "shared_cards",
        "nodes share their cards (MIG, time-slicing); a part that a pod asks for counts as a card",
        named([name for name, count in shared if count is not None]),
    )
    yield from about(
        "several_card_resources",
        "nodes have cards of several makers; only the first is counted",
        named([name for name, found, _ in nodes if of_other_makers(found)]),
    )
