"""Rows of the tables ``volumes`` and ``mounts``: disks, and the pods that mount them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime

from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.objects import Pod
from collector.kubernetes.quantities import parse
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from collector.kubernetes.volume_objects import PersistentVolume, PersistentVolumeClaim
from collector.kubernetes.workloads import kept_annotations
from ledger.text import canonical_json
from ledger.window import Window

_LARGEST = 1 << 60  # bytes: an exbibyte
Name = tuple[str, str]
"""Namespace and name of a claim."""


def volume_rows(
    volume: PersistentVolume,
    claims: Mapping[Name, PersistentVolumeClaim],
    cluster: str,
    window: Window,
    now: datetime | None,
    keep: Sequence[str] = (),
) -> Iterator[Row]:
    """A volume's days: from its creation to ``now``, or to the end of the window.

    Args:
        volume: The volume.
        claims: The claims by namespace and name.
        cluster: The cluster's name in the settings.
        window: The days asked for.
        now: The present of the API server; None if unknown (a dump).
        keep: Globs of further annotation keys to keep.

    Raises:
        Rejected: ``bad_date`` or ``bad_number``.
    """
    handle, driver = _handle(volume)
    reference = volume.spec.claim_ref
    claim = claims.get((reference.namespace or "default", reference.name)) if reference else None
    if claim and reference and reference.uid and claim.metadata.uid != reference.uid:
        claim = None  # a later claim of the same name
    facts = {
        "cluster": cluster,
        "volume": volume.metadata.name,
        "handle": handle,
        "driver": driver,
        "namespace": (reference.namespace or "default") if reference else None,
        "claim": reference.name if reference else None,
        "storage_class": volume.spec.storage_class_name or None,
        "bytes": _bytes(volume),
        "labels": canonical_json(claim.labels) if claim else None,
        "annotations": canonical_json(kept_annotations(claim, keep)) if claim else None,
    }
    created = moment(volume.metadata.creation_timestamp, now)
    end = min(now, window.end) if now else window.end
    for day, first, last in days_of(created or window.start, end, window):
        yield {**facts, "day": day, "start": first, "end": last}


def volumes_by_claim(
    volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]
) -> dict[Name, str]:
    """The volume that each claim is bound to, by either of the two."""
    bound: dict[Name, str] = {}
    for volume in volumes:
        if reference := volume.spec.claim_ref:
            bound[reference.namespace or "default", reference.name] = volume.metadata.name
    for claim in claims:
        if claim.spec.volume_name:
            bound[claim.metadata.namespace or "default", claim.metadata.name] = (
                claim.spec.volume_name
            )
    return bound


def mount_rows(
    pod: Pod, days: Iterable[date], bound: Mapping[Name, str], cluster: str
) -> Iterator[Row]:
    """The volumes that a pod mounts, on each day on which it has a node.

    A generic ephemeral volume has a claim by the name of pod and volume.
    """
    namespace = pod.metadata.namespace or "default"
    names = set()
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim:
            names.add(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral:
            names.add(f"{pod.metadata.name}-{volume.name}")
    mounted = sorted({bound[namespace, name] for name in names if (namespace, name) in bound})
    for day in sorted(set(days)):
        for name in mounted:
            yield {"day": day, "cluster": cluster, "volume": name, "uid": pod.metadata.uid}


def _handle(volume: PersistentVolume) -> tuple[str | None, str | None]:
    """The provider's id of the disk, and the driver or plugin that knows it."""
    spec = volume.spec
    if spec.csi:
        return spec.csi.volume_handle or None, spec.csi.driver or None
    if spec.aws_elastic_block_store:
        # Either vol-0abc, or aws://zone/vol-0abc.
        disk = spec.aws_elastic_block_store.volume_id.rpartition("/")[2]
        return disk or None, "kubernetes.io/aws-ebs"
    if spec.gce_persistent_disk:
        return spec.gce_persistent_disk.pd_name or None, "kubernetes.io/gce-pd"
    if spec.azure_disk:
        return spec.azure_disk.disk_uri or None, "kubernetes.io/azure-disk"
    if spec.nfs:
        return f"{spec.nfs.server}:{spec.nfs.path}", "kubernetes.io/nfs"
    return None, None


def _bytes(volume: PersistentVolume) -> int | None:
    told = (volume.spec.capacity or {}).get("storage")
    if told is None:
        return None
    try:
        size = math.ceil(parse(str(told)))
    except ValueError as error:
        raise Rejected("bad_number", f"{volume.place}: {error}") from None
    if not 0 <= size <= _LARGEST:
        raise Rejected("bad_number", f"{volume.place}: {told} is no size of a volume")
    return size
