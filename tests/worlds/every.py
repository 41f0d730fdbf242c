"""All worlds."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds import kubeflow, plain, platforms, ray, schedulers
from tests.worlds.model import World

BUILDERS: tuple[tuple[str, Callable[[], World]], ...] = (
    ("KubeRay: RayJob", ray.ray_job),
    ("KubeRay: RayService", ray.ray_service),
    ("KubeRay: RayCluster alone", ray.ray_cluster),
    ("Kubeflow Trainer 2: TrainJob", kubeflow.trainer),
    (
        "training-operator: PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, MPIJob",
        kubeflow.training_operator,
    ),
    ("mpi-operator: MPIJob v2beta1", kubeflow.mpi_operator),
    ("JobSet", kubeflow.job_set),
    ("LeaderWorkerSet", kubeflow.leader_worker_set),
    ("Volcano: Job", schedulers.volcano),
    ("Kueue: queued Job, group of plain pods", schedulers.kueue),
    ("KAI: Job in a queue, pod on half a card", schedulers.kai),
    ("Run:ai: TrainingWorkload", schedulers.run_ai),
    ("SkyPilot", platforms.skypilot),
    ("Determined", platforms.determined),
    ("dstack", platforms.dstack),
    ("Slinky: NodeSet of Slurm", platforms.slinky),
    ("Argo: Workflow", platforms.argo),
    ("Job, CronJob", plain.job),
    ("Deployment", plain.deployment),
    ("StatefulSet", plain.stateful_set),
    ("bare pods", plain.bare_pod),
    ("custom resources of a company", plain.custom),
)
"""What each world is called, and the function that makes it."""


def worlds() -> list[World]:
    """One world for each training system, in a namespace of its own."""
    return [build() for _, build in BUILDERS]


TITLES = {build().system: title for title, build in BUILDERS}
"""What each world is called, by its key."""
