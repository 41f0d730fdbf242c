"""Systems that train: what their pods, jobs and roles are called, most specific first.

Sources are the operators' own constants and documentation.
"""

from __future__ import annotations

import re

from collector.systems.model import ObjectKind, Owner, Role, Sign, System, annotation, label

JOB_NAMES = (label("batch.kubernetes.io/job-name"), label("job-name"))
BATCH_JOB = Owner("Job", JOB_NAMES, "batch")
_JOB_SET = label("jobset.sigs.k8s.io/jobset-name")
_REPLICATED = Role("replicated-job", (label("jobset.sigs.k8s.io/replicatedjob-name"),))
_STEP = label("trainer.kubeflow.org/trainjob-ancestor-step")
_JOB_SET_OWNER = Owner("JobSet", (_JOB_SET,), "jobset.x-k8s.io")

_KUBEFLOW = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob")
_OPERATORS = {f"{kind.lower()}-controller": kind for kind in _KUBEFLOW} | {"mpi-operator": "MPIJob"}
_ARGO_NODE = re.compile(r"[^(]*\.([^.(]+)(?:\(.*\))?")

TRAINING: tuple[System, ...] = (
    System(
        "KubeRay",
        signs=(
            Sign(label("ray.io/cluster")),
            Sign(label("ray.io/group")),
            Sign(label("ray.io/node-type")),
            Sign(label("ray.io/originated-from-cr-name")),
        ),
        objects=(
            ObjectKind("RayCluster", "ray.io"),
            ObjectKind("RayJob", "ray.io"),
            ObjectKind("RayService", "ray.io"),
            ObjectKind("RayCronJob", "ray.io"),
        ),
        chain=(
            Owner("RayCluster", (label("ray.io/cluster"),), "ray.io"),
            Owner(
                "RayJob",
                (label("ray.io/originated-from-cr-name"),),
                "ray.io",
                told=label("ray.io/originated-from-crd"),
            ),
        ),
        under=("Job",),
        roles=(
            Role("ray-node-type", (label("ray.io/node-type"),), {"head": "head"}),
            Role("ray-group", (label("ray.io/group"),)),
            Role("ray-node-type", (label("ray.io/originated-from-crd"),), {"rayjob": "submitter"}),
        ),
        by_owners={("Job", "RayJob"): "ray-node-type:submitter"},
    ),
    System(
        "Kubeflow Trainer v2",
        signs=(Sign(_STEP),),
        objects=(ObjectKind("TrainJob", "trainer.kubeflow.org"),),
        chain=(BATCH_JOB, _JOB_SET_OWNER, Owner("TrainJob", (_JOB_SET,), "trainer.kubeflow.org")),
        under=("Job",),
        roles=(_REPLICATED, Role("trainjob-ancestor-step", (_STEP,))),
        note="its JobSet bears the name of the TrainJob",
    ),
    System(
        "JobSet",
        signs=(Sign(_JOB_SET), Sign(label("jobset.sigs.k8s.io/replicatedjob-name"))),
        objects=(ObjectKind("JobSet", "jobset.x-k8s.io"),),
        chain=(Owner("Job", JOB_NAMES, "batch", given=(_JOB_SET,)), _JOB_SET_OWNER),
        under=("Job",),
        roles=(_REPLICATED,),
    ),
    System(
        "Kubeflow training operator, MPI operator",
        signs=(
            Sign(label("training.kubeflow.org/job-name")),
            Sign(label("training.kubeflow.org/replica-type")),
        ),
        objects=tuple(ObjectKind(kind, "kubeflow.org") for kind in _KUBEFLOW),
        chain=(
            Owner(
                "Job",
                (label("training.kubeflow.org/job-name"),),
                "kubeflow.org",
                told=label("training.kubeflow.org/operator-name"),
                kinds=_OPERATORS,
            ),
        ),
        under=("Job",),
        roles=(
            Role(
                "replica-type",
                (
                    label("training.kubeflow.org/replica-type"),
                    label("training.kubeflow.org/job-role"),
                ),
                lower=True,
            ),
        ),
        note="the launcher of an MPIJob v2beta1 is the pod of a Job between",
    ),
    System(
        "Volcano",
        signs=(
            Sign(label("volcano.sh/job-name")),
            Sign(label("volcano.sh/task-spec")),
            Sign(annotation("volcano.sh/job-name")),
        ),
        objects=(
            ObjectKind("Job", "batch.volcano.sh"),
            ObjectKind("CronJob", "batch.volcano.sh"),
            ObjectKind("JobFlow", "flow.volcano.sh"),
        ),
        chain=(
            Owner(
                "Job",
                (label("volcano.sh/job-name"), annotation("volcano.sh/job-name")),
                "batch.volcano.sh",
            ),
        ),
        roles=(
            Role("task-spec", (label("volcano.sh/task-spec"), annotation("volcano.sh/task-spec"))),
        ),
    ),
    System(
        "LeaderWorkerSet",
        signs=(Sign(label("leaderworkerset.sigs.k8s.io/name")),),
        objects=(ObjectKind("LeaderWorkerSet", "leaderworkerset.x-k8s.io"),),
        chain=(
            Owner(
                "LeaderWorkerSet",
                (label("leaderworkerset.sigs.k8s.io/name"),),
                "leaderworkerset.x-k8s.io",
            ),
        ),
        under=("StatefulSet", "Pod"),
        roles=(
            Role(
                "lws",
                (label("leaderworkerset.sigs.k8s.io/worker-index"),),
                {"0": "leader"},
                other="worker",
            ),
        ),
    ),
    System(
        "Slinky",
        signs=(
            Sign(label("nodeset.slinky.slurm.net/pod-name")),
            Sign(label("nodeset.slinky.slurm.net/pod-index")),
            Sign(label("nodeset.slinky.slurm.net/pod-hostname")),
        ),
        objects=(ObjectKind("NodeSet", "slinky.slurm.net"),),
        chain=(Owner("NodeSet", (label("app.kubernetes.io/instance"),), "slinky.slurm.net"),),
        roles=(Role("slurm", (label("app.kubernetes.io/name"),), other="node"),),
        by_owners={("NodeSet",): "slurm:node"},
        note="the pod is a node of Slurm, not a job; accounting of Slurm tells the jobs",
    ),
    System(
        "SkyPilot",
        signs=(
            Sign(label("skypilot-cluster")),
            Sign(label("skypilot-cluster-name")),
            Sign(annotation("skypilot-cluster-name")),
            Sign(label("parent"), "skypilot"),
        ),
        chain=(
            Owner(
                "SkyPilotCluster",
                (
                    annotation("skypilot-cluster-name"),
                    label("skypilot-cluster-name"),
                    label("skypilot-cluster"),
                ),
            ),
        ),
        virtual=True,
        roles=(
            Role("sky-node-type", (label("ray-node-type"),), {"head": "head", "worker": "worker"}),
        ),
        user=(label("skypilot-user"),),
        note="labels hold the name with a hash behind it, the annotation the exact one",
    ),
    System(
        "dstack",
        signs=(
            Sign(label("k8s.dstack.ai/project")),
            Sign(label("k8s.dstack.ai/name")),
            Sign(label("app.kubernetes.io/managed-by"), "dstack"),
        ),
        chain=(Owner("DstackRun", (label("k8s.dstack.ai/name"),)),),
        virtual=True,
        user=(label("k8s.dstack.ai/user"),),
    ),
    System(
        "Determined",
        signs=(
            Sign(annotation("determined.ai/job-name")),
            Sign(label("determined.ai/task_id")),
            Sign(label("determined.ai/task_type")),
            Sign(label("determined.ai/allocation_id")),
        ),
        chain=(Owner("DeterminedTask", (annotation("determined.ai/job-name"),)),),
        virtual=True,
        roles=(Role("task-type", (label("determined.ai/task_type"),), lower=True),),
        user=(label("determined.ai/user"),),
    ),
    System(
        "Determined, bare pods",
        signs=(Sign(label("determined.ai/task_id")),),
        chain=(Owner("DeterminedTask", (label("determined.ai/task_id"),)),),
        note="where no annotation names the job",
    ),
    System(
        "Argo Workflows",
        signs=(Sign(label("workflows.argoproj.io/workflow")),),
        objects=(
            ObjectKind("Workflow", "argoproj.io"),
            ObjectKind("CronWorkflow", "argoproj.io"),
        ),
        chain=(Owner("Workflow", (label("workflows.argoproj.io/workflow"),), "argoproj.io"),),
        roles=(
            Role(
                "step",
                (annotation("workflows.argoproj.io/node-name"),),
                shape=_ARGO_NODE,
            ),
        ),
        note="the role is the step as the workflow calls it",
    ),
)
