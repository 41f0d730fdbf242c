"""A simulated cluster with a known truth: bills, Kubernetes objects and Prometheus series.

``simulate`` works out a world, ``write_world`` writes it as the files that collectors read,
``facts.facts`` gives a day of it as the ledger would hold it, ``truth.work_out`` the right answer,
and ``write_ledger`` writes a large ledger straight.
"""

from collector.simulate.ledger import write_ledger
from collector.simulate.model import World
from collector.simulate.options import WorldOptions
from collector.simulate.world import simulate
from collector.simulate.write import write_world

__all__ = ["World", "WorldOptions", "simulate", "write_ledger", "write_world"]
