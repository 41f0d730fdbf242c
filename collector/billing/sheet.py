"""A bill file as text: every cell a string, in batches, whatever the file's form.

CSV stays as it is written; what Parquet holds is turned into text without loss (a double through
the shortest text that gives the same double). One set of rules then reads both.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import polars as pl

from collector.billing.files import LocalFile
from ledger.errors import BadInputError

BATCH_ROWS = 50_000
ROW = "row"
"""Column of the row number: the header is row 1, as in a spreadsheet; blank lines count."""

SURPLUS = "cell beyond the last header"
"""Column that is null but in a row with more cells than there are headers."""

NULL_WORDS = ("NULL", "null", "None", "NaN")
_HEAD, _TAIL = 1 << 20, 1 << 16


class Sheet(Protocol):
    """A file whose headers are known."""

    @property
    def headers(self) -> tuple[str, ...]:
        """Column names as they stand in the file."""
        ...

    def batches(self, names: Sequence[str], wanted: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows, some at a time.

        Args:
            names: A unique name for each header.
            wanted: Those of ``names`` to read.

        Returns:
            Frames with ``ROW`` (UInt32), ``SURPLUS`` (String) and the ``wanted`` columns (String).

        Raises:
            BadInputError: The file breaks off or is damaged.
        """
        ...


def open_sheet(file: LocalFile) -> Sheet:
    """Open a file and read its headers.

    Raises:
        BadInputError: It is neither CSV nor Parquet, or is damaged.
    """
    return ParquetSheet(file) if file.parquet else CsvSheet(file)


class CsvSheet:
    """A CSV file: comma, double quotes, UTF-8 with or without a byte order mark."""

    def __init__(self, file: LocalFile) -> None:
        self._file = file
        self.headers, self._head = _csv_head(file)

    def batches(self, names: Sequence[str], wanted: Sequence[str]) -> Iterator[pl.DataFrame]:
        """See ``Sheet.batches``."""
        _refuse_cut_csv(self._file, len(self.headers))
        frame = pl.scan_csv(
            self._file.path,
            glob=False,
            has_header=False,
            skip_rows=self._head,
            # A row that is too long shows in one more column instead of failing the file.
            schema=dict.fromkeys((*names, SURPLUS), pl.String()),
            missing_columns="insert",
            truncate_ragged_lines=True,
            null_values=list(NULL_WORDS),
            encoding="utf8-lossy",
            row_index_name=ROW,
            row_index_offset=self._head + 1,
        )
        yield from _collected(frame.select(ROW, SURPLUS, *wanted), self._file.where)


def _csv_head(file: LocalFile) -> tuple[tuple[str, ...], int]:
    """Headers, and how many rows they and the blank lines above them take."""
    with file.path.open("rb") as stream:
        text = stream.read(_HEAD).decode("utf-8-sig", errors="replace")
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(text, newline="")), start=1):
            if any(cell.strip() for cell in cells):
                return tuple(cells), number
    except csv.Error as error:
        raise BadInputError(f"{file.where} is neither CSV nor Parquet: {error}") from error
    raise BadInputError(f"{file.where} has no header")


def _refuse_cut_csv(file: LocalFile, width: int) -> None:
    """A last line without an end and with too few cells: the file was cut while being written."""
    with file.path.open("rb") as stream:
        stream.seek(0, io.SEEK_END)
        stream.seek(max(0, stream.tell() - _TAIL))
        last = stream.read().rpartition(b"\n")[2].decode("utf-8", errors="replace")
    if not last.strip() or last.count('"') % 2:
        return  # nothing, or the end of a cell with line breaks: the full parser will see
    try:
        cells = next(csv.reader([last]))
    except csv.Error as error:
        raise BadInputError(f"{file.where} is neither CSV nor Parquet: {error}") from error
    if len(cells) < width:
        raise BadInputError(
            f"{file.where} breaks off in its last row: {len(cells)} cells under {width} headers"
        )


class ParquetSheet:
    """A Parquet file."""

    def __init__(self, file: LocalFile) -> None:
        self._file = file
        self._schema = _guarded_schema(file.path, file.where)
        self.headers = tuple(self._schema)

    def batches(self, names: Sequence[str], wanted: Sequence[str]) -> Iterator[pl.DataFrame]:
        """See ``Sheet.batches``."""
        cells = [
            as_text(pl.col(header), dtype).alias(name)
            for name, (header, dtype) in zip(names, self._schema.items(), strict=True)
            if name in wanted
        ]
        frame = pl.scan_parquet(self._file.path, glob=False).with_row_index(ROW, 2)
        surplus = pl.lit(None, pl.String()).alias(SURPLUS)
        yield from _collected(frame.select(ROW, surplus, *cells), self._file.where)


def as_text(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A typed cell as the text that a CSV file would hold; nulls and null words are null."""
    if isinstance(dtype, pl.Datetime):
        zone = "Z" if dtype.time_zone else ""
        cell = cell.dt.convert_time_zone("UTC") if zone else cell
        return cell.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.6f{zone}")
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        if [field.name for field in dtype.inner.fields] == ["key", "value"]:
            return _map_as_json(cell)
    if isinstance(dtype, pl.Struct | pl.List | pl.Array):
        return pl.when(cell.is_not_null()).then(json_of(cell))
    text = cell.cast(pl.String(), strict=False)
    return pl.when(~text.is_in(NULL_WORDS)).then(text)


def json_of(cell: pl.Expr) -> pl.Expr:
    """A value as JSON text."""
    head, tail = '{"v":', "}"
    wrapped = pl.struct(cell.alias("v")).struct.json_encode()
    return wrapped.str.slice(len(head), wrapped.str.len_chars() - len(head) - len(tail))


def _map_as_json(cell: pl.Expr) -> pl.Expr:
    key, value = (pl.element().struct.field(name) for name in ("key", "value"))
    pairs = cell.list.eval(pl.concat_str(json_of(key), pl.lit(":"), json_of(value)))
    return pl.concat_str(pl.lit("{"), pairs.list.join(","), pl.lit("}"))


def _guarded_schema(path: Path, where: str) -> pl.Schema:
    try:
        return pl.scan_parquet(path, glob=False).collect_schema()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise BadInputError(
            f"{where} is a Parquet file that is cut or damaged: {first_line(error)}"
        ) from error


def _collected(frame: pl.LazyFrame, where: str) -> Iterator[pl.DataFrame]:
    try:
        yield from frame.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise BadInputError(f"{where} is damaged: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error, cut to a readable length."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
