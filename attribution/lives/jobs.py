"""Jobs of Slurm whose nodes are pods (Slinky): the pod of each, and of what time all are told.

A NodeSet pod is a node of Slurm, not a job. Slurm calls it by its host name: the label
``nodeset.slinky.slurm.net/pod-hostname``, the pod's own name, or, on the host's network, the name
of the Kubernetes node. The accounting of such a cluster speaks of nodes that Kubernetes does not
know; here its jobs are placed on the node that their pod was bound to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
import polars as pl

from attribution.facts import DayFacts
from attribution.lives.lives import pod_lives
from attribution.lives.states import POD
from attribution.spans import clip, flatten, intersect, union
from ledger.facts import Gap

KIND = "SlurmJob"
"""Root kind of jobs."""

ACCOUNTING = "SlurmAccounting"
"""Kind of the rows of ``resources`` that say of which time every job is told."""

_SOURCE = "slurm/"
_CARD = '"gres/gpu":'
_NODESET = r'"(?:label_)?nodeset[._]slinky[._]slurm[._]net[/_]'
_HOSTNAME = rf'{_NODESET}pod[-_]hostname"\s*:\s*"([^"]+)"'
_BRIDGED = r'"(?:label_)?scheduler[._]slinky[._]slurm[._]net[/_]slurm[-_]jobid"\s*:\s*"([^"]+)"'
_RAW = r'"slurm/job-id-raw":"([^"]+)"'
_HOST = ("cluster", "host")
_SLOT = 900_000
"""Length of a slot of ``usage`` in milliseconds."""
_EDGES = {"start": pl.Int64(), "end": pl.Int64()}


@dataclass(frozen=True)
class Jobs:
    """Jobs in pods.

    Args:
        facts: The day with the rows of these jobs alone.
        hosts: ``cluster, uid, host``: the names by which Slurm may know each pod.
        told: ``cluster, start, end`` (ms): the time of which accounting tells every job.
    """

    facts: DayFacts
    hosts: pl.DataFrame
    told: pl.DataFrame


@dataclass(frozen=True)
class Placed:
    """Where jobs in pods ran.

    Args:
        lives: Lives of the jobs, in the form of ``lives.pod_lives``, on the pods' nodes.
        inside: ``cluster, uid, holder, start, end``: the pod that each was in.
        holders: ``cluster, uid`` of the pods that are nodes of Slurm.
        told: As in ``Jobs``.
        gaps: Jobs on nodes that no pod was.
    """

    lives: pl.DataFrame
    inside: pl.DataFrame
    holders: pl.DataFrame
    told: pl.DataFrame
    gaps: tuple[Gap, ...] = ()


def take_out(facts: DayFacts) -> tuple[DayFacts, Jobs | None]:
    """The facts without the jobs in pods, and these; None where there are none.

    Where Slurm's scheduler places pods of Kubernetes (slurm-bridge), a pod names its job: the pod
    tells of it, the record of accounting counts no second time.
    """
    is_job = (pl.col("root_kind") == KIND).fill_null(value=False)
    told = _told(facts)
    jobs, pods = facts.workloads.filter(is_job), facts.workloads.filter(~is_job)
    clusters = pl.concat([jobs.select("cluster"), told.select("cluster")]).unique()
    pods_there = pods.join(clusters, on="cluster", how="semi").drop_nulls("node")
    if pods_there.is_empty():
        return facts, None
    hosts = _hosts(facts, pods_there, jobs)
    bridged = pods_there.select("cluster", raw=pl.col("labels").str.extract(_BRIDGED, 1))
    own = jobs.with_columns(pl.col("labels").str.extract(_RAW, 1).alias("raw"))
    own = own.join(bridged.drop_nulls(), on=["cluster", "raw"], how="anti").drop("raw")
    names = hosts.select("cluster", node="host").unique()
    inner = own.join(names, on=["cluster", "node"], how="semi")
    outer = own.join(names, on=["cluster", "node"], how="anti")
    of_slurm = pl.col("source").str.starts_with(_SOURCE)
    nodes = pl.concat(
        [
            facts.nodes.filter(~of_slurm),
            facts.nodes.filter(of_slurm).join(names, on=["cluster", "node"], how="anti"),
        ]
    )
    rest = replace(facts, workloads=pl.concat([pods, outer]), nodes=nodes)
    return rest, Jobs(replace(facts, workloads=inner, nodes=nodes), hosts, told)


def _hosts(facts: DayFacts, pods: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """``cluster, uid, host``: pods of node sets, and pods whose name jobs name as their node.

    The name of a real node is that node, unless a pod of a node set shares its host's network.
    """
    nodeset = pl.col("labels").str.contains(_NODESET).fill_null(value=False)
    known = pods.select(*POD, "pod", "node", "labels").unique().with_columns(nodeset.alias("own"))
    labelled = known.filter("own").select(
        *POD,
        pl.concat_list(pl.col("labels").str.extract(_HOSTNAME, 1), "pod", "node").alias("host"),
    )
    labelled = labelled.explode("host").drop_nulls("host")
    real = facts.nodes.filter(~pl.col("source").str.starts_with(_SOURCE)).select("cluster", "node")
    named = (
        known.filter(~pl.col("own"))
        .select(*POD, host="pod")
        .join(jobs.select("cluster", host="node"), on=list(_HOST), how="semi")
        .join(real.select("cluster", host="node"), on=list(_HOST), how="anti")
    )
    return pl.concat([labelled, named]).unique().sort(*POD, "host")


def _told(facts: DayFacts) -> pl.DataFrame:
    """``cluster, start, end`` (ms): the time of which accounting tells every job."""
    rows = facts.resources.filter(pl.col("kind") == ACCOUNTING)
    spans = [
        (cluster, *(int(datetime.fromisoformat(at).timestamp() * 1000) for at in span))
        for cluster, text in rows.select("cluster", "configuration").iter_rows()
        for span in msgspec.json.decode(text or "{}").get("covered", ())
    ]
    frame = pl.DataFrame(spans, schema={"cluster": pl.String(), **_EDGES}, orient="row")
    return union(clip(frame, facts.start, facts.end), ["cluster"])


def place(jobs: Jobs, every: pl.DataFrame) -> Placed:
    """Put jobs on the nodes of the pods that they ran in.

    Args:
        jobs: ``take_out``.
        every: ``lives.pod_lives`` of all others.
    """
    lives = pod_lives(jobs.facts)
    holders = jobs.hosts.select(POD).unique()
    names = ["node", "gpu_resource"]
    rows = every.select(*POD, "start", "end", *names).join(jobs.hosts, on=list(POD))
    stays = flatten(rows.rename({"uid": "holder", **{n: f"{n}_of" for n in names}}), _HOST)
    met = intersect(lives.with_columns(host="node"), stays, _HOST).with_columns(
        pl.col("node_of").alias("node")
    )
    device = pl.concat_str(pl.lit('"'), "gpu_resource_of", pl.lit('":'))
    known = pl.col("gpu_resource_of").is_not_null()
    cards = pl.col("gpu_request").str.contains(_CARD, literal=True)
    # A pod that asks for no card sees those of its node: its jobs hold units of the node's own.
    plain = (pl.col("gpu_request").str.count_matches(":") == 1) & ~known
    placed = met.with_columns(
        pl.when(cards & known)
        .then(pl.col("gpu_request").str.replace(_CARD, device, literal=True))
        .when(cards & plain)
        .then(None)
        .otherwise("gpu_request")
        .alias("gpu_request"),
        pl.when(pl.col("gpu_resource").is_not_null()).then("gpu_resource_of").alias("gpu_resource"),
    )
    inside = placed.select(*POD, "holder", "start", "end")
    found = placed.select(lives.columns).sort(*POD, "start")
    return Placed(found, inside, holders, jobs.told, tuple(_nowhere(lives, found)))


def tell_jobs(
    usage: pl.DataFrame | pl.LazyFrame, alone: pl.DataFrame | None
) -> pl.DataFrame | pl.LazyFrame:
    """Usage, with what the cards of a pod did told of the job that held all of them alone.

    A slot counts that lies whole in that time: in others the cards may have worked for somebody
    else, or for nobody.

    Args:
        usage: Rows of ``usage``.
        alone: ``cluster, holder, uid, start, end``; None = there are none.
    """
    if alone is None or alone.is_empty():
        return usage
    spans = alone.rename({"uid": "job", "holder": "uid", "start": "from", "end": "until"})
    slot = pl.col("slot").dt.timestamp("ms")
    whole = (slot >= pl.col("from")) & (slot + _SLOT <= pl.col("until"))
    told = (
        usage.lazy()
        .filter(pl.col("meter") == "gpu_activity")
        .join(spans.lazy(), on=list(POD))
        .filter(whole)
        .with_columns(pl.col("job").alias("uid"))
        .select(usage.lazy().collect_schema().names())
    )
    if isinstance(usage, pl.DataFrame):
        return pl.concat([usage, told.collect()])
    return pl.concat([usage, told])


def _nowhere(lives: pl.DataFrame, placed: pl.DataFrame) -> list[Gap]:
    """The time of jobs on a node of Slurm that no pod was at that time."""
    length = (pl.col("end") - pl.col("start")).sum().alias("ms")
    of_jobs = lives.group_by(POD).agg(length, pl.col("pod").first(), pl.col("gpus").max())
    there = placed.group_by(POD).agg(length.alias("there"))
    rows = of_jobs.join(there, on=list(POD), how="left").with_columns(
        (pl.col("ms") - pl.col("there").fill_null(0)).alias("lost")
    )
    gaps = []
    lost = rows.filter(pl.col("lost") > 60_000)  # a pod is seen a scrape late
    for (cluster,), some in lost.sort("cluster", "pod").group_by("cluster", maintain_order=True):
        hours = some.select((pl.col("lost") * pl.col("gpus").fill_null(0)).sum()).item() / 3_600_000
        gaps.append(
            Gap(
                "no_samples",
                f"{cluster}: jobs ran on nodes of Slurm that no pod is seen to be at that time, "
                f"e.g. job {some['pod'][0]}",
                {"jobs": float(some.height), "gpu_hours": hours},
            )
        )
    return gaps
