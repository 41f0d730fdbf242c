"""What cannot be seen because the settings name no source for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.settings import Settings


def blind_spots(settings: Settings) -> Iterator[tuple[str, str]]:
    """The sources that the settings do not name, and what is blind without each."""
    if not settings.billing:
        yield "billing", "what was really paid: every cost is estimated from prices"
    if not settings.billing and not settings.prices:
        yield "prices", "money of nodes: only GPU-hours can be shown"
    if not settings.clusters:
        yield "clusters", "which experiment used a node: its bill goes by its own tags"
    for cluster in settings.clusters:
        if cluster.slurm and not (cluster.kubernetes or cluster.prometheus):
            yield f"prometheus/{cluster.name}", "GPU activity: what was held but not used"
            continue
        if not cluster.kubernetes:
            yield f"kubernetes/{cluster.name}", "owners, annotations and exact start and end times"
        if not cluster.prometheus:
            yield f"prometheus/{cluster.name}", "pods deleted between runs, and GPU activity"
