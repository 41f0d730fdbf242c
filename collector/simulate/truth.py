"""The right answer, worked out from the schedule alone.

It follows ``docs/allocation.md`` step by step with integers and imports nothing of ``attribution``:
lives, pools (``gpu-first``; 9 : 1 on CPU nodes), claims, nested exact splits, idle, phases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from collector.simulate.model import Line, Node, Pod, World
from collector.simulate.options import DAY, HOUR
from collector.simulate.shares import half_even, overlap, part_out, units

VCPU_RATE = 31_611_000_000
GIB_RATE = 4_237_000_000
"""Reference rates in units of 1e-12 per vCPU-hour and per GiB-hour."""

IDLE, UNATTRIBUTED = "__idle__", "__unattributed__"


class Key(NamedTuple):
    """Where money goes: an experiment with its phase, or a special target with its reason.

    ``node`` is None for lines that pay for no node; ``service`` is None for those that do.
    """

    target: str
    phase: str | None
    reason: str | None
    node: str | None
    service: str | None


class Amount(NamedTuple):
    """Effective and billed cost in units of 1e-12."""

    effective: int
    billed: int


@dataclass(frozen=True)
class Truth:
    """The cost of every key on every day, and how far a reader may honestly be from it.

    Args:
        days: Start of the UTC day (ms) to key to amount.
        errors: Target to the amount (units, effective) by which a reader that sees only samples
            may differ; targets that are not named must be met to the last digit.
    """

    days: Mapping[int, Mapping[Key, Amount]]
    errors: Mapping[str, int]


class _Claim(NamedTuple):
    """A pod in one state on a node in an hour: amounts are per resource, times milliseconds."""

    uid: str
    key: Key
    cpu: int
    memory: int
    cards: int
    held: bool


def work_out(world: World) -> Truth:
    """The truth of a world: every cost column of every line split as the contract says."""
    days: dict[int, dict[Key, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    errors: dict[str, int] = {}
    claims, short = _claims(world), _short_lives(world)
    nodes = {node.name: node for node in world.nodes}
    for (name, hour), parts in _node_hours(world).items():
        found = claims.get((name, hour), [])
        shares = _node_hour(world, nodes[name], hour, parts, found)
        _book(days[hour // DAY * DAY], shares)
        for claim in found:
            if claim.uid in short:
                _state_error(world, claim, short[claim.uid], shares, errors)
    for line in world.lines:
        if line.node is None:
            for day, amount in _day_parts(world, line):
                _book(days[day], [(_line_key(line), amount)])
    return Truth(
        {
            day: {key: Amount(*pair) for key, pair in sorted(rows.items(), key=_order)}
            for day, rows in sorted(days.items())
        },
        dict(sorted(errors.items())),
    )


def _order(item: tuple[Key, list[int]]) -> tuple[str, ...]:
    return tuple(part or "" for part in item[0])


def _book(rows: dict[Key, list[int]], shares: Iterable[tuple[Key, Amount]]) -> None:
    for key, amount in shares:
        if amount == (0, 0):
            continue  # nobody's share of nothing is no row
        rows[key][0] += amount.effective
        rows[key][1] += amount.billed


def _line_key(line: Line) -> Key:
    if line.experiment is None:
        return Key(UNATTRIBUTED, None, "no_rule", None, line.service)
    return Key(line.experiment, None, None, None, line.service)


def _day_parts(world: World, line: Line) -> Iterator[tuple[int, Amount]]:
    """The parts of a line on the days of the world; the line is split over all of its days."""
    days = range(line.start // DAY * DAY, line.end, DAY)
    seconds = [overlap((day, day + DAY), (line.start, line.end)) // 1000 for day in days]
    effective, billed = (part_out(units(cost), seconds) for cost in (line.effective, line.billed))
    for day, one, other in zip(days, effective, billed, strict=True):
        if world.options.start_ms <= day < world.options.end_ms:
            yield day, Amount(one, other)


class _Part(NamedTuple):
    """An hour's part of a line of a node; ``paid`` is its consumed quantity in milliseconds."""

    amount: Amount
    paid: int | None


