"""Writing a world as the files that the collectors read, with settings that name them."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from collector.simulate.document import truth_document
from collector.simulate.export import write_export, write_openmetrics
from collector.simulate.facts import BILL
from collector.simulate.focus import write_focus
from collector.simulate.kubernetes import write_objects
from collector.simulate.model import World
from collector.simulate.options import WorldOptions
from collector.simulate.truth import work_out

OBJECTS, BILLS, EXPORT = Path("kubernetes/objects.json"), Path("bill/focus.csv.gz"), "prometheus"


def write_world(world: World, folder: Path, *, openmetrics: bool = False) -> list[Path]:
    """Write the bill, the Kubernetes objects, the series, the truth and the settings.

    Args:
        world: The world.
        folder: Where to; it is made if it does not exist, files of an earlier world are replaced.
        openmetrics: Also write ``openmetrics/<day>.om`` for ``promtool`` (large).

    Returns:
        The files, the settings (``runbill.yaml``) first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (EXPORT, "openmetrics"):
        for old in sorted((folder / name).glob("*.parquet" if name == EXPORT else "*.om")):
            old.unlink()
    settings, truth = folder / "runbill.yaml", folder / "truth.json"
    settings.write_text(yaml.safe_dump(settings_of(world.options), sort_keys=False), "utf-8")
    write_focus(world.options, world.lines, folder / BILLS)
    write_objects(world, folder / OBJECTS)
    document = truth_document(world, work_out(world))
    truth.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    paths = [settings, truth, folder / BILLS, folder / OBJECTS]
    paths += write_export(world, folder / EXPORT)
    if openmetrics:
        paths += write_openmetrics(world, folder / "openmetrics")
    return paths


def settings_of(options: WorldOptions) -> dict[str, object]:
    """The settings that read the files of a world, paths relative to the settings file."""
    return {
        "ledger": "./ledger",
        "currency": options.currency,
        "timezone": options.timezone,
        "clusters": [
            {
                "name": options.cluster,
                "kubernetes": {"dump": str(OBJECTS)},
                "prometheus": {"export": EXPORT},
            }
        ],
        "billing": [{"name": BILL, "kind": "focus", "path": str(BILLS.parent)}],
        "roles": {
            "rollout": ["ray-group:rollout*"],
            "update": ["ray-group:trainer*", "replica-type:*", "replicated-job:trainer*"],
        },
        "rules": {"RB102": {"night": "22:00-08:00", "weekend": "Sat-Sun"}},
    }
