"""Labels of pods by two sources: original keys from the API, sanitised ones from samples.

Samples say what stood at their time, perhaps of some keys only; the API says what stood when it was
asked, of all keys. Prometheus knows a key in a sanitised form: ``foo-bar`` and ``fooBar`` become
``label_foo_bar``, and where two keys of one pod collide it appends ``_conflictN``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from ledger.text import canonical_json

_CONFLICT = re.compile(r"_conflict\d+$")
Labels = Mapping[str, str]


@lru_cache(maxsize=65536)
def forms(key: str, prefix: str = "label") -> tuple[str, ...]:
    """Names under which Prometheus may show a key, the usual one first.

    Args:
        key: The key of a label or annotation.
        prefix: ``label`` or ``annotation``.
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", key)
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", plain).lower()
    return tuple(dict.fromkeys((f"{prefix}_{snake}", f"{prefix}_{plain}")))


def aliases(key: str, prefix: str = "label") -> list[str]:
    """``forms`` as a list."""
    return list(forms(key, prefix))


def then(told: str, shown: str, ever: str) -> str:
    """The labels of a pod at a time, from what the API tells and what samples showed then.

    Of keys that samples show, what they showed then, under the original key where the API's keys
    tell which one it is; of all other keys what the API says. Where two keys of the API have one
    form, and samples do not show the values that the API tells, nobody knows which is which: the
    form is marked as colliding.

    Args:
        told: The API's labels, JSON object.
        shown: The labels that samples showed at that time, JSON object.
        ever: All labels that samples showed of the pod on the day, one JSON object per line.

    Returns:
        ``told`` itself where both agree.
    """
    if shown == told:
        return told
    api, seen = _read(told), _read(shown)
    if ever == shown and _agree(api, seen):
        return told
    sample = _by_form(seen)
    texts = ever.split("\n")
    known = {form for text in texts for form in (sample if text == shown else _forms(text))}
    keys_of: dict[str, list[str]] = {}
    for key in api:
        keys_of.setdefault(
            next((name for name in (key, *forms(key)[::-1]) if name in known), ""), []
        ).append(key)
    merged = dict(api)
    for form in sorted(known):
        keys, values = keys_of.get(form, []), sample.get(form, [])
        if values == sorted(api[key] for key in keys):
            continue
        for key in keys:
            del merged[key]
        merged |= _placed(form, keys, values)
    return told if merged == api else canonical_json(merged)


def _agree(api: Labels, sample: Labels) -> bool:
    """Whether each key of a sample is the form of one key of the API, with its value."""
    plain = {form: value for key, value in api.items() for form in forms(key)}
    apart = len(plain) == sum(len(forms(key)) for key in api)
    return apart and all(plain.get(name) == value for name, value in sample.items())


def _placed(form: str, keys: list[str], values: list[str]) -> Labels:
    """The values of one form under the key that they belong to, else marked as colliding."""
    if len(values) == 1 and len(keys) < 2:
        return {(keys or [form])[0]: values[0]}
    return {f"{form}_conflict{number}": value for number, value in enumerate(values, 1)}


def _by_form(sample: Labels) -> dict[str, list[str]]:
    """The values of each form, sorted; several where keys collide."""
    found: dict[str, list[str]] = {}
    for name in sorted(sample, key=lambda name: sample[name]):
        form = _CONFLICT.sub("", name) if "_conflict" in name else name
        found.setdefault(form, []).append(sample[name])
    return found


def _forms(text: str) -> dict[str, list[str]]:
    return _by_form(_read(text))


@lru_cache(maxsize=4096)
def _read(text: str) -> Labels:
    return msgspec.json.decode(text, type=dict[str, str])
