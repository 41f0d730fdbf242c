"""What the hours of a node cost, as it stands in ``costs``.

A node with billed rows is priced by these alone; estimates never stand beside a bill. A currency is
never added to another, and an unknown cost makes the whole figure unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction

import polars as pl

from ledger.money import to_units
from ledger.schema import CHARGES, COSTS
from ledger.window import Window
from rules.node_hours import KEY, Hours
from rules.rule import Money, RuleTables

MONTH_DAYS = 30
_EXACT = Context(prec=50)
_HOUR = [*KEY, "hour"]
_ROW = [*KEY, "start", "end"]


@dataclass(frozen=True)
class NodeCosts:
    """Costs of nodes by local hour.

    Args:
        hours: ``cluster, node, hour, day, currency, units`` (Int128 of 1e-12; null = unknown),
            ``committed`` (part of the hour is covered by a commitment). One row per cost row and
            local hour that it touches.
        basis: Node to ``billed`` or ``estimated``.
        days: Cluster and basis to the whole UTC days whose bill is in.
        through: Cluster and basis to the end of the last cost row.
    """

    hours: pl.DataFrame
    basis: Mapping[tuple[str, str], str]
    days: Mapping[tuple[str, str], frozenset[date]]
    through: Mapping[tuple[str, str], datetime]

    def billing(self, hours: Hours) -> pl.DataFrame:
        """Whether the bill has a node in an hour, where the bill is in.

        Returns:
            ``cluster, node, hour, billed``: true where a cost row touches the hour; false where
            the bill of the node's cluster is in and the node, which it has at other hours, is not
            on it. No row where nothing can be said.
        """
        priced = self.hours.select(*_HOUR, pl.lit(True).alias("billed")).unique()
        delivered = [
            (cluster, node, day, self.through[cluster, basis])
            for (cluster, node), basis in self.basis.items()
            for day in self.days.get((cluster, basis), frozenset())
        ]
        end = pl.Datetime("us", "UTC")
        days = pl.DataFrame(
            delivered,
            schema={"cluster": pl.String, "node": pl.String, "date": pl.Date, "through": end},
            orient="row",
        )
        # The last moment of an hour decides, so that an hour over midnight needs the later day.
        last = pl.col("hour_end") - pl.duration(microseconds=1)
        lacking = (
            days.join(hours.frame.select("hour", "hour_end", date=last.dt.date()), on="date")
            .filter(pl.col("hour_end") <= pl.col("through"))
            .join(priced, on=_HOUR, how="anti")
            .select(*_HOUR, pl.lit(False).alias("billed"))
        )
        return pl.concat([priced, lacking])


def node_costs(tables: RuleTables, nodes: pl.DataFrame, hours: Hours) -> NodeCosts:
    """Costs of the given nodes (``cluster, node``), by local hour."""
    rows = _cost_rows(tables).collect(engine="streaming")
    days, through = _delivered(rows)
    own = rows.join(nodes.select(KEY), on=KEY, how="semi")
    billed = pl.col("billed").any().over(KEY)
    own = own.filter(pl.col("billed") | ~billed)
    kinds = own.select(*KEY, "billed").unique().iter_rows()
    basis = {(c, n): "billed" if is_billed else "estimated" for c, n, is_billed in kinds}
    return NodeCosts(_by_hour(own, hours), basis, days, through)


def _cost_rows(tables: RuleTables) -> pl.LazyFrame:
    """Cost of each node, basis, currency and period: one row."""
    line = ["day", "x_Source", "x_LineId", "x_Part"]
    committed = (
        tables[CHARGES]
        .filter(pl.col("CommitmentDiscountId").is_not_null())
        .select(line)
        .unique()
        .with_columns(pl.lit(True).alias("committed"))
    )
    unknown = pl.col("EffectiveCost").is_null().any()
    return (
        tables[COSTS]
        .filter(pl.col("node").is_not_null(), pl.col("cluster").is_not_null())
        .join(committed, on=line, how="left", nulls_equal=True)
        .rename(
            {"ChargePeriodStart": "start", "ChargePeriodEnd": "end", "BillingCurrency": "currency"}
        )
        .with_columns((pl.col("x_Basis") == "billed").alias("billed"))
        .group_by(*_ROW, "day", "billed", "currency")
        .agg(
            pl.when(unknown)
            .then(None)
            .otherwise(to_units(pl.col("EffectiveCost")).sum())
            .alias("units"),
            pl.col("committed").fill_null(False).any(),
        )
        .filter(pl.col("start") < pl.col("end"))
    )


def _delivered(
    rows: pl.DataFrame,
) -> tuple[dict[tuple[str, str], frozenset[date]], dict[tuple[str, str], datetime]]:
    """Per cluster and basis the days that are in whole, and the end of the last row."""
    ends = rows.group_by("cluster", "billed", "day").agg(pl.col("end").max()).sort("day")
    through: dict[tuple[str, str], datetime] = {}
    days: dict[tuple[str, str], set[date]] = defaultdict(set)
    for cluster, billed, day, end in ends.select("cluster", "billed", "day", "end").iter_rows():
        key = (cluster, "billed" if billed else "estimated")
        days[key].add(day)
        through[key] = max(end, through.get(key, end))
    whole = {
        key: frozenset(day for day in found if Window.of_day(day).end <= through[key])
        for key, found in days.items()
    }
    return whole, through


def _by_hour(rows: pl.DataFrame, hours: Hours) -> pl.DataFrame:
    """Each cost row cut over the local hours that it touches, by milliseconds."""
    overlap = pl.min_horizontal("end", "hour_end") - pl.max_horizontal("start", "hour_start")
    periods = (
        rows.lazy()
        .select("start", "end")
        .unique()
        .join_where(
            hours.frame.lazy().select("hour", "hour_start", "hour_end"),
            pl.col("start") < pl.col("hour_end"),
            pl.col("end") > pl.col("hour_start"),
        )
        .select(
            "start",
            "end",
            "hour",
            overlap.dt.total_milliseconds().cast(pl.Int128).alias("part"),
            (pl.col("end") - pl.col("start"))
            .dt.total_milliseconds()
            .cast(pl.Int128)
            .alias("whole"),
        )
    )
    return (
        rows.lazy()
        .join(periods, on=["start", "end"])
        # Rounded towards zero, so that the parts of a row never add up to more than the row.
        .with_columns(
            (
                pl.col("units").abs() * pl.col("part") // pl.col("whole") * pl.col("units").sign()
            ).alias("units")
        )
        .select(*_HOUR, "start", "end", "day", "currency", "units", "committed")
        .sort(*_HOUR, "start", "currency", "units")
        .collect()
    )


def money_of(
    rows: pl.DataFrame, recurring: frozenset[int], basis: str | None, days: frozenset[date]
) -> Money:
    """Money of the wasted hours of one node.

    The saving takes the mean of each weekday with a bill, and from these the month of 30 days: with
    every weekday billed equally often that is spent / days × 30, and a bill that lags does not
    change it.

    Args:
        rows: Rows of ``NodeCosts.hours`` of the node's wasted hours.
        recurring: The hours among them that come back every week.
        basis: billed, estimated, or None if the node has no cost rows at all.
        days: Whole UTC days whose bill is in.
    """
    if basis is None:
        return Money("no bill line and no price for the node", reason="no_price")
    currencies = sorted(rows["currency"].unique().to_list())
    if len(currencies) > 1:
        return Money(f"billed in {' and '.join(currencies)}", reason="price_ambiguous")
    if rows["units"].null_count() or not currencies:
        return Money(
            "the effective cost of the idle hours is not known",
            basis=basis,
            currency=currencies[0] if currencies else None,
            reason="no_price",
        )
    again = rows.filter(pl.col("hour").is_in(sorted(recurring)), pl.col("day").is_in(sorted(days)))
    per_day = dict(again.group_by("day").agg(pl.col("units").sum()).iter_rows())
    return Money(
        _method(rows, len(days)),
        spent=_decimal(Fraction(sum(rows["units"].to_list()))),
        saving_per_month=_decimal(per_month(per_day, days)) if days else None,
        currency=currencies[0],
        basis=basis,
        reason=None if days else "no_price",
    )


def per_month(units: Mapping[date, int], days: frozenset[date]) -> Fraction:
    """Cost of 30 days from the cost of ``days``; a day without an entry cost nothing."""
    by_weekday: dict[int, list[int]] = defaultdict(list)
    for day in days:
        by_weekday[day.weekday()].append(units.get(day, 0))
    if len(by_weekday) < 7:  # less than a week: nothing to balance
        return Fraction(sum(units.values()), len(days)) * MONTH_DAYS
    week = sum((Fraction(sum(found), len(found)) for found in by_weekday.values()), Fraction(0))
    return week * MONTH_DAYS / 7


def _method(rows: pl.DataFrame, days: int) -> str:
    text = (
        f"effective cost of the idle hours; per month = mean of each weekday over {days} days "
        f"with bill data × {MONTH_DAYS}"
    )
    hours = rows["hour"].n_unique()
    committed = rows.filter(pl.col("committed"))["hour"].n_unique()
    if committed:
        text += (
            f"; realisable: after_commitment for {committed} of {hours} hours (the money comes "
            "back when the commitment is used elsewhere or ends)"
        )
    return text


def _decimal(units: Fraction) -> Decimal:
    """Units of 1e-12 as money, rounded half-even."""
    return Decimal(round(units)).scaleb(-12, _EXACT)
