"""The truth as a JSON document: ``truth.json``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from datetime import date

from collector.simulate.model import World
from collector.simulate.options import moment
from collector.simulate.shares import money
from collector.simulate.truth import IDLE, UNATTRIBUTED, Amount, Key, Truth

Json = dict[str, object]


def truth_document(world: World, truth: Truth) -> Json:
    """All figures, per day and in total.

    ``nodes`` lists experiment × phase × node, ``lines`` what an experiment pays beside nodes (by
    service), ``idle`` and ``unattributed`` (by reason, and node or service) what no experiment
    pays; the four add up to ``cost`` (effective) and ``billed`` (what the invoice says), texts
    with 12 decimals.
    ``targets`` sums it all per experiment and special target; a figure with ``exact: false`` may be
    off by ``stated_error``, because a pod of it fits between two scrapes.
    """
    total: dict[Key, Amount] = {}
    for rows in truth.days.values():
        for key, amount in rows.items():
            total[key] = _add(total.get(key, Amount(0, 0)), amount)
    return {
        "schema_version": "1",
        "kind": "truth",
        "currency": world.options.currency,
        "cluster": world.options.cluster,
        "window": world.options.window.as_dict(),
        "seed": world.options.seed,
        "days": [
            {"day": _day(start).isoformat(), **_figures(rows)} for start, rows in truth.days.items()
        ],
        "total": _figures(total),
        "targets": _targets(total, truth.errors),
    }


def _day(start: int) -> date:
    return moment(start).date()


def _add(one: Amount, other: Amount) -> Amount:
    return Amount(one.effective + other.effective, one.billed + other.billed)


def _money(amount: Amount) -> Json:
    return {"cost": money(amount.effective), "billed": money(amount.billed)}


def _grouped(rows: Mapping[Key, Amount], keep: Callable[[Key], bool], *names: str) -> list[Json]:
    """Sums by some parts of the key, for the keys to keep, in order."""
    sums: dict[tuple[Hashable, ...], Amount] = defaultdict(lambda: Amount(0, 0))
    for key, amount in rows.items():
        if keep(key):
            group = tuple(getattr(key, name) for name in names)
            sums[group] = _add(sums[group], amount)
    ordered = sorted(sums.items(), key=lambda item: [str(part or "") for part in item[0]])
    return [
        {_NAMES.get(name, name): part for name, part in zip(names, group, strict=True)}
        | _money(amount)
        for group, amount in ordered
    ]


_NAMES = {"target": "experiment"}
_SPECIAL = (IDLE, UNATTRIBUTED)


def _figures(rows: Mapping[Key, Amount]) -> Json:
    everything = Amount(
        sum(amount.effective for amount in rows.values()),
        sum(amount.billed for amount in rows.values()),
    )

    def theirs(key: Key) -> bool:
        return key.target not in _SPECIAL

    return {
        **_money(everything),
        "nodes": _grouped(
            rows, lambda key: theirs(key) and key.node is not None, "target", "phase", "node"
        ),
        "lines": _grouped(rows, lambda key: theirs(key) and key.node is None, "target", "service"),
        "idle": _grouped(rows, lambda key: key.target == IDLE, "node"),
        "unattributed": _grouped(
            rows, lambda key: key.target == UNATTRIBUTED, "reason", "node", "service"
        ),
    }


def _targets(total: Mapping[Key, Amount], errors: Mapping[str, int]) -> list[Json]:
    rows = _grouped(total, lambda key: True, "target")
    for row in rows:
        error = errors.get(str(row["experiment"]), 0)
        row |= {"exact": not error, "stated_error": money(error)}
    return rows
