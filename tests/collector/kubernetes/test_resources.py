"""What rules read of jobs, queues and autoscalers: one vocabulary for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from ledger.facts import Facts
from ledger.window import Window, parse_day
from tests.collector.kubernetes.apiserver import ApiServer, Fault, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    WINDOW,
    Json,
    at,
    collect,
    container,
    node,
    pod,
    running,
    thing,
)

CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
STATUS = "/api/v1/namespaces/kube-system/configmaps"


def facts_of(folder: Path, *items: Json, window: Window = WINDOW) -> Facts:
    path = folder / "objects.json"
    every = [node(), pod("main", running("08:30")), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    return collect(window, dump=str(path))


def told(facts: Facts, kind: str, name: str | None = None) -> Json:
    """The configuration of the one resource of a kind."""
    rows = facts.tables["resources"].filter(pl.col("kind") == kind)
    if name:
        rows = rows.filter(pl.col("name") == name)
    (text,) = rows["configuration"]
    found: Json = json.loads(text)
    return found


def condition(kind: str, clock: str, status: str = "True", reason: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at(clock)}


JOB = ("batch/v1", "Job")
PYTORCH = ("kubeflow.org/v1", "PyTorchJob")
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
TRAIN_JOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
RAY = ("ray.io/v1", "RayJob")
VOLCANO = ("batch.volcano.sh/v1alpha1", "Job")
ARGO = ("argoproj.io/v1alpha1", "Workflow")


@pytest.mark.parametrize(
    ("version", "spec", "status", "state", "started", "finished"),
    [
        (JOB, {}, {}, "pending", None, None),
        (JOB, {}, {"startTime": at("08:00"), "active": 1}, "running", "08:00", None),
        (JOB, {"suspend": True}, {}, "suspended", None, None),
        (
            JOB,
            {},
            {
                "startTime": at("08:00"),
                "completionTime": at("09:00"),
                "conditions": [condition("Complete", "09:01")],
            },
            *("finished", "08:00", "09:00"),
        ),
        (
            JOB,
            {},
            {"startTime": at("08:00"), "conditions": [condition("Failed", "10:00")]},
            *("failed", "08:00", "10:00"),
        ),
        (
            PYTORCH,
            {"runPolicy": {"suspend": False}},
            {"conditions": [condition("Created", "08:00"), condition("Running", "08:10")]},
            *("running", None, None),
        ),
        (
            PYTORCH,
            {},
            {"conditions": [condition("Running", "08:10", "False"), condition("Failed", "08:20")]},
            *("failed", None, "08:20"),
        ),
        (JOB_SET, {}, {"replicatedJobsStatus": [{"active": 2}]}, "running", None, None),
        (
            *(JOB_SET, {}, {"conditions": [condition("Completed", "12:00")]}),
            *("finished", None, "12:00"),
        ),
        (TRAIN_JOB, {}, {"jobsStatus": [{"active": 0, "ready": 1}]}, "running", None, None),
        (
            TRAIN_JOB,
            {},
            {"conditions": [condition("Complete", "12:00")]},
            "finished",
            None,
            "12:00",
        ),
        (RAY, {}, {"jobDeploymentStatus": "Initializing"}, "pending", None, None),
        (
            RAY,
            {},
            {
                "jobDeploymentStatus": "Complete",
                "jobStatus": "STOPPED",
                "startTime": at("08:00"),
                "rayJobInfo": {"endTime": at("09:30")},
            },
            *("stopped", "08:00", "09:30"),
        ),
        (
            *(RAY, {}, {"jobDeploymentStatus": "Retrying", "endTime": at("09:30")}),
            *("pending", None, None),
        ),
        (
            VOLCANO,
            {},
            {
                "state": {"phase": "Completed", "lastTransitionTime": at("11:00")},
                "conditions": [
                    {"status": "Pending", "lastTransitionTime": at("08:00")},
                    {"status": "Running", "lastTransitionTime": at("08:30")},
                ],
            },
            *("finished", "08:30", "11:00"),
        ),
        (
            *(VOLCANO, {}, {"state": {"phase": "Aborted", "lastTransitionTime": at("11:00")}}),
            *("stopped", None, "11:00"),
        ),
        (
            ARGO,
            {},
            {"phase": "Error", "startedAt": at("08:00"), "finishedAt": at("08:05")},
            *("failed", "08:00", "08:05"),
        ),
        (ARGO, {"suspend": True}, {}, "suspended", None, None),
    ],
)
def test_jobs_of_all_systems_tell_their_state_alike(
    tmp_path: Path,
    version: tuple[str, str],
    spec: Json,
    status: Json,
    state: str,
    started: str | None,
    finished: str | None,
) -> None:
    made = thing(*version, "grpo", spec=spec, status=status)
    kind = "Job.batch.volcano.sh" if version is VOLCANO else version[1]
    found = told(facts_of(tmp_path, made), kind)
    assert found["state"] == state
    assert found["submittedAt"] == at("07:59")
    assert found.get("startedAt") == (started and at(started))
    assert found.get("finishedAt") == (finished and at(finished))
    assert found["owner"] is None


def test_what_keeps_the_pods_of_a_job_is_told_as_its_api_names_it(tmp_path: Path) -> None:
    ray = thing(
        *RAY,
        "grpo",
        spec={
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 600,
            "activeDeadlineSeconds": 7200,
            "backoffLimit": 2,
            "entrypoint": "python train.py --token=hidden",
            "runtimeEnvYAML": "env_vars: {TOKEN: hidden}",
            "deletionStrategy": {"onSuccess": {"policy": "DeleteWorkers"}},
        },
        status={"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded"},
    )
    torch = thing(
        *PYTORCH,
        "sft",
        spec={
            "runPolicy": {"cleanPodPolicy": "None", "ttlSecondsAfterFinished": 60},
            "pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"env": "hidden"}}}},
        },
    )
    facts = facts_of(tmp_path, ray, torch)
    found = told(facts, "RayJob")
    assert {key: found[key] for key in ("shutdownAfterJobFinishes", "backoffLimit")} == {
        "shutdownAfterJobFinishes": True,
        "backoffLimit": 2,
    }
    assert (found["ttlSecondsAfterFinished"], found["activeDeadlineSeconds"]) == (600, 7200)
    assert found["deletionStrategy"] == {"onSuccess": {"policy": "DeleteWorkers"}}
    assert (found["state"], found["reason"]) == ("failed", "DeadlineExceeded")
    found = told(facts, "PyTorchJob")
    assert (found["cleanPodPolicy"], found["ttlSecondsAfterFinished"]) == ("None", 60)
    assert "hidden" not in "".join(facts.tables["resources"]["configuration"])


def test_a_ray_cluster_says_whose_it_is_and_how_it_shrinks(tmp_path: Path) -> None:
    job = thing(*RAY, "grpo")
    spec = {
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {"idleTimeoutSeconds": 60, "env": [{"name": "A", "value": "hidden"}]},
        "workerGroupSpecs": [{"groupName": "rollout", "replicas": 4, "template": {"spec": 1}}],
    }
    status = {
        "state": "ready",
        "desiredWorkerReplicas": 4,
        "availableWorkerReplicas": 3,
        "desiredGPU": "32",
        "stateTransitionTimes": {"ready": at("08:10")},
    }
    version = ("ray.io/v1", "RayCluster")
    owned = thing(*version, "grpo-x1", owners=[job], spec=spec, status=status)
    bare = thing(*version, "notebook", status={"state": "suspended"})
    facts = facts_of(tmp_path, job, owned, bare)
    found = told(facts, "RayCluster", "grpo-x1")
    assert found["owner"] == {"kind": "RayJob", "name": "grpo", "uid": "uid-RayJob-grpo"}
    assert found["autoscalerOptions"] == {"idleTimeoutSeconds": 60}
    assert found["workerGroupSpecs"] == [{"groupName": "rollout", "replicas": 4}]
    assert (found["desiredWorkerReplicas"], found["availableWorkerReplicas"]) == (4, 3)
    assert (found["desiredGPU"], found["state"]) == ("32", "ready")
    assert found["stateTransitionTimes"] == {"ready": at("08:10")}
    assert told(facts, "RayCluster", "notebook")["owner"] is None


def test_karpenter_tells_when_nodes_go(tmp_path: Path) -> None:
    pool = thing(
        "karpenter.sh/v1",
        "NodePool",
        "gpu",
        namespace=None,
        spec={
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "5m",
                "budgets": [{"nodes": "0", "reasons": ["Drifted"], "schedule": "@daily"}],
            },
            "limits": {"nvidia.com/gpu": 64},
            "template": {"spec": {"expireAfter": "720h", "terminationGracePeriod": "1h"}},
        },
        status={"resources": {"nodes": "3"}},
    )
    older = thing(
        "karpenter.sh/v1beta1",
        "NodePool",
        "old",
        namespace=None,
        spec={"disruption": {"consolidationPolicy": "WhenEmpty", "expireAfter": "Never"}},
    )
    claim = thing(
        "karpenter.sh/v1",
        "NodeClaim",
        "gpu-x1",
        namespace=None,
        labels={"karpenter.sh/nodepool": "gpu"},
        status={
            "nodeName": "gpu-1",
            "conditions": [
                condition("Consolidatable", "09:00"),
                condition("Drifted", "1:00", "False"),
            ],
        },
    )
    facts = facts_of(tmp_path, pool, older, claim)
    found = told(facts, "NodePool", "gpu")
    assert found["disruption"]["budgets"] == [
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "@daily"}
    ]
    assert (found["expireAfter"], found["terminationGracePeriod"]) == ("720h", "1h")
    assert (found["limits"], found["resources"]) == ({"nvidia.com/gpu": 64}, {"nodes": "3"})
    found = told(facts, "NodePool", "old")
    assert found == {"disruption": {"consolidationPolicy": "WhenEmpty"}, "expireAfter": "Never"}
    found = told(facts, "NodeClaim")
    assert (found["nodePool"], found["nodeName"]) == ("gpu", "gpu-1")
    assert found["conditions"] == {"Consolidatable": at("09:00")}


NEW_STATUS = """\
time: 2026-11-30 09:00:01.5 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
  scaleDown: {status: CandidatesPresent, candidates: 2}
