"""The settings model: ``runbill.yaml``, the environment and flags, checked as one.

Order of force: flags > ``RUNBILL_*`` variables > file. The file is the first that exists of
``--config``, ``$RUNBILL_CONFIG``, ``./runbill.yaml``, ``$XDG_CONFIG_HOME/runbill/runbill.yaml`` and
``/etc/runbill/runbill.yaml``. Unknown keys and unknown ``RUNBILL_*`` variables are errors. Relative
paths are relative to the file; ``${NAME}`` reads the environment.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ledger.block import Block, Name, TimeZone
from ledger.clusters import Cluster as Cluster
from ledger.clusters import KubernetesSource as KubernetesSource
from ledger.clusters import PrometheusSource as PrometheusSource
from ledger.clusters import SlurmSource as SlurmSource
from ledger.node_pools import NodePool as NodePool
from ledger.node_pools import PoolMatch as PoolMatch
from ledger.pricing import Currency
from ledger.pricing import Prices as Prices
from ledger.stores import Store
from ledger.text import canonical_json, short_hash


class Bill(Block):
    """A bill: files of FOCUS Cost and Usage, or a list of declared costs."""

    name: Name
    kind: Literal["focus", "declared"] = "focus"
    path: str = Field(description="file, folder or glob; local or s3://")
    timezone: TimeZone = Field("UTC", description="zone of times that carry none")
    currency: Currency | None = Field(None, description="of declared costs that name none")
    required: bool = True


_KEYS = "experiment model_version pipeline owner project phase".split()


def _usable_rule(rule: str) -> str:
    """Refuse what a look-up or a path could only fail on later, on a day's data."""
    kind, _, what = rule.partition(":")
    if kind == "path":
        _check_placeholders(what)
    elif kind != "default" and ("\\" in what or ("'" in what and '"' in what)):
        raise ValueError(f"{rule!r}: a key with a backslash, or both kinds of quotes, has no form")
    return rule


