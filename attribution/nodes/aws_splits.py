"""The provider's own split of a machine (EKS split cost), where a pool asks for ``aws-split``.

Such rows repeat the money of the machine's line: they are never charges, only weights. In a
node-hour that has some, each pod weighs what its rows say it cost (split and unused cost), per
resource; a row that meets no pod belongs to the unseen; what the machine costs above all rows is
free. Every line of the node and every cost column is split by these weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.bill.match import canonical
from attribution.nodes.methods import CPU, FREE, GPU, MEMORY, POD, UNSEEN
from attribution.ratio import milliseconds
from attribution.spans import by_hour, clip
from ledger.money import split, to_units

METHOD = "aws-split"
_POOL = {"gpu": GPU, "cpu": CPU, "memory": MEMORY}
_PLACE = ["cluster", "node"]
_MOST = 2**62
"""Weights of one split add up to less than 2^63."""


@dataclass(frozen=True)
class PodSplits:
    """What rows of the provider say of node-hours.

    Args:
        claims: ``nh, pool, kind, who, start, end, amount``, the amount in units of money.
        currency: ``nh, currency``: that of the rows (of several, the one with the most money).
    """

    claims: pl.DataFrame
    currency: pl.DataFrame

    def split_whole(self, hours: pl.DataFrame) -> pl.DataFrame:
        """``methods.classify``, without a reason not to split hours whose split is told."""
        told = pl.col("nh").is_in(self.currency["nh"].implode())
        return hours.with_columns(pl.when(~told).then("whole").alias("whole"))

    def over(
        self, weights: pl.DataFrame, parts: pl.DataFrame, hours: pl.DataFrame
    ) -> tuple[pl.DataFrame, PodSplits]:
        """Put the weights of these splits in the place of those of the method.

        Args:
            weights: ``split.weigh_pools``.
            parts: ``split.hour_parts``.
            hours: ``methods.classify``.

        Returns:
            The weights, and the splits with the claims of free capacity.
        """
        if self.currency.is_empty():
            return weights, self
        free = self._free(weights, parts, hours)
        every = pl.concat([self.claims, free], how="diagonal")
        pools = every.group_by("nh", "pool").agg(pl.col("amount").sum().alias("weight"))
        total = pl.col("weight").sum().over("nh")
        pools = pools.with_columns(pl.col("weight") // (total // _MOST + 1))
        # Cards stay in the books where they cost nothing.
        cards = weights.filter(pl.col("pool") == GPU).select("nh", "pool")
        cards = cards.unique().join(self.currency, on="nh", how="semi")
        cards = cards.join(pools, on=["nh", "pool"], how="anti").with_columns(
            pl.lit(0, dtype=pl.Int128).alias("weight")
        )
        told = weights.select("nh", "currency").unique()
        told = told.join(pl.concat([pools, cards]), on="nh").select(weights.columns)
        kept = weights.join(self.currency, on="nh", how="anti")
        return pl.concat([kept, told]).sort("nh", "currency", "pool"), PodSplits(
            every, self.currency
        )

    def _free(
        self, weights: pl.DataFrame, parts: pl.DataFrame, hours: pl.DataFrame
    ) -> pl.DataFrame:
        """What the machines cost above all rows, over the resources as the method weighs them.

        Rows repeat the money of what was used: credits and refunds do not lessen that. In a cluster
        whose pods nobody looked for, the rest belongs to the unseen.
        """
        prices = parts.group_by("nh", "currency").agg(
            pl.col("units_EffectiveCost").clip(0).fill_null(0).sum().alias("price")
        )
        sums = self.claims.group_by("nh").agg(pl.col("amount").sum().alias("told"))
        rest = prices.join(self.currency, on=["nh", "currency"]).join(sums, on="nh")
        rest = rest.with_columns(amount=pl.col("price") - pl.col("told"))
        rows = weights.join(rest.filter(pl.col("amount") > 0), on=["nh", "currency"])
        shares = split(
            rows.lazy(), group=["nh"], amounts=["amount"], weight="weight", order=["pool"]
        ).collect()
        blind = shares.join(hours.select("nh", "blind"), on="nh", how="left", maintain_order="left")
        kind = pl.when(pl.col("blind").is_null()).then(FREE).otherwise(UNSEEN)
        return blind.select(
            "nh", "pool", kind.cast(self.claims.schema["kind"]).alias("kind"), "amount"
        ).filter(pl.col("amount") > 0)

    def claimed(self, own: pl.DataFrame) -> pl.DataFrame:
        """Put the claims of these splits in the place of ``methods.claims``.

        The time of cards stays what it was: on the claim of the same holder, else on one of no
        money.
        """
        told = self.claims.join(own.select("nh").unique(), on="nh", how="semi")
        if told.is_empty():
            return own
        key = ["nh", "pool", "kind", "who"]
        total = pl.col("amount").sum().over("nh", "pool")
        amount = (pl.col("amount") // (total // _MOST + 1)).cast(own.schema["amount"])
        sums = told.group_by(key).agg(
            pl.col("amount").sum(), pl.col("start").min(), pl.col("end").max()
        )
        cards = own.join(told, on="nh", how="semi").filter(pl.col("pool") == GPU)
        both = sums.with_columns(amount.alias("amount")).join(
            cards.select(*key, "card_ms", "start", "end"),
            on=key,
            how="full",
            nulls_equal=True,
            coalesce=True,
        )
        rows = both.with_columns(
            pl.col("amount").fill_null(0),
            pl.coalesce("start", "start_right").alias("start"),
            pl.coalesce("end", "end_right").alias("end"),
        )
        kept = own.join(told, on="nh", how="anti")
        names = ["nh", "pool", "kind", "who", "start", "end", "amount", "card_ms"]
        return pl.concat([kept.select(names), rows.select(names)], how="vertical_relaxed")


def read(
    rows: pl.DataFrame, ids: pl.DataFrame, lives: pl.DataFrame, hours: pl.DataFrame
) -> PodSplits:
    """Lay the rows over node-hours and pods.

    A row meets the pod of its uid, without one the pod of its name, that lived on the machine in
    the row's time; it falls to the hours in which the pod did. Halves of a pod (its phase or labels
    changed) share by time.

    Args:
        rows: Rows of ``pod_splits``.
        ids: ``match.node_ids``.
        lives: Pod lives with ``who``.
        hours: ``methods.classify``; those of pools with ``aws-split`` are asked.
    """
    asked = hours.filter(pl.col("method") == METHOD).select("nh", *_PLACE, "hour")
    told = _money(rows).join(ids, on="id").join(asked.select(_PLACE).unique(), on=_PLACE)
    pods = lives.select(
        *_PLACE, "uid", "namespace", "pod", "who", pl.col("start").alias("from"), until="end"
    )
    names = ["namespace", "pod"]
    known = pl.col("uid").is_not_null()
    met = pl.concat(
        [
            told.filter(known).join(pods.drop(names), on=[*_PLACE, "uid"]).drop("uid", *names),
            told.filter(~known).join(pods.drop("uid"), on=[*_PLACE, *names]).drop("uid", *names),
        ]
    )
    met = clip(met, pl.col("from"), pl.col("until")).drop("from", "until")
    lost = told.drop("uid", *names).join(met, on="row", how="anti")
    pieces = pl.concat([met, lost.with_columns(who=pl.lit(None, lives.schema["who"]))])
    spread = by_hour(pieces).join(asked, on=[*_PLACE, "hour"])
    shares = split(
        spread.lazy(),
        group=["row"],
        amounts=["amount"],
        weight="ms",
        order=["hour", *_PLACE, "who", "start"],
    ).collect()
    return _in_one_currency(shares.filter(pl.col("amount") > 0))


def _money(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their ``amount`` in units, numbered; copies in two bills count once."""
    cost = [to_units(pl.col(name)).fill_null(0) for name in ("SplitCost", "UnusedCost")]
    known = rows.filter(pl.col("resource").is_in(list(_POOL)))
    distinct = known.drop("day", "source").unique().sort(pl.exclude("day", "source"))
    return distinct.with_row_index("row").select(
        "row",
        canonical("parent").alias("id"),
        pl.col("BillingCurrency").alias("currency"),
        "uid",
        "namespace",
        "pod",
        pl.col("resource").replace_strict(_POOL, return_dtype=pl.Int32).alias("pool"),
        milliseconds("start").alias("start"),
        milliseconds("end").alias("end"),
        (cost[0] + cost[1]).alias("amount"),
    )


def _in_one_currency(shares: pl.DataFrame) -> PodSplits:
    kind = pl.when(pl.col("who").is_null()).then(UNSEEN).otherwise(POD).cast(pl.Int32)
    pod = pl.col("who").is_not_null()
    claims = (
        shares.with_columns(kind.alias("kind"))
        .group_by("nh", "currency", "pool", "kind", "who")
        .agg(
            pl.col("start").filter(pod).min(),
            pl.col("end").filter(pod).max(),
            pl.col("amount").sum(),
        )
    )
    sums = claims.group_by("nh", "currency").agg(pl.col("amount").sum())
    most = sums.sort("nh", "amount", "currency", descending=[False, True, False])
    currency = most.unique("nh", keep="first", maintain_order=True).select("nh", "currency")
    return PodSplits(claims.join(currency, on=["nh", "currency"]).drop("currency"), currency)
