"""How large the benchmark's cluster is, and what is odd about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime

from ledger.text import canonical_json, short_hash

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MARGIN = 20
"""Minutes of samples before and after the day, as a store that holds other days has them."""

FORM = 3
"""Counts changes of what the same options give, so that nobody reads an old store."""


@dataclass(frozen=True)
class Options:
    """A cluster-day.

    Args:
        pods: Pods that live at any time of the day.
        nodes: GPU nodes.
        cards: Cards of a node.
        experiments: Whose pods they are.
        life_hours: How long a pod lives on average; ``pods * life_hours / 24`` live at a time.
        shards: Scrape targets of kube-state-metrics, each with a phase of its own in the minute.
        sm_active: Whether dcgm-exporter also tells ``SM_ACTIVE``, which is off by default.
        oddities: A few holes, counter resets, NaN and one sample of -1.97e25.
        pair: Whether a second Prometheus wrote the series of kube-state-metrics to the same store.
        seed: Of all that is random.
        day: The UTC day.
    """

    pods: int = 10_000
    nodes: int = 1_000
    cards: int = 8
    experiments: int = 300
    life_hours: float = 12.0
    shards: int = 4
    sm_active: bool = False
    oddities: bool = True
    pair: bool = False
    seed: int = 4
    day: date = date(2026, 10, 5)

    @property
    def start(self) -> int:
        """The day's start in milliseconds since 1970."""
        moment = datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC)
        return int(moment.timestamp()) * 1000

    @property
    def end(self) -> int:
        """The day's end in milliseconds since 1970."""
        return self.start + DAY

    @property
    def fingerprint(self) -> str:
        """Names the samples that these options give."""
        told = {name: str(value) for name, value in asdict(self).items()}
        return short_hash(canonical_json({**told, "form": str(FORM)}))
