"""The real servers that a test of the collector runs against, each in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from tests.prometheus_server import running_prometheus
from tests.victoria_server import running_victoria


class RealServer(NamedTuple):
    """A server that answers PromQL.

    Args:
        running: Fills and serves an empty folder; yields the base URL.
        few_samples: A flag that allows a query too few samples for hours at once.
    """

    running: Callable[..., AbstractContextManager[str]]
    few_samples: str

    def serve(
        self, folder: Path, openmetrics: Iterable[Path], *flags: str
    ) -> AbstractContextManager[str]:
        """Serve OpenMetrics files from a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        return self.running(folder, openmetrics, *flags)


# VictoriaMetrics counts the samples of a query by whole blocks, of which a small day has one.
SERVERS = {
    "prometheus": RealServer(running_prometheus, "--query.max-samples=1000"),
    "victoria-metrics": RealServer(running_victoria, "-search.maxSamplesPerSeries=100"),
}
