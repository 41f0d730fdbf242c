"""The ledger: Delta Lake tables on a local folder or an object store.

A writer replaces the rows of a window of days and of one source in one transaction. Readers see
the state before or after it, never between. Two writers of different partitions both land; of two
writers of the same partition one wins whole and the other gets a ``ConflictError``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ledger.errors import AccessError, ConflictError, LedgerError, SourceError
from ledger.schema import TABLES, Table
from ledger.text import holds_credentials, without_credentials
from ledger.window import Window

_BATCH = 100_000
LARGE = 500_000
"""Rows above which a frame is not sorted again: that would take longer than to write it."""
"""Rows of a lazy frame that are written at once."""

_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl")
_UNUSABLE = re.compile(r"[=\[\]^|\\\n\r]|%[0-9A-Fa-f]{2}")


class Ledger:
    """A set of Delta tables under one root.

    Args:
        uri: Folder or object-store prefix (``s3://bucket/prefix``, ``gs://``, ``az://``).
        storage_options: Credentials and endpoint for the object store; the environment's
            (``AWS_*`` and so on) where absent.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self._options = dict(storage_options or {}) or None
        self._opened: dict[str, DeltaTable] = {}

    @classmethod
    def open(
        cls, uri: str, storage_options: Mapping[str, str] | None = None, *, create: bool = False
    ) -> Ledger:
        """Open a ledger; with ``create`` it need not exist yet.

        Raises:
            LedgerError: There is no ledger at that place, or something else.
            AccessError: The place refuses us.
            SourceError: It cannot be reached.
        """
        if holds_credentials(uri):
            raise LedgerError(
                f"the ledger's place {without_credentials(uri)} holds credentials",
                "name them in the environment, e.g. AWS_ACCESS_KEY_ID, or use a role",
            )
        _check_place(uri)
        ledger = cls(uri, storage_options)
        if not create and not ledger.exists():
            raise LedgerError(f"no ledger at {uri}", "close a day first: runbill run")
        if create and "://" not in uri:
            _make_folder(uri)
        return ledger

    def exists(self) -> bool:
        """Whether any table has been written."""
        return any(self._exists(TABLES[name]) for name in ("closes", "costs_daily", "charges"))

    def location(self, table: Table) -> str:
        """URI of a table, for other engines."""
        return f"{self.uri}/{table.name}"

    def scan(
        self, table: Table, window: Window | None = None, source: str | None = None
    ) -> pl.LazyFrame:
        """Rows of a table, pruned to the days that the window touches and to one source.

        Returns:
            A lazy frame with the table's columns in order; empty if nothing was written yet. It
            reads the newest version of the moment it is collected.
        """
        opened = self._table(table)
        if opened is None:
            return table.empty().lazy()
        rows = self._rows(opened, table)
        rows = rows.with_columns(  # columns that a newer version of runbill added
            pl.lit(None, dtype=table.columns[name].dtype).alias(name)
            for name in _lacking(opened, table)
        )
        if window is not None:
            days = list(window.days())
            rows = rows.filter(pl.col("day").is_between(days[0], days[-1]))
        if source is not None and table.source_column:
            rows = rows.filter(pl.col(table.source_column) == source)
        return rows.select(list(table.columns))

    def days(self, table: Table) -> list[date]:
        """The days that a table holds rows of, in order."""
        opened = self._table(table)
        if opened is None:
            return []
        return sorted({date.fromisoformat(p["day"]) for p in opened.partitions()})

    def replace(
        self,
        table: Table,
        frame: pl.DataFrame | pl.LazyFrame,
        window: Window,
        source: str | None = None,
        *,
        stage: str | None = None,
    ) -> None:
        """Replace the rows of the window's days (and source, and stage) in one transaction.

        An empty frame empties the partition: call this only for what was really read.

        Args:
            table: The table.
            frame: Its rows, without the source column if ``source`` is given. A lazy frame, and one
                of more than ``LARGE`` rows, is written batch by batch, as its rows lie; a lazy one
                is read twice.
            window: Whole UTC days.
            source: The source whose rows are replaced; required where the table has a source.
            stage: The stage, for ``closes``.

        Raises:
            LedgerError: The frame does not fit the table or holds rows outside the partition.
            ConflictError: Another writer replaced the same partition at the same time.
        """
        if not window.whole_days:
            raise LedgerError(f"{table.name}: {window} is not made of whole days")
        fixed = {}
        if table.source_column:
            if source is None:
                raise LedgerError(f"{table.name}: a source is needed to replace its rows")
            fixed[table.source_column] = source
        if stage is not None:
            fixed["stage"] = stage
        given = frame.with_columns(pl.lit(v).alias(k) for k, v in fixed.items())
        rows = (
            conform(table, given)
            if isinstance(given, pl.DataFrame) and given.height <= LARGE
            else _fitted(table, given.lazy())
        )
        days = list(window.days())
        inside = pl.col("day").is_between(days[0], days[-1]).all()
        if not rows.lazy().select(inside).collect().item():
            raise LedgerError(f"{table.name}: a row lies outside {window}")
        self._commit(table, rows, _predicate(days[0], days[-1], fixed))

    def history(self, table: Table) -> list[dict[str, Any]]:
        """The commits of a table, newest first."""
        opened = self._table(table)
        return opened.history() if opened else []

    def _rows(self, opened: DeltaTable, table: Table) -> pl.LazyFrame:
        """All rows; for a local path with blanks or the like, by the true names of its files.

        delta-rs gives the files of a local table as parts of a URL, and polars takes these for
        paths: "my%20books" for "my books".
        """
        shown = opened.table_uri.removeprefix("file://")
        if "://" in self.uri or shown == unquote(shown):
            return pl.scan_delta(opened)
        files = [unquote(shown) + file.removeprefix(shown) for file in opened.file_uris()]
        schema = {f.name: table.schema[f.name] for f in opened.schema().fields}
        if not files:
            return pl.LazyFrame(schema=schema)
        return pl.scan_parquet(
            files,
            glob=False,
            hive_schema={name: schema[name] for name in table.partition},
            schema=schema,
            missing_columns="insert",
        )

    def _commit(self, table: Table, rows: pl.DataFrame | pl.LazyFrame, predicate: str) -> None:
        target = self._create(table)
        data: Any = rows
        if isinstance(rows, pl.LazyFrame):
            data = rows.collect_batches(chunk_size=_BATCH, lazy=True)
        with _reported(self.uri):
            try:
                # Partitions are disjoint, so a writer of another day or source never conflicts.
                write_deltalake(
                    target,
                    data,
                    mode="overwrite",
                    predicate=predicate,
                    schema_mode="merge" if _lacking(target, table) else None,
                )
            except CommitFailedError as error:
                raise ConflictError(
                    f"another run replaced {table.name} ({predicate}) at the same time",
                    "its rows stand; run again to replace them",
                ) from error

    def _create(self, table: Table) -> DeltaTable:
        opened = self._table(table)
        if opened is not None:
            return opened
        with _reported(self.uri):
            DeltaTable.create(
                self.location(table),
                schema=_delta_schema(table),
                mode="ignore",
                partition_by=list(table.partition),
                storage_options=self._options,
            )
            self._opened[table.name] = DeltaTable(
                self.location(table), storage_options=self._options
            )
            return self._opened[table.name]

    def _exists(self, table: Table) -> bool:
        return self._table(table) is not None

    def _table(self, table: Table) -> DeltaTable | None:
        """The table at its newest version, or None if it does not exist yet.

        Handles are kept, because following a table costs a fraction of opening it.
        """
        with _reported(self.uri):
            opened = self._opened.get(table.name)
            if opened is not None:
                opened.update_incremental()
                return opened
            try:
                opened = DeltaTable(self.location(table), storage_options=self._options)
            except TableNotFoundError:
                if "://" not in self.uri:
                    _check_folder(self.uri, table)
                return None
            self._opened[table.name] = opened
            return opened


def conform(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the table's columns, sorted so that equal rows make equal files.

    Columns that may be null are added where they lack.

    Raises:
        LedgerError: A column is unknown, has another type, or lacks a value it must have.
    """
    rows = _fitted(table, frame.lazy()).collect()
    return rows.sort([*table.partition, *table.key], nulls_last=True, maintain_order=True)


def _fitted(table: Table, frame: pl.LazyFrame) -> pl.LazyFrame:
    """``conform`` without the order."""
    schema = frame.collect_schema()
    unknown = [name for name in schema if name not in table.columns]
    if unknown:
        raise LedgerError(f"{table.name}: unknown columns {', '.join(unknown)}")
    needed = [name for name, column in table.columns.items() if column.required]
    if lacking := [name for name in needed if name not in schema]:
        raise LedgerError(f"{table.name}: columns {', '.join(lacking)} are missing")
    for name, dtype in schema.items():
        if dtype not in (table.columns[name].dtype, pl.Null):
            raise LedgerError(
                f"{table.name}.{name} is {dtype}, the table holds {table.columns[name].dtype}"
            )
    null = frame.select(pl.col(needed).null_count()).collect().row(0, named=True)
    if holes := [name for name, count in null.items() if count]:
        raise LedgerError(f"{table.name}: {', '.join(holes)} must not be null")
    return frame.select(
        (
            pl.col(name).cast(column.dtype) if name in schema else pl.lit(None, dtype=column.dtype)
        ).alias(name)
        for name, column in table.columns.items()
    )


def _lacking(opened: DeltaTable, table: Table) -> list[str]:
    """Columns that the stored table does not have yet."""
    stored = {field.name for field in opened.schema().fields}
    return [name for name in table.columns if name not in stored]


def _predicate(first: date, last: date, fixed: Mapping[str, str]) -> str:
    quoted = {name: value.replace("'", "''") for name, value in fixed.items()}
    equal = [f"{name} = '{value}'" for name, value in quoted.items()]
    return " AND ".join([f"day >= '{first}'", f"day <= '{last}'", *equal])


def _delta_schema(table: Table) -> Schema:
    return Schema.from_arrow(pl.Schema(table.schema))


def _check_place(uri: str) -> None:
    """Refuse what the table format cannot take, before anything is written.

    Raises:
        LedgerError: The scheme is unknown, or the local path holds a character that delta-rs or
            polars reads as something else (``=`` makes a partition of a folder).
    """
    scheme, mark, _ = uri.partition("://")
    if mark and scheme not in _SCHEMES:
        raise LedgerError(
            f"{uri} is no place for a ledger", f"a folder, or one of {', '.join(_SCHEMES)}"
        )
    bad = sorted(set(_UNUSABLE.findall(uri))) if not mark else []
    if bad:
        raise LedgerError(
            f"the ledger's folder {uri} holds {' '.join(map(repr, bad))}, which tables cannot",
            "choose another folder: `ledger:` in the settings",
        )


def _make_folder(uri: str) -> None:
    """Make the folder of a local ledger; one that holds other things is left alone."""
    folder = Path(uri)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(entry.name for entry in folder.iterdir() if not _ours(entry.name))
    except PermissionError as error:
        raise _refusal(uri, str(error.strerror)) from error
    except OSError as error:
        raise LedgerError(f"cannot use the ledger folder {uri}: {error.strerror}") from error
    if others:
        raise LedgerError(
            f"{uri} holds other things than a ledger, e.g. {others[0]}",
            "name another folder: `ledger:` in the settings",
        )


def _ours(name: str) -> bool:
    """A table, or what a desktop or a mount leaves anywhere."""
    return name in TABLES or name.startswith(".") or name == "lost+found"


def _check_folder(uri: str, table: Table) -> None:
    """A table that cannot be seen is not one that is not there.

    Raises:
        LedgerError: The ledger's place is no folder.
        AccessError: The table's folder, or one above, may not be looked into.
    """
    root = Path(uri)
    if root.is_file():
        raise LedgerError(f"the ledger {uri} is a file, not a folder", "check `ledger:`")
    for folder in (root, root / table.name, root / table.name / "_delta_log"):
        if folder.exists() and not os.access(folder, os.R_OK | os.X_OK):
            raise _refusal(uri, f"may not read {folder}")


def _refusal(uri: str, text: str) -> AccessError:
    return AccessError(f"the ledger {uri} refuses access: {text}", "grant read and write on it")


# What stores say of a refusal: never a bare number, which may be a part of a name.
_REFUSED = re.compile(
    r"\b(?:status|code|HTTP(?:/[0-9.]+)?)\b[^0-9]{0,20}\b40[13]\b"
    r"|\b40[13] (?:Forbidden|Unauthorized)\b"
    r"|lacked the necessary privileges|\b(?:AccessDenied|AllAccessDisabled|ExpiredToken"
    r"|InvalidAccessKeyId|InvalidToken|SignatureDoesNotMatch|AuthorizationFailure"
    r"|PermissionDenied|EACCES)\b|\bos error (?:13|30)\b",
    re.IGNORECASE,
)


@contextmanager
def _reported(uri: str) -> Iterator[None]:
    """Turn the store's own errors into one line that names the ledger."""
    try:
        yield
    except (DeltaError, OSError) as error:
        plain = re.sub(r"\x1b\[\d*m|↳", "", str(error))
        lines = [line.strip() for line in plain.splitlines() if line.strip()]
        text = ": ".join(lines[:1] + lines[-1:] if len(lines) > 1 else lines) or repr(error)
        refused = isinstance(error, PermissionError)
        if refused or _REFUSED.search(str(error).replace(uri, "")):
            raise _refusal(uri, text) from error
        raise SourceError(
            f"the ledger {uri} cannot be read or written: {text}",
            "check its place, credentials and endpoint",
        ) from error
