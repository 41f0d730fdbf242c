"""Numbers instead of label sets, the same that samples bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from collector.prometheus.meters.pushed.asking import NotPushedError
from collector.prometheus.samples.label_sets import Identity, label_table
from collector.prometheus.series.metric import Series


def numbered(
    grids: Mapping[str, pl.DataFrame], series: Series, who: Identity
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame, bool]:
    """Series by number.

    Args:
        grids: By name: ``labels`` and more.
        series: What the metric is.
        who: Whose series are kept.

    Returns:
        The grids with ``series`` in place of ``labels``; the table of ``label_table``; and whether
        there are series whose labels name no cluster.
    """
    texts = pl.concat([grid["labels"].unique() for grid in grids.values()]).unique().sort()
    table, strange = label_table(texts, series, who)
    numbers = texts.to_frame().join(
        table.select("labels", "series"), on="labels", how="left", maintain_order="left"
    )["series"]
    kind = pl.Enum(texts)
    found = {
        name: grid.select(
            numbers.gather(grid["labels"].cast(kind).to_physical()), pl.exclude("labels")
        ).drop_nulls("series")
        for name, grid in grids.items()
    }
    return found, table, any(strange.values())


def only_label(table: pl.DataFrame, names: Sequence[str]) -> tuple[str, pl.Series]:
    """The first of some labels that all series bear, and its values by row.

    Args:
        table: Of ``label_table``.
        names: Names of labels.

    Raises:
        NotPushedError: There is none.
    """
    sets = [msgspec.json.decode(text, type=dict[str, str]) for text in table["labels"]]
    for name in names:
        if all(one.get(name) for one in sets):
            return name, pl.Series(name, [one[name] for one in sets], pl.String)
    raise NotPushedError
