"""Why a pod is held: the kubelet's own words, where it has any."""

from __future__ import annotations

from collector.kubernetes.objects import ContainerStatus, Pod

BACK_OFF = "CrashLoopBackOff"
"""Between two runs of a container."""
_STARTING = ("ContainerCreating", "PodInitializing")


def before_start(pod: Pod) -> str:
    """Why a pod was held that has started since; the kubelet's own words for that time."""
    if any(status.restart_count > 1 and is_waiting(status) for status in apps(pod)):
        return BACK_OFF
    return "PodInitializing" if pod.spec.init_containers else "ContainerCreating"


def not_started(pod: Pod) -> str:
    """Why a pod is held that has never started."""
    return (
        _waiting_reason(pod)
        or pod.status.reason
        or _ending(pod)
        or _terminated_reason(pod)
        or before_start(pod)
    )


def after_end(pod: Pod) -> str:
    """Why a pod is held whose containers have ended."""
    return _ending(pod) or _waiting_reason(pod) or _terminated_reason(pod) or "Terminated"


def _ending(pod: Pod) -> str | None:
    return "Terminating" if pod.metadata.deletion_timestamp else None


def _waiting_reason(pod: Pod) -> str | None:
    """Why containers wait; the reason that says more than "starting" wins."""
    statuses = (*(pod.status.init_container_statuses or ()), *apps(pod))
    reasons = [
        status.state.waiting.reason
        for status in statuses
        if status.state and status.state.waiting and status.state.waiting.reason
    ]
    return next(
        (reason for reason in reasons if reason not in _STARTING), reasons[-1] if reasons else None
    )


def _terminated_reason(pod: Pod) -> str | None:
    statuses = (*apps(pod), *(pod.status.init_container_statuses or ()))
    return next(
        (
            status.state.terminated.reason
            for status in statuses
            if status.state and status.state.terminated and status.state.terminated.reason
        ),
        None,
    )


def is_waiting(status: ContainerStatus) -> bool:
    """Whether a container waits to run."""
    return bool(status.state and status.state.waiting)


def apps(pod: Pod) -> list[ContainerStatus]:
    """The states of a pod's containers, without init containers and sidecars."""
    return pod.status.container_statuses or []
