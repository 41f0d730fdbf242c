"""Kueue, as partial structs: what a queue may use, what it uses, and who waits for it."""

from __future__ import annotations

import msgspec

from collector.kubernetes.objects import Condition, Object, Part, Scalar


class Quota(Part, omit_defaults=True):
    """A resource of a flavor: its quota in ``spec``, its use in ``status``."""

    name: str = ""
    nominal_quota: Scalar = None
    borrowing_limit: Scalar = None
    lending_limit: Scalar = None
    total: Scalar = None
    borrowed: Scalar = None


class Flavor(Part):
    """A flavor with its resources."""

    name: str = ""
    resources: list[Quota] | None = None


class ResourceGroup(Part):
    """``spec.resourceGroups[]``."""

    flavors: list[Flavor] | None = None


class Borrowing(Part, omit_defaults=True):
    """``spec.preemption.borrowWithinCohort``."""

    policy: Scalar = None
    max_priority_threshold: Scalar = None


class Preemption(Part, omit_defaults=True):
    """``spec.preemption``."""

    within_cluster_queue: Scalar = None
    reclaim_within_cohort: Scalar = None
    borrow_within_cohort: Borrowing | None = None


class QueueSpec(Part, omit_defaults=True):
    """``spec`` of a ClusterQueue; v1beta2 calls the cohort ``cohortName``."""

    cohort: Scalar = None
    cohort_name: Scalar = None
    queueing_strategy: Scalar = None
    stop_policy: Scalar = None
    preemption: Preemption | None = None
    resource_groups: list[ResourceGroup] | None = None


class QueueStatus(Part, omit_defaults=True):
    """``status`` of a ClusterQueue or LocalQueue."""

    pending_workloads: Scalar = None
    reserving_workloads: Scalar = None
    admitted_workloads: Scalar = None
    flavors_usage: list[Flavor] | None = None
    flavor_usage: list[Flavor] | None = None
    flavors_reservation: list[Flavor] | None = None


class ClusterQueue(Object):
    """A ClusterQueue."""

    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)


class LocalSpec(Part, omit_defaults=True):
    """``spec`` of a LocalQueue."""

    cluster_queue: Scalar = None
    stop_policy: Scalar = None


class LocalQueue(Object):
    """A LocalQueue: a namespace's way into a ClusterQueue."""

    spec: LocalSpec = msgspec.field(default_factory=LocalSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)


class FlavorSpec(Part, omit_defaults=True):
    """``spec`` of a ResourceFlavor."""

    node_labels: dict[str, str] | None = None
    topology_name: Scalar = None


class ResourceFlavor(Object):
    """A ResourceFlavor: which nodes a quota is about."""

    spec: FlavorSpec = msgspec.field(default_factory=FlavorSpec)


class Assignment(Part):
    """``status.admission.podSetAssignments[]``."""

    name: str = ""
    flavors: dict[str, str] | None = None
    count: int | None = None


class Admission(Part):
    """``status.admission``."""

    cluster_queue: Scalar = None
    pod_set_assignments: list[Assignment] | None = None


class WorkloadSpec(Part, omit_defaults=True):
    """``spec`` of a Workload."""

    queue_name: Scalar = None
    priority: Scalar = None
    active: Scalar = None
    maximum_execution_time_seconds: Scalar = None


class Requeue(Part, omit_defaults=True):
    """``status.requeueState``."""

    count: Scalar = None


class WorkloadStatus(Part):
    """``status`` of a Workload."""

    admission: Admission | None = None
    conditions: list[Condition] | None = None
    requeue_state: Requeue | None = None


class Workload(Object):
    """What Kueue admits: the pods of a job, all at once."""

    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)
