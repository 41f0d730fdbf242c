"""What a series is: its names, the labels that matter, its unit, and what is blind without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Series:
    """A metric and how it is read.

    Args:
        metric: Its name.
        identity: Column to the labels (first present wins) that say what a sample is about. Two
            samples of one identity at one time are copies of each other.
        info: Column to the labels that say something about it, like ``node`` of a pod.
        blind: What cannot be answered without it.
        prefix: Also keep all labels that start so, as one JSON column ``labels``.
        spelling: Sanitised label to the original key under which the JSON column holds it.
        keep: Which sanitised labels the JSON column holds; None = all.
        also: Further names of the metric, and what a value under each is times one under the
            first, e.g. 100 for a ratio where the first is a percentage.
        valued: Whether its value says something; else it should be 1.
        nonzero: Only samples of 1 say something (states, as one series per state).
        often: Of those, a label and its values with which series are 1 at some time of most days.
        ceiling: Values above are no measurement (DCGM marks "no value" with huge numbers).
        optional: Its absence is normal and no gap; it is not asked for where it is not held.
    """

    metric: str
    identity: Mapping[str, tuple[str, ...]]
    info: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blind: str = ""
    prefix: str | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)
    keep: re.Pattern[str] | None = None
    also: Mapping[str, float] = field(default_factory=dict)
    valued: bool = False
    nonzero: bool = False
    often: tuple[str, tuple[str, ...]] | None = None
    ceiling: float | None = None
    optional: bool = False

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Identity and info columns, in order."""
        return {**self.identity, **self.info}

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the metric."""
        return (self.metric, *self.also)


def same(*names: str) -> dict[str, tuple[str, ...]]:
    """Columns that are called as their label is."""
    return {name: (name,) for name in names}
