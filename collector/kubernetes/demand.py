"""What a pod asks for: the scheduler's effective request, and which resource is a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction

from collector.kubernetes.objects import Container, PodSpec, Resources
from collector.kubernetes.quantities import parse, whole

Amounts = dict[str, Fraction]

# Resources whose unit is a card or a part of one. The first that is present wins.
CARDS = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "aws.amazon.com/neuroncore",
    "google.com/tpu",
    "k8s.amazonaws.com/vgpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "huawei.com/Ascend*",
    "cambricon.com/mlu*",
    "metax-tech.com/gpu",
    "mthreads.com/gpu",
)


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


def cards(of: Mapping[str, Fraction]) -> tuple[str | None, int | None, tuple[str, ...]]:
    """The card resource of a request or capacity.

    Args:
        of: Amounts by resource name.

    Returns:
        Its name and count (both None where no card resource is named), and the names of further
        card resources with an amount, which one row cannot hold.

    Raises:
        ValueError: The count is negative or too large.
    """
    named = [name for pattern in CARDS for name in sorted(of) if fnmatchcase(name, pattern)]
    if not named:
        return None, None, ()
    used = [name for name in named if of[name] > 0]
    first = used[0] if used else named[0]
    return first, whole(of[first]), tuple(used[1:])


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
