"""The kinds of objects that are listed, and the access that this needs."""

from __future__ import annotations

from dataclasses import dataclass

from collector.kubernetes.device_objects import ResourceClaim, ResourceSlice
from collector.kubernetes.events import Event
from collector.kubernetes.objects import Node, NodePool, Object, Pod, RayJob, ResourceQuota
from collector.kubernetes.volume_objects import PersistentVolume, PersistentVolumeClaim
from collector.source import KubernetesAccess, Permissions


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
        """Paths of the list over all namespaces, one per version."""
        return tuple(f"{root}/{self.plural}" for root in self.roots)

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
    "when pods ended that do not say so themselves",
    lacking=True,
    optional=True,
    fields="involvedObject.kind=Pod",
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


def _kubeflow(name: str, *versions: str) -> Kind:
    return Kind(name, "kubeflow.org", versions or ("v1",), f"{name.lower()}s")


KINDS: tuple[Kind, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    Kind("Job", "batch", ("v1",), "jobs"),
    Kind("ReplicaSet", "apps", ("v1",), "replicasets"),
    Kind("Deployment", "apps", ("v1",), "deployments"),
    Kind("StatefulSet", "apps", ("v1",), "statefulsets"),
    RAY_JOBS,
    Kind("RayCluster", "ray.io", ("v1",), "rayclusters"),
    Kind("RayService", "ray.io", ("v1",), "rayservices"),
    _kubeflow("PyTorchJob"),
    _kubeflow("TFJob"),
    _kubeflow("MPIJob", "v1", "v2beta1"),
    _kubeflow("XGBoostJob"),
    _kubeflow("PaddleJob"),
    _kubeflow("JAXJob"),
    Kind("TrainJob", "trainer.kubeflow.org", ("v1alpha1",), "trainjobs"),
    Kind("JobSet", "jobset.x-k8s.io", ("v1alpha2",), "jobsets"),
    Kind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", ("v1",), "leaderworkersets"),
    Kind("Job", "batch.volcano.sh", ("v1alpha1",), "jobs"),
    Kind("Workload", "kueue.x-k8s.io", ("v1beta2", "v1beta1"), "workloads"),
    Kind("Workflow", "argoproj.io", ("v1alpha1",), "workflows"),
    NODE_POOLS,
    CLAIMS,
    SLICES,
    VOLUMES,
    VOLUME_CLAIMS,
    QUOTAS,
    EVENTS,
)


def permissions() -> Permissions:
    """The access that a live cluster needs: get and list, one rule per API group."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        groups.setdefault(kind.group, []).append(kind.plural)
    return Permissions(
        kubernetes=tuple(
            KubernetesAccess(group, tuple(sorted(plurals))) for group, plurals in groups.items()
        )
    )
