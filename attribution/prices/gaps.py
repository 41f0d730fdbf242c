"""What could not be priced, by node type, and prices that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.node_sums import sum_nodes
from attribution.prices.book import AMBIGUOUS, UNKNOWN
from attribution.prices.quote import CURRENCY
from ledger.facts import Gap
from ledger.money import UNITS

OUTLIER = 10
"""How many times above or below the book price a metric is not believed."""

_WHY = {
    AMBIGUOUS: "two prices of one key differ",
    UNKNOWN: "its price is known to exist and not how much it is (null or 0)",
    CURRENCY: "its prices are in several currencies",
}
_MISSING = "no bill line and no price; set `prices` or connect the bill"


def price_gaps(left: pl.DataFrame, quotes: pl.DataFrame) -> tuple[Gap, ...]:
    """All gaps of prices.

    Args:
        left: Rows of ``quote.quote`` that price nothing, with ``instance_type``.
        quotes: Those and all others.
    """
    return (*_unpriced(left), *_contradictions(left), *_outliers(quotes))


def _by_type(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    by, ms = ["cluster", "instance_type", *keys], pl.col("end") - pl.col("start")
    return sum_nodes(rows, by, ms, pl.col("state").unique().sort().alias("states"))


def _unpriced(left: pl.DataFrame) -> Iterator[Gap]:
    """A gap per cluster and instance type, with the hours that it concerns."""
    for row in _by_type(left).iter_rows(named=True):
        why = " and ".join(_WHY[state] for state in row["states"] if state in _WHY) or _MISSING
        yield Gap(
            "unpriced",
            f"{row['cluster']}: {_of_type(row)} without a price: {why}",
            {"node_hours": row["node_hours"], "gpu_hours": row["gpu_hours"]},
            {"type": row["instance_type"]} if row["instance_type"] else {},
        )


def _of_type(row: dict[str, object]) -> str:
    count, first = row["nodes"], row["first"]
    kind = row["instance_type"] or "unknown type"
    return f"{count} node{'' if count == 1 else 's'} of {kind}, e.g. {first},"


def _contradictions(left: pl.DataFrame) -> Iterator[Gap]:
    """Book prices of one key that differ, or that are in currencies that nobody may add."""
    for state, reason in ((AMBIGUOUS, "price_ambiguous"), (CURRENCY, "currency")):
        for row in _by_type(left.filter(state=state)).iter_rows(named=True):
            yield Gap(
                reason,
                f"{row['cluster']}: {_of_type(row)} is not priced: {_WHY[state]}",
                {},
                {"type": row["instance_type"]} if row["instance_type"] else {},
            )


def _outliers(quotes: pl.DataFrame) -> Iterator[Gap]:
    """Metrics far from the book price of their node, which holds; nodes of one factor together."""
    known = quotes.filter((pl.col("book") > 0) & pl.col("metric").is_not_null())
    far = (pl.col("metric") > pl.col("book") * OUTLIER) | (
        pl.col("metric") * OUTLIER < pl.col("book")
    )
    rows = known.filter(far)
    for row in _by_type(rows, "book", "metric").iter_rows(named=True):
        book, metric = row["book"] / UNITS, row["metric"] / UNITS
        more = f" and {row['nodes'] - 1} more" if row["nodes"] > 1 else ""
        yield Gap(
            "price_outlier",
            f"{row['cluster']}: a metric prices {row['first']}{more} at {metric:g} an hour, "
            f"{metric / book:.3g} times the book price {book:g}: put aside, the book price holds",
            {"factor": metric / book},
            {"node": row["first"]},
        )
