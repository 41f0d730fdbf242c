"""Jobs of all kinds, as partial structs: their state, and how long they hold their pods.

Field names are those of the custom resources. A version that lacks one leaves it null; nothing of
commands, environments or templates is kept but the variables of a RayJob that name its run.
"""

from __future__ import annotations

import msgspec

from collector.kubernetes.environment import of_ray_job
from collector.kubernetes.objects import Condition, Object, Part, Scalar


class ReplicaGroup(Part, omit_defaults=True):
    """``workerGroupSpecs[]`` of a Ray cluster."""

    group_name: Scalar = None
    replicas: Scalar = None
    min_replicas: Scalar = None
    max_replicas: Scalar = None
    idle_timeout_seconds: Scalar = None
    suspend: Scalar = None


class AutoscalerOptions(Part, omit_defaults=True):
    """``autoscalerOptions`` of a Ray cluster."""

    idle_timeout_seconds: Scalar = None
    upscaling_mode: Scalar = None


class RayClusterSpec(Part, omit_defaults=True):
    """``spec`` of a RayCluster."""

    enable_in_tree_autoscaling: Scalar = None
    autoscaler_options: AutoscalerOptions | None = None
    suspend: Scalar = None
    worker_group_specs: list[ReplicaGroup] | None = None


class RayClusterStatus(Part, omit_defaults=True):
    """``status`` of a RayCluster; ``state`` is ready, failed or suspended."""

    state: Scalar = None
    desired_worker_replicas: Scalar = None
    available_worker_replicas: Scalar = None
    ready_worker_replicas: Scalar = None
    min_worker_replicas: Scalar = None
    max_worker_replicas: Scalar = None
    desired_gpu: Scalar = msgspec.field(default=None, name="desiredGPU")
    last_update_time: str | None = None
    state_transition_times: dict[str, str] | None = None


class RayCluster(Object):
    """A RayCluster."""

    spec: RayClusterSpec = msgspec.field(default_factory=RayClusterSpec)
    status: RayClusterStatus = msgspec.field(default_factory=RayClusterStatus)


class Deletion(Part, omit_defaults=True):
    """A policy of ``spec.deletionStrategy``."""

    policy: Scalar = None


class DeletionStrategy(Part, omit_defaults=True):
    """``spec.deletionStrategy`` of a RayJob."""

    on_success: Deletion | None = None
    on_failure: Deletion | None = None


class RayJobSpec(Part, omit_defaults=True):
    """``spec`` of a RayJob: what decides how long its cluster stays."""

    shutdown_after_job_finishes: Scalar = None
    ttl_seconds_after_finished: Scalar = None
    active_deadline_seconds: Scalar = None
    backoff_limit: Scalar = None
    suspend: Scalar = None
    submission_mode: Scalar = None
    deletion_policy: Scalar = None
    deletion_strategy: DeletionStrategy | None = None
    cluster_selector: dict[str, str] | None = None
    entrypoint: Scalar = None
    runtime_env_yaml: Scalar = msgspec.field(default=None, name="runtimeEnvYAML")


class RayTimes(Part):
    """``status.rayJobInfo``: what Ray itself says."""

    start_time: str | None = None
    end_time: str | None = None


class RayJobStatus(Part, omit_defaults=True):
    """``status`` of a RayJob."""

    job_id: Scalar = None
    job_status: str | None = None
    job_deployment_status: str | None = None
    ray_cluster_name: Scalar = None
    reason: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    succeeded: Scalar = None
    failed: Scalar = None
    ray_job_info: RayTimes | None = None


class RayJob(Object):
    """A RayJob; ``environment`` is what may name its run of the variables that it sets."""

    spec: RayJobSpec = msgspec.field(default_factory=RayJobSpec)
    status: RayJobStatus = msgspec.field(default_factory=RayJobStatus)
    # Under a key that no document has: it is told by __post_init__, never decoded.
    environment: dict[str, str] = msgspec.field(default_factory=dict, name="(environment)")

    def __post_init__(self) -> None:
        """Take what names the run out of command and environment, and forget the rest."""
        told = of_ray_job(self.spec.runtime_env_yaml, self.spec.entrypoint)
        if self.status.job_id:
            told.setdefault("RAY_JOB_SUBMISSION_ID", str(self.status.job_id))
        self.environment = told
        self.spec.entrypoint = self.spec.runtime_env_yaml = None


class RunPolicy(Part, omit_defaults=True):
    """``spec.runPolicy`` of a training job; older versions have its fields beside it."""

    clean_pod_policy: Scalar = None
    ttl_seconds_after_finished: Scalar = None
    active_deadline_seconds: Scalar = None
    backoff_limit: Scalar = None
    suspend: Scalar = None


class JobSpec(RunPolicy, omit_defaults=True):
    """``spec`` of a Job, a JobSet, a TrainJob or a training job."""

    parallelism: Scalar = None
    completions: Scalar = None
    run_policy: RunPolicy | None = None


class ReplicatedStatus(Part):
    """``status.replicatedJobsStatus[]`` of a JobSet and ``status.jobsStatus[]`` of a TrainJob."""

    active: int | None = None
    ready: int | None = None


class JobStatus(Part, omit_defaults=True):
    """``status`` of a Job, a JobSet, a TrainJob or a training job."""

    start_time: str | None = None
    completion_time: str | None = None
    active: Scalar = None
    succeeded: Scalar = None
    failed: Scalar = None
    restarts: Scalar = None
    conditions: list[Condition] | None = None
    replicated_jobs_status: list[ReplicatedStatus] | None = None
    jobs_status: list[ReplicatedStatus] | None = None


class Job(Object):
    """A Job, a JobSet, a TrainJob, or a job of the training operator: all tell conditions."""

    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class VolcanoSpec(Part, omit_defaults=True):
    """``spec`` of a Volcano job."""

    min_available: Scalar = None
    max_retry: Scalar = None
    queue: Scalar = None
    ttl_seconds_after_finished: Scalar = None


class VolcanoState(Part):
    """``status.state``."""

    phase: str | None = None
    reason: str | None = None
    last_transition_time: str | None = None


class VolcanoCondition(Part):
    """``status.conditions[]``: the phases that a job went through."""

    status: str | None = None
    last_transition_time: str | None = None


class VolcanoStatus(Part, omit_defaults=True):
    """``status`` of a Volcano job."""

    state: VolcanoState | None = None
    conditions: list[VolcanoCondition] | None = None
    retry_count: Scalar = None
    pending: Scalar = None
    running: Scalar = None
    succeeded: Scalar = None
    failed: Scalar = None


class VolcanoJob(Object):
    """A job of Volcano."""

    spec: VolcanoSpec = msgspec.field(default_factory=VolcanoSpec)
    status: VolcanoStatus = msgspec.field(default_factory=VolcanoStatus)


class Ttl(Part, omit_defaults=True):
    """``spec.ttlStrategy`` of a Workflow."""

    seconds_after_completion: Scalar = None
    seconds_after_success: Scalar = None
    seconds_after_failure: Scalar = None


class WorkflowSpec(Part, omit_defaults=True):
    """``spec`` of a Workflow."""

    active_deadline_seconds: Scalar = None
    suspend: Scalar = None
    ttl_strategy: Ttl | None = None


class WorkflowStatus(Part, omit_defaults=True):
    """``status`` of a Workflow."""

    phase: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class Workflow(Object):
    """A Workflow of Argo."""

    spec: WorkflowSpec = msgspec.field(default_factory=WorkflowSpec)
    status: WorkflowStatus = msgspec.field(default_factory=WorkflowStatus)
