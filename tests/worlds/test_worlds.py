"""Every training system, simulated: what the product says of every pod of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from attribution.day import attribute_day
from attribution.facts import DayFacts
from attribution.identity import ambiguous_labels
from collector.prices import NAME, SettingsPrices
from ledger.pricing import Prices
from ledger.schema import UNATTRIBUTED
from tests.collector.kubernetes.builders import WINDOW
from tests.conftest import ROOT
from tests.worlds.every import TITLES
from tests.worlds.model import SECRET, Truth, World
from tests.worlds.table import page
from tests.worlds.views import BARE, FULL, KEYS, VIEWS, Seen

WHOLE = ("api", "both", "no allow-list, both")
SERIES = ("prometheus", "owners gone, both")


def world(seen: Seen, system: str) -> World:
    return next(one for one in seen.worlds if one.system == system)


def wrong(seen: Seen, view: str, system: str, *forgiven: str) -> Iterator[str]:
    """What a view says that is not true, but for what it cannot know."""
    one, told = world(seen, system), seen.of(view)
    for pod in one.pods:
        uid = pod["metadata"]["uid"]
        truth, found = one.truth[uid], told[uid]
        lost = {key for field in forgiven for key in getattr(truth, field)}
        for key in set(KEYS) - lost:
            if getattr(found, key) != getattr(truth, key):
                yield f"{pod['metadata']['name']}: {key} is {getattr(found, key)}, not {truth}"


@pytest.mark.parametrize("system", TITLES)
@pytest.mark.parametrize("view", WHOLE)
def test_the_api_tells_the_truth_of_every_pod(seen: Seen, view: str, system: str) -> None:
    assert list(wrong(seen, view, system)) == []


@pytest.mark.parametrize("system", TITLES)
@pytest.mark.parametrize("view", SERIES)
def test_series_tell_the_truth_of_every_pod(seen: Seen, view: str, system: str) -> None:
    assert list(wrong(seen, view, system, "unseen")) == []


@pytest.mark.parametrize("system", TITLES)
def test_one_pod_of_a_job_tells_of_those_that_are_gone(seen: Seen, system: str) -> None:
    alone = {truth.root for truth in world(seen, system).truth.values()} == {None}
    assert list(wrong(seen, "pods gone, both", system, *(["unseen"] if alone else []))) == []


@pytest.mark.parametrize("system", TITLES)
def test_labels_tell_the_truth_when_all_owners_are_gone(seen: Seen, system: str) -> None:
    assert list(wrong(seen, "owners gone", system, "unseen", "lost")) == []


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_not_known_is_not_made_up(seen: Seen, view: str) -> None:
    told = seen.of(view)
    for one in seen.worlds:
        for pod in one.pods:
            uid = pod["metadata"]["uid"]
            found, truth = told[uid], one.truth[uid]
            assert found.experiment in {truth.experiment, None, *one.owners(pod)}
            assert found.owner in {truth.owner, None}
            assert found.role in {truth.role, None}
            assert found.phase in {truth.phase, "unknown"}


def test_no_pod_is_missing_from_any_view(seen: Seen) -> None:
    every = {uid for one in seen.worlds for uid in one.truth}
    assert {view: set(seen.of(view)) for view in VIEWS} == dict.fromkeys(VIEWS, every)


@pytest.mark.parametrize("view", ["both", "prometheus"])
def test_the_books_name_pods_as_the_worlds_do(seen: Seen, view: str) -> None:
    """Through attribution to its end: what each row of ``costs`` is called."""
    of_view = {
        name: getattr(seen.day, name).filter(pl.col("cluster") == view)
        for name in ("nodes", "workloads")
    }
    unit = Prices.model_validate({"gpu": {"H100": 2}, "vcpu": 0.03, "gib": 0.004})
    facts = SettingsPrices(unit, "USD").collect(WINDOW).tables["prices"]
    prices = facts.with_columns(source=pl.lit(NAME))
    day = DayFacts.of_tables(seen.day.day, {**of_view, "prices": prices})
    costs = attribute_day(day, seen.settings).costs
    named = costs.filter(pl.col("uid").is_not_null()).select(
        "uid", "experiment", "owner", "phase", "root_kind", "root_name"
    )
    books = {}
    for uid, *keys, kind, name in named.unique().iter_rows():
        experiment, owner, phase = (None if key == UNATTRIBUTED else key for key in keys)
        assert uid not in books
        books[uid] = Truth(experiment, owner, None, phase or "unknown", name and f"{kind}/{name}")
    assert books == {uid: replace(told, role=None) for uid, told in seen.of(view).items()}


def test_no_secret_is_kept(seen: Seen) -> None:
    for facts in seen.facts.values():
        for table in facts.tables.values():
            texts = "".join(text for one in table.select(pl.col(pl.String)) for text in one if text)
            assert SECRET not in texts
            assert "WANDB_API_KEY" not in texts


def test_a_cluster_without_an_allow_list_is_named_and_so_says_doctor(seen: Seen) -> None:
    said = {
        name: [gap.reason for gap in seen.facts[name].gaps if "allowlist" in gap.detail]
        for name in (FULL.cluster, BARE.cluster)
    }
    assert said == {FULL.cluster: [], BARE.cluster: ["labels_not_exported"]}
    for name, expected in ((FULL.cluster, True), (BARE.cluster, False)):
        [probe] = [one for one in seen.probes[name] if one.need == "kube_pod_labels"]
        assert probe.ok is expected
        assert ("allowlist" in probe.detail) is not expected


def test_labels_that_collide_are_kept_named_and_told_by_the_api(seen: Seen) -> None:
    [uid] = world(seen, "colliding").truth
    rows = {view: row for view, row in _rows(seen, uid)}
    labels = {view: json.loads(row["labels"]) for view, row in rows.items()}
    assert labels["prometheus"]["label_team_conflict1"] == "infra"
    assert labels["prometheus"]["label_team_conflict2"] == "rl"
    assert json.loads(rows["prometheus"]["annotations"]) == {
        "annotation_team_example_owner_conflict1": "lin",
        "annotation_team_example_owner_conflict2": "mei",
    }
    assert labels["both"] == labels["api"] == {"team": "rl", "Team": "infra", "experiment": "a-b"}
    owners = {view: row["owner"] for view, row in rows.items()}
    assert [owners[view] for view in ("prometheus", "api", "both")] == [None, "rl", "rl"]
    gaps = {
        view: {
            gap.detail.partition(":")[0]
            for gap in ambiguous_labels(_lives(seen, view), seen.settings)
        }
        for view in ("prometheus", "both")
    }
    assert gaps == {
        "prometheus": {"label team", "annotation team.example/owner"},
        "both": set(),
    }


def test_the_page_of_systems_is_what_was_measured(seen: Seen) -> None:
    text = (ROOT / "docs/systems.md").read_text()
    assert text == page(seen), "python -m tests.worlds.table > docs/systems.md"


def _rows(seen: Seen, uid: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in seen.pods.filter(uid=uid).iter_rows(named=True):
        yield row["view"], row


def _lives(seen: Seen, view: str) -> pl.DataFrame:
    return seen.pods.filter(view=view).rename({"view": "cluster"})
