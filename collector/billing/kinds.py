"""What kind of cost a line is: its dimension, and whether it is fixed or elastic."""

from __future__ import annotations

import polars as pl

DIMENSIONS = {
    "AI and Machine Learning": "compute",
    "Compute": "compute",
    "Storage": "storage_logs",
    "Databases": "storage_logs",
    "Analytics": "data",
}
"""FOCUS ServiceCategory to dimension; what is not here is ``other``, but for logs."""

_LOGS = r"(?i)cloudwatch|\blog|logging|monitor|observability"


def dimension() -> pl.Expr:
    """``x_Dimension`` from ServiceCategory, ServiceSubcategory and ServiceName.

    Logs and their monitoring (Management and Governance) count as ``storage_logs``.
    """
    category = pl.col("ServiceCategory")
    logs = pl.any_horizontal(
        pl.col(name).str.contains(_LOGS).fill_null(False)
        for name in ("ServiceName", "ServiceSubcategory")
    )
    return (
        pl.when((category == "Management and Governance") & logs)
        .then(pl.lit("storage_logs"))
        .otherwise(category.replace_strict(DIMENSIONS, default="other", return_dtype=pl.String))
        .fill_null("other")
        .alias("x_Dimension")
    )


def elasticity() -> pl.Expr:
    """``x_Elasticity``: purchases and recurring fees are ``fixed``, all else is ``elastic``."""
    fixed = (pl.col("ChargeCategory") == "Purchase") | (pl.col("ChargeFrequency") == "Recurring")
    return (
        pl.when(fixed.fill_null(False))
        .then(pl.lit("fixed"))
        .otherwise(pl.lit("elastic"))
        .alias("x_Elasticity")
    )
