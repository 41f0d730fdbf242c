"""Filters: they hide rows and never change one.

Idle has no owner, namespace or label of its own. Under a condition on such a key it is neither in
nor out: what is shown is the part of it that goes with the rows shown
(``docs/allocation.md``, Filters).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from attribution.identity import SPECIAL
from attribution.phases import glob_regex
from attribution.query.keys import value
from attribution.query.question import PLACES, Match, Query, Share, nameless
from ledger.schema import IDENTITY_KEYS, IDLE, UNATTRIBUTED

_YES = pl.lit(True)


def visibility(request: Query) -> list[pl.Expr]:
    """Per row ``shown``, and ``deferred``: idle that is shown as far as its holders are."""
    tests = [
        (*_test(alike, [_fits(each) for each in alike]), nameless(alike[0].key))
        for alike in _alike(request.filters)
    ]
    tests += [
        (*_test(alike, [_tagged(each) for each in alike]), True) for alike in _alike(request.tags)
    ]
    idle = pl.col("target") == IDLE
    open_ = [idle & undecided for _, undecided, holds_names in tests if holds_names]
    passed = [
        passes | (idle & undecided) if holds_names else passes
        for passes, undecided, holds_names in tests
    ]
    return [
        pl.all_horizontal(_YES, *(passes for passes, _, _ in tests)).alias("shown"),
        (pl.all_horizontal(_YES, *passed) & pl.any_horizontal(~_YES, *open_)).alias("deferred"),
    ]


def policy_of(policies: Sequence[Share]) -> pl.Expr:
    """The number of the first policy that matches a row and shares it; null if none."""
    chosen = pl.lit(None, dtype=pl.Int32)
    for number, policy in reversed(list(enumerate(policies))):
        found = None if policy.split == "none" else number
        chosen = pl.when(_covers(policy)).then(pl.lit(found, dtype=pl.Int32)).otherwise(chosen)
    return chosen.alias("policy")


def _covers(policy: Share) -> pl.Expr:
    tests = [_test(alike, [_fits(each) for each in alike])[0] for alike in _alike(policy.match)]
    covered = pl.all_horizontal(_YES, *tests)
    return covered if policy.names_idle else covered & (pl.col("target") != IDLE)


def _alike(conditions: Iterable[Match]) -> list[list[Match]]:
    """Conditions that are decided together: any of those with = and one key."""
    found: dict[tuple[str, object], list[Match]] = {}
    for number, each in enumerate(conditions):
        found.setdefault((each.key, number if each.negated else None), []).append(each)
    return list(found.values())


def _test(alike: Sequence[Match], hits: Sequence[pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
    """Whether a row passes, and whether idle that has no value of its own would be undecided."""
    hit = pl.any_horizontal(*hits)
    return (~hit if alike[0].negated else hit), ~hit


def _fits(condition: Match) -> pl.Expr:
    """Whether the value of a key fits the glob."""
    fits = value(condition.key).str.contains(glob_regex(condition.glob))
    if condition.key in PLACES:  # where special rows show their name
        return fits | (pl.col("target").is_in(SPECIAL) & (pl.col("target") == condition.glob))
    return fits


def _tagged(condition: Match) -> pl.Expr:
    """Whether a tag fits; what has none is found by its special name alone."""
    key, glob = condition.key, condition.glob
    names = [f"label:{key}", *([key] if key in IDENTITY_KEYS else [])]
    hits = []
    for found in map(value, names):
        special = found.is_in([*SPECIAL, UNATTRIBUTED])
        fits = found.str.contains(glob_regex(glob))
        hits.append(pl.when(special).then(found == glob).otherwise(fits))
    return pl.any_horizontal(*hits)
