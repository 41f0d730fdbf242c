"""Who owns a pod: the chain of owners, their labels, and the pod's role in its job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collector.kubernetes.kinds import EVENTS, KINDS
from collector.kubernetes.objects import Metadata, Object, OwnerReference, Pod
from collector.kubernetes.snapshot import Snapshot

_KUBEFLOW = {
    f"{kind.name.lower()}-controller": kind.name for kind in KINDS if kind.group == "kubeflow.org"
}
# Label and form of the role that it names; the first label that is present wins.
_ROLES = (
    ("ray.io/group", "ray-group"),
    ("jobset.sigs.k8s.io/replicatedjob-name", "replicated-job"),
    ("training.kubeflow.org/replica-type", "replica-type"),
    ("volcano.sh/task-spec", "task-spec"),
)


@dataclass(frozen=True)
class Link:
    """One owner: what is known of it even if the object itself is not."""

    kind: str
    name: str


@dataclass(frozen=True)
class Ownership:
    """The owners of a pod, nearest first, and their labels (nearest wins)."""

    chain: tuple[Link, ...]
    labels: Mapping[str, str]

    @property
    def root(self) -> Link | None:
        """The last known owner; None for a bare pod."""
        return self.chain[-1] if self.chain else None


class Owners:
    """All objects that can own one, by uid and by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_uid: dict[str, Object] = {}
        self._by_name: dict[tuple[str, str | None, str], Object] = {}
        for kind, objects in snapshot.lists.items():
            for item in objects if kind is not EVENTS else ():
                self._by_uid[item.metadata.uid] = item
                self._by_name[kind.name, item.metadata.namespace, item.metadata.name] = item
        self._by_uid.pop("", None)

    def of(self, pod: Pod) -> Ownership:
        """The chain of a pod.

        It follows ``ownerReferences``; an owner that cannot be read still counts by kind and
        name. From there on, and where there is no reference, the labels that operators put on
        their pods continue it.
        """
        chain: list[Link] = []
        labels: dict[str, str] = {}
        at: Object | None = pod
        for link, owner in self._references(pod.metadata):
            chain.append(link)
            labels = {**(owner.labels if owner else {}), **labels}
            at = owner
        if not chain or at is None:
            for link in _continued(chain, pod.labels):
                chain.append(link)
                owner = self._named(link, pod)
                labels = {**(owner.labels if owner else {}), **labels}
        return Ownership(tuple(chain), labels)

    def _references(self, start: Metadata) -> Iterator[tuple[Link, Object | None]]:
        seen: set[str] = set()
        metadata: Metadata | None = start
        while metadata and (reference := _controller(metadata)):
            if reference.uid in seen:
                return
            seen.add(reference.uid)
            owner = self._by_uid.get(reference.uid)
            yield Link(reference.kind, reference.name), owner
            metadata = owner.metadata if owner else None

    def _named(self, link: Link, pod: Pod) -> Object | None:
        """The object that a label names, unless it is younger than the pod (a re-used name)."""
        owner = self._by_name.get((link.kind, pod.metadata.namespace, link.name))
        born = owner.metadata.creation_timestamp if owner else None
        if born and pod.metadata.creation_timestamp and born > pod.metadata.creation_timestamp:
            return None
        return owner


def role(pod: Pod, ownership: Ownership) -> str | None:
    """The pod's role in its job, e.g. ``ray-group:rollout``.

    The submitter of a RayJob is a Job's pod without Ray labels: ``ray-node-type:submitter``.
    """
    labels = pod.labels
    if labels.get("ray.io/node-type") == "head":
        return "ray-node-type:head"
    for label, form in _ROLES:
        if value := labels.get(label):
            return f"{form}:{value.lower() if form == 'replica-type' else value}"
    if [link.kind for link in ownership.chain[:2]] == ["Job", "RayJob"]:
        return "ray-node-type:submitter"
    return None


def _controller(metadata: Metadata) -> OwnerReference | None:
    references = metadata.owner_references or ()
    return next((item for item in references if item.controller), next(iter(references), None))


def _continued(chain: list[Link], labels: Mapping[str, str]) -> list[Link]:
    """What the labels know beyond the end of the chain."""
    by_labels = _from_labels(labels)
    if not chain:
        return by_labels
    return by_labels[by_labels.index(chain[-1]) + 1 :] if chain[-1] in by_labels else []


def _from_labels(labels: Mapping[str, str]) -> list[Link]:
    """The chain that an operator's labels spell out, nearest first; the first operator wins."""
    get = labels.get
    job = get("batch.kubernetes.io/job-name") or get("job-name")
    nearest = [("Job", job)]
    job_set, workers = (
        get("jobset.sigs.k8s.io/jobset-name"),
        get("leaderworkerset.sigs.k8s.io/name"),
    )
    # Trainer v2 names its JobSet after the TrainJob.
    step = "trainer.kubeflow.org/trainjob-ancestor-step"
    chains: tuple[list[tuple[str, str | None]], ...] = (
        [
            ("RayCluster", get("ray.io/cluster")),
            (get("ray.io/originated-from-crd") or "RayJob", get("ray.io/originated-from-cr-name")),
        ],
        [*nearest, ("JobSet", job_set), ("TrainJob", job_set if step in labels else None)]
        if job_set
        else [],
        [
            (
                _KUBEFLOW.get(get("training.kubeflow.org/operator-name", "").lower(), "Job"),
                get("training.kubeflow.org/job-name"),
            )
        ],
        [("Job", get("volcano.sh/job-name"))],
        [("LeaderWorkerSet", workers)],
        [("Workflow", get("workflows.argoproj.io/workflow"))],
        nearest,
        [("Workload", get("kueue.x-k8s.io/pod-group-name"))],
    )
    for chain in chains:
        links = [Link(kind, name) for kind, name in chain if name]
        if links:
            return list(dict.fromkeys(links))
    return []
