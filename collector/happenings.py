"""What events are called: one vocabulary for all that tells them (``docs/resources.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ledger.text import without_credentials

LONGEST = 200  # characters of a message
OOM_KILLED = "OOMKilled"
PODS_END = frozenset({"eviction", "preemption"})
"""Kinds that a pod can meet but once: however it is told, it is one event."""

_REASONS: Mapping[str, str] = {
    "out_of_memory": "OOMKilled OOMKilling SystemOOM",
    "back_off": "BackOff CrashLoopBackOff Failed FailedCreatePodSandBox InspectFailed "
    "ErrImagePull ErrImageNeverPull ImagePullBackOff FailedPostStartHook",
    "unhealthy": "Unhealthy ProbeWarning ProbeError",
    "eviction": "Evicted EvictionThresholdMet TaintManagerEviction EvictionByEvictionAPI "
    "DeletionByTaintManager DeletionByPodGC TerminationByKubelet ExceededGracePeriod "
    "NodeShutdown",
    "preemption": "Preempted Preempting PreemptionByScheduler PreemptionByKubeScheduler Preempt",
    "killed": "Killing",
    "mount_failed": "FailedMount FailedAttachVolume FailedMapVolume VolumeResizeFailed",
    "not_scheduled": "FailedScheduling Pending Unschedulable InsufficientResources",
    "admitted": "QuotaReserved Admitted",
    "node_ready": "NodeReady RegisteredNode",
    "node_not_ready": "NodeNotReady NodeNotSchedulable NodeHasDiskPressure "
    "NodeHasInsufficientMemory NodeHasInsufficientPID Rebooted KubeletNotReady",
    "node_removed": "RemovingNode DeletingNode DeletingAllPods",
    "scale_up": "TriggeredScaleUp ScaledUpGroup ScaleUp Launched",
    "scale_down": "ScaleDown ScaleDownEmpty ScaledDown DisruptionTerminating DisruptionLaunching "
    "Disrupted Drained MarkedForDeletion ConsolidationTerminateNode",
    "scale_blocked": "NotTriggerScaleUp ScaleDownFailed ScaleUpFailed FailedToScaleUpGroup "
    "ScaleUpTimedOut DisruptionBlocked Unconsolidatable FailedDraining InsufficientCapacityError "
    "NoCompatibleInstanceTypes DeprovisioningBlocked",
    "finished": "Completed JobComplete JobSucceeded PyTorchJobSucceeded AllJobsCompleted "
    "FinishedWorkload SuccessfulJob",
    "failed": "BackoffLimitExceeded DeadlineExceeded JobFailed PyTorchJobFailed FailedJobs "
    "FailedToSubmitRayJob ReachedMaxRestarts",
    "suspended": "Suspended JobSuspended PyTorchJobSuspended",
    "resumed": "Resumed JobResumed PyTorchJobResumed",
}
_KINDS = {reason: kind for kind, reasons in _REASONS.items() for reason in reasons.split()}


def kind_of(reason: str, *, warning: bool = False) -> str | None:
    """The kind of an event from the word of whoever tells it.

    Args:
        reason: The API's ``reason``, in any case of the prefixes that operators use.
        warning: Whether its teller calls it a warning.

    Returns:
        The kind; ``warning`` for a warning without a word that is known; None for an everyday
        event that nobody asks about.
    """
    if kind := _KINDS.get(reason):
        return kind
    if reason.startswith("EvictedDueTo"):  # Kueue
        return "preemption" if reason == "EvictedDueToPreempted" else "eviction"
    return "warning" if warning else None


def kind_of_exit(reason: str | None) -> str:
    """The kind of a container's end from its reason."""
    return "out_of_memory" if reason == OOM_KILLED else "restart"


def exit_id(uid: str, container: str, finished: datetime) -> str:
    """What is the same in every telling of a container's end; to the second."""
    return f"{uid}/{container}/{finished.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def end_id(uid: str, kind: str) -> str:
    """What is the same in every telling of a pod's eviction or preemption."""
    return f"{uid}/{kind}"


def short(text: str | None) -> str | None:
    """A message on one line, cut short, without credentials of URLs; None for an empty one."""
    line = " ".join(without_credentials(text or "").split())
    return (line if len(line) <= LONGEST else line[: LONGEST - 1] + "…") or None
