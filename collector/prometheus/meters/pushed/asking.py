"""Questions to a server about one series: answers per slot, samples of some, and the account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise

import msgspec
import polars as pl

from collector.prometheus.meters.pushed.cells import Cells
from collector.prometheus.meters.slots import SLOT
from collector.prometheus.samples.clean import Cleaned, clean
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.source import PushDown, Reading, TooMuchError
from ledger.text import canonical_json
from ledger.window import Window

ROWS = 1_200_000
"""Samples of an answer: about 30 MB."""

TEXT = 12_000
"""Bytes of names in one question; VictoriaMetrics refuses one of more than 16 KiB."""

_TAG = "runbill_of"
_LONGEST_PROBE = SLOT


class NotPushedError(Exception):
    """A summary is not to be had or not worth it: all samples of the series are to be read."""


@dataclass(frozen=True)
class Asker:
    """Asks about the series that some matchers choose.

    Args:
        reader: Whose account the answers go to.
        push: The server.
        series: The series.
        only: The matchers.
    """

    reader: Reader
    push: PushDown
    series: Series
    only: str = ""

    @property
    def selected(self) -> str:
        """The selector, without a range."""
        return self.series.metric + self.push.matcher(self.only)

    def over(self, function: str, more: timedelta = timedelta()) -> str:
        """A function of the samples of a slot, and perhaps of some time before it."""
        return f"{function}({self.selected}{self.push.span(SLOT + more)})"

    def each(self, function: str, inner: str, cells: Cells) -> str:
        """A function of what is seen at the end of each cell of a slot."""
        step = int(cells.interval.total_seconds())
        return f"{function}(({inner})[{SLOT.seconds - 1}s:{step}s])"

    def last_time(self, cells: Cells) -> str:
        """The Unix time of the last sample of a slot that has any."""
        if self.push.metricsql:
            return self.over("tlast_over_time")
        return self.each("max_over_time", f"timestamp({self.selected})", cells)

    def first_time(self, cells: Cells) -> str:
        """That of the first, where the slot before has none and its cell no other."""
        if self.push.metricsql:
            return self.over("tfirst_over_time")
        return self.each("min_over_time", f"timestamp({self.selected})", cells)

    def grid(self, promql: str) -> pl.DataFrame:
        """``labels``, ``slot``, ``value`` of each slot, one margin before and after the day.

        Raises:
            QueryError: The server cannot answer.
        """
        return self._slots(self.push.grid(promql, self.reader.wide, SLOT))

    def looked(self, promql: str, cells: Cells) -> pl.DataFrame:
        """``labels``, ``time``, ``value`` of what is seen at the end of each cell.

        Raises:
            QueryError: The server cannot answer.
        """
        frame = self._taken(self.push.grid(promql, self.reader.wide, cells.interval))
        return frame.rename({"timestamp": "time"})

    def grids(self, promql: Mapping[str, str]) -> dict[str, pl.DataFrame]:
        """Several small answers of one query, by name; each as ``grid`` has it.

        Raises:
            QueryError: The server cannot answer.
        """
        return split(self.grid(union(promql)), tuple(promql))

    def at(self, promql: Mapping[str, str], time: datetime) -> dict[str, pl.DataFrame]:
        """Several instant answers, by name: ``labels``, ``value``.

        Raises:
            QueryError: The server cannot answer.
        """
        frame = self._taken(self.push.at(union(promql), time))
        return split(frame.select("labels", "value"), tuple(promql))

    def raw(self, window: Window, more: str = "", rows: int = 0) -> pl.DataFrame:
        """Raw samples in (start, end], as ``source.SAMPLES``.

        Args:
            window: The window.
            more: Further matchers.
            rows: About how many there are, if known.

        Raises:
            QueryError: The server cannot answer.
        """
        parts = max(1, -(-rows // ROWS))
        length = max(timedelta(minutes=1), (window.end - window.start) / parts)
        frames, start = [], window.start
        while start < window.end:
            end = min(start + length, window.end)
            frames.append(self._chunk(Window(start, end), more))
            start = end
        return pl.concat(frames)

    def cleaned(
        self, raw: pl.DataFrame, window: Window, interval: timedelta | None = None
    ) -> Cleaned:
        """Samples without garbage, which is counted in the window; perhaps of a known interval."""
        found = clean(raw, self.series, window, self.reader.who)
        self.reader.quarantine.extend(found.quarantine)
        self.reader.notes.extend(found.notes)
        return Cleaned(found.samples, found.meanings, interval or found.interval)

    def interval(self) -> timedelta:
        """Usual distance of samples, of those in a quarter of an hour of the day.

        Raises:
            NotPushedError: There are none then, or they do not have one in common.
            QueryError: The server cannot answer.
        """
        day = self.reader.window
        for part in (2, 1, 3):
            middle = day.start + (day.end - day.start) * part / 4
            raw = self.raw(Window(middle - _LONGEST_PROBE, middle))
            if raw.is_empty():
                continue
            usual = clean(raw, self.series, day, self.reader.who).interval
            steps = raw.sort("labels", "timestamp").select(
                step=pl.when(pl.col("labels") == pl.col("labels").shift()).then(
                    pl.col("timestamp").diff()
                )
            )["step"]
            near = ((steps - usual).abs() < usual / 2).mean()
            if isinstance(near, float) and near > 0.75:
                return usual
            break
        raise NotPushedError

    def _chunk(self, window: Window, more: str) -> pl.DataFrame:
        only = ",".join(part for part in (self.only, more) if part)
        selected = self.series.metric + self.push.matcher(only)
        seconds = -(-(window.end - window.start) // timedelta(seconds=1))
        try:
            frame = self._taken(self.push.at(f"{selected}[{seconds}s]", window.end))
        except TooMuchError:
            middle = window.start + (window.end - window.start) / 2
            if middle - window.start < timedelta(minutes=2):
                raise
            halves = (Window(window.start, middle), Window(middle, window.end))
            return pl.concat([self._chunk(half, more) for half in halves])
        time = pl.col("timestamp")
        return frame.filter(time > window.start, time <= window.end)

    def _slots(self, reading: Reading) -> pl.DataFrame:
        return self._taken(reading).select("labels", slot=pl.col("timestamp") - SLOT, value="value")

    def _taken(self, reading: Reading) -> pl.DataFrame:
        self.reader.gaps.extend(gap for gap in reading.gaps if gap not in self.reader.gaps)
        return reading.frame.collect()


def union(promql: Mapping[str, str]) -> str:
    """One query for several, whose series bear the name of theirs."""
    return " or ".join(
        f'label_replace({text},"{_TAG}","{name}","","")' for name, text in promql.items()
    )


def split(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The answers of a ``union``, each with its own labels."""
    texts = frame["labels"].unique()
    rows = []
    for text in texts:
        labels = msgspec.json.decode(text, type=dict[str, str])
        name = labels.pop(_TAG, "")
        rows.append((text, name, canonical_json(labels)))
    form = {"labels": pl.String, "of": pl.String, "own": pl.String}
    told = pl.DataFrame(rows, schema=form, orient="row")
    whole = frame.join(told, on="labels", how="left", maintain_order="left")
    whole = whole.with_columns(labels="own").drop("own")
    return {name: whole.filter(pl.col("of") == name).drop("of") for name in names}


