"""The kinds of objects that are listed, and those of further owners."""

from __future__ import annotations

from dataclasses import dataclass

from collector.kubernetes.client import JSON, METADATA_LIST
from collector.kubernetes.device_objects import ResourceClaim, ResourceSlice
from collector.kubernetes.events import Event
from collector.kubernetes.job_objects import Job, RayCluster, RayJob, VolcanoJob, Workflow
from collector.kubernetes.objects import Node, Object, Pod, ResourceQuota
from collector.kubernetes.queue_objects import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from collector.kubernetes.scaling_objects import (
    AutoscalerStatus,
    Deployment,
    DisruptionBudget,
    NodeClaim,
    NodePool,
    ProvisioningRequest,
)
from collector.kubernetes.volume_objects import PersistentVolume, PersistentVolumeClaim
from collector.systems import SYSTEMS


@dataclass(frozen=True)
class Kind:
    """A kind: where it is listed, and as what it is decoded.

    Args:
        name: Kind, e.g. ``RayJob``.
        group: API group, empty for the core.
        versions: Versions to try, the first that is served wins.
        plural: Resource name.
        form: Struct that its objects are decoded as.
        blind: What a reader cannot know without it.
        lacking: Whether a server may lack it, as in a feature that is off.
        optional: Whether doing without it is no gap, even where it exists and may not be read.
        fields: Field selector of the list, empty for all objects.
        only: Namespace and name of the one object that is read; empty for all objects.
    """

    name: str
    group: str
    versions: tuple[str, ...]
    plural: str
    form: type[Object] = Object
    blind: str = "owner chains end before it"
    lacking: bool = False
    optional: bool = False
    fields: str = ""
    only: tuple[str, ...] = ()

    @property
    def accept(self) -> str:
        """The form in which a list of it is asked for: bare where only owners and labels matter."""
        return METADATA_LIST if self.form is Object else JSON

    @property
    def custom(self) -> bool:
        """Whether it comes from a definition or a feature that may not be there."""
        return "." in self.group or self.lacking

    @property
    def resource(self) -> str:
        """``plural.group``, as kubectl and roles name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the list over all namespaces, or of the only one, one per version."""
        inner = f"namespaces/{self.only[0]}/" if self.only else ""
        return tuple(f"{root}/{inner}{self.plural}" for root in self.roots)

    @property
    def roots(self) -> tuple[str, ...]:
        """Paths of the group's versions."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        return tuple(f"{prefix}/{version}" for version in self.versions)


PODS = Kind("Pod", "", ("v1",), "pods", Pod, "everything: no workload is seen")
NODES = Kind("Node", "", ("v1",), "nodes", Node, "capacity, type and price of nodes; idle")
CLAIMS = Kind(
    "ResourceClaim",
    "resource.k8s.io",
    ("v1", "v1beta2", "v1beta1"),
    "resourceclaims",
    ResourceClaim,
    "cards that pods hold by dynamic resource allocation",
)
SLICES = Kind(
    "ResourceSlice",
    "resource.k8s.io",
    ("v1", "v1beta2", "v1beta1"),
    "resourceslices",
    ResourceSlice,
    "cards of nodes that offer them by dynamic resource allocation",
)
VOLUMES = Kind(
    "PersistentVolume",
    "",
    ("v1",),
    "persistentvolumes",
    PersistentVolume,
    "which pods a disk on the bill belongs to",
    lacking=True,
)
VOLUME_CLAIMS = Kind(
    "PersistentVolumeClaim",
    "",
    ("v1",),
    "persistentvolumeclaims",
    PersistentVolumeClaim,
    "labels of disks",
    lacking=True,
)
QUOTAS = Kind(
    "ResourceQuota",
    "",
    ("v1",),
    "resourcequotas",
    ResourceQuota,
    "quotas of namespaces",
    lacking=True,
    optional=True,
)
EVENTS = Kind(
    "Event",
    "",
    ("v1",),
    "events",
    Event,
    "when pods ended that do not say so themselves; evictions and failures of the last hour",
    lacking=True,
    optional=True,
    # What every start of a pod brings, and nobody asks about.
    fields="reason!=Pulling,reason!=Pulled,reason!=Created,reason!=SuccessfulCreate",
)
NAMESPACES = Kind("Namespace", "", ("v1",), "namespaces", blind="labels of namespaces")
RAY_JOBS = Kind("RayJob", "ray.io", ("v1",), "rayjobs", RayJob)
NODE_POOLS = Kind(
    "NodePool",
    "karpenter.sh",
    ("v1", "v1beta1"),
    "nodepools",
    NodePool,
    "whether idle nodes are removed by themselves",
)
NODE_CLAIMS = Kind(
    "NodeClaim",
    "karpenter.sh",
    ("v1", "v1beta1"),
    "nodeclaims",
    NodeClaim,
    "since when nodes could be consolidated",
    optional=True,
)
PROVISIONING_REQUESTS = Kind(
    "ProvisioningRequest",
    "autoscaling.x-k8s.io",
    ("v1", "v1beta1"),
    "provisioningrequests",
    ProvisioningRequest,
    "which nodes were queued for",
    optional=True,
)
DISRUPTION_BUDGETS = Kind(
    "PodDisruptionBudget",
    "policy",
    ("v1",),
    "poddisruptionbudgets",
    DisruptionBudget,
    "which budgets keep idle nodes from being removed",
    lacking=True,
    optional=True,
)
AUTOSCALER_STATUS = Kind(
    "ConfigMap",
    "",
    ("v1",),
    "configmaps",
    AutoscalerStatus,
    "what Cluster Autoscaler says of its node groups",
    lacking=True,
    optional=True,
    fields="metadata.name=cluster-autoscaler-status",
    only=("kube-system", "cluster-autoscaler-status"),
)
DEPLOYMENTS = Kind("Deployment", "apps", ("v1",), "deployments", Deployment)
RAY_CLUSTERS = Kind("RayCluster", "ray.io", ("v1",), "rayclusters", RayCluster)
VOLCANO_JOBS = Kind("Job", "batch.volcano.sh", ("v1alpha1",), "jobs", VolcanoJob)
WORKFLOWS = Kind("Workflow", "argoproj.io", ("v1alpha1",), "workflows", Workflow)
_KUEUE = ("kueue.x-k8s.io", ("v1beta2", "v1beta1"))
WORKLOADS = Kind("Workload", *_KUEUE, "workloads", Workload)
CLUSTER_QUEUES = Kind(
    "ClusterQueue", *_KUEUE, "clusterqueues", ClusterQueue, "quotas of queues, and their use"
)
LOCAL_QUEUES = Kind(
    "LocalQueue",
    *_KUEUE,
    "localqueues",
    LocalQueue,
    "which queue of a namespace has which quota",
    optional=True,
)
RESOURCE_FLAVORS = Kind(
    "ResourceFlavor",
    *_KUEUE,
    "resourceflavors",
    ResourceFlavor,
    "which nodes a quota is about",
    optional=True,
)


def _kubeflow(name: str, *versions: str) -> Kind:
    return Kind(name, "kubeflow.org", versions or ("v1",), f"{name.lower()}s", Job)


JOB_KINDS: tuple[Kind, ...] = (
    Kind("Job", "batch", ("v1",), "jobs", Job),
    _kubeflow("PyTorchJob"),
    _kubeflow("TFJob"),
    _kubeflow("MPIJob", "v1", "v2beta1"),
    _kubeflow("XGBoostJob"),
    _kubeflow("PaddleJob"),
    _kubeflow("JAXJob"),
    Kind("TrainJob", "trainer.kubeflow.org", ("v1alpha1",), "trainjobs", Job),
    Kind("JobSet", "jobset.x-k8s.io", ("v1alpha2",), "jobsets", Job),
)
"""Jobs that tell their state by conditions."""

KINDS: tuple[Kind, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    *JOB_KINDS,
    Kind("CronJob", "batch", ("v1",), "cronjobs"),
    Kind("ReplicaSet", "apps", ("v1",), "replicasets"),
    DEPLOYMENTS,
    Kind("StatefulSet", "apps", ("v1",), "statefulsets"),
    Kind("DaemonSet", "apps", ("v1",), "daemonsets"),
    RAY_JOBS,
    RAY_CLUSTERS,
    Kind("RayService", "ray.io", ("v1",), "rayservices"),
    Kind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", ("v1",), "leaderworkersets"),
    VOLCANO_JOBS,
    WORKLOADS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKFLOWS,
    NODE_POOLS,
    NODE_CLAIMS,
    PROVISIONING_REQUESTS,
    DISRUPTION_BUDGETS,
    AUTOSCALER_STATUS,
    CLAIMS,
    SLICES,
    VOLUMES,
    VOLUME_CLAIMS,
    QUOTAS,
    EVENTS,
)


UNREAD = frozenset({("", "Secret"), ("", "ConfigMap")})
"""Group and kind of what is never read as an owner."""

OWNERS: tuple[tuple[str, str], ...] = tuple(
    (owner.group, owner.resource)
    for one in SYSTEMS
    for owner in one.objects
    if (owner.group, owner.kind) not in {(kind.group, kind.name) for kind in KINDS}
)
"""Group and resource of further owners, which are asked for where an object names one."""
