"""The series of persistent volumes, as kube-state-metrics 2 writes them (``docs/metrics``)."""

from __future__ import annotations

from dataclasses import replace

from collector.prometheus.series.annotation_series import pod_annotations
from collector.prometheus.series.metric import Series, same

_CLAIM = same("namespace", "persistentvolumeclaim")

VOLUME_INFO = Series(
    "kube_persistentvolume_info",
    {"volume": ("persistentvolume",)},
    {
        **same("storageclass", "csi_driver"),
        "handle": (
            "csi_volume_handle",
            "ebs_volume_id",
            "gce_persistent_disk_name",
            "azure_disk_name",
            "nfs_server",
        ),
        "ebs": ("ebs_volume_id",),
        "gce": ("gce_persistent_disk_name",),
        "azure": ("azure_disk_name",),
        "nfs": ("nfs_server",),
    },
    blind="the provider's ids of volumes, which meet the bill",
    optional=True,
)
VOLUME_BYTES = Series(
    "kube_persistentvolume_capacity_bytes",
    {"volume": ("persistentvolume",)},
    valued=True,
    blind="how large volumes are",
    optional=True,
)
CLAIM_INFO = Series(
    "kube_persistentvolumeclaim_info",
    _CLAIM,
    {"volume": ("volumename",), **same("storageclass")},
    blind="which claim a volume belongs to",
    optional=True,
)
CLAIM_BYTES = Series(
    "kube_persistentvolumeclaim_resource_requests_storage_bytes",
    _CLAIM,
    valued=True,
    blind="how large volumes are, where they do not say so themselves",
    optional=True,
)
CLAIM_LABELS = Series(
    "kube_persistentvolumeclaim_labels",
    _CLAIM,
    prefix="label_",
    blind="experiment and owner of volumes, as far as labels name them",
    optional=True,
)
CLAIM_ANNOTATIONS = replace(
    pod_annotations(),
    metric="kube_persistentvolumeclaim_annotations",
    identity=_CLAIM,
    blind="experiment and owner of volumes, as far as annotations name them",
)
POD_VOLUMES = Series(
    "kube_pod_spec_volumes_persistentvolumeclaims_info",
    {
        **same("namespace", "pod", "uid", "volume"),
        "persistentvolumeclaim": ("persistentvolumeclaim", "claim_name"),
    },
    blind="which pods mount a volume",
    optional=True,
)
VOLUME_SERIES = (
    VOLUME_INFO,
    VOLUME_BYTES,
    CLAIM_INFO,
    CLAIM_BYTES,
    CLAIM_LABELS,
    CLAIM_ANNOTATIONS,
    POD_VOLUMES,
)
