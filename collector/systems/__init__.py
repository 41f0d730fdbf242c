"""Training systems: how their pods are recognised, who their jobs are, and what role a pod has.

``table`` says it of each system, ``model`` in which words, and ``identify`` reads a pod by it. Both
collectors of a cluster use the same table: the API spells keys as they are, kube-state-metrics
sanitised, and a `Key` knows both.
"""

from collector.systems.identify import Pod, continued, role, system
from collector.systems.model import Key, Link, ObjectKind, Owner, Role, Sign, System
from collector.systems.table import ANNOTATIONS, KEYS, SYSTEMS

__all__ = [
    "ANNOTATIONS",
    "KEYS",
    "SYSTEMS",
    "Key",
    "Link",
    "ObjectKind",
    "Owner",
    "Pod",
    "Role",
    "Sign",
    "System",
    "continued",
    "role",
    "system",
]
