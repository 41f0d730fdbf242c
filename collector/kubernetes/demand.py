"""What a pod asks for: the scheduler's effective request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from collector.kubernetes.objects import Container, PodSpec, Resources
from collector.kubernetes.quantities import parse

Amounts = dict[str, Fraction]


def amounts(quantities: Mapping[str, str | int | float] | None) -> Amounts:
    """Quantities by resource name, exact.

    Raises:
        ValueError: One of them is no quantity, or is negative.
    """
    found = {name: parse(str(value)) for name, value in (quantities or {}).items()}
    for name, amount in found.items():
        if amount < 0:
            raise ValueError(f"{name} is negative")
    return found


def effective_request(spec: PodSpec) -> Amounts:
    """The request that the scheduler keeps for a pod's whole life.

    max(sum of containers and sidecars, largest of each init container with the sidecars declared
    before it) + overhead; resources named at pod level replace the containers'. A sidecar is an
    init container with ``restartPolicy: Always``.

    Raises:
        ValueError: A quantity cannot be read.
    """
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.init_containers or ():
        request = _request(container.resources)
        if _is_sidecar(container):
            sidecars = _sum((sidecars, request))
            largest = _max(largest, sidecars)
        else:
            largest = _max(largest, _sum((sidecars, request)))
    steady = _sum((sidecars, *(_request(item.resources) for item in spec.containers or ())))
    total = _max(steady, largest) | _request(spec.resources)
    return _sum((total, amounts(spec.overhead)))


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _request(resources: Resources | None) -> Amounts:
    """Requests; a limit without a request is one, as the API server itself would set it."""
    if resources is None:
        return {}
    return amounts(resources.limits) | amounts(resources.requests)


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _max(one: Amounts, other: Amounts) -> Amounts:
    return {
        name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0)))
        for name in (*one, *(name for name in other if name not in one))
    }
