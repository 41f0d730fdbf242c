"""What a pod asks for: the scheduler's effective request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from collector.kubernetes.objects import Container, ContainerStatus, PodSpec, PodStatus, Resources
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


def effective_request(spec: PodSpec, status: PodStatus | None = None) -> Amounts:
    """The request that the scheduler keeps for a pod's whole life.

    max(sum of containers and sidecars, largest of each init container with the sidecars declared
    before it) + overhead; resources named at pod level replace the containers'. A sidecar is an
    init container with ``restartPolicy: Always``.

    While a pod is resized in place, each container counts with the largest of what it asks for,
    what the kubelet has allocated and what is in force; with the latter two only, if the resize is
    infeasible (Kubernetes: "Resize CPU and Memory Resources assigned to Containers").

    Args:
        spec: What the pod asks for.
        status: What the kubelet says of it; None = only the specification counts.

    Raises:
        ValueError: A quantity cannot be read.
    """
    status = status or PodStatus()
    known = {
        item.name: item
        for item in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    }
    refused = any(
        item.type == "PodResizePending" and item.reason == "Infeasible"
        for item in status.conditions or ()
    )

    def request(container: Container) -> Amounts:
        return _held(_request(container.resources), known.get(container.name), refused=refused)

    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.init_containers or ():
        if _is_sidecar(container):
            sidecars = _sum((sidecars, request(container)))
            largest = _max(largest, sidecars)
        else:
            largest = _max(largest, _sum((sidecars, request(container))))
    steady = _sum((sidecars, *map(request, spec.containers or ())))
    overhead = amounts(spec.overhead)
    whole_pod = _request(spec.resources)
    if whole_pod:
        # At pod level the kubelet counts the overhead in.
        said = _held({}, status, refused=False)
        said = {name: said[name] - overhead.get(name, 0) for name in said if name in whole_pod}
        whole_pod = _max({} if refused and said else whole_pod, said)
    return _sum((_max(steady, largest) | whole_pod, overhead))


def _held(asked: Amounts, status: ContainerStatus | PodStatus | None, *, refused: bool) -> Amounts:
    """What is asked for, allocated or in force: the largest of the three."""
    if status is None or not (status.allocated_resources or status.resources):
        return asked
    allocated = amounts(status.allocated_resources)
    in_force = amounts(status.resources.requests if status.resources else None)
    if refused:  # what is not resized stays as it is asked for
        asked = {name: n for name, n in asked.items() if name not in {*allocated, *in_force}}
    return _max(_max(asked, allocated), in_force)


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
    largest = dict(one)
    for name, amount in other.items():
        if name not in largest or amount > largest[name]:
            largest[name] = amount
    return largest
