"""From settings to collaborators: the ledger, and the sources that can be built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.options import Globals
from ledger.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from collector.source import Collector
    from ledger.load import LoadedSettings
    from ledger.settings import Bill, Cluster
    from ledger.store import Ledger
    from ledger.stores import Store


AGENTS = "agent/"
"""How the names of agents begin; what they write is not yet closed."""
PRICES = "prices/settings"
"""The source that the prices of the settings have; it alone closes no day."""


def version() -> str:
    """The version of the installed distribution."""
    from importlib import metadata

    try:
        return metadata.version("runbill")
    except metadata.PackageNotFoundError:
        return "0+unknown"


@dataclass(frozen=True)
class Source:
    """A source named by the settings, not yet built.

    Args:
        kind: billing, kubernetes, prometheus, slurm, storage or prices.
        name: The name that its collector will have; stands in the source column of its rows.
        required: Whether a gap in it gives exit code 3.
        per_day: Whether it is asked one UTC day at a time, as a day of it is large.
        build: Makes the collector; may raise, as collecting may.
        cluster: The cluster that it speaks of, if it does.
    """

    kind: str
    name: str
    required: bool
    per_day: bool
    build: Callable[[], Collector]
    cluster: str | None = None


@dataclass(frozen=True)
class Context:
    """What a stage works with: settings, where they came from, the ledger and the version."""

    loaded: LoadedSettings
    ledger: Ledger
    version: str


def load(options: Globals, overrides: Mapping[str, Any] | None = None) -> LoadedSettings:
    """The settings in force.

    Raises:
        SettingsError: They are missing or wrong.
    """
    from ledger.load import load_settings

    return load_settings(options.config, overrides)


def open_context(options: Globals, *, create: bool = False) -> Context:
    """Settings and ledger.

    Raises:
        SettingsError: The settings are missing or wrong, or, with ``create``, name no source.
        LedgerError: There is no ledger yet and ``create`` is off.
    """
    loaded = load(options)
    if create and not sources(loaded):
        raise SettingsError(
            "the settings name no source: there is nothing to close",
            "add billing or clusters, or let runbill init look for them",
        )
    if create:
        from rules.registry import check_rules

        check_rules(loaded.settings)
    return context_of(loaded, create=create)


def context_of(loaded: LoadedSettings, *, create: bool = False) -> Context:
    """The context of loaded settings; see ``open_context``."""
    from ledger.settings import resolve_path
    from ledger.store import Ledger

    uri = resolve_path(loaded.settings.ledger, loaded.base)
    return Context(loaded, Ledger.open(uri, create=create), version())


def sources(loaded: LoadedSettings) -> list[Source]:
    """Every source that the settings name, bills first."""
    found = [_bill(bill, loaded.base) for bill in loaded.settings.billing]
    for cluster in loaded.settings.clusters:
        found += _cluster(cluster, loaded)
    found += [_store(store, loaded) for store in loaded.settings.storage]
    if loaded.settings.prices:
        found.append(_prices(loaded))
    return found


def _bill(bill: Bill, base: Path) -> Source:
    def build() -> Collector:
        from collector import billing

        return billing.from_settings(bill, base)

    return Source("billing", bill.name, bill.required, False, build)


def _cluster(cluster: Cluster, loaded: LoadedSettings) -> list[Source]:
    found, base = [], loaded.base
    if cluster.kubernetes:

        def build_kubernetes() -> Collector:
            from collector import kubernetes

            return kubernetes.from_settings(cluster, base, loaded.settings.identity)

        found.append(
            Source(
                "kubernetes",
                f"kubernetes/{cluster.name}",
                cluster.kubernetes.required,
                False,
                build_kubernetes,
                cluster.name,
            )
        )
    if cluster.prometheus:

        def build_prometheus() -> Collector:
            from collector import prometheus

            return prometheus.from_settings(cluster, base, loaded.settings.identity)

        found.append(
            Source(
                "prometheus",
                f"prometheus/{cluster.name}",
                cluster.prometheus.required,
                True,
                build_prometheus,
                cluster.name,
            )
        )
    if watched := cluster.watched:

        def build_agent() -> Collector:
            from collector.agent.recorded import Recorded
            from ledger.settings import resolve_path
            from ledger.store import Ledger

            ledger = Ledger.open(resolve_path(loaded.settings.ledger, base))
            return Recorded(cluster, ledger, base, required=watched.required)

        name = f"{AGENTS}{cluster.name}"
        found.append(Source("agent", name, watched.required, False, build_agent, cluster.name))
    if cluster.slurm:

        def build_slurm() -> Collector:
            from collector import slurm

            return slurm.from_settings(cluster, base)

        name, required = f"slurm/{cluster.name}", cluster.slurm.required
        found.append(Source("slurm", name, required, False, build_slurm, cluster.name))
    return found


def _store(store: Store, loaded: LoadedSettings) -> Source:
    def build() -> Collector:
        from collector import storage

        return storage.from_settings(store, loaded.settings, loaded.base)

    return Source("storage", store.source, store.required, True, build)


def _prices(loaded: LoadedSettings) -> Source:
    def build() -> Collector:
        from collector import prices

        found = prices.from_settings(loaded.settings)
        if found is None:
            raise SettingsError("the settings have no prices")
        return found

    return Source("prices", PRICES, True, False, build)


def chosen(found: Sequence[Source], names: Sequence[str]) -> list[Source]:
    """The sources whose name, kind or own name fits one of the patterns; all without patterns.

    Raises:
        UsageError: A pattern fits none.
    """
    for name in names:
        if not any(_fits(source, name) for source in found):
            known = ", ".join(source.name for source in found) or "none; add one to the settings"
            raise UsageError(f"no source {name!r}", f"the settings name: {known}")
    return [source for source in found if not names or any(_fits(source, name) for name in names)]


def _fits(source: Source, pattern: str) -> bool:
    own = source.name.rpartition("/")[2]
    return any(fnmatchcase(text, pattern) for text in (source.name, source.kind, own))
