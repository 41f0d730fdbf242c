"""Lines of the bill for machines that meet no node, laid over the nodes that they may pay for.

Where such lines pay for at least what all nodes without a line cost at their prices, the nodes
are paid from them and the rest stays ``__unattributed__``: the bill is the total, idle is shown,
nothing is counted twice. Where they pay for less, nobody knows which nodes they leave out.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.identity import name_lines
from attribution.prices.book import OK
from attribution.prices.estimate import UNMATCHED
from attribution.prices.quote import settle, weights
from attribution.ratio import HOUR
from attribution.split import UNITS
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Settings

REST = 2**32 - 1
"""``nh`` of what no node gets."""

_RATES = ("rate_node", "rate_card", "rate_vcpu", "rate_gib")
_LARGEST = 2**62
_PARTS: dict[str, pl.DataType] = {
    "line": pl.UInt32(),
    "nh": pl.UInt32(),
    "hour": pl.Int64(),
    "ms": pl.Int64(),
}


@dataclass(frozen=True)
class LaidOver:
    """Which lines pay for which node-hours.

    Args:
        parts: ``line, nh, hour, ms``: ``ms`` is the weight of the node-hour in its line, in
            units of money; what no node gets is ``nh`` ``REST``.
        notes: One per currency.
    """

    parts: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def nodes(self) -> pl.DataFrame:
        """``nh`` of the node-hours that are paid so."""
        return self.parts.filter(pl.col("nh") != REST).select("nh").unique()

    def marked(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The lines, with the price source of those that are laid over nodes."""
        mine = pl.col("line").is_in(self.parts["line"].unique().to_list())
        source = pl.when(mine).then(pl.lit(UNMATCHED)).otherwise("x_PriceSource")
        return lines.with_columns(source.alias("x_PriceSource"))

    def apart(self, parts: pl.DataFrame, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Take what no node gets out of the parts of lines.

        Args:
            parts: ``split.hour_parts``.
            lines: All lines.

        Returns:
            The parts of nodes, and lines of what is left.
        """
        left = parts.filter(pl.col("nh") == REST).select("line", *UNITS)
        rest = lines.drop(UNITS).join(left, on="line").select(lines.columns)
        return parts.filter(pl.col("nh") != REST), rest


def lay_over(
    loose: pl.DataFrame, hours: pl.DataFrame, quotes: pl.DataFrame, settings: Settings
) -> LaidOver:
    """Lay lines over node-hours, one currency at a time, each amount exactly.

    A line pays node-hours of its own period only; in each hour what ends first pays first. Nothing
    is laid unless every node-hour has a price in that currency, and the lines of its time pay for
    all of them. A line that its own tags name stays with them.

    Args:
        loose: ``paying.compute_lines`` that meet no node.
        hours: The node-hours that they may pay for, with ``nh`` and ``hour``.
        quotes: ``quote.quote``.
        settings: Identity rules.
    """
    named = name_lines(loose, settings)
    nameless = named.filter(pl.all_horizontal(pl.col(key).is_null() for key in IDENTITY_KEYS))
    units = pl.col("units_EffectiveCost")
    payers = nameless.filter(units > 0).select(
        "line", "start", "end", pl.col("BillingCurrency").alias("currency"), units.alias("units")
    )
    prices = _priced(hours, quotes)
    found, notes = [], []
    for currency in payers["currency"].unique().sort():
        lines = payers.filter(currency=currency).sort("end", "start", "line")
        known = prices.filter(currency=currency).sort("hour", "nh")
        bill, cost = (int(frame["units"].sum()) for frame in (lines, known))
        whole = known.height == hours["nh"].n_unique()
        if not whole or not 0 < cost <= bill < _LARGEST:
            continue
        parts = _hour_by_hour(lines, known)
        if parts is None:
            continue
        found.append(parts)
        notes.append(
            f"lines of the bill for machines ({currency} {bill / 10**12:.2f}) meet no node: "
            f"{cost / 10**12:.2f} of them pays for {known.height} node-hours by their prices, the "
            "rest is unattributed"
        )
    none = pl.DataFrame(schema=_PARTS | {"line": loose.schema["line"]})
    return LaidOver(pl.concat([none, *found]), tuple(notes))


def _priced(hours: pl.DataFrame, quotes: pl.DataFrame) -> pl.DataFrame:
    """``nh, hour, currency, units`` of the node-hours that are priced for all of their time."""
    mine = quotes.join(hours.select("nh"), on="nh", how="semi")
    parts = weights([pl.col(name) for name in _RATES], pl.col("end") - pl.col("start"))
    names = ("of_cards", "of_cpu", "of_memory")
    unclear = (pl.col("state") != OK).any() | (pl.col("currency").n_unique() > 1)
    return (
        mine.with_columns(part.alias(name) for part, name in zip(parts, names, strict=True))
        .group_by("nh", "hour")
        .agg(pl.col("currency").first(), pl.col(*names).sum(), unclear.alias("unclear"))
        .filter(~pl.col("unclear"))
        .with_columns(settle(*(pl.col(name) for name in names)).alias("units"))
        .filter(pl.col("units") > 0)
        .select("nh", "hour", "currency", "units")
    )


def _hour_by_hour(lines: pl.DataFrame, prices: pl.DataFrame) -> pl.DataFrame | None:
    """Parts of lines for each node-hour in their time; None if they do not pay for one.

    Args:
        lines: ``line, start, end, units`` in the order in which they pay.
        prices: ``nh, hour, units``, sorted by hour.
    """
    left, found = lines.select("line", "start", "end", "units"), []
    for (hour,), takers in prices.group_by("hour", maintain_order=True):
        there = (pl.col("start") < pl.lit(hour) + HOUR) & (pl.col("end") > pl.lit(hour))
        payers = left.filter(there, pl.col("units") > 0)
        if payers["units"].sum() < takers["units"].sum():
            return None
        paid = _end_to_end(payers, takers)
        found.append(paid)
        gone = paid.group_by("line").agg(pl.col("ms").sum().cast(pl.Int128).alias("gone"))
        left = left.join(gone, on="line", how="left", maintain_order="left").with_columns(
            pl.col("units") - pl.col("gone").fill_null(0)
        )
        left = left.drop("gone")
    rest = left.filter(pl.col("units") > 0).select(
        "line",
        pl.lit(REST, dtype=pl.UInt32).alias("nh"),
        pl.lit(prices["hour"].max(), dtype=pl.Int64).alias("hour"),
        pl.col("units").cast(pl.Int64).alias("ms"),
    )
    return pl.concat([*found, rest])


def _end_to_end(payers: pl.DataFrame, takers: pl.DataFrame) -> pl.DataFrame:
    """The overlaps of two rows of amounts, laid beside each other from the first on."""

    def stretch(frame: pl.DataFrame, start: str, end: str) -> pl.DataFrame:
        till = pl.col("units").cum_sum().cast(pl.Int64)
        return frame.with_columns(
            (till - pl.col("units").cast(pl.Int64)).alias(start), till.alias(end)
        )

    both = stretch(payers.select("line", "units"), "from", "to").join_where(
        stretch(takers.select("nh", "hour", "units"), "since", "until").drop("units"),
        pl.col("since") < pl.col("to"),
        pl.col("from") < pl.col("until"),
    )
    amount = pl.min_horizontal("to", "until") - pl.max_horizontal("from", "since")
    return both.select("line", "nh", "hour", amount.alias("ms"))
