"""Lines whose resource is no node: to what lies in it or uses it, else to their own tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from attribution.facts import DayFacts
from attribution.identity import name_lines
from attribution.lines.credits import free_credits, over_rows
from attribution.lines.network import place_network
from attribution.lines.parts import LINE, Found, by_rules, divide, with_identity
from attribution.lines.stored import place_stored
from attribution.lines.streams import place_streams
from attribution.lines.volumes import place_volumes
from ledger.facts import Gap
from ledger.schema import IDENTITY_KEYS, SHARED
from ledger.settings import Settings
from ledger.text import counted


@dataclass(frozen=True)
class Placed:
    """Where the lines went.

    Args:
        rows: Shares of the lines, for ``costs.line_rows``, in the order of the key of ``costs``;
            each line's add up to it.
        gaps: What could not be seen.
        notes: What a reader should know.
    """

    rows: pl.DataFrame
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]


def place(
    lines: pl.DataFrame,
    lives: pl.DataFrame,
    who: pl.DataFrame,
    facts: DayFacts,
    settings: Settings,
) -> Placed:
    """Give lines that pay for no node to somebody.

    A line is split by the first of these that knows its resource: inventoried bytes and counted
    requests of a store, pods that mount a volume, bytes of log streams, bytes that pods sent. What
    is left goes whole to its own tags, as does a line whose evidence is missing, with low
    confidence. A credit without a resource goes where the usage of its product went; without any
    it is ``__shared__``, as is a commitment that nobody used.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        lives: Pod lives while their cluster was seen, with ``who``.
        who: What each pod is, by ``who`` (``stages.holders.WHO``).
        facts: The day.
        settings: The identity rules.
    """
    unused = (pl.col("CommitmentDiscountStatus") == "Unused").fill_null(value=False)
    given = free_credits(lines, settings)
    charged = lines.join(given, on="line", how="anti")
    rest = charged.filter(~unused)
    found: list[Found] = []
    kinds: tuple[Callable[[pl.DataFrame], Found], ...] = (
        lambda these: place_stored(these, facts, settings),
        lambda these: place_volumes(these, lives, facts, settings),
        lambda these: place_streams(these, lives, facts, settings),
        lambda these: place_network(these, lives, facts, settings),
    )
    for split in kinds:
        one = split(rest)
        found.append(one)
        rest = rest.join(one.parts, on="line", how="anti").join(one.lacking, on="line", how="anti")
    parts = with_identity(pl.concat([one.parts for one in found]), who)
    lacking = pl.concat([one.lacking for one in found])
    whole = charged.join(parts, on="line", how="anti").join(lacking, on="line", how="left")
    rows = pl.concat([divide(charged, parts), _own(whole, settings)], how="diagonal")
    told = over_rows(given, charged, rows)
    orphans = _shared(given.join(told, on="line", how="anti"))
    rows = pl.concat([rows, told, orphans], how="diagonal")
    order = ("line", "ChargePeriodStart", "resource", "target", "uid", "reason", "phase", "path")
    return Placed(
        rows.sort(order, nulls_last=True, maintain_order=True),
        tuple(gap for one in found for gap in one.gaps),
        tuple(_notes(lacking)),
    )


def _shared(lines: pl.DataFrame) -> pl.DataFrame:
    """Whole lines that are everybody's."""
    told = {"confidence": "high"} | dict.fromkeys(("target", *IDENTITY_KEYS), SHARED)
    return lines.select(*LINE, *(pl.lit(value).alias(name) for name, value in told.items()))


def _own(lines: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Whole lines: to the identity of their own tags, or shared if they are a commitment's rest."""
    unused = (pl.col("CommitmentDiscountStatus") == "Unused").fill_null(value=False)
    names = ("target", *IDENTITY_KEYS)
    low = pl.when(pl.col("lack").is_not_null()).then(pl.lit("low")).otherwise(pl.lit("high"))
    return (
        name_lines(lines, settings)
        .with_columns(by_rules())
        .with_columns(
            *(pl.when(unused).then(pl.lit(SHARED)).otherwise(name).alias(name) for name in names),
            *(pl.when(~unused).then(name).alias(name) for name in ("reason", "tags")),
            low.alias("confidence"),
        )
        .select(*LINE, *names, "reason", "tags", "confidence")
    )


def _notes(lacking: pl.DataFrame) -> Iterator[str]:
    for lack, lines in lacking.group_by("lack").len().sort("lack").iter_rows():
        yield f"{counted(lines, 'line')} of the bill: no {lack}; whole to the line's own tags"
