"""Effective requests of pods: what the scheduler keeps free for them.

``max(containers + sidecars, max over init containers of (init + sidecars declared before it)) +
overhead``, per resource and at each time, so that an in-place resize is a step. Series do not tell
the order in which init containers are declared: sidecars count as declared before the others, as
service meshes and log shippers are injected, so that a pod never has less than the scheduler keeps
for it. Where the scheduler's own series (``kube_pod_resource_request``) speaks of a pod, it is
right: it knows the order and requests of the pod as a whole.

Source: Kubernetes, "Sidecar containers: resource sharing within containers", and "Pod Overhead".
"""

from __future__ import annotations

import msgspec
import polars as pl

from collector.cards import choose, request_json
from collector.prometheus.cluster.amounts import amounts
from collector.prometheus.samples.names import with_uid
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s
from ledger.schema import TIME

REQUESTS = ("cpu_millicores", "memory_bytes", "gpus", "gpu_resource", "gpu_request")
_PARTS = ["kind", "container"]
_FORM = {
    "uid": pl.String(),
    "kind": pl.String(),
    "container": pl.String(),
    "resource": pl.String(),
    "time": TIME,
    "value": pl.Float64(),
}


def read_requests(reader: Reader, names: pl.DataFrame, parts: int) -> tuple[pl.DataFrame, bool]:
    """The steps of the effective requests of pods.

    Args:
        reader: Where the series are read.
        names: ``uid``, ``namespace``, ``pod``.
        parts: Into how many spans the largest series is cut to read it.

    Returns:
        Of ``amounts`` by ``uid``; and whether containers' requests were read at all, so that a pod
        of which nothing is said asks for nothing.
    """
    containers = reader.read_steps(s.POD_REQUESTS, parts)
    frames = [
        _of(containers, names, "container"),
        *_init(reader, names),
        _of(reader.read_steps(s.OVERHEAD_CPU), names, "overhead", "cpu"),
        _of(reader.read_steps(s.OVERHEAD_MEMORY), names, "overhead", "memory"),
        _of(reader.read_steps(s.SCHEDULER_REQUESTS), names, "scheduler"),
    ]
    known = [frame for frame in frames if frame is not None]
    rows = pl.concat([pl.DataFrame(schema=_FORM), *known])
    return amounts(rows, "uid", _PARTS, _effective()), containers is not None


def _effective() -> pl.Expr:
    kind, amount = pl.col("kind"), pl.col("amount")
    side = amount.filter(kind == "sidecar").sum()
    running = amount.filter(kind == "container").sum() + side
    starting = amount.filter(kind == "init").max() + side
    over = amount.filter(kind == "overhead").sum()
    told = amount.filter(kind == "scheduler").max()
    return pl.coalesce(told, pl.max_horizontal(running, starting) + over)


def _of(
    read: pl.DataFrame | None, names: pl.DataFrame, kind: str, resource: str | None = None
) -> pl.DataFrame | None:
    if read is None:
        return None
    named = with_uid(read, names).with_columns(kind=pl.lit(kind))
    if "container" not in named.columns:
        named = named.with_columns(container=pl.lit(""))
    if resource:
        named = named.with_columns(resource=pl.lit(resource))
    return named.select([pl.col(name).cast(dtype) for name, dtype in _FORM.items()])


def _init(reader: Reader, names: pl.DataFrame) -> list[pl.DataFrame]:
    """Requests of init containers and of sidecars: those that restart always."""
    init = _of(reader.read_steps(s.INIT_REQUESTS), names, "init")
    if init is None:
        return []
    info = reader.read_steps(s.INIT_INFO)
    if info is None:
        return [init]
    always = with_uid(info, names).filter(restart_policy="Always").select("uid", "container")
    side = always.unique().with_columns(beside=pl.lit("sidecar"))
    return [
        init.join(side, on=["uid", "container"], how="left", maintain_order="left")
        .with_columns(kind=pl.coalesce("beside", "kind"))
        .drop("beside")
    ]


def with_devices(segments: pl.DataFrame, *, known: bool) -> pl.DataFrame:
    """Replace ``devices`` by ``gpus``, ``gpu_resource`` and ``gpu_request``.

    Args:
        segments: With the columns of ``amounts``.
        known: Whether a pod of which nothing is said asks for nothing.
    """
    texts = segments["devices"].unique().drop_nulls().sort()
    asked = [msgspec.json.decode(text, type=dict[str, int]) for text in texts]
    cards = [choose(devices) for devices in asked]
    told = pl.DataFrame(
        {
            "devices": texts,
            "gpus": [int(card.units or 0) for card in cards],
            "gpu_resource": [card.resource if card.units else None for card in cards],
            "gpu_request": [request_json(devices) for devices in asked],
        },
        schema={
            "devices": pl.String,
            "gpus": pl.Int64,
            "gpu_resource": pl.String,
            "gpu_request": pl.String,
        },
    )
    if known:
        segments = segments.with_columns(
            pl.col("cpu_millicores", "memory_bytes").fill_null(0), pl.col("devices").fill_null("{}")
        )
        told = pl.concat(
            [told, pl.DataFrame([("{}", 0, None, "{}")], schema=told.schema, orient="row")]
        ).unique("devices", keep="first", maintain_order=True)
    return segments.join(told, on="devices", how="left", maintain_order="left").drop("devices")
