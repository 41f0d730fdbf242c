"""Gaps about several things of one kind, in one line that names a few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.cards import of_other_makers
from collector.layouts import Layout
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


def of_layouts(nodes: Sequence[tuple[str, Layout]]) -> Iterator[Gap]:
    """What cannot be told of the cards of some nodes.

    Args:
        nodes: Names and layouts; a name may stand more than once.
    """
    unknown: dict[str, set[str]] = {}
    for name, found in nodes:
        for what in found.unknown:
            unknown.setdefault(what, set()).add(name)
    for what, names in sorted(unknown.items()):
        yield from about("capacity_unknown", f"nodes do not say {what}", sorted(names))
    yield from about(
        "several_card_resources",
        "nodes have cards of several makers; only the first is counted",
        sorted({name for name, found in nodes if of_other_makers(found.found)}),
    )
