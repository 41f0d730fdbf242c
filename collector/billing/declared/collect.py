"""The collector of declared costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from collector.billing.declared.entry import Entry, EntryError, read_entry
from collector.billing.declared.file import ENDINGS, read_rows
from collector.billing.declared.lines import charges
from collector.billing.files import fetch, find
from collector.billing.report import named
from collector.source import Permissions, Probe
from ledger.errors import BadInputError, SourceError
from ledger.facts import Facts, Gap, Quarantine
from ledger.schema import CHARGES
from ledger.settings import Bill
from ledger.text import counted, without_credentials
from ledger.window import Window


@dataclass
class _Read:
    """What came of the files.

    Args:
        entries: Good rows.
        rows: Rows that were read, good and bad.
        files: Files that could be read.
        quarantine: Rows and files that were put aside.
        refused: Files that could not be read, and why.
        ignored: Files that are no list of costs.
    """

    entries: list[Entry] = field(default_factory=list)
    rows: int = 0
    files: int = 0
    quarantine: list[Quarantine] = field(default_factory=list)
    refused: list[tuple[str, SourceError | BadInputError]] = field(default_factory=list)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredCosts:
    """A list of costs that no cloud bills.

    Args:
        bill: Its block of the settings.
        path: File, folder or glob; local or s3://.
    """

    bill: Bill
    path: str

    @property
    def name(self) -> str:
        """The list's name in the settings: ``x_Source`` of its rows."""
        return self.bill.name

    @property
    def required(self) -> bool:
        """Whether a gap here makes the run end with exit code 3."""
        return self.bill.required

    @property
    def snapshot(self) -> bool:
        """The list says what was and will be, not a present."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Reading the list, where it lies in a bucket."""
        if not self.path.startswith("s3://"):
            return Permissions()
        return Permissions(iam=("s3:GetObject", "s3:ListBucket"))

    def collect(self, window: Window) -> Facts:
        """The costs that fall on the days of a window.

        Args:
            window: Whole UTC days.

        Raises:
            SourceError: Nothing is at the path, or nothing there could be read.
            BadInputError: No file there is a list of costs.
        """
        read = self._read()
        if read.refused and not read.files:
            raise read.refused[0][1]
        notes = (f"not read: {named(read.ignored)}",) if read.ignored else ()
        return Facts(
            window,
            {CHARGES.name: charges(read.entries, window)},
            coverage=read.files / (read.files + len(read.refused)),
            gaps=tuple(Gap("unreadable_file", str(error)) for _, error in read.refused),
            quarantine=tuple(read.quarantine),
            notes=notes,
            read=read.rows + len(read.refused),
        )

    def probe(self) -> Sequence[Probe]:
        """Whether the list can be read, and how many costs it names."""
        need = f"read {without_credentials(self.path)}"
        try:
            read = self._read()
        except (SourceError, BadInputError) as error:
            return [Probe(need, False, str(error), "declared costs", failure=type(error))]
        bad = sum(entry.count for entry in read.quarantine)
        detail = f"{counted(len(read.entries), 'cost')}"
        if bad:
            detail += f"; {bad} put aside, the first: {read.quarantine[0].example}"
        return [Probe(need, not bad, detail, "costs that were put aside" if bad else "")]

    def reach(self) -> Window | None:
        """From the first to the last day that any cost names; None if one of them goes on."""
        entries = self._read().entries
        lasts = [entry.last or (entry.first if entry.per == "once" else None) for entry in entries]
        known = [last for last in lasts if last is not None]
        if not entries or len(known) < len(lasts):
            return None
        return Window.of_days(min(entry.first for entry in entries), max(known))

    def _read(self) -> _Read:
        listing = find(self.path, ENDINGS)
        read = _Read(ignored=listing.ignored)
        read.refused += [
            (where, SourceError(f"may not look into {where}")) for where in listing.barred
        ]
        for where in listing.files:
            with TemporaryDirectory() as folder:
                self._read_file(where, Path(folder), read)
        return read

    def _read_file(self, where: str, folder: Path, read: _Read) -> None:
        try:
            rows = read_rows(fetch(where, folder))
        except (SourceError, BadInputError) as error:
            read.refused.append((where, error))
            read.quarantine.append(Quarantine("unreadable_file", where, 1, error.message))
            return
        read.files += 1
        faults: dict[str, list[str]] = {}
        for place, cells in rows:
            read.rows += 1
            try:
                if "" in cells:
                    raise EntryError("bad_row", str(cells[""]))
                read.entries.append(read_entry(cells, self.bill.currency))
            except EntryError as error:
                faults.setdefault(error.reason, []).append(f"{place}: {error}")
        read.quarantine += [
            Quarantine(reason, where, len(examples), examples[0])
            for reason, examples in sorted(faults.items())
        ]
