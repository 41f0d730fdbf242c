"""All systems in their order of precedence.

The exact name of a system's job comes before the general ones of batch jobs, queues and gangs that
it runs in.
"""

from __future__ import annotations

from collector.systems.general import GENERAL
from collector.systems.model import Key, System
from collector.systems.others import OTHERS
from collector.systems.training import TRAINING

SYSTEMS: tuple[System, ...] = (*TRAINING, *OTHERS, *GENERAL)
"""Every system; the first that a pod's marks fit says its role, and its job if no object does."""

KEYS: tuple[Key, ...] = tuple(dict.fromkeys(key for one in SYSTEMS for key in one.keys))
"""Every label and annotation that is looked at."""

ANNOTATIONS: tuple[str, ...] = tuple(key.name for key in KEYS if key.annotation)
"""Original keys of the annotations among them."""
