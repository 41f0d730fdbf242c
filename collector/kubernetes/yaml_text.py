"""YAML that somebody else wrote into a field of an object: every scalar stays text.

Tags say nothing here and merges are not followed, so that no text makes an object of Python, grows
without bound or fails in a way of its own.
"""

from __future__ import annotations

from typing import Any

import yaml

LARGEST = 1 << 20  # characters of a text that is looked at; a ConfigMap holds no more


def read(text: str) -> Any:  # noqa: ANN401 - whatever it holds
    """Lists, maps and texts of one document; None if it is none, or too long to be looked at.

    An alias gives the same object again: what is made of the result must not follow all of them.
    """
    if len(text) > LARGEST:
        return None
    try:
        return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def entries(data: object) -> dict[str, Any]:
    """A map with the entries whose keys are texts; empty for anything else."""
    found = data if isinstance(data, dict) else {}
    return {key: value for key, value in found.items() if isinstance(key, str)}


def plain_text(data: object) -> str | None:
    """A text that says something; None for anything else."""
    return data if isinstance(data, str) and data not in ("", "~", "null") else None


def number(data: object) -> int | None:
    """A whole number of a sane length; None for anything else."""
    text = data if isinstance(data, str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
