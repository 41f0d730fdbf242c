"""Series that tell policies and states: jobs, queues, autoscalers, and how containers ended.

They are the second source of what the API says, for clusters whose API is not read. Names: KubeRay
1.4, Kueue 0.11, kube-state-metrics 2, Karpenter 1, Cluster Autoscaler 1.30.
"""

from __future__ import annotations

from collections.abc import Mapping

from collector.prometheus.series.metric import Series, same


def _optional(metric: str, identity: Mapping[str, tuple[str, ...]], blind: str) -> Series:
    return Series(metric, identity, blind=blind, optional=True)


_RAY = same("namespace", "name", "uid")
_RAY_BLIND = "whether Ray jobs and clusters still run, where the API is not read"
RAY_JOB_STATUS = _optional(
    "kuberay_job_deployment_status", {**_RAY, **same("deployment_status")}, _RAY_BLIND
)
RAY_JOB_SECONDS = _optional(
    "kuberay_job_execution_duration_seconds",
    {**_RAY, **same("job_deployment_status", "retry_count")},
    "how long Ray jobs ran",
)
RAY_CLUSTER_INFO = _optional("kuberay_cluster_info", {**_RAY, **same("owner_kind")}, _RAY_BLIND)
RAY_CLUSTER_SECONDS = _optional(
    "kuberay_cluster_provisioned_duration_seconds", _RAY, "how long Ray clusters took to come up"
)

_JOB = same("namespace", "job_name")
_JOB_BLIND = "when jobs started and ended, where the API is not read"
JOB_CREATED = _optional("kube_job_created", _JOB, _JOB_BLIND)
JOB_STARTED = _optional("kube_job_status_start_time", _JOB, _JOB_BLIND)
JOB_COMPLETED = _optional("kube_job_status_completion_time", _JOB, _JOB_BLIND)
JOB_COMPLETE = _optional("kube_job_complete", {**_JOB, **same("condition")}, _JOB_BLIND)
JOB_FAILED = _optional("kube_job_failed", {**_JOB, **same("condition")}, _JOB_BLIND)
JOB_ACTIVE = _optional("kube_job_status_active", _JOB, _JOB_BLIND)
JOB_SUSPENDED = _optional("kube_job_status_suspended", _JOB, _JOB_BLIND)
JOB_DEADLINE = _optional(
    "kube_job_spec_active_deadline_seconds", _JOB, "after which time jobs are ended"
)

_EXIT = same("namespace", "pod", "uid", "container")
_EXIT_BLIND = "containers that ran out of memory or failed, where the API is not read"
EXIT_REASON = _optional(
    "kube_pod_container_status_last_terminated_reason", {**_EXIT, **same("reason")}, _EXIT_BLIND
)
EXIT_CODE = _optional("kube_pod_container_status_last_terminated_exitcode", _EXIT, _EXIT_BLIND)
EXIT_TIME = _optional("kube_pod_container_status_last_terminated_timestamp", _EXIT, _EXIT_BLIND)
RESTARTS = _optional("kube_pod_container_status_restarts_total", _EXIT, _EXIT_BLIND)

_AMOUNT = {**same("cohort", "cluster_queue", "flavor", "resource")}
_QUEUE_BLIND = "quotas of queues and their use (metrics.enableClusterQueueResources of Kueue)"
QUOTA = _optional("kueue_cluster_queue_nominal_quota", _AMOUNT, _QUEUE_BLIND)
BORROWING = _optional("kueue_cluster_queue_borrowing_limit", _AMOUNT, _QUEUE_BLIND)
QUEUE_USAGE = _optional("kueue_cluster_queue_resource_usage", _AMOUNT, _QUEUE_BLIND)
PENDING = _optional(
    "kueue_pending_workloads", same("cluster_queue", "status"), "how many workloads wait"
)
WAIT_SUM = _optional(
    "kueue_admission_wait_time_seconds_sum",
    same("cluster_queue", "priority_class"),
    "how long workloads waited for their quota",
)
WAIT_COUNT = _optional(
    "kueue_admission_wait_time_seconds_count",
    same("cluster_queue", "priority_class"),
    "how long workloads waited for their quota",
)
EVICTED = _optional(
    "kueue_evicted_workloads_total",
    same("cluster_queue", "reason"),
    "how often workloads were put off, and why",
)

_POOL_BLIND = "limits and use of Karpenter's node pools, where the API is not read"
POOL_LIMIT = _optional("karpenter_nodepools_limit", same("nodepool", "resource_type"), _POOL_BLIND)
POOL_USAGE = _optional("karpenter_nodepools_usage", same("nodepool", "resource_type"), _POOL_BLIND)
POOL_DISRUPTIONS = _optional(
    "karpenter_nodepools_allowed_disruptions",
    same("nodepool", "reason"),
    "how many nodes Karpenter may remove at once",
)
POOL_DISRUPTED = _optional(
    "karpenter_nodeclaims_disrupted_total",
    same("nodepool", "reason", "capacity_type"),
    "how many nodes Karpenter removed",
)

_GROUP_BLIND = "sizes of node groups (--emit-per-nodegroup-metrics of Cluster Autoscaler)"
GROUP_MIN = _optional("cluster_autoscaler_node_group_min_count", same("node_group"), _GROUP_BLIND)
GROUP_MAX = _optional("cluster_autoscaler_node_group_max_count", same("node_group"), _GROUP_BLIND)
GROUP_TARGET = _optional(
    "cluster_autoscaler_node_group_target_count", same("node_group"), _GROUP_BLIND
)
UNNEEDED = _optional(
    "cluster_autoscaler_unneeded_nodes_count",
    same("namespace"),
    "how many nodes Cluster Autoscaler would remove",
)
COOLDOWN = _optional(
    "cluster_autoscaler_scale_down_in_cooldown",
    same("namespace"),
    "whether Cluster Autoscaler removes nodes now",
)
SCALED_DOWN = _optional(
    "cluster_autoscaler_scaled_down_nodes_total",
    same("reason"),
    "how many nodes Cluster Autoscaler removed",
)

STATES = (
    *(RAY_JOB_SECONDS, RAY_CLUSTER_SECONDS),
    *(JOB_CREATED, JOB_STARTED, JOB_COMPLETED, JOB_COMPLETE, JOB_FAILED, JOB_ACTIVE),
    *(JOB_SUSPENDED, JOB_DEADLINE),
    *(EXIT_REASON, EXIT_CODE, EXIT_TIME, RESTARTS),
    *(QUOTA, BORROWING, QUEUE_USAGE, PENDING),
    *(POOL_LIMIT, POOL_USAGE, POOL_DISRUPTIONS),
    *(GROUP_MIN, GROUP_MAX, GROUP_TARGET, UNNEEDED, COOLDOWN),
)
"""The last value of the day says all."""

MOMENTS = (RAY_JOB_STATUS, RAY_CLUSTER_INFO, JOB_FAILED)
"""When a series was there first and last on the day tells when a state began."""

COUNTERS = (WAIT_SUM, WAIT_COUNT, EVICTED, POOL_DISRUPTED, SCALED_DOWN)
"""What was counted on the day."""

POLICY_SERIES = (*STATES, RAY_JOB_STATUS, RAY_CLUSTER_INFO, *COUNTERS)
