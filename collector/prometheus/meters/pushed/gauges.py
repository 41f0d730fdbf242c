"""Gauges of cards per slot, as the server tells them, and whether they are ratios."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus.meters.cards import KEPT
from collector.prometheus.meters.pushed.asking import Asker, NotPushedError, listed
from collector.prometheus.meters.pushed.cells import Cells
from collector.prometheus.meters.pushed.sketches import gauges, sketch
from collector.prometheus.meters.pushed.spun import QUESTIONS, Gate, counted, mixed, spans, without
from collector.prometheus.meters.pushed.tables import numbered, only_label
from collector.prometheus.sources.source import SAMPLES


@dataclass(frozen=True)
class CardSlots:
    """What a server tells of a gauge of cards.

    Args:
        rows: ``series``, ``slot``, statistics, ``samples``, ``low``, ``high``; ``still``: how many
            samples only spin; ``good``.
        table: Of ``clean.label_table``.
    """

    rows: pl.DataFrame
    table: pl.DataFrame


def card_gauges(asker: Asker, cells: Cells, gate: Gate | None) -> CardSlots:
    """Slots of a gauge, with 0 for samples of cards that only spin.

    Raises:
        NotPushedError: All samples are to be read.
        QueryError: The server cannot answer.
    """
    pattern = cells.promql(asker.selected, asker.push.span(cells.interval))
    small = {
        "pattern": f"({pattern} != {cells.regular})",
        "at": f"({asker.last_time(cells)} and ({asker.over('count_over_time')} != {cells.count}))",
    }
    if gate:
        small["apart"] = gate.apart
    grids = {
        "total": asker.grid(asker.over("sum_over_time")),
        "min": asker.grid(asker.over("min_over_time")),
        "max": asker.grid(asker.over("max_over_time")),
        **asker.grids(small),
    }
    if gate:
        grids["spun"] = asker.looked(gate.spun, cells)
    numbers, table, strange = numbered(grids, asker.series, asker.reader.who)
    if strange or table.is_empty():
        raise NotPushedError
    spun = numbers.pop("spun", None)
    rows = gauges(sketch(numbers, cells), asker.series.ceiling)
    if spun is None:
        return CardSlots(rows.with_columns(still=pl.lit(0, pl.Int64)), table)
    # Of two samples in a cell, the server looked at one.
    good = pl.col("good") & pl.col("apart").is_null() & ~pl.col("crowded")
    rows = counted(rows.with_columns(good=good.fill_null(value=False)), spun)
    if not rows.select(mixed().any()).item():
        return CardSlots(rows, table)
    samples = _samples(asker, rows, table)
    return CardSlots(without(rows, spun, samples, asker.reader.wide, cells.interval), table)


def _samples(asker: Asker, rows: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """``series``, ``time``, ``value`` of cards in slots in which some samples only spin."""
    label, names = only_label(table, asker.series.columns["device"])
    cards = table.select("series", "labels", card=names)
    wanted = rows.filter(mixed()).select("series", "slot").join(cards, on="series")
    asked = list(spans(wanted.select("slot", "card")))
    parts = [pl.DataFrame(schema={**SAMPLES})]
    if len(asked) <= QUESTIONS:
        parts += [
            asker.raw(window, f'{label}=~"{text}"')
            for window, some in asked
            for text in listed(some)
        ]
    return (
        pl.concat(parts)
        .join(cards, on="labels")
        .select("series", "value", time=pl.col("timestamp"))
    )


def ratios(
    found: CardSlots, placed: pl.DataFrame, *, percent: bool
) -> tuple[pl.DataFrame, list[str]]:
    """Statistics as ratios, and the nodes of which slots do not tell the unit.

    As ``activity`` has it: a percentage of whole numbers has nothing between 0 and 1; a ratio
    nothing above 1, but for single values that are none.

    Args:
        found: The slots.
        placed: ``series``, ``node``, ``host``.
        percent: Whether percentages are usual.
    """
    rows = found.rows.join(
        placed.select("series", of_node="node", of_host="host"), on="series", maintain_order="left"
    )
    least, most = pl.col("min"), pl.col("max")
    between = ((most > 0) & (most < 1)) | ((least > 0) & (least < 1))
    nodes = rows.group_by("of_node").agg(
        above=(most > 1).any(),
        between=between.any(),
        busy=(most > 0).any(),
        sound=pl.col("good").all() | (most <= 1).all(),
        hosts=pl.col("of_host").unique(),
    )
    if percent:
        unsure = (~pl.col("above") & ~pl.col("between") & pl.col("busy")) | ~pl.col("sound")
    else:
        unsure = pl.col("above")
    doubted = nodes.filter(unsure.fill_null(value=True))["hosts"].explode().drop_nulls().to_list()
    if percent:
        hundred = nodes.filter("above").select("of_node")
        big = rows.join(hundred, on="of_node", how="semi", nulls_equal=True)
        rest = rows.join(hundred, on="of_node", how="anti", nulls_equal=True)
        rows = pl.concat([big.with_columns(pl.col(*KEPT) / 100), rest]).sort("series", "slot")
    return rows.drop("of_node", "of_host"), doubted
