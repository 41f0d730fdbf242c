"""When targets are scraped, and the values that meters show then; all as the text of JSON."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from benchmarks.cluster.options import DAY, MARGIN, MINUTE, Options

COUNT = DAY // MINUTE + 2 * MARGIN + 1
"""Scrapes of a target."""

SHAPES = 64
"""Different courses of one meter."""


@dataclass(frozen=True)
class Clock:
    """The times of a target's scrapes.

    Args:
        times: Milliseconds since 1970, rising.
    """

    times: list[int]

    @cached_property
    def texts(self) -> list[bytes]:
        """The times as text."""
        return [b"%d" % time for time in self.times]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Positions of the scrapes in [start, end)."""
        return bisect_left(self.times, start), bisect_left(self.times, end)


def clock(options: Options, phase: int, jitter: int, draw: random.Random) -> Clock:
    """A scrape a minute at a phase of it, each late by up to ``jitter`` milliseconds."""
    first = options.start - MARGIN * MINUTE + phase
    return Clock([first + MINUTE * beat + draw.randrange(jitter + 1) for beat in range(COUNT)])


@dataclass(frozen=True)
class Course:
    """What a meter shows, scrape after scrape."""

    values: list[float]
    texts: list[bytes]


def _course(values: list[float], digits: int) -> Course:
    kept = [round(value, digits) if digits else float(round(value)) for value in values]
    form = [b"%d" % value if value == int(value) else repr(value).encode() for value in kept]
    return Course(kept, form)


def _busy(draw: random.Random, low: float, high: float, noise: float) -> list[float]:
    """Steps of training: high, with pauses, around a level of its own."""
    level, period = draw.uniform(low, high), draw.randrange(7, 90)
    pause = draw.randrange(0, 4)
    return [
        max(0.0, level * (0.1 if beat % period < pause else 1.0) + draw.gauss(0, noise))
        for beat in range(COUNT)
    ]


def _counter(draw: random.Random, rate: float, start: float) -> list[float]:
    """A total that rises by about ``rate`` a second."""
    total, values = start, []
    for beat in range(COUNT):
        total += 60 * rate * (1 + 0.4 * math.sin(beat / 37) + draw.uniform(-0.2, 0.2))
        values.append(total)
    return values


_METERS: dict[str, tuple[int, Callable[[random.Random], list[float]]]] = {
    "ratio": (6, lambda draw: [min(v, 1.0) for v in _busy(draw, 0.55, 0.98, 0.02)]),
    "tensor": (6, lambda draw: [min(v, 1.0) for v in _busy(draw, 0.15, 0.5, 0.02)]),
    "dram": (6, lambda draw: [min(v, 1.0) for v in _busy(draw, 0.1, 0.4, 0.02)]),
    "percent": (0, lambda draw: [min(v, 100.0) for v in _busy(draw, 70, 100, 3)]),
    "power": (3, lambda draw: _busy(draw, 400, 690, 20)),
    "framebuffer": (0, lambda draw: _busy(draw, 55_000, 80_000, 4)),
    "memory": (0, lambda draw: _busy(draw, 4e9, 60e9, 3e7)),
    "cpu": (6, lambda draw: _counter(draw, draw.uniform(0.2, 14), draw.uniform(0, 5e5))),
    "received": (0, lambda draw: _counter(draw, draw.uniform(1e4, 4e7), draw.uniform(0, 1e12))),
    "sent": (0, lambda draw: _counter(draw, draw.uniform(1e4, 2e7), draw.uniform(0, 1e12))),
}


class Courses:
    """Some courses of each meter, made once."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"courses {seed}")  # noqa: S311 - no secret
        self._made = {
            meter: [_course(make(draw), digits) for _ in range(SHAPES)]
            for meter, (digits, make) in _METERS.items()
        }

    def of(self, meter: str, number: int) -> Course:
        """The course of a meter for the thing of a number."""
        return self._made[meter][number % SHAPES]
