"""How the training systems mark the pods that they make."""

from __future__ import annotations

from benchmarks.cluster.world import Pod


def owner_of(pod: Pod) -> tuple[str, str]:
    """Kind and name of the nearest owner of a pod."""
    name = pod.experiment.workload
    return {
        "ray": ("RayCluster", f"{name}-x7k2p"),
        "jobset": ("Job", f"{name}-{pod.role}-0"),
        "pytorch": ("PyTorchJob", name),
        "volcano": ("Job", name),
        "deployment": ("ReplicaSet", f"{name}-6d9f7c5b8d"),
    }[pod.experiment.system]


def pod_labels(pod: Pod) -> dict[str, str]:
    """The labels of a pod as kube-state-metrics writes them, all of them allowed."""
    experiment = pod.experiment
    return {
        "label_experiment": experiment.name,
        "label_owner": f"{experiment.team}-{experiment.number % 9}",
        "label_team": experiment.team,
        "label_kueue_x_k8s_io_queue_name": f"{experiment.team}-queue",
        "label_pod_template_hash": f"{experiment.number * 2654435761 % 2**32:08x}",
        **_LABELS[experiment.system](pod),
    }


def _ray(pod: Pod) -> dict[str, str]:
    name = pod.experiment.workload
    return {
        "label_ray_io_cluster": f"{name}-x7k2p",
        "label_ray_io_node_type": "head" if pod.role == "head" else "worker",
        "label_ray_io_group": "headgroup" if pod.role == "head" else f"{pod.role}-workers",
        "label_ray_io_is_ray_node": "yes",
        "label_ray_io_identifier": f"{name}-x7k2p-{pod.role}",
        "label_ray_io_originated_from_cr_name": name,
        "label_ray_io_originated_from_crd": "RayJob",
        "label_app_kubernetes_io_created_by": "kuberay-operator",
        "label_app_kubernetes_io_name": "kuberay",
    }


def _jobset(pod: Pod) -> dict[str, str]:
    return {
        "label_jobset_sigs_k8s_io_jobset_name": pod.experiment.workload,
        "label_jobset_sigs_k8s_io_jobset_uid": f"{pod.experiment.number:08x}-1f6e-4c1b",
        "label_jobset_sigs_k8s_io_replicatedjob_name": pod.role,
        "label_jobset_sigs_k8s_io_job_index": "0",
        "label_jobset_sigs_k8s_io_restart_attempt": "0",
        "label_batch_kubernetes_io_job_completion_index": str(pod.number % 64),
        "label_batch_kubernetes_io_job_name": f"{pod.experiment.workload}-{pod.role}-0",
    }


def _pytorch(pod: Pod) -> dict[str, str]:
    return {
        "label_training_kubeflow_org_job_name": pod.experiment.workload,
        "label_training_kubeflow_org_operator_name": "pytorchjob-controller",
        "label_training_kubeflow_org_replica_type": pod.role,
        "label_training_kubeflow_org_replica_index": str(pod.number % 64),
    }


def _volcano(pod: Pod) -> dict[str, str]:
    return {
        "label_volcano_sh_job_name": pod.experiment.workload,
        "label_volcano_sh_job_namespace": pod.experiment.namespace,
        "label_volcano_sh_queue_name": pod.experiment.team,
        "label_volcano_sh_task_spec": pod.role,
        "label_volcano_sh_task_index": str(pod.number % 64),
    }


def _deployment(pod: Pod) -> dict[str, str]:
    return {
        "label_app_kubernetes_io_name": "vllm",
        "label_app_kubernetes_io_instance": pod.experiment.workload,
        "label_app_kubernetes_io_component": pod.role,
    }


_LABELS = {
    "ray": _ray,
    "jobset": _jobset,
    "pytorch": _pytorch,
    "volcano": _volcano,
    "deployment": _deployment,
}
