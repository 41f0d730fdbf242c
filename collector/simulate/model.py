"""The things of a simulated world: nodes, pods and bill lines, as the schedule fixes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from collector.simulate.options import WorldOptions

ACCOUNT = "012345678901"
REGION = "us-east-1"
GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True)
class Node:
    """A node; ``launched`` is when its bill starts, ``created`` when the cluster first saw it (ms).

    ``rate`` is the list price of an hour; ``discount`` the negotiated part off (per cent);
    ``committed`` nodes are covered by a savings plan: nothing is billed for their usage.
    """

    name: str
    pool: str
    instance_type: str
    instance_id: str
    zone: str
    cpu_millicores: int
    memory_bytes: int
    gpus: int
    gpu_model: str | None
    launched: int
    created: int
    rate: Decimal
    discount: int
    committed: bool = False

    @property
    def provider_id(self) -> str:
        """``spec.providerID`` of an EC2 instance."""
        return f"aws:///{self.zone}/{self.instance_id}"

    @property
    def resource_id(self) -> str:
        """How the bill names it: GPU nodes by instance id, the others by ARN (both occur)."""
        if self.gpus:
            return self.instance_id
        return f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{self.instance_id}"

    @property
    def labels(self) -> dict[str, str]:
        """Node labels with their original keys."""
        common = {
            "kubernetes.io/hostname": self.name,
            "node.kubernetes.io/instance-type": self.instance_type,
            "topology.kubernetes.io/region": REGION,
            "topology.kubernetes.io/zone": self.zone,
            "karpenter.sh/capacity-type": "reserved" if self.committed else "on-demand",
            "pool": self.pool,
        }
        if not self.gpu_model:
            return common
        return {
            **common,
            "nvidia.com/gpu.count": str(self.gpus),
            "nvidia.com/gpu.product": self.gpu_model,
        }


@dataclass(frozen=True)
class Owner:
    """A controller of pods, with the labels that it carries itself."""

    kind: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """A container and its requests."""

    name: str
    cpu_millicores: int
    memory_bytes: int
    gpus: int = 0


@dataclass(frozen=True)
class Pod:
    """A pod and the truth of it.

    Args:
        bound: Scheduled to its node (ms); it holds its requests from here.
        started: First container running (ms, ≥ bound); held before.
        finished: End (ms); a pod that outlives the world has not finished.
        owners: Controllers, nearest first; empty for a bare pod.
        role: Its part in the run, as the ledger writes it.
        experiment: The right answer; None where no rule can tell.
        phase: The right answer while it runs.
        in_api: Whether the Kubernetes dump still holds it.
        lingers: Whether it stays visible as Succeeded after its end.
        activity: Mean activity of its cards, 0 to 1.
    """

    uid: str
    namespace: str
    name: str
    node: str
    bound: int
    started: int
    finished: int
    containers: tuple[Container, ...]
    experiment: str | None
    phase: str
    labels: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None
    reason: str = "ContainerCreating"
    in_api: bool = True
    lingers: bool = False
    activity: float = 0.0

    @property
    def cpu_millicores(self) -> int:
        """Requested CPU."""
        return sum(container.cpu_millicores for container in self.containers)

    @property
    def memory_bytes(self) -> int:
        """Requested memory."""
        return sum(container.memory_bytes for container in self.containers)

    @property
    def gpus(self) -> int:
        """Requested cards."""
        return sum(container.gpus for container in self.containers)


@dataclass(frozen=True)
class Line:
    """A line of the bill.

    Args:
        node: Name of the node that it pays for, None for all else.
        start: Charge period (ms); ``end`` is exclusive.
        quantity: Pricing and consumed quantity in ``unit``; None where the line has none.
        experiment: The right answer for a line that pays for no node.
    """

    node: str | None
    resource_id: str | None
    resource_type: str | None
    service: str
    start: int
    end: int
    billed: Decimal
    effective: Decimal
    contracted: Decimal
    listed: Decimal
    description: str
    category: str = "Usage"
    frequency: str = "Usage-Based"
    quantity: Decimal | None = None
    unit: str | None = None
    list_price: Decimal | None = None
    contracted_price: Decimal | None = None
    commitment: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    experiment: str | None = None

    def __post_init__(self) -> None:
        """A line that covers no time pays for nothing."""
        if self.end <= self.start:
            raise ValueError(f"bill line without a charge period: {self.description}")


@dataclass(frozen=True)
class World:
    """A simulated world: what was there, who ran when, and what was billed for it."""

    options: WorldOptions
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    lines: tuple[Line, ...]
