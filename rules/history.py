"""What a finding was on earlier days: first seen, new, ongoing or resolved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import polars as pl

from rules.rule import Finding

MEMORY = timedelta(days=45)
"""How far back an earlier sighting is looked for."""


def newest_sightings(earlier: pl.LazyFrame) -> dict[str, dict[str, Any]]:
    """The newest row of each fingerprint, as a row of ``findings``.

    Args:
        earlier: Rows of ``findings`` of days before the day that is closed.
    """
    newest = earlier.sort("day").group_by("fingerprint").last().sort("fingerprint").collect()
    return {row["fingerprint"]: row for row in newest.iter_rows(named=True)}


def with_history(
    findings: Sequence[Finding], sightings: Mapping[str, Mapping[str, Any]], day: date
) -> tuple[Finding, ...]:
    """The findings with ``first_seen``, and ``ongoing`` where an earlier one is still open.

    A rule that could not answer for some days does not end a finding: what was open before and is
    there again is ongoing. What was resolved and comes back is new.
    """
    dated = []
    for finding in findings:
        before = sightings.get(finding.fingerprint)
        if before is None or before["status"] == "resolved":
            dated.append(replace(finding, status="new", first_seen=day))
        else:
            dated.append(
                replace(finding, status="ongoing", first_seen=before["first_seen"] or before["day"])
            )
    return tuple(dated)


def resolved(
    sightings: Mapping[str, Mapping[str, Any]],
    today: Collection[str],
    ended: Collection[tuple[str, str]],
) -> list[Mapping[str, Any]]:
    """Earlier findings that are over.

    Args:
        sightings: Newest row per fingerprint.
        today: Fingerprints of the day's findings.
        ended: (rule, resource) that answered clean or are gone. Unknown does not end anything.
    """
    return [
        row
        for key, row in sightings.items()
        if key not in today
        and row["status"] != "resolved"
        and (row["rule"], row["resource"]) in ended
    ]
