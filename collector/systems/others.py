"""Systems beside post-training proper: what else runs on the cards of such a cluster."""

from __future__ import annotations

from collector.systems.model import ObjectKind, Owner, Role, Sign, System, annotation, label

_TRAINING = ("Job", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "RayJob")
_LEGACY = label("group-name")

OTHERS: tuple[System, ...] = (
    System(
        "Katib",
        signs=(Sign(label("katib.kubeflow.org/experiment")),),
        objects=(
            ObjectKind("Trial", "kubeflow.org"),
            ObjectKind("Suggestion", "kubeflow.org"),
            ObjectKind("Experiment", "kubeflow.org"),
        ),
        chain=(
            Owner("Trial", (label("katib.kubeflow.org/trial"),), "kubeflow.org"),
            Owner("Experiment", (label("katib.kubeflow.org/experiment"),), "kubeflow.org"),
        ),
        under=_TRAINING,
    ),
    System(
        "Kubeflow operators before training.kubeflow.org",
        signs=(Sign(_LEGACY, "kubeflow.org"),),
        needs=(label("replica-type"),),
        roles=(Role("replica-type", (label("replica-type"),), lower=True),),
    ),
    System(
        "Kubeflow notebooks",
        signs=(Sign(label("notebook-name")),),
        objects=(ObjectKind("Notebook", "kubeflow.org"),),
        chain=(Owner("Notebook", (label("notebook-name"),), "kubeflow.org"),),
        under=("StatefulSet",),
    ),
    System(
        "KServe",
        signs=(Sign(label("serving.kserve.io/inferenceservice")),),
        objects=(
            ObjectKind("InferenceService", "serving.kserve.io"),
            ObjectKind("LLMInferenceService", "serving.kserve.io"),
        ),
        chain=(
            Owner(
                "InferenceService",
                (label("serving.kserve.io/inferenceservice"),),
                "serving.kserve.io",
            ),
        ),
        under=("ReplicaSet", "Deployment", "StatefulSet"),
        roles=(Role("kserve-component", (label("component"),)),),
    ),
    System(
        "Flyte",
        signs=(Sign(label("workflow-name")), Sign(label("task-name"))),
        needs=(label("execution-id"),),
        objects=(ObjectKind("FlyteWorkflow", "flyte.lyft.com"),),
        chain=(Owner("FlyteWorkflow", (label("execution-id"),), "flyte.lyft.com"),),
        under=_TRAINING,
        roles=(Role("step", (label("task-name"),)),),
    ),
    System(
        "Metaflow",
        signs=(Sign(annotation("metaflow/flow_name")), Sign(label("metaflow/flow_name"))),
        chain=(
            Owner("MetaflowFlow", (annotation("metaflow/flow_name"), label("metaflow/flow_name"))),
        ),
        virtual=True,
        roles=(
            Role(
                "step",
                (annotation("metaflow/step_name"), label("metaflow/step_name")),
            ),
        ),
        user=(annotation("metaflow/user"), label("metaflow/user")),
    ),
    System(
        "Airflow",
        signs=(Sign(label("dag_id")), Sign(annotation("dag_id"))),
        needs=(label("task_id"),),
        chain=(Owner("Dag", (annotation("dag_id"), label("dag_id"))),),
        virtual=True,
        roles=(Role("step", (annotation("task_id"), label("task_id"))),),
    ),
    System(
        "Spark",
        signs=(Sign(label("spark-role")),),
        objects=(
            ObjectKind("SparkApplication", "sparkoperator.k8s.io"),
            ObjectKind("ScheduledSparkApplication", "sparkoperator.k8s.io"),
        ),
        chain=(
            Owner(
                "SparkApplication",
                (label("sparkoperator.k8s.io/app-name"),),
                "sparkoperator.k8s.io",
            ),
        ),
        under=("Pod",),
        roles=(Role("spark-role", (label("spark-role"),)),),
    ),
    System(
        "Dask",
        signs=(Sign(label("dask.org/cluster-name")),),
        objects=(
            ObjectKind("DaskCluster", "kubernetes.dask.org"),
            ObjectKind("DaskJob", "kubernetes.dask.org"),
        ),
        chain=(Owner("DaskCluster", (label("dask.org/cluster-name"),), "kubernetes.dask.org"),),
        under=("ReplicaSet", "Deployment"),
        roles=(Role("dask-component", (label("dask.org/component"),)),),
    ),
    System(
        "DLRover",
        signs=(Sign(label("elasticjob.dlrover/name")),),
        objects=(ObjectKind("ElasticJob", "elastic.iml.github.io"),),
        chain=(Owner("ElasticJob", (label("elasticjob.dlrover/name"),), "elastic.iml.github.io"),),
        roles=(Role("replica-type", (label("elasticjob.dlrover/replica-type"),), lower=True),),
    ),
    System(
        "AppWrapper",
        signs=(Sign(label("workload.codeflare.dev/appwrapper")),),
        objects=(ObjectKind("AppWrapper", "workload.codeflare.dev"),),
        chain=(
            Owner(
                "AppWrapper",
                (label("workload.codeflare.dev/appwrapper"),),
                "workload.codeflare.dev",
            ),
        ),
        under=(*_TRAINING, "RayCluster", "JobSet"),
    ),
)
