"""Objects of dynamic resource allocation, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.collector.kubernetes.builders import Json, at, thing

NVIDIA, AMD = "gpu.nvidia.com", "gpu.amd.com"
A100 = "NVIDIA A100-SXM4-40GB"
GIB = 2**30


def device(name: str, *, capacity: Json | None = None, **attributes: str) -> Json:
    """A device in the form of v1."""
    return {
        "name": name,
        "attributes": {key: {"string": text} for key, text in attributes.items()},
        "capacity": {key: {"value": str(value)} for key, value in (capacity or {}).items()},
    }


def gpu(number: int, product: str = A100, memory: int = 40) -> Json:
    uuid = f"GPU-{number}"
    return device(
        f"gpu-{number}",
        type="gpu",
        uuid=uuid,
        productName=product,
        capacity={"memory": f"{memory}Gi"},
    )


def mig(parent: int, profile: str, start: int = 0, product: str = A100) -> Json:
    return device(
        f"gpu-{parent}-mig-{profile.replace('.', '')}-{start}",
        type="mig",
        parentUUID=f"GPU-{parent}",
        profile=profile,
        productName=product,
        capacity={"memory": "5Gi"},
    )


def slice_of(
    node: str,
    *devices: Json,
    driver: str = NVIDIA,
    version: str = "v1",
    generation: int = 1,
    part: int = 0,
    **spec: Any,  # noqa: ANN401
) -> Json:
    made = [
        {"name": item["name"], "basic": {k: v for k, v in item.items() if k != "name"}}
        if version == "v1beta1"
        else item
        for item in devices
    ]
    return thing(
        f"resource.k8s.io/{version}",
        "ResourceSlice",
        f"{node}-{driver}-{generation}-{part}",
        namespace=None,
        spec={
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": made,
            **spec,
        },
    )


def result(device: str, node: str = "gpu-1", driver: str = NVIDIA, **more: Any) -> Json:  # noqa: ANN401
    return {"request": "r", "driver": driver, "pool": node, "device": device, **more}


def claim(
    name: str,
    *results: Json,
    pods: Sequence[str] = (),
    node: str | None = "gpu-1",
    allocated: str | None = "08:00",
    key: str = "metadata.name",
    version: str = "v1",
    **meta: Any,  # noqa: ANN401
) -> Json:
    """A claim; ``results`` are its devices, none = not allocated."""
    field = "matchFields" if key == "metadata.name" else "matchExpressions"
    selector = {"nodeSelectorTerms": [{field: [{"key": key, "operator": "In", "values": [node]}]}]}
    allocation: Json = {"devices": {"results": list(results)}}
    if node:
        allocation["nodeSelector"] = selector
    if allocated:
        allocation["allocationTimestamp"] = at(allocated)
    return thing(
        f"resource.k8s.io/{version}",
        "ResourceClaim",
        name,
        status={
            **({"allocation": allocation} if results else {}),
            "reservedFor": [
                {"resource": "pods", "name": uid.removeprefix("uid-"), "uid": uid} for uid in pods
            ],
        },
        **meta,
    )
