"""What pods ask for of devices, and what of it stands beside the request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.facts import Facts
from tests.collector.kubernetes.builders import Json, collect, container, node, pod, row, running
from tests.collector.kubernetes.builders import thing as made


def facts_of(folder: Path, *items: Json) -> Facts:
    path = folder / "objects.json"
    every = [node(), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    return collect(dump=str(path))


def asking(**limits: str) -> Json:
    """A container with limits: ``nvidia_gpumem`` for ``nvidia.com/gpumem`` and so on."""
    return {
        "name": "main",
        "resources": {
            "limits": {
                key.replace("_", ".com/", 1).replace("__", "-"): units
                for key, units in limits.items()
            }
        },
    }


@pytest.mark.parametrize(
    ("containers", "init", "expected"),
    [
        ([container()], [], {}),
        ([container(gpus=2), container("b", gpus=1)], [], {"nvidia.com/gpu": 3}),
        ([container(gpus=1)], [container("init", gpus=4)], {"nvidia.com/gpu": 4}),
        (
            [asking(nvidia_gpu="2", nvidia_gpumem="8000", nvidia_gpucores="30")],
            [],
            {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 8000, "nvidia.com/gpucores": 30},
        ),
        (
            [asking(**{"nvidia_gpumem__percentage": "50"})],
            [],
            {"nvidia.com/gpumem-percentage": 50},
        ),
        ([asking(**{"nvidia_mig__3g.40gb": "1"})], [], {"nvidia.com/mig-3g.40gb": 1}),
    ],
)
def test_every_device_that_a_pod_asks_for(
    tmp_path: Path, containers: list[Json], init: list[Json], expected: dict[str, int]
) -> None:
    asks = pod("a", running("08:30"), containers=containers, init=init)
    assert json.loads(row(facts_of(tmp_path, asks), "a")["gpu_request"]) == expected


def test_fractions_of_a_card_stand_in_annotations_under_any_prefix(tmp_path: Path) -> None:
    kept = {
        "gpu-fraction": "0.5",
        "run.ai/gpu-memory": "4096",
        "kai.scheduler/gpu-fraction-num-devices": "2",
        "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,8192,80:;",
        "volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,8192,80:;",
    }
    labels = {"runai-gpu-group": "g1"}
    shares = pod("a", running("08:30"), annotations=kept | {"other": "x"}, labels=labels)
    found = row(facts_of(tmp_path, shares), "a")
    assert json.loads(found["annotations"]) == kept
    assert json.loads(found["labels"]) == labels
    assert (found["gpus"], found["gpu_request"]) == (0, "{}")


def test_quotas_of_namespaces(tmp_path: Path) -> None:
    hard, used = {"requests.nvidia.com/gpu": "16"}, {"requests.nvidia.com/gpu": "8"}
    quota = made("v1", "ResourceQuota", "cards", spec={"hard": hard}, status={"used": used})
    frame = facts_of(tmp_path, pod("a", running("08:30")), quota).tables["resources"]
    (found,) = frame.rows(named=True)
    assert (found["kind"], found["namespace"], found["name"]) == ("ResourceQuota", "train", "cards")
    assert json.loads(found["configuration"]) == {"hard": hard, "used": used}