def _node_hours(world: World) -> dict[tuple[str, int], list[_Part]]:
    """The parts of the nodes' lines by node and hour; a node has one counted line per hour."""
    hours: dict[tuple[str, int], list[_Part]] = defaultdict(list)
    nodes = {node.name: node for node in world.nodes}
    for line in world.lines:
        if line.node is None:
            continue
        spans = range(line.start // HOUR * HOUR, line.end, HOUR)
        counted = line.category == "Usage" and line.unit == "Hours" and line.quantity is not None
        paid = int((line.quantity or 0) * HOUR) if counted else None
        times = _times(line, nodes[line.node], spans, paid)
        effective = part_out(units(line.effective), times)
        billed = part_out(units(line.billed), times)
        for hour, weight, one, other in zip(spans, times, effective, billed, strict=True):
            if weight:
                part = None if paid is None else paid * weight // sum(times)
                hours[line.node, hour].append(_Part(Amount(one, other), part))
    return hours


def _times(line: Line, node: Node, spans: Iterable[int], paid: int | None) -> list[int]:
    """How a line's hours weigh: by the time that its node was there, whoever saw it.

    Evenly, if the line counts its whole period or the node was never there in it.
    """
    even = [overlap((hour, hour + HOUR), (line.start, line.end)) for hour in spans]
    there = [
        overlap((hour, hour + HOUR), (max(line.start, node.created), line.end))
        if node.created < line.end
        else 0
        for hour in spans
    ]
    whole = paid is not None and paid >= line.end - line.start
    return even if whole or not any(there) else there


def _claims(world: World) -> dict[tuple[str, int], list[_Claim]]:
    """Every pod's claims by node and hour, sorted by uid and state."""
    claims: dict[tuple[str, int], list[_Claim]] = defaultdict(list)
    for pod in world.pods:
        for held, first, last in (
            (True, pod.bound, pod.started),
            (False, pod.started, pod.finished),
        ):
            start, end = max(first, world.options.start_ms), min(last, world.options.end_ms)
            for hour in range(start // HOUR * HOUR, end, HOUR) if start < end else ():
                seen = _seen(world, max(start, hour), min(end, hour + HOUR))
                if seen:
                    claims[pod.node, hour].append(_claim(pod, held, seen))
    for found in claims.values():
        found.sort(key=lambda claim: (claim.uid, not claim.held))
    return claims


def _seen(world: World, start: int, end: int) -> int:
    """Milliseconds of an interval outside the hole in the monitoring."""
    hole = world.options.outage
    return end - start - (overlap((start, end), hole) if hole else 0)


def _claim(pod: Pod, held: bool, length: int) -> _Claim:
    phase = "wait" if held else pod.phase
    key = (
        Key(UNATTRIBUTED, None, "no_rule", pod.node, None)
        if pod.experiment is None
        else Key(pod.experiment, phase, None, pod.node, None)
    )
    return _Claim(
        pod.uid,
        key,
        pod.cpu_millicores * length,
        pod.memory_bytes // 1024 * length,
        pod.gpus * length,
        held,
    )


def _node_hour(
    world: World, node: Node, hour: int, parts: list[_Part], claims: list[_Claim]
) -> list[tuple[Key, Amount]]:
    """Split each line of a node-hour over pools, and each pool over its claims."""
    price = sum(part.amount.effective for part in parts)
    up = max(0, hour + HOUR - max(hour, node.created))
    stated = [part.paid for part in parts if part.paid is not None]
    paid = min(HOUR, max(up, max(stated) if stated else HOUR))
    unseen = min(paid, HOUR - _seen(world, hour, hour + HOUR))
    pools = (
        _gpu_pools(node, price, paid, unseen, claims)
        if node.gpus
        else _cpu_pools(node, paid, unseen, claims)
    )
    shares: list[tuple[Key, Amount]] = []
    for part in parts:
        split = [part_out(cost, [weight for weight, _ in pools]) for cost in part.amount]
        for index, (_, pool) in enumerate(pools):
            weights = [amount for _, amount in pool]
            effective, billed = (part_out(column[index], weights) for column in split)
            shares += [
                (key, Amount(one, other))
                for (key, _), one, other in zip(pool, effective, billed, strict=True)
            ]
    return shares


_Pool = tuple[int, list[tuple[Key, int]]]


def _cpu_pools(node: Node, paid: int, unseen: int, claims: list[_Claim]) -> list[_Pool]:
    """9 : 1 between vCPU and GiB."""
    kibibytes = node.memory_bytes // 1024
    return [
        (
            9 * node.cpu_millicores * 2**20,
            _filled(node, [(c.key, c.cpu) for c in claims], node.cpu_millicores, paid, unseen),
        ),
        (
            1000 * kibibytes,
            _filled(node, [(c.key, c.memory) for c in claims], kibibytes, paid, unseen),
        ),
    ]


def _gpu_pools(node: Node, price: int, paid: int, unseen: int, claims: list[_Claim]) -> list[_Pool]:
    """Riders at reference rates, up to the cap; the rest on the cards."""
    holders = {claim.uid for claim in claims if claim.cards}
    riders = [claim for claim in claims if claim.uid not in holders]
    cpu, memory = _rider_prices(node, price, paid, riders)
    cards = [(claim.key, claim.cards) for claim in claims if claim.cards]
    pools = [
        (price - cpu - memory, _filled(node, cards, node.gpus, paid, unseen)),
        (cpu, [(rider.key, rider.cpu) for rider in riders]),
        (memory, [(rider.key, rider.memory) for rider in riders]),
    ]
    if price <= 0:
        pools = [(1, pools[0][1]), (0, pools[1][1]), (0, pools[2][1])]
    return [(weight, pool or [(_idle(node), 0)]) for weight, pool in pools]


def _rider_prices(node: Node, price: int, paid: int, riders: list[_Claim]) -> tuple[int, int]:
    def worth(cpu: int, memory: int) -> tuple[int, int]:
        return (half_even(cpu * VCPU_RATE, 1000 * HOUR), half_even(memory * GIB_RATE, 2**20 * HOUR))

    cpu, memory = worth(sum(r.cpu for r in riders), sum(r.memory for r in riders))
    most = sum(worth(node.cpu_millicores * paid, node.memory_bytes // 1024 * paid))
    cap = min(max(0, price) // 2, most)
    if cpu + memory <= cap:
        return cpu, memory
    scaled = cap * cpu // (cpu + memory)
    return scaled, cap - scaled


def _idle(node: Node) -> Key:
    return Key(IDLE, None, None, node.name, None)


def _filled(
    node: Node, claims: list[tuple[Key, int]], capacity: int, paid: int, unseen: int
) -> list[tuple[Key, int]]:
    """Claims of a pool, then what nobody saw, then what nobody asked for (never below 0)."""
    blind = Key(UNATTRIBUTED, None, "no_samples", node.name, None)
    claims = [(key, amount) for key, amount in claims if amount]
    claims = [*claims, (blind, capacity * unseen)] if unseen else claims
    free = max(0, capacity * paid - sum(amount for _, amount in claims))
    return [*claims, (_idle(node), free)] if free or not claims else claims


def _short_lives(world: World) -> dict[str, int]:
    """Uid to life (ms) of the pods that may fit between two scrapes."""
    return {
        pod.uid: pod.finished - pod.bound
        for pod in world.pods
        if pod.finished - pod.bound < world.options.step
    }


def _state_error(
    world: World,
    claim: _Claim,
    life: int,
    shares: list[tuple[Key, Amount]],
    errors: dict[str, int],
) -> None:
    """A pod between two scrapes is known to one interval: that much of its rate, and of idle."""
    cost = sum(amount.effective for key, amount in shares if key == claim.key)
    error = -(-abs(cost) * world.options.step // life)
    for target in (claim.key.target, IDLE):
        errors[target] = errors.get(target, 0) + error
