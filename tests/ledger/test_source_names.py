"""The names of the sources, and the digest of what attributed figures rest on."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cli.wiring import sources
from ledger.load import LoadedSettings
from ledger.settings import Settings, named_sources, source_names

FULL: dict[str, Any] = {
    "billing": [
        {"name": "m", "path": "/m.csv"},
        {"name": "n", "path": "/n.csv", "required": False},
    ],
    "clusters": [
        {
            "name": "a",
            "kubernetes": {"dump": "/objects.json", "required": False},
            "prometheus": {"url": "http://127.0.0.1:9"},
        },
        {"name": "b", "prometheus": {"export": "/series"}},
    ],
    "prices": {"gpu": {"H100": "2.5"}},
    "storage": [
        {"kind": "filesystem", "name": "fsx", "path": "/fsx", "required": False},
        {"kind": "s3-inventory", "name": "rollouts", "path": "s3://inventory/rollouts/"},
    ],
}


def test_the_settings_name_sources_as_their_collectors_do(tmp_path: Path) -> None:
    settings = Settings.model_validate(FULL)
    wired = sources(LoadedSettings(settings, None, tmp_path, {}))
    assert named_sources(settings) == {source.name: source.required for source in wired}
    assert source_names(settings) == {source.build().name for source in wired}
    assert source_names(Settings()) == frozenset()


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"timezone": "Asia/Shanghai"}, False),
        ({"quarantine_limit": 0.5}, False),
        ({"rules": {"RB102": {"min_idle_hours": 5}}}, False),
        ({"ledger": "/elsewhere"}, False),
        ({"billing": [{"name": "m", "path": "/moved.csv"}, FULL["billing"][1]]}, False),
        ({"billing": [{"name": "m2", "path": "/m.csv"}, FULL["billing"][1]]}, True),
        ({"billing": FULL["billing"][:1]}, True),
        ({"currency": "CNY"}, True),
        ({"prices": {"gpu": {"H100": Decimal(3)}}}, True),
        ({"prices": None}, True),
        ({"identity": {"owner": ["default:all"]}}, True),
        ({"roles": {"rollout": ["ray-group:a*"]}}, True),
        ({"node_pools": [{"match": {"label": "a=b"}, "split": "opencost"}]}, True),
    ],
)
def test_only_what_figures_rest_on_changes_the_attribution_digest(
    change: dict[str, Any], counts: bool
) -> None:
    before, after = (Settings.model_validate(data) for data in (FULL, {**FULL, **change}))
    assert (before.attribution_digest() != after.attribution_digest()) is counts
