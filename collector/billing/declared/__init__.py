"""Declared costs: what no cloud bills (annotation, labour, licences, own machines), from a list.

``file`` reads a CSV or YAML file as text cells, ``entry`` checks one row of it, ``lines`` spreads
the entries over their periods, and ``collect`` is the collector that puts them together. The form
is described in ``docs/declared.md``.
"""

from __future__ import annotations

from collector.billing.declared.collect import DeclaredCosts

__all__ = ["DeclaredCosts"]
