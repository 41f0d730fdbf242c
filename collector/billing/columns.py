"""Headers of a file matched to FOCUS columns: without case, ``_`` or blanks; the rest is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ledger.errors import BadInputError
from ledger.schema import CHARGES, MONEY, TIME

FOCUS = tuple(name for name in CHARGES.columns if name[0].isupper())
"""The FOCUS columns that the table ``charges`` has."""

MONEY_COLUMNS = tuple(name for name in FOCUS if CHARGES.columns[name].dtype == MONEY)
TIME_COLUMNS = tuple(name for name in FOCUS if CHARGES.columns[name].dtype == TIME)
JSON_COLUMNS = ("SkuPriceDetails", "Tags")
TEXT_COLUMNS = tuple(
    name for name in FOCUS
    if CHARGES.columns[name].dtype == pl.String() and name not in JSON_COLUMNS
)  # fmt: skip
ESSENTIAL = ("BilledCost", "BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd")
"""Without one of these a file is no bill."""

WISHED = (
    "EffectiveCost",
    "ContractedCost",
    "ListCost",
    "ChargeCategory",
    "ServiceCategory",
    "ResourceId",
    "Tags",
)
"""Without one of these something in the reports is blind."""

OTHER = "other:"
"""Prefix of the working name of a column that FOCUS, or the table, does not know."""

_SHOWN_HEADERS = 40
_BY_FORM = {name.lower(): name for name in FOCUS}


@dataclass(frozen=True)
class Match:
    """How the headers of a file are read.

    Args:
        names: A unique working name for each header, in order: the FOCUS name, or ``other:`` and
            the header as it stands.
        renamed: Header as it stands to the FOCUS column that it was read as.
        repeated: Headers that stand more than once.
    """

    names: tuple[str, ...]
    renamed: dict[str, str]
    repeated: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """Working names of the columns that go to ``x_Other``, by name."""
        return tuple(sorted(name for name in self.names if name.startswith(OTHER)))

    def lacking(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Those of some FOCUS columns that the file does not have."""
        return tuple(name for name in wanted if name not in self.names)


def match_headers(headers: Sequence[str], where: str) -> Match:
    """Match the headers of a file.

    An exact header wins over one that merely looks alike; the loser is kept as an other column.

    Raises:
        BadInputError: An essential column is missing (``missing_column``), or stands twice.
    """
    clean = [header.strip() for header in headers]
    exact = {header for header in clean if header in _BY_FORM.values()}
    names: list[str] = []
    renamed: dict[str, str] = {}
    for header in clean:
        focus = header if header in exact else _BY_FORM.get(_form(header))
        if focus and focus not in names and (header == focus or focus not in exact):
            names.append(focus)
            if header != focus:
                renamed[header] = focus
        else:
            names.append(_unused(OTHER + header, names))
    match = Match(tuple(names), renamed, tuple(sorted({h for h in clean if clean.count(h) > 1})))
    _refuse(match, clean, where)
    return match


def _form(header: str) -> str:
    return re.sub(r"[\s_]+", "", header).lower()


def _unused(name: str, taken: Sequence[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}#{number}"
    return candidate


def _refuse(match: Match, headers: Sequence[str], where: str) -> None:
    if lacking := match.lacking(ESSENTIAL):
        seen = ", ".join(repr(header[:60]) for header in headers[:_SHOWN_HEADERS])
        more = f" and {len(headers) - _SHOWN_HEADERS} more" if len(headers) > _SHOWN_HEADERS else ""
        raise MissingColumnError(
            f"{where} lacks the column {', '.join(lacking)}; its headers are {seen}{more}",
            "is it a FOCUS Cost and Usage file?",
        )
    forms = [_form(header) for header in headers]
    for name in (*ESSENTIAL, "EffectiveCost", "ContractedCost", "ListCost"):
        if forms.count(name.lower()) > 1:
            raise RepeatedColumnError(f"{where} has the column {name} twice: which one is right?")


class MissingColumnError(BadInputError):
    """A file lacks a column without which it is no bill."""


class RepeatedColumnError(BadInputError):
    """A file has a column twice without which it is no bill."""
