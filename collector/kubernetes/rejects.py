"""Objects and files that are put aside: the decision about one, and the count of all."""

from __future__ import annotations

from ledger.facts import Quarantine


class Rejected(Exception):
    """One object cannot be used; it is put aside and counted.

    Args:
        reason: Name of the quarantine: bad_date, clock, bad_number, bad_object, no_uid, ...
        detail: What is wrong with it, in short.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Rejects:
    """Counts what was put aside, by reason and place, with the first example of each."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._examples: dict[tuple[str, str], str] = {}

    def add(self, reason: str, where: str, example: str) -> None:
        """Count one object or file."""
        key = (reason, where)
        self._counts[key] = self._counts.get(key, 0) + 1
        self._examples.setdefault(key, example)

    @property
    def total(self) -> int:
        """Number of objects and files put aside so far."""
        return sum(self._counts.values())

    def entries(self) -> tuple[Quarantine, ...]:
        """One entry per reason and place, in a fixed order."""
        return tuple(
            Quarantine(reason, where, count, self._examples[reason, where])
            for (reason, where), count in sorted(self._counts.items())
        )
