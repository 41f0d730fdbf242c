"""The rules of the checklist, by explicit import."""

from __future__ import annotations

from difflib import get_close_matches

from ledger.errors import SettingsError, UsageError
from ledger.settings import Settings
from rules.rb102_idle_nodes import IdleNodesRule
from rules.rule import Rule

RULES: tuple[Rule, ...] = (IdleNodesRule(),)
"""Every rule, by code."""


def check_rules(settings: Settings) -> None:
    """Refuse what the settings say of rules and has no meaning, before a day is closed by it.

    Raises:
        SettingsError: A threshold has no meaning, or an exception names a rule there is not.
    """
    for rule in RULES:
        rule.check(settings)
    for position, entry in enumerate(settings.exceptions):
        try:
            find_rule(entry.rule)
        except UsageError as error:
            raise SettingsError(f"exceptions.{position}: {error.message}", error.hint) from error


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
