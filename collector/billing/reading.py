"""All files of a bill, each read once: one that cannot be read is refused whole, the rest go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from collector.billing.columns import ESSENTIAL, OTHER, WISHED, Match, match_headers
from collector.billing.files import Listing, LocalFile, fetch, find
from collector.billing.lines import clean, with_periods
from collector.billing.report import Tally
from collector.billing.sheet import open_sheet
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.window import Window

FILE = "file"
"""Column of the number of the file that a line was read from."""

_SPAN_COLUMNS = (*ESSENTIAL, "ChargeCategory", "ChargeFrequency")


@dataclass
class BillRead:
    """What came of the files of a bill.

    Args:
        listing: The files found.
        tallies: What was met, per file that was read.
        frames: Clean lines (``collector.billing.lines.clean``) with the number of their file.
        refused: Files that could not be read, and why.
        twins: Files with the content of another one, and that one.
        lacking: Columns worth having that a file does not have.
    """

    listing: Listing
    tallies: list[Tally] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    refused: list[tuple[str, SourceError | BadInputError]] = field(default_factory=list)
    twins: list[tuple[str, str]] = field(default_factory=list)
    lacking: set[str] = field(default_factory=set)

    @property
    def span(self) -> Window | None:
        """From the first to the last moment that a line has a day for."""
        starts = [tally.start for tally in self.tallies if tally.start]
        ends = [tally.end for tally in self.tallies if tally.end]
        return Window(min(starts), max(ends)) if starts and ends else None

    @property
    def data_through(self) -> datetime | None:
        """End of the delivered usage; of all lines if none is usage."""
        delivered = [tally.delivered for tally in self.tallies if tally.delivered]
        return max(delivered, default=self.span.end if self.span else None)


def read_bill(path: str, zone: str, window: Window | None) -> BillRead:
    """Read the files at a path.

    Args:
        path: File, folder or glob; local or s3://.
        zone: Zone of times that carry none.
        window: Lines without a day in it are left out; None = no lines, only the span.

    Raises:
        SourceError: Nothing is at the path, or nothing there could be read.
        BadInputError: No file there is a FOCUS bill.
    """
    bill = BillRead(find(path))
    for file in _distinct_files(bill):
        tally = Tally(file.where, zone)
        try:
            frames = _read_file(file, tally, bill, window)
        except (SourceError, BadInputError) as error:
            bill.refused.append((file.where, error))
            continue
        number = pl.lit(len(bill.tallies), pl.Int64).alias(FILE)
        bill.frames += [frame.with_columns(number) for frame in frames if frame.height]
        bill.tallies.append(tally)
    if not bill.tallies:
        raise _nothing_read(path, bill)
    return bill


def _distinct_files(bill: BillRead) -> Iterator[LocalFile]:
    """The files one by one, each in a working folder of its own; a second copy is passed over."""
    seen: dict[str, str] = {}
    for where in (*bill.listing.files, *bill.listing.barred):
        with TemporaryDirectory(prefix="runbill-") as folder:
            try:
                file = fetch(where, Path(folder))
                content = file.digest() if len(bill.listing.files) > 1 else where
            except (SourceError, BadInputError) as error:
                bill.refused.append((where, error))
                continue
            if content in seen:
                bill.twins.append((where, seen[content]))
                continue
            seen[content] = where
            yield file


def _read_file(
    file: LocalFile, tally: Tally, bill: BillRead, window: Window | None
) -> list[pl.DataFrame]:
    sheet = open_sheet(file)
    match = match_headers(sheet.headers, file.where)
    tally.lacking = match.lacking(WISHED)
    bill.lacking.update(tally.lacking)
    _note_headers(match, tally)
    if window is None:
        names = [name for name in _SPAN_COLUMNS if name in match.names]
        for batch in sheet.batches(match.names, names):
            with_periods(batch, tally)
        return []
    return [clean(batch, window, tally) for batch in sheet.batches(match.names, match.names)]


def _note_headers(match: Match, tally: Tally) -> None:
    renamed = (f"{header} as {name}" for header, name in sorted(match.renamed.items()))
    for kind, columns in (
        ("renamed", renamed),
        ("kept", (name.removeprefix(OTHER) for name in match.others)),
        ("repeated", match.repeated),
        ("lacking", match.lacking(WISHED)),
    ):
        if listed := ", ".join(columns):
            tally.count(kind, 1, listed)


def _nothing_read(path: str, bill: BillRead) -> SourceError | BadInputError:
    """The error of a bill of which no file could be read."""
    if not bill.refused:
        return SourceError(
            f"no bill file at {path}: {len(bill.listing.ignored)} files there are no data",
            "bills end in .csv, .csv.gz or .parquet",
        )
    first = bill.refused[0][1]
    if len(bill.refused) == 1:
        return first
    kind = (
        AccessError
        if all(isinstance(e, AccessError) for _, e in bill.refused)
        else (SourceError if isinstance(first, SourceError) else BadInputError)
    )
    return kind(
        f"none of the {len(bill.refused)} files at {path} could be read; "
        f"the first: {first.message}",
        first.hint,
    )