def listed(names: Iterable[str]) -> list[str]:
    """Regular expressions that together match all of the names, each short enough to ask."""
    return _pieces(sorted(set(names)))


def _pieces(names: list[str]) -> list[str]:
    if not names:
        return []
    text = _folded(names)
    parts = min(len(names), -(-len(text) // TEXT))
    if parts == 1:
        return [text]
    cuts = [len(names) * part // parts for part in range(parts + 1)]
    return [text for low, high in pairwise(cuts) for text in _pieces(names[low:high])]


def _folded(names: list[str]) -> str:
    """A regular expression of sorted names; words that several begin with are there once."""
    found: list[str] = []
    for word, some in groupby(names, _word):
        tails = [name[len(word) :] for name in some]
        if len(tails) == 1:
            found.append(_quoted(word + tails[0]))
            continue
        inner = _folded(tails)
        one = len({_word(tail) for tail in tails}) == 1
        found.append(_quoted(word) + (inner if one else f"({inner})"))
    return "|".join(found)


def _word(name: str) -> str:
    """The beginning of a name up to its first hyphen."""
    return "".join(name.partition("-")[:2])


def _quoted(name: str) -> str:
    """A name in a regular expression in a string of PromQL."""
    plain = "".join(f"\\{sign}" if sign in r"\.+*?()|[]{}^$" else sign for sign in name)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
