"""The series that are read: what they say, and what is blind without them.

Names and labels: kube-state-metrics 2 (``docs/metrics``), cAdvisor (kubelet), dcgm-exporter. A
label that a scrape renamed because the scraper claims its name (``exported_pod``) is read under
its own name (``pod``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True)
class Series:
    """A metric and how it is read.

    Args:
        metric: Its name.
        identity: Column to the labels (first present wins) that say what a sample is about. Two
            samples of one identity at one time are copies of each other.
        info: Column to the labels that say something about it, like ``node`` of a pod.
        blind: What cannot be answered without it.
        prefix: Also keep all labels that start so, as one JSON column ``labels``.
        nonzero: Only samples of 1 say something (states, as one series per state).
        ceiling: Values above are no measurement (DCGM marks "no value" with huge numbers).
        optional: Its absence is normal and no gap.
    """

    metric: str
    identity: Mapping[str, tuple[str, ...]]
    info: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blind: str = ""
    prefix: str | None = None
    nonzero: bool = False
    ceiling: float | None = None
    optional: bool = False

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Identity and info columns, in order."""
        return {**self.identity, **self.info}


def _same(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in names}


# Half of what a chain of samples may miss at 5 minutes a scrape, the longest that works with the
# look-back of dashboards; read beyond both ends of a day so that days and hours add up.
MARGIN = timedelta(minutes=15)
USUAL_INTERVAL = timedelta(seconds=60)  # of a metric that shows no distance between two samples

_POD = _same("namespace", "pod", "uid")
_CONTAINER = _same("namespace", "pod", "container")
_CARD = {
    "device": ("UUID", "uuid", "gpu"),
    "instance": ("GPU_I_ID",),
    "host": ("Hostname", "hostname"),
    "place": ("node", "kubernetes_node", "nodename"),
    "namespace": ("namespace",),
    "pod": ("pod",),
    "container": ("container",),
}

NODE_INFO = Series(
    "kube_node_info",
    _same("node"),
    _same("provider_id"),
    blind="which nodes were up and paid, their provider ids, and when anything was seen at all",
)
NODE_CAPACITY = Series(
    "kube_node_status_capacity",
    _same("node", "resource"),
    blind="cards, cores and memory of nodes; without them a node-hour cannot be shared",
)
NODE_LABELS = Series(
    "kube_node_labels",
    _same("node"),
    prefix="label_",
    blind="instance type, region, capacity type and card model of nodes",
)
NODE_CREATED = Series(
    "kube_node_created", _same("node"), blind="when nodes were created", optional=True
)

POD_INFO = Series(
    "kube_pod_info",
    _POD,
    _same("node", "created_by_kind", "created_by_name"),
    blind="which pods lived where and when",
)
POD_PHASE = Series(
    "kube_pod_status_phase",
    _POD,
    _same("phase"),
    nonzero=True,
    blind="whether a pod was waiting, running or finished; finished pods look alive",
)
POD_WAITING = Series(
    "kube_pod_container_status_waiting_reason",
    {**_POD, **_same("container")},
    _same("reason"),
    nonzero=True,
    blind="why a bound pod does not run",
    optional=True,
)
POD_REQUESTS = Series(
    "kube_pod_container_resource_requests",
    {**_POD, **_same("container", "resource")},
    blind="cards, cores and memory that pods asked for",
)
POD_LABELS = Series(
    "kube_pod_labels",
    _POD,
    prefix="label_",
    blind="experiment, owner and role of pods, as far as labels name them",
)
POD_OWNER = Series(
    "kube_pod_owner",
    _POD,
    _same("owner_kind", "owner_name"),
    blind="the job or controller that pods belong to, but for what kube_pod_info says of it",
    optional=True,
)
REPLICASET_OWNER = Series(
    "kube_replicaset_owner",
    _same("namespace", "replicaset"),
    _same("owner_kind", "owner_name"),
    blind="the deployment above a replica set",
    optional=True,
)
JOB_OWNER = Series(
    "kube_job_owner",
    _same("namespace", "job_name"),
    _same("owner_kind", "owner_name"),
    blind="the job set, cron job or RayJob above a job",
    optional=True,
)
POD_SCHEDULED = Series(
    "kube_pod_status_scheduled_time", _POD, blind="when exactly pods were bound", optional=True
)
POD_COMPLETED = Series(
    "kube_pod_completion_time", _POD, blind="when exactly pods finished", optional=True
)

CPU_USAGE = Series(
    "container_cpu_usage_seconds_total",
    {**_CONTAINER, **_same("cpu")},
    blind="CPU used above the request",
)
MEMORY = Series(
    "container_memory_working_set_bytes", _CONTAINER, blind="memory used above the request"
)
GPU_ACTIVE = Series(
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    _CARD,
    _same("modelName"),
    ceiling=1.0,
    blind="whether cards worked: active cost and idle experiments",
)
GPU_UTIL = Series(
    "DCGM_FI_DEV_GPU_UTIL",
    _CARD,
    _same("modelName"),
    ceiling=100.0,
    optional=True,
    blind="whether cards worked, where the profiling metric is missing",
)

ALL = (
    NODE_INFO,
    NODE_CAPACITY,
    NODE_LABELS,
    NODE_CREATED,
    POD_INFO,
    POD_PHASE,
    POD_WAITING,
    POD_REQUESTS,
    POD_LABELS,
    POD_OWNER,
    REPLICASET_OWNER,
    JOB_OWNER,
    POD_SCHEDULED,
    POD_COMPLETED,
    CPU_USAGE,
    MEMORY,
    GPU_ACTIVE,
    GPU_UTIL,
)

# What is read instead if a metric has no samples, and is then no gap.
FALLBACKS: dict[str, tuple[Series, ...]] = {
    NODE_INFO.metric: (
        Series(NODE_CREATED.metric, _same("node")),
        Series(NODE_CAPACITY.metric, _same("node")),
    ),
    GPU_ACTIVE.metric: (GPU_UTIL,),
}

# Labels that tell who scraped, not what was measured; any label with "replica" in its name but
# ``replicaset`` counts as well.
SCRAPE_LABELS = frozenset(
    {
        "instance",
        "job",
        "endpoint",
        "service",
        "prometheus",
        "receive",
        "tenant_id",
        "metrics_path",
        "prometheus_group",
        "scrape_job",
    }
)
