"""The series that are read: what they say, and what is blind without them.

Names and labels: kube-state-metrics 2 (``docs/metrics``), cAdvisor (kubelet), dcgm-exporter. A
label that a scrape renamed because the scraper claims its name (``exported_pod``) is read under
its own name (``pod``).
"""

from __future__ import annotations

from datetime import timedelta

from collector.labels import sanitised
from collector.prometheus.series.annotation_series import pod_annotations
from collector.prometheus.series.card_series import CARD_SERIES, GPU_ACTIVE, GPU_UTIL, MEASURES
from collector.prometheus.series.engine_series import ENGINE_SERIES
from collector.prometheus.series.metric import Series, same
from collector.prometheus.series.policy_series import POLICY_SERIES
from collector.prometheus.series.volume_series import VOLUME_SERIES

__all__ = ["ALL", "FALLBACKS", "GPU_ACTIVE", "GPU_UTIL", "MARGIN", "SCRAPE_LABELS", "Series"]


# Half of what a chain of samples may miss at 5 minutes a scrape, the longest that works with the
# look-back of dashboards; read beyond both ends of a day so that days and hours add up.
MARGIN = timedelta(minutes=15)
USUAL_INTERVAL = timedelta(seconds=60)  # of a metric that shows no distance between two samples

_POD = same("namespace", "pod", "uid")
_CONTAINER = same("namespace", "pod", "container")

NODE_INFO = Series(
    "kube_node_info",
    same("node"),
    same("provider_id"),
    blind="which nodes were up and paid, their provider ids, and when anything was seen at all",
)
NODE_CAPACITY = Series(
    "kube_node_status_capacity",
    same("node", "resource"),
    valued=True,
    blind="cards, cores and memory of nodes; without them a node-hour cannot be shared",
)
NODE_LABELS = Series(
    "kube_node_labels",
    same("node"),
    prefix="label_",
    blind="instance type, region, capacity type and card model of nodes",
)
NODE_CREATED = Series(
    "kube_node_created", same("node"), valued=True, blind="when nodes were created", optional=True
)

POD_INFO = Series(
    "kube_pod_info",
    _POD,
    same("node", "created_by_kind", "created_by_name", "host_network"),
    blind="which pods lived where and when",
)
POD_PHASE = Series(
    "kube_pod_status_phase",
    _POD,
    same("phase"),
    nonzero=True,
    often=("phase", ("Running", "Pending")),
    blind="whether a pod was waiting, running or finished; finished pods look alive",
)
POD_WAITING = Series(
    "kube_pod_container_status_waiting_reason",
    {**_POD, **same("container")},
    same("reason"),
    nonzero=True,
    blind="why a bound pod does not run",
    optional=True,
)
POD_REQUESTS = Series(
    "kube_pod_container_resource_requests",
    {**_POD, **same("container", "resource")},
    valued=True,
    blind="cards, cores and memory that pods asked for",
)
INIT_REQUESTS = Series(
    "kube_pod_init_container_resource_requests",
    {**_POD, **same("container", "resource")},
    valued=True,
    blind="what init containers and sidecars asked for",
    optional=True,
)
INIT_INFO = Series(
    "kube_pod_init_container_info",
    {**_POD, **same("container")},
    same("restart_policy"),
    blind="which init containers are sidecars, that run beside the others",
    optional=True,
)
OVERHEAD_CPU = Series(
    "kube_pod_overhead_cpu_cores",
    _POD,
    valued=True,
    blind="what a sandbox costs beside a pod",
    optional=True,
)
OVERHEAD_MEMORY = Series(
    "kube_pod_overhead_memory_bytes",
    _POD,
    valued=True,
    blind="what a sandbox costs beside a pod",
    optional=True,
)
SCHEDULER_REQUESTS = Series(
    "kube_pod_resource_request",
    {**_POD, **same("resource")},
    valued=True,
    blind="what the scheduler counts a pod as: with sidecars, overhead and pod-level requests",
    optional=True,
)
POD_CLAIMS = Series(
    "kube_pod_resourceclaim_info", _POD, blind="which pods hold devices by a claim", optional=True
)
POD_LABELS = Series(
    "kube_pod_labels",
    _POD,
    prefix="label_",
    spelling={sanitised("runai-gpu-group"): "runai-gpu-group"},
    blind="experiment, owner and role of pods, as far as labels name them",
)
POD_ANNOTATIONS = pod_annotations()
POD_OWNER = Series(
    "kube_pod_owner",
    _POD,
    same("owner_kind", "owner_name"),
    blind="the job or controller that pods belong to, but for what kube_pod_info says of it",
    optional=True,
)
REPLICASET_OWNER = Series(
    "kube_replicaset_owner",
    same("namespace", "replicaset"),
    same("owner_kind", "owner_name"),
    blind="the deployment above a replica set",
    optional=True,
)
JOB_OWNER = Series(
    "kube_job_owner",
    same("namespace", "job_name"),
    same("owner_kind", "owner_name"),
    blind="the job set, cron job or RayJob above a job",
    optional=True,
)
RAY_CLUSTER = Series(
    "kuberay_cluster_info",
    same("namespace", "name"),
    same("owner_kind"),
    blind="the RayJob or RayService above a RayCluster, where labels do not name it",
    optional=True,
)
POD_SCHEDULED = Series(
    "kube_pod_status_scheduled_time",
    _POD,
    valued=True,
    blind="when exactly pods were bound",
    optional=True,
)
POD_COMPLETED = Series(
    "kube_pod_completion_time", _POD, valued=True, blind="when exactly pods finished", optional=True
)

CPU_USAGE = Series(
    "container_cpu_usage_seconds_total",
    {**_CONTAINER, **same("cpu")},
    blind="CPU used above the request",
)
MEMORY = Series(
    "container_memory_working_set_bytes", _CONTAINER, blind="memory used above the request"
)
# What a pod's network moves is counted where the container's name is missing, or its sandbox's.
_INTERFACE = {**same("namespace", "pod", "container"), **same("interface")}
NETWORK_RECEIVE = Series(
    "container_network_receive_bytes_total",
    _INTERFACE,
    blind="bytes that pods received",
    optional=True,
)
NETWORK_TRANSMIT = Series(
    "container_network_transmit_bytes_total",
    _INTERFACE,
    blind="bytes that pods sent",
    optional=True,
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
    INIT_REQUESTS,
    INIT_INFO,
    OVERHEAD_CPU,
    OVERHEAD_MEMORY,
    SCHEDULER_REQUESTS,
    POD_CLAIMS,
    POD_LABELS,
    POD_ANNOTATIONS,
    POD_OWNER,
    REPLICASET_OWNER,
    JOB_OWNER,
    RAY_CLUSTER,
    POD_SCHEDULED,
    POD_COMPLETED,
    CPU_USAGE,
    MEMORY,
    NETWORK_RECEIVE,
    NETWORK_TRANSMIT,
    *CARD_SERIES,
    *ENGINE_SERIES,
    *VOLUME_SERIES,
    *POLICY_SERIES,
)

# What is read instead if a metric has no samples, and is then no gap.
FALLBACKS: dict[str, tuple[Series, ...]] = {
    NODE_INFO.metric: (
        Series(NODE_CREATED.metric, same("node"), valued=True),
        Series(NODE_CAPACITY.metric, same("node"), valued=True),
    ),
    GPU_ACTIVE.metric: tuple(one.series for one in MEASURES if one.series is not GPU_ACTIVE),
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
