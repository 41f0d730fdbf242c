"""A world: the objects of one training system, as its operator leaves them, and what is true.

Names of labels, of owners and the forms of names are those of the systems' own sources. Objects are
given as the API gives them; what kube-state-metrics makes of them is in ``exporter``.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.collector.kubernetes import builders as k

Json = dict[str, Any]
START, END = "08:00", "09:00"
SECRET = "hf_neverstorethis"


@dataclass(frozen=True)
class Truth:
    """What a pod is; None = nobody says so, and nothing may be made up.

    Args:
        experiment: The experiment that pays.
        owner: Who pays for it.
        role: Its part in its job, as runbill writes it.
        phase: What that part does by default.
        root: ``Kind/name`` at the top of its owners.
        unseen: What no series tell: labels of owners, owners of owners of custom kinds.
        lost: What labels do not tell once the owners are gone from the API, beside ``unseen``.
    """

    experiment: str | None
    owner: str | None = None
    role: str | None = None
    phase: str = "unknown"
    root: str | None = None
    unseen: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


@dataclass
class World:
    """One system in a namespace of its own.

    Args:
        system: A short name of it.
        objects: Everything but pods.
        pods: The pods.
        truth: By uid of the pod.
    """

    system: str
    objects: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)
    truth: dict[str, Truth] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return f"ns-{self.system}"

    def uid(self, kind: str, name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{kind}.{name}.{self.namespace}"))

    def thing(
        self,
        api_version: str,
        kind: str,
        name: str,
        owner: Json | None = None,
        **meta: Any,  # noqa: ANN401
    ) -> Json:
        """An object; its labels and annotations are ``labels`` and ``annotations``."""
        made = k.thing(
            api_version,
            kind,
            name,
            uid=self.uid(kind, name),
            namespace=self.namespace,
            owners=[owner] if owner else [],
            **meta,
        )
        self.objects.append(made)
        return made

    def pod(
        self,
        name: str,
        truth: Truth,
        owner: Json | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        gpus: int | None = 1,
    ) -> Json:
        """A pod that ran from ``START`` to ``END``, with secrets in its environment."""
        uid = self.uid("Pod", name)
        variables: list[Json] = [
            {"name": key, "value": value} for key, value in (env or {}).items()
        ]
        secret = {"secretKeyRef": {"name": "wandb", "key": "key"}}
        variables += [
            {"name": "WANDB_API_KEY", "valueFrom": secret},
            {"name": "HF_TOKEN", "value": SECRET},
        ]
        made = k.pod(
            name,
            k.ended(START, END),
            node=f"gpu-{len(self.pods) // 8}.{self.system}",
            bound=START,
            phase="Succeeded",
            created="07:59",
            containers=[k.container(gpus=gpus, env=variables)],
            uid=uid,
            namespace=self.namespace,
            owners=[owner] if owner else [],
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
        )
        self.pods.append(made)
        self.truth[uid] = truth
        return made

    def owners(self, item: Json) -> set[str]:
        """Names of all that own an object, by reference."""
        by_uid = {one["metadata"]["uid"]: one for one in (*self.objects, *self.pods)}
        above = [by_uid[one["uid"]] for one in item["metadata"].get("ownerReferences", ())]
        return {name for one in above for name in (one["metadata"]["name"], *self.owners(one))}

    def job(self, name: str, owner: Json | None = None, **meta: Any) -> Json:  # noqa: ANN401
        """A Job of Kubernetes."""
        return self.thing("batch/v1", "Job", name, owner, **meta)

    def job_labels(self, job: Json, **more: str) -> dict[str, str]:
        """The labels that the Job controller puts on its pods."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        return {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
            **more,
        }


def suffix(text: str, length: int = 5) -> str:
    """Letters as Kubernetes draws them for the end of a name; the same for the same text."""
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


def nodes(worlds: Sequence[World]) -> list[Json]:
    """The nodes that the pods ran on."""
    names = sorted({pod["spec"]["nodeName"] for world in worlds for pod in world.pods})
    return [
        k.node(
            name,
            created="00:00",
            provider=f"aws:///us-east-1a/i-{name}",
            labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        )
        for name in names
    ]
