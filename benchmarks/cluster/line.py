"""A series with its samples, as a line of VictoriaMetrics' JSON import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.cluster.clock import Clock, Course

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Line:
    """Samples of a series at the scrapes of a clock in [start, end).

    Args:
        metric: Its name.
        labels: Its labels, the name not among them.
        clock: When its target is scraped.
        start: Milliseconds since 1970.
        end: Milliseconds since 1970.
        value: What it shows: one number all the time, or the course of a meter.
        lost: Positions of scrapes that failed.
        instead: Position of a scrape to the text of its value, where that is odd.
    """

    metric: str
    labels: Labels
    clock: Clock
    start: int
    end: int
    value: float | Course = 1.0
    lost: range = range(0)
    instead: Mapping[int, bytes] = field(default_factory=dict)

    def encoded(self) -> tuple[bytes, int]:
        """The line, and how many samples it holds; nothing for a series without any.

        Source of the form: https://docs.victoriametrics.com/#how-to-import-data-in-json-line-format
        """
        first, last = self.clock.span(self.start, self.end)
        if first == last:
            return b"", 0
        times = self.clock.texts[first:last]
        values = self._values(first, last)
        if self.instead:
            values = [self.instead.get(first + place, text) for place, text in enumerate(values)]
        if self.lost:
            kept = [place for place in range(first, last) if place not in self.lost]
            times = [times[place - first] for place in kept]
            values = [values[place - first] for place in kept]
        text = json.dumps({"__name__": self.metric, **self.labels}).encode()
        parts = (text, b",".join(values), b",".join(times))
        return b'{"metric":%b,"values":[%b],"timestamps":[%b]}\n' % parts, len(times)

    def _values(self, first: int, last: int) -> list[bytes]:
        if isinstance(self.value, Course):
            return self.value.texts[first:last]
        return [repr(self.value).removesuffix(".0").encode()] * (last - first)
