"""Rows of the table ``nodes``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from collector.cards import rank
from collector.kubernetes.demand import amounts
from collector.kubernetes.devices import NodeCards
from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.objects import Node
from collector.kubernetes.quantities import milli, whole
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from collector.labels import NodeLabels
from collector.layouts import REGISTERS, Layout, layout
from ledger.text import canonical_json
from ledger.window import Window


def node_rows(
    node: Node,
    cards: Layout,
    sliced: NodeCards,
    cluster: str,
    window: Window,
    now: datetime | None,
) -> Iterator[Row]:
    """A node's days: from its registration to ``now``, or to the end of the window.

    Capacity is what the node says in ``status.capacity``; cards are physical ones.

    Args:
        node: The node.
        cards: Its layout, from ``node_layout``.
        sliced: The cards that ResourceSlices list for it.
        cluster: The cluster's name in the settings.
        window: The days asked for.
        now: The present of the API server; None if unknown (a dump).

    Raises:
        Rejected: ``bad_date`` or ``bad_number``.
    """
    facts = node_facts(node, cards, sliced, cluster, now)
    created = facts["created"]
    end = window.end if now is None else min(now, window.end)
    for day, first, last in days_of(created or window.start, end, window):
        yield {**facts, "day": day, "start": first, "end": last}


def node_layout(node: Node, devices: int = 0) -> Layout:
    """The cards of a node.

    Args:
        node: The node.
        devices: Physical cards that ResourceSlices list for it.

    Raises:
        Rejected: ``bad_number``.
    """
    capacity = _capacity(node)
    annotations = node.metadata.annotations or {}
    return layout(
        {name: whole(amount) for name, amount in capacity.items() if rank(name) is not None},
        NodeLabels(node.labels).get,
        sized="cpu" in capacity,
        register=next((text for key in REGISTERS if (text := annotations.get(key))), None),
        devices=devices,
    )


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


def node_facts(
    node: Node, cards: Layout, sliced: NodeCards, cluster: str, now: datetime | None
) -> Row:
    """The columns of a node that do not depend on time; arguments and errors of ``node_rows``."""
    labels = NodeLabels(node.labels)
    capacity = _capacity(node)
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
        "gpus": cards.cards,
        "gpu_resource": cards.found.resource,
        "gpu_model": labels.gpu_model or (sliced.model or "").replace(" ", "-") or None,
        "gpu_units": cards.units_json,
        "gpu_memory_mib": cards.memory_mib or sliced.memory_mib,
        "labels": canonical_json(node.labels),
        "created": moment(node.metadata.creation_timestamp, now),
    }
