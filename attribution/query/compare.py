"""A window beside the one before it: the same question, asked twice and joined by the keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from attribution.query.answer import Answer, QueryResult, answers, first, relabelled
from attribution.query.figures import grouped, in_order
from attribution.query.question import Query
from ledger.schema import MONEY
from ledger.store import Ledger
from ledger.window import Window

_ZERO = pl.lit(Decimal(0), dtype=MONEY)
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H:%M:%SZ"}


@dataclass(frozen=True)
class Compared:
    """An answer, and what the window of the same length before it cost.

    Args:
        result: The answer. Its rows gain ``previous``, ``difference`` (null if one of the two costs
            is not known), ``change`` (difference ÷ size of ``previous``; null of nothing) and
            ``presence``: ``both``, ``new`` (nothing before: ``previous`` is 0) or ``gone`` (nothing
            now: ``cost`` is 0). All four are null where no day of the window before is closed.
        window: The window before.
        closed: How many of its days are closed.
        total: What its rows cost; None if that is not known.
    """

    result: QueryResult
    window: Window
    closed: int
    total: Decimal | None

    @property
    def difference(self) -> Decimal | None:
        """Of the totals; None if one of them is not known."""
        if self.total is None or self.result.total is None:
            return None
        return self.result.total - self.total

    @property
    def change(self) -> float | None:
        """The difference by the total before; None of nothing."""
        if self.difference is None or not self.total:
            return None
        return float(self.difference / abs(self.total))


def before(window: Window) -> Window:
    """The window of the same length that ends where this one starts."""
    return Window(window.start - (window.end - window.start), window.start)


def compare(ledger: Ledger, request: Query, closed: Collection[date]) -> list[Compared]:
    """Answer a question beside the window before, with one result per currency (sorted).

    Args:
        ledger: The books.
        request: The question. Hours and days of the window before stand beside those that they lie
            one window before.
        closed: The days that are closed.

    Raises:
        UsageError: As ``query``.
    """
    window = before(request.window)
    days = len([day for day in window.days() if day in closed])
    now = {answer.result.currency: answer for answer in answers(ledger, request)}
    then = {
        answer.result.currency: answer
        for answer in answers(ledger, replace(request, window=window))
        if days
    }
    codes = sorted({*now, *then} - {None} or {None}, key=str)
    nothing = next(iter(now.values()))
    return [
        _compared(now.get(code) or _empty(nothing, code), then.get(code), window, days)
        for code in codes
    ]


def _empty(like: Answer, currency: str | None) -> Answer:
    """The answer of a currency that the window does not hold any more."""
    zero = None if like.result.window_total is None else Decimal(0)
    result = replace(
        like.result,
        currency=currency,
        total=zero,
        window_total=zero,
        billed=zero,
        unknown=0,
        shared=(),
        overhead=Decimal(0),
    )
    return Answer(result, like.shown.clear())


def _compared(now: Answer, then: Answer | None, window: Window, days: int) -> Compared:
    request = now.result.query
    older = None if then is None else _shifted(then.shown, request.window.start - window.start)
    if not request.by:
        rows, folded = pl.DataFrame(), 0
    else:
        rows, folded = _rows(request, now.shown, older, known=days > 0)
    if then is not None:
        total = then.result.total
    else:
        total = Decimal(0) if days else None
    return Compared(now.finished(rows, folded), window, days, total)


def _rows(
    request: Query, now: pl.DataFrame, then: pl.DataFrame | None, *, known: bool
) -> tuple[pl.DataFrame, int]:
    by = request.by
    rows = _beside(now, then, by, known=known)
    kept = first(rows, request)
    folded = rows.height - kept.height
    if folded:
        older = None if then is None else relabelled(then, kept, by)
        rows = _beside(relabelled(now, kept, by), older, by, known=known)
    return rows, folded


def _beside(
    now: pl.DataFrame, then: pl.DataFrame | None, by: tuple[str, ...], *, known: bool
) -> pl.DataFrame:
    """Rows of both windows by their keys."""
    current = grouped(now, by)
    older = grouped(now.clear() if then is None else then, by)
    told = [name for name in ("basis", "confidence") if name not in by]
    older = older.select(
        *by,
        pl.col("cost").alias("previous"),
        *(pl.col(name).alias(f"{name} before") for name in told),
        pl.lit(True).alias("then"),
    )
    both = current.with_columns(pl.lit(True).alias("now")).join(
        older, on=by, how="full", coalesce=True, nulls_equal=True
    )
    gone, new = pl.col("now").is_null(), pl.col("then").is_null()
    presence = pl.when(gone).then(pl.lit("gone")).when(new).then(pl.lit("new"))
    filled = both.with_columns(
        *(
            pl.when(gone).then(_ZERO).otherwise(pl.col(name)).alias(name)
            for name in ("cost", "active_cost")
        ),
        *(pl.col(name).fill_null(0) for name in ("gpu_hours", "unknown")),
        *(pl.coalesce(name, f"{name} before").alias(name) for name in told),
        pl.when(new).then(_ZERO).otherwise(pl.col("previous")).alias("previous"),
        presence.otherwise(pl.lit("both")).alias("presence"),
    ).with_columns((pl.col("cost") - pl.col("previous")).alias("difference"))
    size = pl.col("previous").abs().cast(pl.Float64)
    change = pl.when(size > 0).then(pl.col("difference").cast(pl.Float64) / size)
    gains = ("previous", "difference", "change", "presence")
    finished = filled.with_columns(change.alias("change")).select(*current.columns, *gains)
    if not known:  # nobody looked: nothing is new, and nothing was 0
        finished = finished.with_columns(
            pl.lit(None, dtype=finished.schema[name]).alias(name) for name in gains
        )
    return in_order(finished, by)


def _shifted(rows: pl.DataFrame, length: timedelta) -> pl.DataFrame:
    """Rows with their days and hours one window later, where that is a whole number of them."""
    units = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
    return rows.with_columns(
        pl.coalesce(
            (pl.col(key).str.to_datetime(_FORMATS[key], strict=False) + length).dt.strftime(
                _FORMATS[key]
            ),
            pl.col(key),
        ).alias(key)
        for key, unit in units.items()
        if key in rows.columns and not length % unit
    )
