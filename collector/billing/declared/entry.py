"""One declared cost: a row of the list, checked cell by cell."""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal, cast, get_args

import polars as pl

from collector.billing.numbers import read_numbers
from ledger.text import canonical_json

Per = Literal["day", "month", "once"]
DIMENSIONS = ("data", "compute", "evaluation", "storage_logs", "human", "other")
ELASTICITIES = ("fixed", "elastic")
COLUMNS = (
    "name",
    "amount",
    "currency",
    "per",
    "from",
    "until",
    "dimension",
    "elasticity",
    "service",
    "provider",
    "resource",
    "description",
    "tags",
)
"""Keys of an entry; ``tag:KEY`` is one more way to write a tag."""

TAG = "tag:"
_REQUIRED = ("name", "amount", "per", "from")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_CURRENCY = re.compile(r"[A-Z]{3}")


class EntryError(Exception):
    """An entry that cannot be read.

    Args:
        reason: Short stable name for the quarantine.
        message: What is wrong, with the cell.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Entry:
    """A declared cost.

    Args:
        name: What it is, e.g. "annotation, vendor A".
        amount: Amount per day, per calendar month, or once.
        currency: ISO 4217.
        per: What the amount is for.
        first: First day.
        last: Last day; None = it goes on (per day or month), or it is that of its first day (once).
        dimension: Cost dimension.
        elasticity: fixed or elastic.
        service: ServiceName.
        provider: Who is paid.
        resources: What it pays for, e.g. ``node/gpu-17``; several share it evenly.
        description: ChargeDescription.
        tags: Tags as canonical JSON.
    """

    name: str
    amount: Decimal
    currency: str
    per: Per
    first: date
    last: date | None
    dimension: str
    elasticity: str
    service: str
    provider: str | None
    resources: tuple[str, ...]
    description: str | None
    tags: str


def read_entry(cells: Mapping[str, object], currency: str | None) -> Entry:
    """Check one row.

    Args:
        cells: Column to cell; text, or what YAML makes of it.
        currency: Currency of rows that name none.

    Raises:
        EntryError: A cell is missing or cannot be read.
    """
    text = {key: _text(value) for key, value in cells.items()}
    for name in _REQUIRED:
        if not text.get(name):
            raise EntryError("missing_value", f"{name} is empty")
    per = _one_of("per", text["per"], get_args(Per), None)
    first = _day("from", text["from"], last=False)
    last = _day("until", text["until"], last=True) if text.get("until") else None
    if last is not None and last < first:
        raise EntryError("bad_period", f"until {last} is before from {first}")
    return Entry(
        name=text["name"],
        amount=_amount(text["amount"]),
        currency=_currency(text.get("currency") or currency),
        per=cast("Per", per),
        first=first,
        last=last,
        dimension=_one_of("dimension", text.get("dimension", ""), DIMENSIONS, "other"),
        elasticity=_one_of("elasticity", text.get("elasticity", ""), ELASTICITIES, "fixed"),
        service=text.get("service") or text["name"],
        provider=text.get("provider") or None,
        resources=_resources(cells.get("resource")),
        description=text.get("description") or None,
        tags=canonical_json(_tags(cells)),
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, date):
        return value.isoformat()
    return str(value).strip()


def _one_of(name: str, word: str, known: tuple[str, ...], default: str | None) -> str:
    if not word and default is not None:
        return default
    if word.lower() not in known:
        raise EntryError("bad_word", f"{name} {word!r} is none of {', '.join(known)}")
    return word.lower()


def _amount(text: str) -> Decimal:
    numbers = read_numbers(pl.Series([text], dtype=pl.String))
    value = numbers.values[0]
    if value is None:
        raise EntryError(numbers.faults[0] or "bad_number", f"amount {text!r} is no number")
    return Decimal(value)


def _currency(code: str | None) -> str:
    code = (code or "").upper()
    if not _CURRENCY.fullmatch(code):
        raise EntryError("missing_currency", f"currency {code!r} is no ISO 4217 code, e.g. USD")
    return code


def _day(name: str, text: str, *, last: bool) -> date:
    """A day; a month alone is its first or last one."""
    try:
        if month := _MONTH.fullmatch(text):
            year, number = int(month[1]), int(month[2])
            return date(year, number, calendar.monthrange(year, number)[1] if last else 1)
        return date.fromisoformat(text)
    except ValueError as error:  # calendar's own error is one, too
        raise EntryError("bad_date", f"{name} {text!r} is no date, e.g. 2026-11-01") from error


def _resources(value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else _text(value).split(";")
    names = tuple(filter(None, map(_text, parts)))
    if len(set(names)) < len(names):
        raise EntryError("repeated_resource", f"resource names one twice: {'; '.join(names)}")
    return names


def _tags(cells: Mapping[str, object]) -> dict[str, str]:
    """Tags of the column ``tags`` (a map, JSON, or ``key=value; key=value``) and of ``tag:KEY``."""
    found = _written_tags(cells.get("tags"))
    for column, value in cells.items():
        key = column.removeprefix(TAG)
        if key != column and (text := _text(value)):
            if found.get(key, text) != text:
                raise EntryError("bad_tags", f"the tag {key} has two values")
            found[key] = text
    return found


def _written_tags(value: object) -> dict[str, str]:
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise EntryError("bad_tags", f"tags {value!r} is no JSON") from error
    if isinstance(value, dict):
        return {str(key): _text(item) for key, item in value.items()}
    pairs = [part.partition("=") for part in _text(value).split(";") if part.strip()]
    if wrong := [key for key, equals, _ in pairs if not (equals and key.strip())]:
        raise EntryError("bad_tags", f"tags hold {wrong[0]!r}; write owner=lin; team=data")
    return {key.strip(): text.strip() for key, _, text in pairs}


def month_of(day: date) -> tuple[date, date]:
    """First day of a day's month, and of the next one."""
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)
