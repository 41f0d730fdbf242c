"""Times of the Kubernetes API, and what to believe of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from collector.kubernetes.rejects import Rejected

# Kubernetes itself was first published in 2014: an earlier time is a clock that was never set.
FIRST = datetime(2014, 1, 1, tzinfo=UTC)
LAST = datetime(2100, 1, 1, tzinfo=UTC)
# An end that has not come yet.
OPEN = datetime.max.replace(tzinfo=UTC)
# What the clocks of an API server and of a node may differ without anybody noticing.
SKEW = timedelta(minutes=1)
# A container runtime that does not know a time reports one of these.
_UNSET = frozenset({"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"})


def moment(text: str | None, latest: datetime | None = None) -> datetime | None:
    """Read an RFC 3339 time; None where the API does not know it.

    Args:
        text: As in the object, e.g. ``2026-11-30T08:00:00Z``.
        latest: The present, if known: a later time than this (plus skew) is a wrong clock.

    Raises:
        Rejected: ``bad_date`` for a text that is no time, has no zone, or lies outside reason.
    """
    if not text or text in _UNSET:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Rejected("bad_date", f"{text[:40]!r} is no time") from None
    if found.tzinfo is None:
        raise Rejected("bad_date", f"{text[:40]!r} has no zone")
    ceiling = LAST if latest is None else latest + SKEW
    if not FIRST <= found <= ceiling:
        raise Rejected("bad_date", f"{text[:40]} lies outside reason")
    return found.astimezone(UTC)


def span_seconds(start: str | None, end: str | None) -> float | None:
    """Seconds from one time to a later one, both as RFC 3339 text; None if one is not known."""
    if not start or not end:
        return None
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return seconds if seconds >= 0 else None
