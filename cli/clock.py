"""The one place that asks what time it is, so that tests can answer."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)
