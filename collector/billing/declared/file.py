"""A list of declared costs, CSV or YAML, as rows of cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from collector.billing.declared.entry import COLUMNS, TAG
from collector.billing.files import LocalFile
from ledger.errors import BadInputError

ENDINGS = (".csv", ".csv.gz", ".yaml", ".yml")
_SEPARATORS = ",;\t"
LARGEST = 64 << 20  # bytes: a list that people write, read in memory

Row = tuple[str, Mapping[str, object]]
"""Where a row stands, for a message; and its cells by column."""


def read_rows(file: LocalFile) -> list[Row]:
    """The rows of a file; blank ones, and CSV rows that begin with ``#``, are left out.

    Raises:
        BadInputError: It is no CSV or YAML of that form, or has a column that nobody knows.
    """
    raw = _bytes(file.path, file.where)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file.where} is no UTF-8: {error}") from error
    name = file.where.lower().removesuffix(".gz")
    rows = _yaml(text, file.where) if name.endswith((".yaml", ".yml")) else _csv(text, file.where)
    return list(rows)


def _bytes(path: Path, where: str) -> bytes:
    if path.stat().st_size > LARGEST:
        raise BadInputError(f"{where} is larger than {LARGEST >> 20} MiB", "is it a cloud's bill?")
    return path.read_bytes()


def _csv(text: str, where: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    header: list[str] | None = None
    try:
        for cells in lines:
            if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
                continue
            if header is None:
                header = [_column(cell, where) for cell in cells]
                if twice := {name for name in header if header.count(name) > 1}:
                    raise BadInputError(f"{where}: the column {min(twice)} stands twice")
                continue
            place = f"line {lines.line_num}"
            if len(cells) > len(header):
                yield place, {"": "more cells than columns"}
                continue
            yield place, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise BadInputError(f"{where}, line {lines.line_num}: {error}") from error
    if header is None:
        raise BadInputError(f"{where} has no header", f"columns: {', '.join(COLUMNS)}")


def _separator(text: str) -> str:
    """The separator of the header: of those known the one that stands in it most often."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    header = next(lines, "")
    return max(_SEPARATORS, key=header.count)


def _yaml(text: str, where: str) -> Iterator[Row]:
    try:
        data = yaml.load(text, Loader=_TextLoader)  # noqa: S506 - a safe loader that keeps numbers
    except yaml.YAMLError as error:
        raise BadInputError(f"{where} is no YAML: {' '.join(str(error).split())}") from error
    if isinstance(data, dict) and list(data) == ["costs"]:
        data = data["costs"]
    if not isinstance(data, list):
        raise BadInputError(f"{where} is no list of costs", "write `- {name: …, amount: …}`")
    for number, item in enumerate(data, 1):
        if not isinstance(item, dict):
            yield f"entry {number}", {"": f"{item!r} is no map"}
            continue
        yield f"entry {number}", {_column(str(key), where): value for key, value in item.items()}


class _TextLoader(yaml.SafeLoader):
    """Safe YAML whose numbers stay text: a float would not hold an amount."""


_TextLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag in ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _column(cell: str, where: str) -> str:
    name = cell.strip()
    if name.lower() in COLUMNS:
        return name.lower()
    if name.lower().startswith(TAG) and name[len(TAG) :].strip():
        return TAG + name[len(TAG) :].strip()
    raise BadInputError(
        f"{where}: nothing is known of the column {name!r}",
        f"columns: {', '.join(COLUMNS)}, {TAG}KEY",
    )
