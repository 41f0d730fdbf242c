"""Jobs of all systems in one vocabulary: their state, its times, and what keeps their pods.

``state`` is pending, running, suspended, finished (it ended well), failed or stopped (it was ended
by somebody). ``submittedAt``, ``startedAt`` and ``finishedAt`` are RFC 3339 times; one that is
absent is not known. Everything else has the name that the kind's own API gives it.
"""

from __future__ import annotations

from collections.abc import Iterable

from collector.kubernetes.job_objects import (
    Job,
    JobStatus,
    RayCluster,
    RayJob,
    ReplicatedStatus,
    VolcanoJob,
    Workflow,
)
from collector.kubernetes.objects import Condition
from collector.kubernetes.states import Clock, Configuration, common, known, plain, true

ENDED = ("finished", "failed", "stopped")
_WELL = ("Complete", "Completed", "Succeeded")
_RUNS = ("Running", "Restarting")
_RAY = {
    "Running": "running",
    "Complete": "finished",
    "Failed": "failed",
    "Suspended": "suspended",
    "Suspending": "suspended",
}
_RAY_ENDS = {"FAILED": "failed", "STOPPED": "stopped"}
_VOLCANO = {
    "Running": "running",
    "Restarting": "running",
    "Completing": "running",
    "Completed": "finished",
    "Aborting": "stopped",
    "Aborted": "stopped",
    "Terminating": "stopped",
    "Terminated": "stopped",
    "Failed": "failed",
}
_ARGO = {"Running": "running", "Succeeded": "finished", "Failed": "failed", "Error": "failed"}


def ray_job(item: RayJob, clock: Clock) -> Configuration:
    """A RayJob; ``shutdownAfterJobFinishes`` absent means that its cluster stays."""
    status = item.status
    state = ray_state(status.job_deployment_status, status.job_status)
    ray = status.ray_job_info
    ended = clock.read(status.end_time) or clock.read(ray.end_time if ray else None)
    return {
        **plain(item.spec),
        **_without(plain(status), "startTime", "endTime", "rayJobInfo"),
        **common(item, clock),
        **_life(state, clock.read(status.start_time), ended),
    }


def ray_state(deployment: str | None, job: str | None) -> str:
    """The state of a RayJob from ``jobDeploymentStatus`` and ``jobStatus``."""
    state = _RAY.get(deployment or "", "pending")
    return _RAY_ENDS.get(job or "", state) if state == "finished" else state


def ray_cluster(item: RayCluster, clock: Clock) -> Configuration:
    """A RayCluster; without an owner it belongs to nobody's job, and has no time limit."""
    status = item.status
    changed = {
        name: clock.read(text) for name, text in (status.state_transition_times or {}).items()
    }
    labels = {
        "originatedFromKind": item.labels.get("ray.io/originated-from-crd"),
        "originatedFromName": item.labels.get("ray.io/originated-from-cr-name"),
        "lastUpdateTime": clock.read(status.last_update_time),
        "stateTransitionTimes": changed or None,
    }
    return {
        **plain(item.spec),
        **_without(plain(status), "lastUpdateTime", "stateTransitionTimes"),
        **known(labels),
        **common(item, clock),
    }


def job(item: Job, clock: Clock) -> Configuration:
    """A Job, JobSet, TrainJob or training job: its conditions tell the state."""
    spec, status = item.spec, item.status
    state, ended = _by_conditions(status, suspended=bool(spec.suspend))
    finished = clock.read(status.completion_time) or (
        clock.read(ended.last_transition_time) if ended else None
    )
    told = ("startTime", "completionTime", "conditions", "replicatedJobsStatus", "jobsStatus")
    return {
        **_without(plain(spec), "runPolicy"),
        **plain(spec.run_policy),
        **_without(plain(status), *told),
        **common(item, clock),
        **_life(state, clock.read(status.start_time), finished),
        **known({"reason": ended.reason if ended else None}),
    }


def _by_conditions(status: JobStatus, *, suspended: bool) -> tuple[str, Condition | None]:
    """The state, and the condition that ended it."""
    for state, kinds in (("finished", _WELL), ("failed", ("Failed",))):
        if found := true(status.conditions, *kinds):
            return state, found
    if status.completion_time:
        return "finished", None
    if suspended or true(status.conditions, "Suspended"):
        return "suspended", None
    inner = [*(status.replicated_jobs_status or ()), *(status.jobs_status or ())]
    runs = true(status.conditions, *_RUNS) or status.active or _any_active(inner)
    return ("running" if runs else "pending"), None


def _any_active(inner: Iterable[ReplicatedStatus]) -> bool:
    return any(each.active or each.ready for each in inner)


def volcano_job(item: VolcanoJob, clock: Clock) -> Configuration:
    """A job of Volcano: ``status.conditions`` is the history of its phases."""
    status = item.status
    now = status.state
    phase = (now.phase if now else None) or "Pending"
    state = _VOLCANO.get(phase, "pending")
    ran = (each for each in status.conditions or () if each.status == "Running")
    started = min((at for each in ran if (at := clock.read(each.last_transition_time))), default="")
    ended = clock.read(now.last_transition_time) if now and state in ENDED else None
    return {
        **plain(item.spec),
        **_without(plain(status), "state", "conditions"),
        **common(item, clock),
        **_life(state, started or None, ended),
        **known({"phase": phase, "reason": now.reason if now else None}),
    }


def workflow(item: Workflow, clock: Clock) -> Configuration:
    """A Workflow of Argo."""
    status = item.status
    state = _ARGO.get(status.phase or "", "suspended" if item.spec.suspend else "pending")
    return {
        **plain(item.spec),
        **known({"phase": status.phase}),
        **common(item, clock),
        **_life(state, clock.read(status.started_at), clock.read(status.finished_at)),
    }


def _life(state: str, started: str | None, finished: str | None) -> Configuration:
    """State and times; what has not ended has no end, whatever an earlier attempt left."""
    ended = finished if state in ENDED else None
    return {"state": state, **known({"startedAt": started, "finishedAt": ended})}


def _without(data: Configuration, *keys: str) -> Configuration:
    return {key: value for key, value in data.items() if key not in keys}
