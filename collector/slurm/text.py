"""Reads the text of ``sacct -P``: a header, then one line per job and step, of any fields.

Columns of fixed width are refused, as ``sacct`` cuts what does not fit and marks it with ``+``. A
free text (the name of a job, a comment) may hold the delimiter: where the cells beside it tell
where it ends it is put together again, else the line is put aside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from collector.slurm.record import SCHEMA, with_states
from collector.slurm.times import is_none, read_times, settle, with_seconds
from ledger.errors import BadInputError

COMMAND = (
    "sacct -a -D -P -S START -E END "
    "-o Cluster,JobIDRaw,JobID,Account,User,Partition,QOS,Submit,Start,End,Elapsed,Suspended,"
    "State,ExitCode,NodeList,AllocTRES,Reservation,JobName,WCKey,Comment,AdminComment"
)
"""The command that writes all that is read."""

# Columns of a record, and the fields of sacct that give it, the best first.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "cluster": ("cluster",),
    "job": ("jobid", "jobidraw"),
    "raw": ("jobidraw",),
    "submit": ("submit",),
    "start": ("start",),
    "end": ("end",),
    "elapsed": ("elapsedraw", "elapsed"),
    "suspended": ("suspended",),
    "state": ("state",),
    "nodes": ("nodelist",),
    "tres": ("alloctres",),
    "asked": ("reqtres",),
    "name": ("jobname",),
    "account": ("account",),
    "user": ("user",),
    "partition": ("partition",),
    "qos": ("qos",),
    "comment": ("comment",),
    "admin_comment": ("admincomment",),
    "wckey": ("wckey",),
    "reservation": ("reservation",),
    "exit_code": ("exitcode",),
}
_SPELLED = {
    "jobid": "JobID",
    "start": "Start",
    "end": "End",
    "state": "State",
    "nodelist": "NodeList",
    "alloctres": "AllocTRES",
}
_NEEDED = ("jobid", "start", "end", "state", "nodelist", "alloctres")
_INSTEAD = {"jobid": ("jobidraw",), "alloctres": ("reqtres",)}
_FREE = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "wckey", "submitline", "workdir"}
    | {"extra", "container", "reason", "failednode", "stdout", "stderr", "stdin", "licenses"}
)
_TIMES = ("submit", "start", "end")
_STEP = r"^[^.]*\."


@dataclass(frozen=True)
class Sheet:
    """What a text of ``sacct`` holds.

    Args:
        rows: In the form of ``record.SCHEMA``; steps are left out.
        zoneless: How many of them have times that name no zone.
    """

    rows: pl.DataFrame
    zoneless: int = 0


def read(text: str, delimiter: str | None, zone: str, where: str) -> Sheet:
    """Read a text.

    Args:
        text: Its content.
        delimiter: What stands between cells; None = found in the header.
        zone: IANA zone of times that carry none.
        where: Path by which the user knows it.

    Raises:
        BadInputError: It is no such text, or lacks fields that are needed.
    """
    lines = pl.Series("line", text.split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    lines = lines.filter(lines.str.strip_chars() != "")
    if lines.is_empty():
        raise BadInputError(f"{where} is empty")
    header, split = _header(lines[0], delimiter, where)
    _check(header, where)
    body = lines.slice(1)
    body = body.filter(body != lines[0])  # files that were put together repeat it
    return _typed(_cells(body, header, split), zone)


def _header(line: str, delimiter: str | None, where: str) -> tuple[list[str], str]:
    """The names of the fields in lower case, and the delimiter."""
    if delimiter is None:
        found = re.match(r"^[A-Za-z][A-Za-z0-9_/%]*([^A-Za-z0-9_/%\s]+|\t)", line)
        delimiter = found[1] if found else None
    if delimiter is None and (re.fullmatch(r"\s*[A-Za-z]\w*(\s+[A-Za-z]\w*)+\s*", line)):
        raise BadInputError(
            f"{where} has columns of fixed width, in which sacct cuts what does not fit",
            f"write it with -P: {COMMAND}",
        )
    if delimiter is None:
        raise BadInputError(
            f"{where} has no header of sacct", f"write it without -n (--noheader): {COMMAND}"
        )
    names = [name.strip().lower().partition("%")[0] for name in line.split(delimiter)]
    return names, delimiter


def _check(header: Sequence[str], where: str) -> None:
    """Refuse a text that is no sacct, or lacks what nobody can do without."""
    if not {"jobid", "jobidraw"} & set(header):
        raise BadInputError(
            f"{where} has no header with JobID; its first line starts {header[0][:40]!r}",
            f"write it with a header: {COMMAND}",
        )
    missing = [
        _SPELLED[name] for name in _NEEDED if not {name, *_INSTEAD.get(name, ())} & set(header)
    ]
    if missing:
        raise BadInputError(f"{where} lacks the fields {', '.join(missing)}", f"use: {COMMAND}")


def _cells(lines: pl.Series, header: Sequence[str], delimiter: str) -> pl.DataFrame:
    """The cells by field, steps left out, and ``bad`` of lines that cannot be cut."""
    width = len(header)
    frame = lines.alias("line").to_frame()
    cut = frame.with_columns(pl.col("line").str.split(delimiter).alias("cells"))
    if header[0] in ("jobid", "jobidraw"):
        # No free text stands before the first cell, so that a step is known whatever follows.
        cut = cut.filter(~pl.col("cells").list.first().str.contains(_STEP).fill_null(value=False))
    right = pl.col("cells").list.len() == width
    short = pl.col("cells").list.len() < width
    cut = cut.with_columns(
        pl.when(short)
        .then(pl.lit("cut_line: "))
        .otherwise(pl.lit("delimiter_inside: "))
        .alias("why")
    )
    good = cut.filter(right)
    broken = cut.filter(~right).with_columns(
        pl.Series(
            "cells",
            [_mend(cells, header, delimiter) for cells in cut.filter(~right)["cells"].to_list()],
            dtype=pl.List(pl.String),
        )
    )
    every = pl.concat([good, broken])
    named = every.select(
        *(
            pl.col("cells").list.get(number, null_on_oob=True).alias(f"{name}")
            for number, name in enumerate(header)
            if name and name not in header[:number]
        ),
        pl.when(pl.col("cells").is_null())
        .then(pl.concat_str("why", pl.col("line").str.slice(0, 100)))
        .alias("bad"),
    )
    job = "jobid" if "jobid" in header else "jobidraw"
    return named.filter(~pl.col(job).str.contains(_STEP).fill_null(value=False))


def _mend(cells: list[str], header: Sequence[str], delimiter: str) -> list[str | None] | None:
    """The cells of a line with more of them than fields, if it is certain which belong together.

    Cells before the first free text and behind the last one stand where they should. Of several
    free texts none is certain.
    """
    more = len(cells) - len(header)
    free = [number for number, name in enumerate(header) if name in _FREE]
    if more < 0 or not free:
        return None
    first, last = free[0], free[-1]
    if any(header[number] in _known() for number in range(first, last + 1) if number not in free):
        return None
    tail = cells[last + 1 + more :]
    if first == last:
        middle: list[str | None] = [delimiter.join(cells[first : first + more + 1])]
    else:
        middle = [None] * (last - first + 1)
    return [*cells[:first], *middle, *tail]


def _known() -> frozenset[str]:
    return frozenset(name for fields in _FIELDS.values() for name in fields)


def _typed(cells: pl.DataFrame, zone: str) -> Sheet:
    """Cells as records."""
    known = set(cells.columns)
    picked = cells.select(
        *(
            pl.coalesce(
                *(_text(name) for name in fields if name in known), pl.lit(None, pl.String)
            ).alias(column)
            for column, fields in _FIELDS.items()
        ),
        "bad",
    )
    rows = picked.with_columns(pl.col(name).alias(f"{name}_text") for name in _TIMES)
    rows = with_seconds(read_times(rows, _TIMES, zone), ("elapsed", "suspended"))
    rows = rows.with_columns(
        pl.coalesce("tres", "asked").alias("tres"),
        pl.col("exit_code").str.extract(r"^(\d+)").alias("exit_code"),
        pl.coalesce("raw", pl.col("job").str.extract(r"^(\d+)")).alias("raw"),
        pl.col("job").str.extract(r"^(\d+)_").alias("array"),
        pl.coalesce("bad", *(_unread(name) for name in _TIMES)).alias("bad"),
    )
    rows = with_states(settle(rows))
    return Sheet(rows.select(*SCHEMA), int(rows["zoneless"].sum()))


def _text(name: str) -> pl.Expr:
    """A cell; null if it is empty."""
    text = pl.col(name).str.strip_chars()
    return pl.when(text != "").then(text)


def _unread(name: str) -> pl.Expr:
    """Why a time could not be read."""
    text = pl.col(f"{name}_text")
    failed = pl.col(name).is_null() & ~is_none(text)
    return pl.when(failed).then(pl.concat_str(pl.lit(f"bad_date: {name} "), text.str.slice(0, 40)))
