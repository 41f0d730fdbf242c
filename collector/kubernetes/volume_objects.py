"""Persistent volumes and their claims, as far as runbill reads them."""

from __future__ import annotations

import msgspec

from collector.kubernetes.objects import Object, Part


class Csi(Part):
    """``spec.csi``."""

    driver: str = ""
    volume_handle: str = ""


class AwsDisk(Part):
    """``spec.awsElasticBlockStore``."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class GoogleDisk(Part):
    """``spec.gcePersistentDisk``."""

    pd_name: str = ""


class AzureDisk(Part):
    """``spec.azureDisk``."""

    disk_uri: str = msgspec.field(default="", name="diskURI")


class Nfs(Part):
    """``spec.nfs``."""

    server: str = ""
    path: str = ""


class ClaimReference(Part):
    """``spec.claimRef``."""

    namespace: str | None = None
    name: str = ""
    uid: str = ""


class VolumeSpec(Part):
    """``spec`` of a PersistentVolume."""

    capacity: dict[str, str | int | float] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str | None = None
    csi: Csi | None = None
    aws_elastic_block_store: AwsDisk | None = None
    gce_persistent_disk: GoogleDisk | None = None
    azure_disk: AzureDisk | None = None
    nfs: Nfs | None = None


class PersistentVolume(Object):
    """A PersistentVolume."""

    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)


class VolumeClaimSpec(Part):
    """``spec`` of a PersistentVolumeClaim."""

    volume_name: str | None = None
    storage_class_name: str | None = None


class PersistentVolumeClaim(Object):
    """A PersistentVolumeClaim."""

    spec: VolumeClaimSpec = msgspec.field(default_factory=VolumeClaimSpec)
