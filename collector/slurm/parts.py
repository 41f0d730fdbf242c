"""One file of ``sacct`` as records, and the time of which it is known to tell every job.

``sacct -S START -E END`` lists the jobs that were there between the two. JSON of late releases
names both; else the day of the first end is the earliest that the file can stand for (what ended
before START is not in it), and the day of the last submission or start is the last one. Nothing is
known beyond the moment at which it was written: jobs that still run tell that, as their elapsed
time counts up to it; else the file system does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import polars as pl

from collector.slurm import decode, text
from collector.slurm.files import Export
from collector.slurm.record import BOOTING, RUNNING
from collector.slurm.spans import DAY, Span
from ledger.errors import BadInputError

_YEAR = 366 * DAY
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # the years 2000 and 2100


@dataclass(frozen=True)
class Part:
    """What one file says.

    Args:
        where: Its path.
        rows: In the form of ``record.SCHEMA``.
        exported: When it was written, in seconds since the epoch.
        covered: The time of which it tells every job; None = it does not say.
        zoneless: Rows with times that name no zone.
        notes: What a reader should know.
        errors: What Slurm itself could not read.
    """

    where: str
    rows: pl.DataFrame
    exported: int
    covered: Span | None
    zoneless: int = 0
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = field(default=())


def read(export: Export, zone: str, delimiter: str | None) -> Part:
    """Read a file, whatever its format.

    Args:
        export: The file.
        zone: IANA zone of times that carry none.
        delimiter: What stands between cells of a text; None = found in the header.

    Raises:
        BadInputError: It is neither ``sacct --json`` nor ``sacct -P``, or lacks what is needed.
    """
    if export.is_json:
        try:
            document = decode.decode(export.data.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadInputError(f"{export.where} is no whole JSON document: {error}") from error
        if document is None:
            raise BadInputError(f"{export.where} holds no jobs", "write it with sacct -a -D --json")
        exported = _exported(document.rows, export.written)
        asked = _asked(document.command, zone)
        covered = _covered(document.rows, exported, asked)
        return Part(export.where, document.rows, exported, covered, errors=document.errors)
    content, replaced = export.text()
    sheet = text.read(content, delimiter, zone, export.where)
    exported = _exported(sheet.rows, export.written)
    notes = (f"{export.where}: bytes that are no UTF-8 were replaced",) if replaced else ()
    covered = _covered(sheet.rows, exported, (None, None))
    return Part(export.where, sheet.rows, exported, covered, sheet.zoneless, notes)


def _exported(rows: pl.DataFrame, written: int) -> int:
    """When the file was written: by jobs that ran then, else by the file system."""
    runs = rows.filter(
        pl.col("end").is_null(),
        pl.col("elapsed") > 0,
        pl.col("state").is_in(sorted(RUNNING | BOOTING)),
    )
    until = pl.col("start") + pl.col("elapsed") + pl.col("suspended").fill_null(0)
    now = runs.select(until.median()).item()
    if now is not None and _EARLIEST < now < _LATEST:
        return int(now)
    times = pl.concat([rows[name] for name in ("submit", "start", "end")]).drop_nulls()
    # A single time that is years away says nothing of when the file was written.
    usual = times.quantile(0.5, "lower") or 0
    last = times.filter(times <= usual + _YEAR).max()
    return max(written, int(str(last or 0)))


def _covered(
    rows: pl.DataFrame, exported: int, asked: tuple[int | None, int | None]
) -> Span | None:
    """The time of which the file tells every job."""
    good = rows.filter(pl.col("bad").is_null())
    first_end, last_start, last_submit = good.select(
        pl.col("end").min(), last=pl.col("start").max(), submitted=pl.col("submit").max()
    ).row(0)
    changes = [each for each in (last_start, last_submit) if each is not None]
    last_change = max(changes) if changes else None
    start, end = asked
    if start is None:
        earliest = last_start if first_end is None else first_end
        start = None if earliest is None else earliest // DAY * DAY
    if end is None and last_change is not None:
        end = (last_change // DAY + 1) * DAY
    if start is None or end is None or start >= min(end, exported):
        return None
    return start, min(end, exported)


def _asked(command: tuple[str, ...], zone: str) -> tuple[int | None, int | None]:
    """START and END of the command that wrote a file, where it names days or moments."""
    found: dict[str, int | None] = {"S": None, "E": None}
    names = {"-S": "S", "--starttime": "S", "-E": "E", "--endtime": "E"}
    for number, word in enumerate(command):
        flag, equals, value = word.partition("=")
        if flag not in names and word[:2] in names and not word.startswith("--"):
            flag, equals, value = word[:2], "=", word[2:]
        if flag in names:
            given = value if equals else next(iter(command[number + 1 : number + 2]), "")
            found[names[flag]] = _moment(given, zone)
    return found["S"], found["E"]


def _moment(word: str, zone: str) -> int | None:
    """``2026-11-30`` or ``2026-11-30T00:00:00`` in a zone; None of any other form."""
    if len(word) < len("2026-11-30"):
        return None
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).timestamp())
