"""The rules of the checklist, by explicit import."""

from __future__ import annotations

from difflib import get_close_matches

from ledger.errors import UsageError
from rules.rb102_idle_nodes import IdleNodesRule
from rules.rule import Rule

RULES: tuple[Rule, ...] = (IdleNodesRule(),)
"""Every rule, by code."""


def names() -> list[str]:
    """Codes and names of all rules."""
    return [text for rule in RULES for text in (rule.code, rule.name)]


def find_rule(text: str) -> Rule:
    """The rule of that code or name, in any case.

    Raises:
        UsageError: There is none; the hint has the nearest.
    """
    for rule in RULES:
        if text.casefold() in (rule.code.casefold(), rule.name.casefold()):
            return rule
    folded = {name.casefold(): name for name in names()}
    near = get_close_matches(text.casefold(), folded, n=1, cutoff=0.4)
    hint = f"did you mean {folded[near[0]]}?" if near else f"there are {', '.join(names())}"
    raise UsageError(f"no rule {text!r}", hint)
