"""What a simulated world is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from ledger.errors import UsageError
from ledger.window import FIRST_YEAR, LAST_YEAR, Window

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
"""Lengths in milliseconds, the unit of all times of the simulator (since the epoch, UTC)."""


def milliseconds(moment: datetime) -> int:
    """Milliseconds since the epoch; exact, without a float in between."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def moment(at: int) -> datetime:
    """The UTC time of milliseconds since the epoch."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def _yesterday() -> date:
    return datetime.now(UTC).date() - timedelta(days=1)


@dataclass(frozen=True)
class WorldOptions:
    """Size and place of a world; equal options give equal bytes.

    Args:
        seed: Varies start times, lengths and prices inside the same structure.
        days: UTC days, at least 1. The nights-and-weekends rule wants 14 or more.
        end: The last day, included; by default yesterday.
        nodes: GPU nodes, at least 3 (one to train on, one for research, one that stays empty).
        gpus_per_node: Cards of each GPU node.
        cpu_nodes: Nodes without cards, at least 1.
        interval: Seconds between two scrapes; divides an hour, 15 to 300.
        timezone: Zone of working hours (08:00 to 22:00, Monday to Friday).
        cluster: Name of the cluster in the settings.
        currency: Currency of the bill.
        outage_hours: Length of a hole in the monitoring in the middle of the world, 0 for none.
        containers: None for the told story; else that many pods a day in a uniform load.
        experiments: Number of experiments of the uniform load.

    Raises:
        UsageError: A number is outside its range.
    """

    seed: int = 1
    days: int = 16
    end: date = field(default_factory=_yesterday)
    nodes: int = 7
    gpus_per_node: int = 8
    cpu_nodes: int = 1
    interval: int = 60
    timezone: str = "Asia/Shanghai"
    cluster: str = "train-a"
    currency: str = "USD"
    outage_hours: int = 0
    containers: int | None = None
    experiments: int = 200

    def __post_init__(self) -> None:
        """Refuse sizes that the story does not fit into."""
        for name, low, high in (
            ("days", 1, 3660),
            ("nodes", 3, 100_000),
            ("gpus_per_node", 1, 64),
            ("cpu_nodes", 1, 1000),
            ("interval", 15, 300),
            ("outage_hours", 0, 12),
            ("experiments", 1, 100_000),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(f"{name} is {value}", f"choose {low} to {high}")
        if 3600 % self.interval:
            raise UsageError(f"interval is {self.interval}", "choose a divisor of 3600")
        if self.containers is not None and self.containers < 1:
            raise UsageError(f"containers is {self.containers}", "choose 1 or more")
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError) as error:
            hint = "choose an IANA name, e.g. Asia/Shanghai"
            raise UsageError(f"{self.timezone!r} is no time zone", hint) from error
        if not FIRST_YEAR < self.end.year < LAST_YEAR:
            raise UsageError(f"end is {self.end}", f"choose {FIRST_YEAR + 1} to {LAST_YEAR - 1}")

    @classmethod
    def scaled(
        cls,
        containers: int = 10_000,
        gpu_nodes: int = 1_000,
        *,
        seed: int = 1,
        end: date = date(2026, 11, 30),
    ) -> WorldOptions:
        """One day of a uniform load for benchmarks: that many pods on that many GPU nodes."""
        return cls(seed=seed, days=1, end=end, nodes=max(gpu_nodes, 3), containers=containers)

    @property
    def window(self) -> Window:
        """The simulated days."""
        return Window.of_days(self.end - timedelta(days=self.days - 1), self.end)

    @property
    def start_ms(self) -> int:
        """First millisecond."""
        return milliseconds(self.window.start)

    @property
    def end_ms(self) -> int:
        """End, exclusive."""
        return milliseconds(self.window.end)

    @property
    def step(self) -> int:
        """Milliseconds between two scrapes."""
        return self.interval * 1000

    def snap(self, at: int) -> int:
        """The last scrape at or before a time."""
        return at // self.step * self.step

    @property
    def outage(self) -> tuple[int, int] | None:
        """The hole in the monitoring: last sample before it and first one after it."""
        if not self.outage_hours:
            return None
        start = self.start_ms + self.days // 2 * DAY + 9 * HOUR
        return start, start + self.outage_hours * HOUR
