"""The worlds as runbill sees them: through the API, through Prometheus, through both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from attribution.facts import TABLES, DayFacts
from attribution.identity import name_pods
from attribution.lives.lives import merged_pods
from attribution.phases import add_phase
from collector import kubernetes, prometheus
from collector.prometheus import PrometheusCollector
from collector.source import Probe
from ledger.facts import Facts
from ledger.settings import Cluster, Identity, Settings
from ledger.window import parse_day
from tests.collector.kubernetes.apiserver import ApiServer, by_list
from tests.collector.kubernetes.builders import DAY, NOW, WINDOW, Json
from tests.collector.prometheus.builders import write_openmetrics, write_parquet
from tests.prometheus_server import running_prometheus
from tests.worlds.every import worlds
from tests.worlds.exporter import Exporter
from tests.worlds.model import Truth, World, nodes
from tests.worlds.plain import colliding

FULL = Exporter("full")
BARE = Exporter("bare", labels=False, kuberay=False)
VIEWS: Mapping[str, tuple[str, ...]] = {
    "api": ("api",),
    "prometheus": ("full",),
    "both": ("api", "full"),
    "pods gone, both": ("remains", "full"),
    "owners gone": ("orphans",),
    "owners gone, both": ("orphans", "full"),
    "no allow-list": ("bare",),
    "no allow-list, both": ("api", "bare"),
}
"""Name of a view to the sources that are read for it."""
RULES = Identity(
    owner=(*Identity().owner, "annotation:team.example/owner", "annotation:acme.example/by")
)
"""The defaults, and annotations of the company."""
KEYS = ("experiment", "owner", "role", "phase", "root")


@dataclass(frozen=True)
class Seen:
    """What the product says.

    Args:
        worlds: What there is to see.
        settings: What identity is read by: ``RULES``.
        facts: By source.
        probes: What ``doctor`` says of each Prometheus, by source.
        pods: ``view``, ``uid``, ``labels``, ``annotations``, ``environment`` and ``KEYS``.
        day: All views as one day, each a cluster of its own.
    """

    worlds: Sequence[World]
    settings: Settings
    facts: Mapping[str, Facts]
    probes: Mapping[str, Sequence[Probe]]
    pods: pl.DataFrame
    day: DayFacts

    def of(self, view: str) -> dict[str, Truth]:
        """What a view says of each pod, by uid."""
        rows = self.pods.filter(view=view).select("uid", *KEYS)
        return {uid: Truth(*rest) for uid, *rest in rows.iter_rows()}


def see_all(folder: Path) -> Seen:
    """Collect the worlds from every source once, and merge and name them view by view."""
    settings = Settings(identity=RULES)
    every = [*worlds(), colliding()]
    facts, probes = _through_prometheus(every, folder)
    pods = [*nodes(every), *(pod for world in every for pod in world.pods)]
    owners = [item for world in every for item in world.objects]
    facts |= {
        "api": _through_api([*pods, *owners]),
        "orphans": _through_api(pods),
        "remains": _through_api([*nodes(every), *_last_of_each_root(every), *owners]),
    }
    day = DayFacts.of_tables(parse_day(DAY), _tables(facts))
    named = add_phase(name_pods(merged_pods(day), settings), settings)
    last = named.unique(["cluster", "uid"], keep="last", maintain_order=True)
    root = pl.concat_str("root_kind", "root_name", separator="/").alias("root")
    kept = ("uid", "labels", "owner_labels", "annotations", "environment", *KEYS[:-1])
    found = last.select(pl.col("cluster").alias("view"), *kept, root)
    return Seen(every, settings, facts, probes, found, day)


def _last_of_each_root(every: Sequence[World]) -> list[Json]:
    """The one pod of each job that is still there when the API is asked."""
    return list(
        {
            (one.system, one.truth[pod["metadata"]["uid"]].root): pod
            for one in every
            for pod in one.pods
        }.values()
    )


def _through_prometheus(
    every: Sequence[World], folder: Path
) -> tuple[dict[str, Facts], dict[str, Sequence[Probe]]]:
    """Both clusters, from one store; of the one without labels a day is read from its export."""
    full, bare = FULL.samples(every), BARE.samples(every)
    path = write_openmetrics([*full, *bare], folder / "worlds.om")
    export = {"export": str(write_parquet(bare, folder / "export"))}
    with running_prometheus(folder, [path]) as url:
        server = {"url": url, "cluster_label": "cluster"}
        live = {name: _collector(name, server) for name in (FULL.cluster, BARE.cluster)}
        probes = {name: one.probe() for name, one in live.items()}
        facts = {FULL.cluster: live[FULL.cluster].collect(WINDOW)}
    facts[BARE.cluster] = _collector(BARE.cluster, export).collect(WINDOW)
    return facts, probes


def _collector(name: str, block: Mapping[str, str]) -> PrometheusCollector:
    cluster = Cluster.model_validate({"name": name, "prometheus": block})
    return prometheus.from_settings(cluster, Path("/"), RULES)


def _through_api(items: Iterable[Json]) -> Facts:
    with ApiServer(by_list(items), now=NOW) as server:
        block = {"name": "train-a", "kubernetes": {"server": server.url}}
        cluster = Cluster.model_validate(block)
        return kubernetes.from_settings(cluster, Path("/"), RULES).collect(WINDOW)


def _tables(facts: Mapping[str, Facts]) -> dict[str, pl.DataFrame]:
    """The rows of each view's sources, as of a cluster that is called after the view."""
    found: dict[str, list[pl.DataFrame]] = {}
    for view, sources in VIEWS.items():
        for source in sources:
            for name, rows in facts[source].tables.items():
                tagged = rows.with_columns(cluster=pl.lit(view), source=pl.lit(f"{source}/{view}"))
                found.setdefault(name, []).append(tagged)
    return {
        table.name: pl.concat(found[table.name], how="diagonal")
        for table in TABLES
        if table.name in found
    }
