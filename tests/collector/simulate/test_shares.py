"""The truth's own arithmetic."""

from __future__ import annotations

import ast
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.simulate import shares, truth
from collector.simulate.shares import half_even, money, overlap, part_out, units

weights = st.lists(st.integers(0, 2**40), min_size=1, max_size=12)


@given(amount=st.integers(-(10**30), 10**30), given_weights=weights)
def test_parts_add_up_and_lie_within_a_unit_of_their_share(
    amount: int, given_weights: list[int]
) -> None:
    parts = part_out(amount, given_weights)
    assert sum(parts) == amount
    total = sum(given_weights)
    if total:
        for part, weight in zip(parts, given_weights, strict=True):
            assert abs(part - Fraction(amount * weight, total)) < 1


@given(amount=st.integers(0, 10**20), given_weights=weights)
def test_a_credit_mirrors_the_charge(amount: int, given_weights: list[int]) -> None:
    assert part_out(-amount, given_weights) == [-part for part in part_out(amount, given_weights)]


def test_the_odd_units_go_to_the_largest_remainders_and_ties_to_the_first() -> None:
    assert part_out(100, [1, 1, 1]) == [34, 33, 33]
    assert part_out(10, [7, 2, 2]) == [6, 2, 2]
    assert part_out(-5, [0, 0]) == [-3, -2]


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"), [(5, 2, 2), (7, 2, 4), (5, 3, 2), (4, 3, 1)]
)
def test_halves_go_to_the_even_integer(numerator: int, denominator: int, rounded: int) -> None:
    assert half_even(numerator, denominator) == rounded


def test_money_is_exact_in_both_directions() -> None:
    assert units(Decimal("-1.5")) == -1_500_000_000_000
    assert money(-1) == "-0.000000000001"
    assert Decimal(money(units(Decimal("98765432109876.123456789012")))) == Decimal(
        "98765432109876.123456789012"
    )
    with pytest.raises(ValueError, match="more than 12 decimals"):
        units(Decimal("0.0000000000001"))


def test_overlap_of_intervals_that_do_not_meet_is_nothing() -> None:
    assert overlap((0, 10), (5, 20)) == 5
    assert overlap((0, 10), (10, 20)) == 0
    assert overlap((0, 10), (50, 60)) == 0


@pytest.mark.parametrize("module", [shares, truth])
def test_the_truth_borrows_nothing_from_what_it_judges(module: object) -> None:
    source = Path(str(getattr(module, "__file__", ""))).read_text("utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not {name for name in imported if name.startswith(("attribution", "ledger", "polars"))}
