"""Rows of the table ``nodes``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from collector.cards import Cards, choose, physical, rank
from collector.kubernetes.demand import amounts
from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.objects import Node
from collector.kubernetes.quantities import milli, whole
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from collector.labels import NodeLabels
from ledger.text import canonical_json
from ledger.window import Window


def node_rows(node: Node, cluster: str, window: Window, now: datetime | None) -> Iterator[Row]:
    """A node's days: from its registration to ``now``, or to the end of the window.

    Capacity is what the node says in ``status.capacity``; cards are physical ones.

    Raises:
        Rejected: ``bad_date`` or ``bad_number``.
    """
    created = moment(node.metadata.creation_timestamp, now)
    facts = {**_about(node, cluster), "created": created}
    end = window.end if now is None else min(now, window.end)
    for day, first, last in days_of(created or window.start, end, window):
        yield {**facts, "day": day, "start": first, "end": last}


def node_cards(node: Node) -> Cards:
    """The card resource of a node, in whole units.

    Raises:
        Rejected: ``bad_number``.
    """
    found = choose(_capacity(node))
    units = None if found.units is None else whole(Fraction(found.units))
    return Cards(found.resource, units, found.others)


def _capacity(node: Node) -> dict[str, Fraction]:
    try:
        capacity = amounts(node.status.capacity)
        milli(capacity.get("cpu", Fraction(0)))
        for name, amount in capacity.items():
            if name == "memory" or rank(name) is not None:
                whole(amount)
    except ValueError as error:
        raise Rejected("bad_number", f"{node.place}: {error}") from None
    return capacity


def _about(node: Node, cluster: str) -> Row:
    labels = NodeLabels(node.labels)
    capacity, cards = _capacity(node), node_cards(node)
    return {
        "cluster": cluster,
        "node": node.metadata.name,
        "provider_id": node.spec.provider_id,
        "instance_type": labels.instance_type,
        "capacity_type": labels.capacity_type,
        "region": labels.region,
        "zone": labels.zone,
        "cpu_millicores": milli(capacity["cpu"]) if "cpu" in capacity else None,
        "memory_bytes": whole(capacity["memory"]) if "memory" in capacity else None,
        "gpus": physical(cards, labels.get, sized="cpu" in capacity),
        "gpu_resource": cards.resource,
        "gpu_model": labels.gpu_model,
        "labels": canonical_json(node.labels),
    }
