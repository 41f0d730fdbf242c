"""The settings of clusters: where the facts of each come from."""

from __future__ import annotations

from pydantic import Field, model_validator

from ledger.block import Block, Name, TimeZone


class KubernetesSource(Block):
    """Where the objects of a cluster are read: exactly one of the three."""

    context: str | None = Field(None, description="context of the kubeconfig")
    kubeconfig: str | None = Field(None, description="path of the kubeconfig, default as kubectl")
    in_cluster: bool = Field(False, description="use the pod's service account")
    dump: str | None = Field(None, description="file or folder of `kubectl get -o json` output")
    server: str | None = Field(None, description="URL of an API server or `kubectl proxy`")
    annotations: tuple[str, ...] = Field((), description="annotation keys or globs to keep")
    required: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> KubernetesSource:
        ways = [self.context or self.kubeconfig, self.in_cluster, self.dump, self.server]
        if sum(bool(way) for way in ways) != 1:
            raise ValueError("name exactly one of context, in_cluster, dump or server")
        return self


class Signing(Block):
    """How requests are signed for AWS (Signature Version 4), as Amazon's service asks for."""

    region: str | None = Field(None, description="AWS region, default: of the environment")
    service: str = Field("aps", description="name of the signed service")
    profile: str | None = Field(None, description="profile of the AWS configuration")
    role_arn: str | None = Field(None, description="role to assume first")


class PrometheusSource(Block):
    """Where the series of a cluster are read: a server, or a Parquet export of its series."""

    url: str | None = Field(None, description="base URL of the server")
    export: str | None = Field(None, description="folder with a Parquet export of the series")
    headers: dict[str, str] = Field(default_factory=dict, description="e.g. a tenant header")
    tenant: str | None = Field(None, description="tenant of Mimir, Cortex or Thanos")
    token: str | None = Field(None, description="bearer token, usually ${NAME}")
    token_file: str | None = Field(None, description="file with a bearer token, read each time")
    username: str | None = None
    password: str | None = None
    sigv4: Signing | None = Field(None, description="sign requests for AWS; {} = by environment")
    ca: str | None = Field(None, description="path of a CA bundle")
    client_certificate: str | None = Field(None, description="path of a client certificate")
    client_key: str | None = Field(None, description="path of its key")
    cluster_label: str | None = Field(None, description="label that names the cluster")
    cluster_value: str | None = Field(
        None, description="what that label says, default: the cluster's name"
    )
    timeout_seconds: float = Field(60, gt=0)
    required: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> PrometheusSource:
        if bool(self.url) == bool(self.export):
            raise ValueError("name exactly one of url or export")
        return self

    @model_validator(mode="after")
    def _one_login(self) -> PrometheusSource:
        ways = {
            "token": self.token,
            "token_file": self.token_file,
            "username": self.username,
            "sigv4": self.sigv4,
        }
        named = [name for name, value in ways.items() if value]
        if len(named) > 1:
            raise ValueError(f"name one of {' and '.join(named)}: a request is authorised once")
        if self.cluster_value and not self.cluster_label:
            raise ValueError("cluster_value is what a cluster_label says: name that label too")
        if bool(self.client_certificate) != bool(self.client_key):
            raise ValueError("client_certificate and client_key belong together")
        return self


class SlurmSource(Block):
    """Where the jobs of a Slurm cluster are read: what `sacct` wrote, and the list of its nodes."""

    sacct: str = Field(description="file, folder or glob of `sacct -P` or `sacct --json` output")
    nodes: str | None = Field(
        None, description="file, folder or glob of `scontrol show node` or `sinfo -N -o` output"
    )
    cluster: str | None = Field(
        None, description="name of the cluster in Slurm, where files hold jobs of several"
    )
    timezone: TimeZone | None = Field(
        None, description="zone of times that carry none, default UTC; JSON carries its own"
    )
    delimiter: str | None = Field(
        None, min_length=1, description="what stands between cells of text; default: by its header"
    )
    pods: bool | None = Field(
        None,
        description="whether Slurm's nodes are pods of this cluster (Slinky); default: whether "
        "the cluster has a kubernetes block",
    )
    required: bool = True


class AgentSource(Block):
    """A watcher that records the cluster: ``runbill agent``."""

    required: bool = Field(True, description="time that nobody watched gives exit code 3")


class Cluster(Block):
    """A cluster and where its facts come from."""

    name: Name
    kubernetes: KubernetesSource | None = None
    prometheus: PrometheusSource | None = None
    slurm: SlurmSource | None = None
    agent: bool | AgentSource = Field(
        False,
        description="`runbill agent` watches the cluster: its rows count, and a day without them "
        "is a gap",
    )

    @property
    def watched(self) -> AgentSource | None:
        """The agent of the cluster; None if it has none."""
        if isinstance(self.agent, bool):
            return AgentSource() if self.agent else None
        return self.agent
