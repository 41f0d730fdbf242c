from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ledger.money import UNITS, from_units, split, to_units
from ledger.schema import MONEY

UNIT_RANGE = st.integers(-(10**37), 10**37)


def parts(amount: int | None, weights: list[int]) -> list[int | None]:
    frame = pl.DataFrame(
        {"g": 1, "k": range(len(weights)), "w": weights, "a": [amount] * len(weights)},
        schema={"g": pl.Int64, "k": pl.Int64, "w": pl.Int64, "a": pl.Int128},
    )
    out = split(frame.lazy(), group=["g"], amounts=["a"], weight="w", order=["k"])
    return out.collect()["a"].to_list()


def by_hand(amount: int, weights: list[int]) -> list[int]:
    """The definition, one row at a time: floors, then one unit each to the largest remainders."""
    if not any(weights):
        weights = [1] * len(weights)
    total = sum(weights)
    shares = [Fraction(abs(amount) * weight, total) for weight in weights]
    floors = [int(share) for share in shares]
    rank = sorted(range(len(weights)), key=lambda i: (floors[i] - shares[i], i))
    for i in rank[: abs(amount) - sum(floors)]:
        floors[i] += 1
    return [-part if amount < 0 else part for part in floors]


def test_thirds_give_the_odd_unit_to_the_first() -> None:
    third = 33_333_333_333_333
    assert parts(100 * UNITS, [1, 1, 1]) == [third + 1, third, third]


def test_a_credit_splits_like_a_charge_with_the_sign_kept() -> None:
    assert parts(-50 * UNITS, [40, 60]) == [-20 * UNITS, -30 * UNITS]


def test_an_unknown_amount_stays_unknown_in_every_part() -> None:
    assert parts(None, [1, 2]) == [None, None]


def test_weights_of_nothing_split_evenly() -> None:
    assert parts(10, [0, 0]) == [5, 5]


def test_amounts_of_one_group_are_split_each_on_its_own() -> None:
    frame = pl.DataFrame(
        {
            "g": ["x", "x", None],
            "k": [0, 1, 0],
            "w": [1, 1, 7],
            "a": [3, 3, 5],
            "b": [None, None, 9],
        },
        schema_overrides={"a": pl.Int128, "b": pl.Int128},
    )
    out = split(frame.lazy(), group=["g"], amounts=["a", "b"], weight="w", order=["k"]).collect()
    assert out.select("g", "a", "b").rows() == [("x", 2, None), ("x", 1, None), (None, 5, 9)]


def test_no_rows_give_no_rows() -> None:
    frame = pl.LazyFrame(schema={"g": pl.Int64, "k": pl.Int64, "w": pl.Int64, "a": pl.Int128})
    out = split(frame, group=["g"], amounts=["a"], weight="w", order=["k"]).collect()
    assert out.height == 0
    assert out.columns == ["g", "k", "w", "a"]


@given(UNIT_RANGE, st.lists(st.integers(0, 3) | st.integers(0, 2**55), min_size=1, max_size=40))
def test_split_is_the_definition(amount: int, weights: list[int]) -> None:
    assert parts(amount, weights) == by_hand(amount, weights)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), UNIT_RANGE, st.integers(0, 2**40)), min_size=1, max_size=30
    ),
    st.randoms(use_true_random=False),
)
def test_parts_add_up_and_row_order_does_not_matter(
    rows: list[tuple[int, int, int]], random: object
) -> None:
    amounts = {group: amount for group, amount, _ in rows}
    table = [(g, k, amounts[g], w) for k, (g, _, w) in enumerate(rows)]
    schema = {"g": pl.Int64, "k": pl.Int64, "a": pl.Int128, "w": pl.Int64}
    frame = pl.DataFrame(table, schema=schema, orient="row")
    shuffled = frame.sample(fraction=1, shuffle=True, seed=len(rows))
    first, second = (
        split(f.lazy(), group=["g"], amounts=["a"], weight="w", order=["k"]).collect()
        for f in (frame, shuffled)
    )
    assert first.equals(second)
    sums = dict(first.group_by("g").agg(pl.col("a").sum()).iter_rows())
    assert sums == amounts


@given(
    st.lists(
        st.tuples(UNIT_RANGE, st.lists(st.integers(0, 2**40), min_size=1, max_size=20)),
        min_size=1,
        max_size=6,
    )
)
def test_small_and_large_groups_stand_beside_each_other(
    groups: list[tuple[int, list[int]]],
) -> None:
    rows = [(g, k, a, w) for g, (a, weights) in enumerate(groups) for k, w in enumerate(weights)]
    schema = {"g": pl.Int64, "k": pl.Int64, "a": pl.Int128, "w": pl.Int64}
    frame = pl.LazyFrame(rows, schema=schema, orient="row")
    options = {"group": ["g"], "amounts": ["a"], "weight": "w", "order": ["k"]}
    out = split(frame, **options).collect()  # type: ignore[arg-type]
    assert out["a"].to_list() == [part for a, weights in groups for part in by_hand(a, weights)]
    ordered = split(frame, **options, ordered=True).collect()  # type: ignore[arg-type]
    assert ordered.equals(out)


@given(UNIT_RANGE)
def test_units_and_decimals_are_the_same_money(units: int) -> None:
    frame = pl.DataFrame({"u": [units]}, schema={"u": pl.Int128})
    money = frame.select(from_units(pl.col("u")).alias("m"))
    assert money.schema["m"] == MONEY
    assert money["m"].to_list() == [Decimal(units).scaleb(-12, Context(prec=60))]
    assert money.select(to_units(pl.col("m"))).item() == units