nodeGroups:
- name: eks-gpu-1
  health:
    status: Healthy
    nodeCounts: {registered: {ready: 2}}
    cloudProviderTarget: 2
    minSize: 1
    maxSize: 8
  scaleDown: {status: NoCandidates}
"""
OLD_STATUS = """\
Cluster-autoscaler status at 2026-11-30 09:00:01.5 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=3 unready=0 registered=3)
               LastProbeTime:      2026-11-30 09:00:01
  ScaleUp:     NoActivity (ready=3 registered=3)
  ScaleDown:   CandidatesPresent (candidates=2)

NodeGroups:
  Name:        eks-gpu-1
  Health:      Healthy (ready=2 unready=0 cloudProviderTarget=2 (minSize=1, maxSize=8))
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)
  ScaleDown:   NoCandidates (candidates=0)
"""


def autoscaler(text: str) -> list[Json]:
    status = thing("v1", "ConfigMap", "cluster-autoscaler-status", namespace="kube-system")
    other = thing("v1", "ConfigMap", "other", namespace="kube-system")
    arguments = ["./cluster-autoscaler", "--scale-down-unneeded-time=10m", "--token=hidden"]
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.31.0"
    program = {"name": "a", "image": image, "command": arguments, "args": ["--nodes=0:8:g"]}
    spec = {"replicas": 1, "template": {"spec": {"containers": [program]}}}
    return [
        {**status, "data": {"status": text}},
        {**other, "data": {"status": text.replace("eks", "hidden"), "password": "hidden"}},
        thing("apps/v1", "Deployment", "ca", namespace="kube-system", spec=spec),
        thing("apps/v1", "Deployment", "web", spec={"template": {"spec": {"containers": None}}}),
    ]


@pytest.mark.parametrize("text", [NEW_STATUS, OLD_STATUS])
def test_cluster_autoscaler_tells_its_flags_and_its_groups(tmp_path: Path, text: str) -> None:
    facts = facts_of(tmp_path, *autoscaler(text))
    found = told(facts, "ClusterAutoscaler", "ca")
    assert found["flags"] == {"scale-down-unneeded-time": "10m", "nodes": ["0:8:g"]}
    assert (found["scaleDown"], found["scaleDownCandidates"]) == ("CandidatesPresent", 2)
    assert found["statusTime"] == "2026-11-30T09:00:01Z"
    group = told(facts, "NodeGroup", "eks-gpu-1")
    sizes = {key: group[key] for key in ("minSize", "maxSize", "targetSize", "ready")}
    assert sizes == {"minSize": 1, "maxSize": 8, "targetSize": 2, "ready": 2}
    assert (group["manager"], group["scaleDown"]) == ("cluster-autoscaler", "NoCandidates")
    assert "hidden" not in "".join(facts.tables["resources"]["configuration"])


@pytest.mark.parametrize("text", ["", "[", "nothing: to see", "5"])
def test_a_status_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    facts = facts_of(tmp_path, *autoscaler(text))
    assert set(told(facts, "ClusterAutoscaler", "ca")) == {"flags", "replicas"}
    assert "NodeGroup" not in facts.tables["resources"]["kind"].to_list()


def test_a_status_of_odd_values_costs_only_them(tmp_path: Path) -> None:
    """No date, no number of a thousand digits and no bomb of aliases gets into the JSON."""
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
    )
    text = (
        f"{bomb}autoscalerStatus: *a39\ntime: 2101-01-01 00:00:00\n"
        "clusterWide: {health: {status: 2026-11-30}, scaleDown: {status: *a39, candidates: *a39}}\n"
        f"nodeGroups: [{{name: g, health: {{minSize: {'9' * 5000}, maxSize: 3}}}}, 5, {{}}]\n"
    )
    facts = facts_of(tmp_path, *autoscaler(text))
    assert told(facts, "ClusterAutoscaler", "ca").keys() == {"flags", "replicas", "health"}
    assert told(facts, "NodeGroup", "g") == {"manager": "cluster-autoscaler", "maxSize": 3}
    assert [entry.reason for entry in facts.quarantine] == ["bad_date"]


def test_groups_of_nodes_and_what_keeps_or_takes_a_node(tmp_path: Path) -> None:
    eks = {"eks.amazonaws.com/nodegroup": "gpu", "eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}
    kept = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    leaving = node("eks-3", labels=eks)
    leaving["spec"]["taints"] = [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1"}]
    gke = {"cloud.google.com/gke-nodepool": "dws", "cloud.google.com/gke-queued": "true"}
    nodes = [
        node("eks-1", labels=eks, annotations=kept),
        node("eks-2", labels=eks),
        leaving,
        node("gke-1", labels=gke),
    ]
    facts = facts_of(tmp_path, *nodes)
    assert told(facts, "NodeGroup", "gpu") == {
        "manager": "eks",
        "nodes": 3,
        "nodesKept": 1,
        "nodesLeaving": 1,
        "capacityTypes": {"reserved": 3},
    }
    assert told(facts, "NodeGroup", "dws")["queued"] == "true"
    assert told(facts, "Node", "eks-1") == {"kept": list(kept), "nodeGroup": "gpu"}
    assert told(facts, "Node", "eks-3")["leaving"] == ["ToBeDeletedByClusterAutoscaler"]


def test_how_pods_with_cards_end_and_what_keeps_their_node(tmp_path: Path) -> None:
    pods = [
        pod(
            "trainer",
            running("08:30"),
            containers=[container(gpus=8)],
            spec={"terminationGracePeriodSeconds": 600, "priorityClassName": "high"},
        ),
        pod(
            "keeper",
            running("08:30"),
            annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        ),
        pod("web", running("08:30"), spec={"terminationGracePeriodSeconds": 30}),
    ]
    budget = thing(
        "policy/v1",
        "PodDisruptionBudget",
        "all",
        spec={"minAvailable": "100%", "selector": {"matchLabels": {"a": "b"}}},
        status={"disruptionsAllowed": 0},
    )
    facts = facts_of(tmp_path, *pods, budget)
    assert told(facts, "Pod", "trainer") == {
        "node": "gpu-1",
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 600,
    }
    assert told(facts, "Pod", "keeper") == {"node": "gpu-1", "safeToEvict": False}
    assert "web" not in facts.tables["resources"]["name"].to_list()
    budgets = told(facts, "PodDisruptionBudget")
    assert budgets == {"minAvailable": "100%", "disruptionsAllowed": 0}


def queue(version: str, **spec: object) -> Json:
    amounts = [{"name": "nvidia.com/gpu", "nominalQuota": 64, "borrowingLimit": "16"}]
    groups = [{"coveredResources": ["x"], "flavors": [{"name": "h100", "resources": amounts}]}]
    used = [{"name": "nvidia.com/gpu", "total": "72", "borrowed": "8"}]
    return thing(
        f"kueue.x-k8s.io/{version}",
        "ClusterQueue",
        "research",
        namespace=None,
        spec={
            "resourceGroups": groups,
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
            **spec,
        },
        status={
            "flavorsUsage": [{"name": "h100", "resources": used}],
            "pendingWorkloads": 3,
        },
    )


@pytest.mark.parametrize(("version", "key"), [("v1beta1", "cohort"), ("v1beta2", "cohortName")])
def test_quotas_of_queues_and_their_use(tmp_path: Path, version: str, key: str) -> None:
    local = thing("kueue.x-k8s.io/v1beta1", "LocalQueue", "rl", spec={"clusterQueue": "research"})
    flavor = thing(
        "kueue.x-k8s.io/v1beta1",
        "ResourceFlavor",
        "h100",
        namespace=None,
        spec={"nodeLabels": {"pool": "h100"}},
    )
    facts = facts_of(tmp_path, queue(version, **{key: "all"}), local, flavor)
    found = told(facts, "ClusterQueue")
    assert found["cohort"] == "all"
    assert found["quotas"] == {
        "h100": {"nvidia.com/gpu": {"nominalQuota": 64, "borrowingLimit": "16"}}
    }
    assert found["usage"] == {"h100": {"nvidia.com/gpu": {"total": "72", "borrowed": "8"}}}
    assert found["preemption"] == {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
    assert found["pendingWorkloads"] == 3
    assert told(facts, "LocalQueue") == {"clusterQueue": "research"}
    assert told(facts, "ResourceFlavor") == {"nodeLabels": {"pool": "h100"}}


def test_a_workload_tells_how_long_it_waited_and_why_it_was_put_off(tmp_path: Path) -> None:
    version = ("kueue.x-k8s.io/v1beta1", "Workload")
    admission = {"clusterQueue": "research", "podSetAssignments": [{"flavors": {"gpu": "h100"}}]}
    admitted = thing(
        *version,
        "a",
        spec={"queueName": "rl", "priority": 5},
        status={
            "admission": admission,
            "conditions": [condition("QuotaReserved", "08:10"), condition("Admitted", "08:29")],
        },
    )
    evicted = thing(
        *version,
        "b",
        status={
            "conditions": [
                condition("QuotaReserved", "09:00", "False", "Pending"),
                condition("Evicted", "09:00", reason="Preempted"),
                condition("Preempted", "09:00", reason="InClusterQueue"),
            ],
            "requeueState": {"count": 2},
        },
    )
    back = thing(
        *version,
        "c",
        status={
            "conditions": [condition("Evicted", "10:00", "False"), condition("Admitted", "10:00")]
        },
    )
    facts = facts_of(tmp_path, admitted, evicted, back)
    found = told(facts, "Workload", "a")
    assert (found["state"], found["waitSeconds"], found["clusterQueue"]) == (
        *("admitted", 1800.0),
        "research",
    )
    assert (found["admittedAt"], found["flavors"]) == (at("08:29"), ["h100"])
    found = told(facts, "Workload", "b")
    assert (found["state"], found["evictionReason"], found["requeues"]) == (
        *("evicted", "Preempted"),
        2,
    )
    assert found["evictedAt"] == at("09:00")
    assert "waitSeconds" not in found
    found = told(facts, "Workload", "c")
    assert (found["state"], found["evictedBefore"]) == ("admitted", True)
    assert "waitSeconds" not in found


def test_queued_nodes_are_told_with_what_became_of_them(tmp_path: Path) -> None:
    request = thing(
        "autoscaling.x-k8s.io/v1",
        "ProvisioningRequest",
        "dws",
        spec={
            "provisioningClassName": "queued-provisioning.gke.io",
            "parameters": {"maxRunDurationSeconds": "3600", "other": "hidden"},
        },
        status={"conditions": [condition("Accepted", "08:00"), condition("Provisioned", "09:00")]},
    )
    found = told(facts_of(tmp_path, request), "ProvisioningRequest")
    assert found == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "parameters": {"maxRunDurationSeconds": "3600"},
        "submittedAt": at("07:59"),
        "conditions": {"Accepted": at("08:00"), "Provisioned": at("09:00")},
    }


def test_an_impossible_time_costs_itself_and_is_counted(tmp_path: Path) -> None:
    status = {"startTime": "yesterday", "conditions": [condition("Complete", "09:00")]}
    facts = facts_of(tmp_path, thing(*JOB, "odd", status=status))
    found = told(facts, "Job")
    assert (found["state"], found["finishedAt"]) == ("finished", at("09:00"))
    assert "startedAt" not in found
    (entry,) = (each for each in facts.quarantine if each.where == "resources")
    assert (entry.reason, entry.count) == ("bad_date", 1)
    assert "Job train/odd" in (entry.example or "")


def test_what_is_not_installed_is_no_gap_and_what_is_forbidden_is() -> None:
    lists = by_list([pod("main", running("08:30")), node()])
    with ApiServer(lists, now=NOW) as server:
        assert not collect(server=server.url).gaps
    lists |= {CLUSTER_QUEUES: [], NODE_CLAIMS: [], STATUS: []}
    faults = {path: [Fault(403)] for path in (CLUSTER_QUEUES, NODE_CLAIMS, STATUS)}
    with ApiServer(lists, faults, now=NOW) as server:
        facts = collect(server=server.url)
    (gap,) = facts.gaps
    assert gap.reason == "access_denied"
    assert "grant get and list on clusterqueues.kueue.x-k8s.io" in gap.detail
    notes = " ".join(facts.notes)
    assert "nodeclaims.karpenter.sh cannot be listed" in notes
    assert "configmaps cannot be listed" in notes


def test_a_resource_stands_on_the_days_on_which_it_was_there(tmp_path: Path) -> None:
    day = parse_day("2026-11-29")
    window = Window(Window.of_day(day).start, Window.of_day(parse_day("2026-11-30")).end)
    facts = facts_of(tmp_path, thing(*JOB, "new"), window=window)
    rows = facts.tables["resources"].filter(pl.col("name") == "new")
    assert [str(each) for each in rows["day"]] == ["2026-11-30"]
    assert rows["uid"].to_list() == ["uid-Job-new"]
