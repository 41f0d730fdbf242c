"""Annotations as kube-state-metrics writes them, under their own keys as far as these are known."""

from __future__ import annotations

import re
from collections.abc import Sequence

from collector.labels import ANNOTATIONS, sanitised
from collector.prometheus.series.metric import Series, same
from collector.systems import ANNOTATIONS as OF_SYSTEMS


def pod_annotations(globs: Sequence[str] = ()) -> Series:
    """The annotations of pods.

    A known key is written as it is; of other keys only the sanitised form is known. Keys that
    collide once they are sanitised are kept as they stand, with ``_conflictN``.

    Args:
        globs: Further keys to keep, as in the settings; one without ``*`` is a known key.
    """
    known = [*ANNOTATIONS, *OF_SYSTEMS, *(key for key in globs if "*" not in key)]
    last = "|".join(sorted({_plain(key) for key in ANNOTATIONS}))
    more = [
        "annotation_" + ".*".join(re.escape(_plain(part)) for part in key.split("*"))
        for key in (*OF_SYSTEMS, *globs)
    ]
    return Series(
        "kube_pod_annotations",
        same("namespace", "pod", "uid"),
        prefix="annotation_",
        # Where two keys have one sanitised form, the first is meant.
        spelling={f"annotation_{_plain(key)}": key for key in reversed(known)},
        keep=re.compile(f"({'|'.join([f'annotation_(.*_)?({last})', *more])})(_conflict[0-9]+)?"),
        blind="shares of cards, experiment and owner of pods, as far as annotations name them",
        optional=True,
    )


def _plain(key: str) -> str:
    return sanitised(key).removeprefix("label_")
