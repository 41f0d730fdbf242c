"""Cells: numbers against Python's decimals, times against its datetimes, JSON against itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.billing.numbers import read_numbers, rounding_residue
from collector.billing.objects import canonical_object
from collector.billing.times import read_times

EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)
UNIT = Decimal("1e-12")


def numbers(*cells: str | None) -> tuple[list[Decimal | None], list[str | None]]:
    read = read_numbers(pl.Series("cost", cells, dtype=pl.String))
    return read.values.to_list(), read.faults.to_list()


written = st.builds(
    lambda sign, digits, point, exponent: (
        f"{sign}{digits[:point] or '0'}.{digits[point:] or '0'}"
        + (f"e{exponent}" if exponent else "")
    ),
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=45),
    st.integers(0, 45),
    st.integers(-40, 20),
)


@settings(deadline=None)
@given(st.lists(written, min_size=1, max_size=20))
def test_numbers_round_half_even_and_the_residue_is_exact(cells: list[str]) -> None:
    text = pl.Series("cost", cells)
    read = read_numbers(text)
    source = [EXACT.create_decimal(cell) for cell in cells]
    rounded = [EXACT.quantize(value, UNIT) for value in source]
    kept = [value if value.copy_abs() < Decimal(10) ** 26 else None for value in rounded]
    assert read.values.to_list() == kept
    assert read.faults.to_list() == [None if value is not None else "too_large" for value in kept]
    lost = Decimal(0)
    for exact, value in zip(source, kept, strict=True):
        if value is not None:
            lost = EXACT.add(lost, EXACT.subtract(exact, value))
    assert rounding_residue(read.plain, read.values) == lost


@settings(deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1))
def test_a_double_is_its_shortest_text(values: list[float]) -> None:
    text = pl.Series("cost", values).cast(pl.String)
    read = read_numbers(text)
    expected = [EXACT.quantize(EXACT.create_decimal(repr(value)), UNIT) for value in values]
    assert read.values.to_list() == expected


def test_ten_times_a_tenth_is_one() -> None:
    read = read_numbers(pl.Series("cost", [0.1] * 10).cast(pl.String))
    assert read.values.sum() == Decimal(1)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("$10,000.00 ", "10000"),
        ("$100.00 ", "100"),
        ("-$5.50", "-5.50"),
        ("(2.25)", "-2.25"),
        ("1,234,567.5", "1234567.5"),
        ("12 €", "12"),
        (" 7 ", "7"),
        ("1.81E-8", "0.0000000181"),
        ("16200000", "16200000"),
    ],
)
def test_decorated_numbers(cell: str, value: str) -> None:
    assert numbers(cell) == ([Decimal(value)], [None])


@pytest.mark.parametrize(
    "cell", ["abc", "inf", "-inf", "1,5", "1.000,50", "0x10", "1e", "--1", "."]
)
def test_no_numbers(cell: str) -> None:
    assert numbers(cell) == ([None], ["bad_number"])


@pytest.mark.parametrize("cell", ["", " NULL ", "None", "NaN", "null", None])
def test_words_for_nothing(cell: str | None) -> None:
    assert numbers(cell) == ([None], [None])


@pytest.mark.parametrize("cell", ["1e26", "1e300", "-100000000000000000000000000", "1e9999999999"])
def test_too_large(cell: str) -> None:
    assert numbers(cell) == ([None], ["too_large"])


def times(zone: str, *cells: str | None) -> list[datetime | None]:
    return read_times(pl.Series("at", cells, dtype=pl.String), zone)["time"].to_list()


@pytest.mark.parametrize(
    ("cell", "moment"),
    [
        ("2024-09-18T22:00:00Z", (2024, 9, 18, 22)),
        ("2024-09-18 22:00:00", (2024, 9, 18, 22)),
        ("2024-09-18T22:00:00+00:00", (2024, 9, 18, 22)),
        ("2024-09-18 22:00:00 +0000 UTC", (2024, 9, 18, 22)),
        ("2024-09-18 22:00:00 UTC", (2024, 9, 18, 22)),
        ("2024-09-18T05:00Z", (2024, 9, 18, 5)),
        ("2024-09-18T05:30:00+05:30", (2024, 9, 18)),
        ("2024-09-17T22:00:00-0200", (2024, 9, 18)),
        ("2024-09-18T00:00:00.123456789Z", (2024, 9, 18, 0, 0, 0, 123456)),
        ("2024-09-18", (2024, 9, 18)),
        ("9/18/24", (2024, 9, 18)),
        ("09/18/2024", (2024, 9, 18)),
        ("9/18/2024 5:30", (2024, 9, 18, 5, 30)),
    ],
)
def test_forms_of_a_time(cell: str, moment: tuple[int, int, int]) -> None:
    assert times("UTC", cell) == [datetime(*moment, tzinfo=UTC)]


@pytest.mark.parametrize("cell", ["2023-02-01T30:00:00Z", "31/02/2024", "2024-02-31", "18.09.2024",
                                  "2024-09-18T24:00:00Z", "yesterday", "1726696800"])  # fmt: skip
def test_no_times(cell: str) -> None:
    assert times("UTC", cell) == [None]


def test_zone_of_times_that_carry_none() -> None:
    cells = ("2024-07-01 00:00:00", "2024-07-01T00:00:00Z", "7/1/24", None)
    read = read_times(pl.Series("at", cells), "America/Los_Angeles")
    local, given_zone = datetime(2024, 7, 1, 7, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=UTC)
    assert read["time"].to_list() == [local, given_zone, local, None]
    assert read["zoneless"].to_list() == [True, False, True, False]


def test_hours_that_clocks_show_twice_or_never() -> None:
    twice, never = "2024-11-03 01:30:00", "2024-03-10 02:30:00"
    first = datetime(2024, 11, 3, 8, 30, tzinfo=UTC)
    assert times("America/Los_Angeles", twice, never) == [first, None]


@settings(deadline=None)
@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001 - written as UTC
def test_iso_times_survive(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert times("Asia/Shanghai", aware.isoformat(), f"{moment.isoformat()}Z") == [aware, aware]


@pytest.mark.parametrize(
    ("cell", "canonical"),
    [
        ('{"b": "x", "a": true}', '{"a":true,"b":"x"}'),
        ('{"Environment":"p","environment":"t"}', '{"Environment":"p","environment":"t"}'),
        ('"b":"x","a":"y"', '{"a":"y","b":"x"}'),
        ('[{"key":"b","value":"x"}]', '{"b":"x"}'),
        ('{"version": 1.10}', '{"version":"1.10"}'),
        ('{"app.kubernetes.io/name": "é"}', '{"app.kubernetes.io/name":"é"}'),
        ("{}", "{}"),
        ('{"a": "x\ny"}', '{"a":"x\\ny"}'),
        ("nothing", None),
        ("[1, 2]", None),
        ("[" * 100_000, None),
    ],
)
def test_tags(cell: str, canonical: str | None) -> None:
    assert canonical_object(cell) == canonical


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_tags_survive(tags: dict[str, object]) -> None:
    read = canonical_object(json.dumps(tags, indent=1))
    assert read is not None
    assert json.loads(read) == tags
    read.encode()
    assert canonical_object(read) == read
