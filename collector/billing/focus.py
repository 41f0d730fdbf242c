"""The collector of FOCUS bills: files in, rows of ``charges`` for the days of a window out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.billing.columns import WISHED, MissingColumnError, RepeatedColumnError
from collector.billing.days import to_days
from collector.billing.kinds import dimension, elasticity
from collector.billing.reading import BillRead, read_bill
from collector.billing.report import counted_notes, emptied_columns, named, total_residue
from collector.billing.whole import whole_lines
from collector.source import Permissions, Probe
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.facts import Facts, Gap, Quarantine
from ledger.schema import CHARGES
from ledger.settings import Bill
from ledger.text import without_credentials
from ledger.window import Window

_COLUMNS = [name for name in CHARGES.columns if name != CHARGES.source_column]
_BLIND = {
    "EffectiveCost": "amortised cost, and with it every attributed figure",
    "ContractedCost": "negotiated savings",
    "ListCost": "savings against the list price",
    "ChargeCategory": "purchases, taxes and credits: all are taken for usage",
    "ServiceCategory": "the dimension of a line",
    "ResourceId": "which node or bucket a line pays for",
    "Tags": "attribution of lines that are no node",
}


@dataclass(frozen=True)
class FocusBill:
    """A bill in FOCUS Cost and Usage, 1.0 to 1.4.

    Args:
        bill: Its block of the settings.
        path: File, folder or glob; local (absolute, or relative to the working folder) or s3://.
    """

    bill: Bill
    path: str

    @property
    def name(self) -> str:
        """The bill's name in the settings: ``x_Source`` of its rows."""
        return self.bill.name

    @property
    def required(self) -> bool:
        """Whether a gap here makes the run end with exit code 3."""
        return self.bill.required

    @property
    def snapshot(self) -> bool:
        """A bill is a history, not a present."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Reading the objects of the bill's bucket."""
        return Permissions(iam=("s3:GetObject", "s3:ListBucket"))

    def collect(self, window: Window) -> Facts:
        """The bill's lines, or days' parts of lines, on the days of the window.

        A line keeps its ``x_LineId``, ``x_Part`` and amounts whatever the window. ``data_through``
        is the end of the last usage line: purchases, taxes and recurring fees reach beyond what
        has been delivered.

        Args:
            window: Whole UTC days.

        Returns:
            ``charges``, sorted by day, line and part. A file that could not be read is a gap, and
            so is one without the column ``EffectiveCost``, whose lines are kept.

        Raises:
            SourceError: Nothing is at the path, or nothing there could be read.
            BadInputError: No file there is a FOCUS bill.
        """
        read = read_bill(self.path, self.bill.timezone, window)
        charges, alerts = _charges(read, window)
        return Facts(
            window,
            {CHARGES.name: charges},
            coverage=len(read.tallies) / (len(read.tallies) + len(read.refused)),
            gaps=(
                *(Gap(_reason(error), str(error)) for _, error in read.refused),
                *_costless(read),
            ),
            quarantine=_quarantine(read),
            notes=(
                *_file_notes(read),
                *alerts,
                *emptied_columns(read.tallies),
                *counted_notes(read.tallies),
            ),
            residue=total_residue(read.tallies),
            data_through=read.data_through,
            read=sum(tally.rows for tally in read.tallies) + len(read.refused),
        )

    def reach(self) -> Window | None:
        """The span of the charge periods, in whole UTC days; None if there is no line.

        Raises:
            SourceError: As ``collect``.
            BadInputError: As ``collect``.
        """
        return _whole_days(read_bill(self.path, self.bill.timezone, None).span)

    def probe(self) -> Sequence[Probe]:
        """Whether the path can be read, what period it holds, and which columns it lacks."""
        need = f"read {without_credentials(self.path)}"
        try:
            read = read_bill(self.path, self.bill.timezone, None)
        except (SourceError, BadInputError) as error:
            return [Probe(need, False, str(error), "the whole bill", failure=type(error))]
        rows = sum(tally.rows for tally in read.tallies)
        detail = f"{rows} lines in {len(read.tallies)} files"
        blind = ""
        if read.refused:
            detail += f"; {len(read.refused)} refused, the first: {read.refused[0][1]}"
            blind = "the lines of the refused files"
        found = Probe(need, not read.refused, detail, blind, _whole_days(read.span))
        return [found, *(_column_probe(name, name not in read.lacking) for name in WISHED)]


def _charges(read: BillRead, window: Window) -> tuple[pl.DataFrame, tuple[str, ...]]:
    lines, alerts = whole_lines(read)
    days = to_days(lines, window)
    del lines
    kinds = (dimension(), elasticity(), pl.lit("billed").alias("x_Basis"))
    # FOCUS tells neither apart: an invoice is that of its billing period, a price is the bill's.
    own = (pl.lit(None, pl.String).alias(name) for name in ("x_InvoiceMonth", "x_PriceSource"))
    charges = days.with_columns(*kinds, *own).select(_COLUMNS)
    return charges.sort("day", "x_LineId", "x_Part"), alerts


def _column_probe(name: str, there: bool) -> Probe:
    detail = "there" if there else "a file does not have it"
    return Probe(f"column {name}", there, detail, "" if there else _BLIND[name])


def _whole_days(span: Window | None) -> Window | None:
    if span is None:
        return None
    return Window.of_days(span.start.date(), (span.end - timedelta(microseconds=1)).date())


def _reason(error: SourceError | BadInputError) -> str:
    """The short stable name of why a file was refused."""
    names: dict[type[Exception], str] = {
        MissingColumnError: "missing_column",
        RepeatedColumnError: "repeated_column",
        AccessError: "access_denied",
    }
    return names.get(type(error), "unreadable_file")


def _costless(read: BillRead) -> Iterator[Gap]:
    """FOCUS wants an effective cost on each line; without the column nothing costs a known sum."""
    column = "EffectiveCost"
    files = [tally.where for tally in read.tallies if column in tally.lacking]
    if files:
        detail = f"the column {column} is not there: the cost of every line is unknown"
        yield Gap("missing_column", f"{detail} ({named(files)})")


def _quarantine(read: BillRead) -> tuple[Quarantine, ...]:
    files = (Quarantine(_reason(error), where, 1, error.message) for where, error in read.refused)
    return (*files, *(entry for tally in read.tallies for entry in tally.quarantine()))


def _file_notes(read: BillRead) -> Iterator[str]:
    if ignored := read.listing.ignored:
        yield f"{len(ignored)} files are no bill data and were not read: {named(ignored)}"
    for where, first in read.twins:
        yield f"{where} has the same content as {first}: read once"