def _check_placeholders(pattern: str) -> None:
    names = re.findall(r"\{([^{}]*)\}", pattern)
    if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", pattern)):
        raise ValueError(f"the path {pattern!r} holds a brace without its partner")
    if unknown := [name for name in names if name not in _KEYS]:
        raise ValueError(
            f"the path {pattern!r} holds {{{unknown[0]}}}, known are {', '.join(_KEYS)}; "
            "* stands for any other part"
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the path {pattern!r} holds {{{twice[0]}}} twice")


IdentityRule = Annotated[
    str,
    Field(
        pattern=r"^((label|owner-label|annotation|env|path|default|tag):.+"
        r"|workload|namespace)$"
    ),
    AfterValidator(_usable_rule),
]


class Identity(Block):
    """Ordered rules per key; the first hit wins. A key that is left out keeps its defaults."""

    experiment: tuple[IdentityRule, ...] = (
        "label:experiment",
        "owner-label:experiment",
        "annotation:experiment",
        "env:WANDB_RUN_GROUP",
        "env:MLFLOW_EXPERIMENT_NAME",
        "workload",
    )
    model_version: tuple[IdentityRule, ...] = (
        "label:model_version",
        "label:model-version",
        "owner-label:model_version",
        "owner-label:model-version",
        "annotation:model-version",
    )
    pipeline: tuple[IdentityRule, ...] = (
        "label:pipeline",
        "owner-label:pipeline",
        "annotation:pipeline",
    )
    owner: tuple[IdentityRule, ...] = (
        "label:owner",
        "label:team",
        "owner-label:owner",
        "owner-label:team",
        "annotation:owner",
        "label:skypilot-user",
        "label:determined.ai/user",
        "label:k8s.dstack.ai/user",
        "annotation:metaflow/user",
        "label:metaflow/user",
        "label:user",
        "env:WANDB_USERNAME",
        "label:slurm/user",
    )
    project: tuple[IdentityRule, ...] = (
        "label:project",
        "owner-label:project",
        "annotation:project",
        "env:WANDB_PROJECT",
        "label:determined.ai/workspace",
        "label:k8s.dstack.ai/project",
        "namespace",
    )
    phase: tuple[IdentityRule, ...] = ("label:phase", "annotation:phase")

    def named(self, kind: str) -> tuple[str, ...]:
        """What rules of a kind name, e.g. the keys of all ``annotation:KEY``, once each."""
        rules = (rule for key in type(self).model_fields for rule in getattr(self, key))
        parts = (rule.partition(":") for rule in rules)
        return tuple(dict.fromkeys(name for word, _, name in parts if word == kind and name))


Phase = Literal[
    "rollout",
    "reward",
    "reference",
    "update",
    "sync",
    "checkpoint",
    "evaluation",
    "data",
    "serve",
    "wait",
    "unknown",
]


class IdleNodes(Block):
    """RB102: nights and weekends in the settings' time zone."""

    night: str = Field("22:00-08:00", description="local hours, may pass midnight")
    weekend: str = Field("Sat-Sun", description="local days, may pass Sunday")
    holidays: tuple[date, ...] = ()
    min_idle_hours: int = Field(2, ge=1, le=168)
    min_coverage: float = Field(0.9, gt=0, le=1)
    idle_activity: float = Field(0.01, ge=0, le=1, description="a card at or below it is idle")


class RuleSettings(Block):
    """Thresholds per rule; see ``runbill rules explain CODE``."""

    RB102: IdleNodes = IdleNodes()


class SharingPolicy(Block):
    """What a question shares among all other keys: monitoring, control plane, tax, support."""

    match: dict[str, str] = Field(
        min_length=1,
        description="grouping key to value, globs allowed, as of `query --filter`; all must fit",
    )
    split: Literal["even", "weighted", "none"] = Field(
        "weighted", description="even, by own cost, or left as it is; the first policy that fits"
    )


class ExceptionEntry(Block):
    """Waste that is wanted: a rule, a resource pattern, a reason and an end."""

    rule: str
    resource: str
    reason: str = Field(min_length=1)
    until: date


class Settings(Block):
    """All settings of runbill."""

    ledger: str = Field("./ledger", description="folder or s3:// prefix of the ledger")
    currency: Currency = Field("USD", description="currency of `prices`")
    timezone: TimeZone = Field("UTC", description="zone of nights and weekends")
    engine: Literal["local"] = "local"
    quarantine_limit: float = Field(
        0.001, ge=0, le=1, description="share of quarantined rows that is tolerated"
    )
    clusters: tuple[Cluster, ...] = ()
    billing: tuple[Bill, ...] = ()
    prices: Prices | None = None
    storage: tuple[Store, ...] = Field((), description="buckets and file systems to inventory")
    node_pools: tuple[NodePool, ...] = ()
    identity: Identity = Identity()
    roles: dict[Phase, tuple[str, ...]] = Field(
        default_factory=dict, description="phase to role patterns, tried before the defaults"
    )
    rules: RuleSettings = RuleSettings()
    exceptions: tuple[ExceptionEntry, ...] = ()
    sharing: tuple[SharingPolicy, ...] = Field(
        (),
        description="what `query` shares among all other keys; flags and --no-sharing override; "
        "the report shows what was attributed, unshared",
    )

    @model_validator(mode="after")
    def _unique_names(self) -> Settings:
        for kind, names in (
            ("clusters", [c.name for c in self.clusters]),
            ("billing", [b.name for b in self.billing]),
            ("storage", [s.label for s in self.storage]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{kind}: the name {twice[0]!r} stands twice")
        return self

    @model_validator(mode="after")
    def _nothing_counts_twice(self) -> Settings:
        """One store under two names would give every pod, or every line of a bill, twice."""
        _refuse_one_place(
            [(c.name, _samples_of(c.prometheus)) for c in self.clusters if c.prometheus],
            "clusters {} and {} read the same Prometheus: give both a cluster_label",
        )
        _refuse_one_place(
            [(c.name, _objects_of(c.kubernetes)) for c in self.clusters if c.kubernetes],
            "clusters {} and {} read the same Kubernetes objects: one of them is too much",
        )
        _refuse_one_place(
            [(c.name, (_plain(c.slurm.sacct), c.slurm.cluster)) for c in self.clusters if c.slurm],
            "clusters {} and {} read the same jobs of Slurm: give both a slurm.cluster",
        )
        _refuse_one_place(
            [(bill.name, (_plain(bill.path),)) for bill in self.billing],
            "the bills {} and {} read the same path: one of them is too much",
        )
        _refuse_one_place(
            [(s.label, (_plain(s.path), getattr(s, "bucket", None))) for s in self.storage],
            "the stores {} and {} read the same path: one of them is too much",
        )
        return self

    def digest(self) -> str:
        """Hash of all settings but the ledger's place."""
        return short_hash(canonical_json(self.model_dump(mode="json", exclude={"ledger"})))

    def attribution_digest(self) -> str:
        """Hash of what attributed figures rest on; other settings change none of them."""
        data = self.model_dump(
            mode="json", include={"identity", "roles", "node_pools", "prices", "currency"}
        )
        return short_hash(canonical_json({**data, "sources": sorted(source_names(self))}))


PRICES_SOURCE = "prices/settings"
"""The source that the settings' own prices are written under."""


def named_sources(settings: Settings) -> dict[str, bool]:
    """Every source that the settings name, bills first, and whether it is required.

    The name is that of its collector: the source column of its rows holds it.
    """
    found = {bill.name: bill.required for bill in settings.billing}
    for cluster in settings.clusters:
        for kind, source in (
            ("kubernetes", cluster.kubernetes),
            ("prometheus", cluster.prometheus),
            ("slurm", cluster.slurm),
            ("agent", cluster.watched),
        ):
            if source:
                found[f"{kind}/{cluster.name}"] = source.required
    found |= {store.source: store.required for store in settings.storage}
    if settings.prices:
        found[PRICES_SOURCE] = True
    return found


def source_names(settings: Settings) -> frozenset[str]:
    """Names of the sources of the settings: rows of any other are not counted any more."""
    return frozenset(named_sources(settings))


Place = tuple[object, ...] | None


def _refuse_one_place(places: Sequence[tuple[str, Place]], message: str) -> None:
    """Raise if two of the names stand for one place."""
    known: dict[Place, str] = {}
    for name, place in places:
        if place is not None and (first := known.setdefault(place, name)) != name:
            raise ValueError(message.format(first, name))


def _samples_of(source: PrometheusSource) -> Place:
    """What tells one store of samples from another; None where a label tells clusters apart."""
    if source.cluster_label and not source.cluster_value:
        return None
    login = (source.username, source.token, source.token_file, source.sigv4)
    tenant = (*sorted(source.headers.items()), source.tenant, *login)
    part = (source.cluster_label, source.cluster_value)
    return (_plain(source.url or source.export or ""), tenant, part)


def _objects_of(source: KubernetesSource) -> Place:
    """What tells one API server, or dump, from another."""
    place = source.dump or source.server
    return (
        source.context,
        source.kubeconfig,
        source.in_cluster,
        _plain(place) if place else None,
    )


def _plain(place: str) -> str:
    """A URL or path without what makes no difference."""
    scheme, colon, rest = place.rpartition("://")
    return f"{scheme.lower()}{colon}{posixpath.normpath(rest)}"


def resolve_path(path: str, base: Path) -> str:
    """A local path relative to ``base``; URLs stay as they are."""
    return path if "://" in path else str(base / Path(path).expanduser())
