"""Savings never exceed cost: every ``costs`` row is claimed once.

Findings meet in the same rows (a node's nights, and the stalled pod on that node). In the order of
``Stage`` each takes from what the earlier ones left: an absolute saving is clipped to the rest, a
proportional one is applied to the rest. Cost 300: nights 120, then "40 % smaller" counts
0.4 × 180 = 72, sum 192. The own figure of a finding stays beside the counted one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import polars as pl

from ledger.money import to_units
from rules.rule import Finding, Stage

_ROW = ["cluster", "node", "start", "end"]
_EXACT = Context(prec=50)


def count_once(
    findings: Sequence[Finding], costs: pl.LazyFrame, stages: Mapping[str, Stage]
) -> tuple[Finding, ...]:
    """The findings with ``saving_per_month`` counted after overlaps.

    Args:
        findings: Findings that count (none that is excepted), in any order.
        costs: Rows in the form of ``costs``.
        stages: Rule code to its place in the order of claims.

    Returns:
        The same findings in the same order. A finding whose rows nobody else claims keeps its own
        saving; one without a saving keeps none.
    """
    counted = [replace(each, saving_per_month=each.money.saving_per_month) for each in findings]
    order = sorted(
        range(len(findings)),
        key=lambda n: (stages[findings[n].rule], findings[n].rule, findings[n].fingerprint),
    )
    wanted = _claimed(findings, costs)
    for index, share in _shares(findings, order, wanted).items():
        own = findings[index].money.saving_per_month
        if own is not None:
            counted[index] = replace(findings[index], saving_per_month=_part(own, share))
    return tuple(counted)


def _claimed(findings: Sequence[Finding], costs: pl.LazyFrame) -> pl.DataFrame:
    """The contested cost rows: ``finding, cluster, node, start, end, units, part``.

    ``part`` is the Int128 amount that the finding claims of the row's ``units``.
    """
    claims = pl.DataFrame(
        [
            (n, c.cluster, c.node, c.start, c.end)
            for n, finding in enumerate(findings)
            for c in finding.claims
        ],
        schema={
            "finding": pl.Int64(),
            "cluster": pl.String(),
            "node": pl.String(),
            "from": pl.Datetime("us", "UTC"),
            "until": pl.Datetime("us", "UTC"),
        },
        orient="row",
    )
    nodes = claims.group_by("cluster", "node").agg(pl.col("finding").n_unique())
    shared = nodes.filter(pl.col("finding") > 1).select("cluster", "node")
    if shared.is_empty():
        return pl.DataFrame(schema={"finding": pl.Int64()})
    rows = (
        costs.rename({"ChargePeriodStart": "start", "ChargePeriodEnd": "end"})
        .join(shared.lazy(), on=["cluster", "node"], how="semi")
        .group_by(_ROW)
        .agg(to_units(pl.col("EffectiveCost").fill_null(0)).sum().alias("units"))
    )
    overlap = pl.min_horizontal("end", "until") - pl.max_horizontal("start", "from")
    whole = (pl.col("end") - pl.col("start")).dt.total_microseconds().cast(pl.Int128)
    part = pl.col("units") * overlap.dt.total_microseconds().cast(pl.Int128) // whole
    return (
        rows.join(claims.lazy(), on=["cluster", "node"])
        .filter(
            pl.col("start") < pl.col("until"), pl.col("end") > pl.col("from"), pl.col("units") > 0
        )
        .with_columns(part.alias("part"))
        .group_by("finding", *_ROW)
        .agg(pl.col("units").first(), pl.col("part").sum())
        .sort(*_ROW, "finding")
        .collect()
    )


def _shares(
    findings: Sequence[Finding], order: Sequence[int], wanted: pl.DataFrame
) -> dict[int, Fraction]:
    """Per finding that met another: what it gets over what it wanted."""
    if wanted.is_empty():
        return {}
    free: dict[tuple[object, ...], Fraction] = {}
    by_finding = wanted.partition_by("finding", as_dict=True)
    shares: dict[int, Fraction] = {}
    for index in order:
        asked = got = Fraction(0)
        proportion = findings[index].proportion
        for row in by_finding.get((index,), wanted.clear()).iter_rows(named=True):
            key = tuple(row[name] for name in _ROW)
            left = free.get(key, Fraction(row["units"]))
            take = min(left, Fraction(row["part"])) * proportion
            free[key] = left - take
            asked += row["part"] * proportion
            got += take
        if asked:
            shares[index] = got / asked
    return shares


def _part(own: Decimal, share: Fraction) -> Decimal:
    """A part of a saving, rounded down to 1e-12, so that parts never exceed the whole."""
    units = Fraction(own) * 10**12 * share
    return Decimal(int(units)).scaleb(-12, _EXACT)
