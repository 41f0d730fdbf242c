"""What a live server is asked, and why; ``docs/prometheus.md`` is made of it.

``python -m collector.prometheus.series.questions > docs/prometheus.md`` writes the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from collector.prometheus.meters.engines import ENGINE_METERS
from collector.prometheus.samples import rollups
from collector.prometheus.samples.asking import telling
from collector.prometheus.samples.summary import CELL, Wording
from collector.prometheus.series import catalogue as s
from collector.prometheus.series.card_series import CARD_SERIES, MEASURES
from collector.prometheus.series.engine_series import ENGINE_SERIES
from collector.prometheus.series.metric import Series
from collector.prometheus.series.policy_series import POLICY_SERIES
from collector.prometheus.series.volume_series import CLAIM_INFO, VOLUME_INFO
from collector.prometheus.sources import push
from collector.prometheus.sources.access import Access
from collector.prometheus.sources.source import Reading
from collector.prometheus.sources.wire import Wire
from ledger.window import Window

RAW = (s.NODE_INFO, VOLUME_INFO, CLAIM_INFO)
"""States that are read sample by sample."""

METERS = (
    s.CPU_USAGE,
    s.MEMORY,
    s.NETWORK_RECEIVE,
    s.NETWORK_TRANSMIT,
    *CARD_SERIES,
    *ENGINE_SERIES,
)
"""What is asked for by slots of a quarter of an hour."""

_HEAD = """# What Prometheus is asked

Made from the code by `python -m collector.prometheus.series.questions`; a test compares the two.
[series.md](series.md) says what is made of the answers.

A day is read with a margin of 15 minutes at both ends. What a cluster does not hold, and what is
optional, is not asked for: one question to the index tells. The number of questions depends on the
number of series of this page, not on pods or experiments. An answer is at most 50 MB: one that
would be larger is asked for in parts. Questions are POST, two to four at a time.

Selectors also hold the label that names the cluster, where one store has several.
"""


_METERS_HEAD = """## Meters, by slots of 15 minutes

Of each series: 1 look at the samples of a quarter of an hour, for the usual interval; range
queries of one number per series and slot, each in 2 or 3 parts; and 1 or 2 looks at the day as a
whole, for what is counted and put aside.

- Gauges: `sum_over_time`, `min_over_time`, `max_over_time`.
- Counters: `last_over_time` and the time of that sample; of cores also the least and most of
  `irate` at each interval.
- The proof, in one query whose answer is small: how slots that are not regular were sampled, when
  the last (of counters also the first) sample was, resets and what is no number.
- Of the most trusted activity of cards: one look per interval for samples that only spin, and at
  most 24 for the samples of slots in which only some do.

What that does not prove is read sample by sample: the pods in at most 3 lists of names, or in
twice as many as the day has spans of a million samples; else these spans. Cards are read by node,
some at a time.

"""


_HOURS = CELL / timedelta(hours=1)
_STATES_HEAD = f"""Of every series: its first and last sample, their number, whether all values
are one, and that value where it matters.

- A server that knows PromQL tells all of it for cells of {_HOURS:g} hours, in one range query:
  first and last (`p`), number (`n`), value (`v`).
- VictoriaMetrics tells it for the day with its margins, several numbers in one pass; what
  disproves it is a question of its own, whose answer is mostly empty. What is not proven is asked
  for again by cells of {_HOURS:g} hours.

What cells do not prove is asked for again, sample by sample: the pods or nodes it speaks of if they
are few, else that cell. Where an answer would be too large, its series are halved by the last
letter of their names.

"""


class Question(NamedTuple):
    """A question of a day.

    Args:
        about: What is asked about.
        times: How often.
        reason: What would be blind without it.
    """

    about: str
    times: str
    reason: str


def server() -> Iterator[Question]:
    """Questions about the server itself."""
    yield Question(
        f"`{push.EDGE.format(push.METRICSQL)}`, then without `label_set`",
        "1 or 2",
        "whether the start of a range belongs to it, and whether the server knows MetricsQL",
    )
    yield Question("`label/__name__/values`", "1", "which optional series are held at all")
    yield Question(
        "`status/runtimeinfo`, and looks for `kube_node_info`",
        "only with holes, about 6",
        "whether a hole is lost to retention or was never sampled",
    )


def states() -> Iterator[Question]:
    """Series that are summarised by cell."""
    elsewhere = (*RAW, *METERS, *POLICY_SERIES)
    for series in s.ALL:
        if series not in elsewhere:
            yield _question(series, "1; of VictoriaMetrics 1 to 3")


def page() -> str:
    """The page as Markdown."""
    parts = [
        _HEAD,
        "## The server\n\n" + _table(server()),
        "## States, sample by sample\n\nFew series, or the measure of all others.\n\n"
        + _table(_question(one, "1 per 250,000 samples") for one in RAW),
        "## States, summarised\n\n" + _STATES_HEAD + _table(states()),
        _wordings(),
        "## Policies and states of jobs, several series in one look\n\n"
        + _table(_question(one, "") for one in POLICY_SERIES),
        _METERS_HEAD + _table(_question(one, _meter_times(one)) for one in METERS),
    ]
    return "\n".join(parts)


def _meter_times(series: Series) -> str:
    """How often a meter is asked about where nothing is doubtful."""
    if series in (s.NETWORK_RECEIVE, s.NETWORK_TRANSMIT):
        return "about 8"
    if series is s.CPU_USAGE:
        return "about 12"
    if series is s.MEMORY:
        return "about 10"
    for meter in ENGINE_METERS:
        if series in meter.series:
            return f"about {8 if meter.counter else 10} for each name that is held"
    if series in (measure.series for measure in MEASURES):
        return "about 17, if no more trusted series speaks of all nodes"
    return "beside the activity of cards"


def _question(series: Series, times: str) -> Question:
    names = ", ".join(f"`{name}`" for name in series.names)
    return Question(names, times, series.blind)


def _table(rows: Iterator[Question]) -> str:
    lines = ["| asked about | times | reason |", "|---|---|---|"]
    return (
        "\n".join([*lines, *(f"| {about} | {times} | {why} |" for about, times, why in rows)])
        + "\n"
    )


def _wordings() -> str:
    """How the three kinds of states are worded."""
    kinds = (
        ("A value of 1 that says nothing, for example", s.POD_OWNER),
        ("A value that counts", s.POD_REQUESTS),
        ("Ones among zeros", s.POD_PHASE),
    )
    blocks = []
    for title, series in kinds:
        asked = Wording(_push(metricsql=False), timedelta(minutes=1))
        text = asked.ask(series, plain=not series.valued).replace(" or label", "\nor label")
        blocks.append(f"{title}, in PromQL:\n\n```\n{text}\n```\n")
        day = Window.of_day(date(2026, 1, 1)).widened(s.MARGIN)
        texts = rollups.questions(
            _push(metricsql=True), series, day.end - day.start, "", telling(series)
        )
        lines = "\n".join(text for text, _ in texts)
        blocks.append(f"{title}, in MetricsQL:\n\n```\n{lines}\n```\n")
    return "\n".join(blocks)


def _push(*, metricsql: bool) -> push.ServerPush:
    server = Wire(Access("http://prometheus:9090"))
    return push.ServerPush(server, _never, closed=not metricsql, metricsql=metricsql)


def _never(*_: object) -> Reading:
    raise NotImplementedError("only the words are wanted")


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 (a page on stdout is what it is for)
