"""What jobs run in whatever trains: queues, gangs, and the controllers of Kubernetes itself."""

from __future__ import annotations

import re

from collector.systems.model import ObjectKind, Owner, Role, Sign, System, annotation, label
from collector.systems.training import BATCH_JOB, JOB_NAMES

_NAMED_GANG = re.compile(r"(?!pg-|podgroup-)(.+)")
"""A gang that somebody named; schedulers call their own after the job, or the pod, and its uid."""
_POD_SET = re.compile(r"(?![0-9a-f]{8}$)(.+)")

GENERAL: tuple[System, ...] = (
    System(
        "Run:ai",
        signs=(Sign(label("runai/queue")), Sign(label("run.ai/queue"))),
        objects=(
            ObjectKind("RunaiJob", "run.ai"),
            ObjectKind("TrainingWorkload", "run.ai"),
            ObjectKind("DistributedWorkload", "run.ai"),
            ObjectKind("InteractiveWorkload", "run.ai"),
            ObjectKind("InferenceWorkload", "run.ai"),
            ObjectKind("ExternalWorkload", "run.ai"),
        ),
        user=(label("user"),),
        note="labels do not name the workload; owner references do",
    ),
    System(
        "Jobs and CronJobs",
        signs=tuple(Sign(key) for key in JOB_NAMES),
        objects=(ObjectKind("Job", "batch"), ObjectKind("CronJob", "batch")),
        chain=(BATCH_JOB,),
    ),
    System(
        "Deployments, StatefulSets, DaemonSets",
        signs=(Sign(label("pod-template-hash")),),
        objects=(
            ObjectKind("ReplicaSet", "apps"),
            ObjectKind("Deployment", "apps"),
            ObjectKind("StatefulSet", "apps"),
            ObjectKind("DaemonSet", "apps"),
        ),
        note="the pod's template hash ends the name of its ReplicaSet, not of its Deployment",
    ),
    System(
        "Kueue, groups of plain pods",
        signs=(Sign(label("kueue.x-k8s.io/pod-group-name")), Sign(label("kueue.x-k8s.io/podset"))),
        objects=(ObjectKind("Workload", "kueue.x-k8s.io"),),
        chain=(Owner("Workload", (label("kueue.x-k8s.io/pod-group-name"),), "kueue.x-k8s.io"),),
        roles=(
            Role("podset", (label("kueue.x-k8s.io/podset"),), shape=_POD_SET, unless=("main",)),
        ),
        note="of jobs that Kueue admits, the job is the root; the podset of plain pods is a hash",
    ),
    System(
        "KAI",
        signs=(
            Sign(annotation("pod-group-name")),
            Sign(label("kai.scheduler/queue")),
            Sign(label("kai.scheduler/subgroup-name")),
        ),
        objects=(ObjectKind("PodGroup", "scheduling.run.ai"),),
        chain=(
            Owner(
                "PodGroup", (annotation("pod-group-name"),), "scheduling.run.ai", shape=_NAMED_GANG
            ),
        ),
        roles=(Role("subgroup", (label("kai.scheduler/subgroup-name"),)),),
        note="groups that the scheduler made itself are called pg-… and tell nothing new",
    ),
    System(
        "Gangs of plain pods (Volcano, coscheduling)",
        signs=(
            Sign(annotation("scheduling.k8s.io/group-name")),
            Sign(annotation("scheduling.volcano.sh/group-name")),
            Sign(label("scheduling.x-k8s.io/pod-group")),
            Sign(label("pod-group.scheduling.sigs.k8s.io")),
        ),
        chain=(
            Owner(
                "PodGroup",
                (
                    label("scheduling.x-k8s.io/pod-group"),
                    label("pod-group.scheduling.sigs.k8s.io"),
                    annotation("scheduling.k8s.io/group-name"),
                    annotation("scheduling.volcano.sh/group-name"),
                ),
                shape=_NAMED_GANG,
            ),
        ),
    ),
)
