"""What adds and removes nodes, as partial structs."""

from __future__ import annotations

import msgspec

from collector.kubernetes.objects import Condition, Object, Part, Scalar


class Budget(Part, omit_defaults=True):
    """``spec.disruption.budgets[]``."""

    nodes: Scalar = None
    reasons: list[str] | None = None
    schedule: Scalar = None
    duration: Scalar = None


class Disruption(Part, omit_defaults=True):
    """``spec.disruption`` of a Karpenter NodePool; ``expireAfter`` stood here until v1."""

    consolidation_policy: Scalar = None
    consolidate_after: Scalar = None
    expire_after: Scalar = None
    budgets: list[Budget] | None = None


class ClaimSpec(Part, omit_defaults=True):
    """``spec`` of a NodeClaim, and of the template of a NodePool."""

    expire_after: Scalar = None
    termination_grace_period: Scalar = None


class ClaimTemplate(Part):
    """``spec.template`` of a NodePool."""

    spec: ClaimSpec | None = None


class NodePoolSpec(Part, omit_defaults=True):
    """``spec`` of a Karpenter NodePool."""

    disruption: Disruption | None = None
    limits: dict[str, str | int | float] | None = None
    weight: Scalar = None
    replicas: Scalar = None
    template: ClaimTemplate | None = None


class NodePoolStatus(Part, omit_defaults=True):
    """``status`` of a Karpenter NodePool: what it has."""

    resources: dict[str, str | int | float] | None = None


class NodePool(Object):
    """A Karpenter NodePool."""

    spec: NodePoolSpec = msgspec.field(default_factory=NodePoolSpec)
    status: NodePoolStatus = msgspec.field(default_factory=NodePoolStatus)


class ClaimStatus(Part):
    """``status`` of a NodeClaim."""

    node_name: str | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")
    conditions: list[Condition] | None = None


class NodeClaim(Object):
    """A machine that Karpenter asked for."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ProvisioningSpec(Part, omit_defaults=True):
    """``spec`` of a ProvisioningRequest; its parameters are named one by one."""

    provisioning_class_name: Scalar = None
    parameters: dict[str, str] | None = None


class ProvisioningStatus(Part):
    """``status`` of a ProvisioningRequest."""

    conditions: list[Condition] | None = None


class ProvisioningRequest(Object):
    """Nodes that are asked for all at once, as GKE's queued provisioning."""

    spec: ProvisioningSpec = msgspec.field(default_factory=ProvisioningSpec)
    status: ProvisioningStatus = msgspec.field(default_factory=ProvisioningStatus)


class DisruptionBudgetSpec(Part, omit_defaults=True):
    """``spec`` of a PodDisruptionBudget."""

    min_available: Scalar = None
    max_unavailable: Scalar = None
    unhealthy_pod_eviction_policy: Scalar = None


class DisruptionBudgetStatus(Part, omit_defaults=True):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: Scalar = None
    current_healthy: Scalar = None
    desired_healthy: Scalar = None
    expected_pods: Scalar = None


class DisruptionBudget(Object):
    """A PodDisruptionBudget."""

    spec: DisruptionBudgetSpec = msgspec.field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = msgspec.field(default_factory=DisruptionBudgetStatus)


class StatusData(Part):
    """``data`` of Cluster Autoscaler's ConfigMap: the one key that is read."""

    status: str | None = None


class AutoscalerStatus(Object):
    """The ConfigMap in which Cluster Autoscaler tells its state."""

    data: StatusData | None = None


class Program(Part):
    """A container of a Deployment's template: what it runs, and with which flags."""

    name: str = ""
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None


class ProgramSpec(Part):
    """``spec.template.spec`` of a Deployment."""

    containers: list[Program] | None = None


class ProgramTemplate(Part):
    """``spec.template`` of a Deployment."""

    spec: ProgramSpec | None = None


class DeploymentSpec(Part):
    """``spec`` of a Deployment."""

    replicas: int | None = None
    template: ProgramTemplate | None = None


class Deployment(Object):
    """A Deployment; its flags are looked at where it is an autoscaler, and nowhere else."""

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
