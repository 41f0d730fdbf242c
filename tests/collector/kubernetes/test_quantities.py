from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kubernetes.quantities import milli, parse, whole

BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("+2", 2),
        ("100m", Fraction(1, 10)),
        ("1500u", Fraction(3, 2000)),
        ("250n", Fraction(1, 4_000_000)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("2E", 2 * 10**18),
        ("2E3", 2000),
        ("2e3", 2000),
        ("2e-3", Fraction(1, 500)),
        ("1Ei", 2**60),
        ("-1", -1),
    ],
)
def test_reads_every_form(text: str, value: Fraction) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "1K",
        "1ki",
        "1 Gi",
        "1Gib",
        "0x10",
        "1_000",
        "nan",
        "inf",
        "1e999",
        "\u0661",
        "1,5",
        ".",
        "1e",
        "--1",
    ],
)
def test_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        parse(text)


@given(st.integers(0, 10**9), st.integers(0, 9), st.sampled_from(sorted(BINARY)))
def test_binary_suffixes_are_exact(number: int, digit: int, suffix: str) -> None:
    assert parse(f"{number}.{digit}{suffix}") == Fraction(10 * number + digit, 10) * BINARY[suffix]


@given(st.integers(0, 10**9), st.sampled_from(sorted(DECIMAL)))
def test_decimal_suffixes_are_powers_of_ten(number: int, suffix: str) -> None:
    assert parse(f"{number}{suffix}") == number * Fraction(10) ** DECIMAL[suffix]
    assert parse(f"{number}e{DECIMAL[suffix]}") == parse(f"{number}{suffix}")


@given(st.text(max_size=8))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(parse(text), Fraction)
    except ValueError:
        pass


def test_a_part_of_a_unit_counts_whole() -> None:
    assert milli(parse("100u")) == 1
    assert whole(parse("1500m")) == 2


@pytest.mark.parametrize("text", ["-1", "-1n", "65Ti", "1Ei", "8Ei", "1e19", "9223372036854775807"])
def test_an_amount_is_not_negative_and_fits(text: str) -> None:
    with pytest.raises(ValueError, match="no amount"):
        whole(parse(text))
