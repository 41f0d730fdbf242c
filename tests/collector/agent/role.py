"""The agent's role as YAML, from what it says it needs."""

from __future__ import annotations

import yaml

from collector.agent.access import permissions


def role() -> str:
    """A ClusterRole named ``runbill-agent``."""
    rules = [
        {
            "apiGroups": [access.group],
            "resources": list(access.resources),
            "verbs": list(access.verbs),
        }
        for access in permissions().kubernetes
    ]
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "runbill-agent"},
        "rules": rules,
    }
    text: str = yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=96)
    return text
