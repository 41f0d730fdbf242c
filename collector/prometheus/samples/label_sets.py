"""What label sets mean: whose they are, what they speak of, and who scraped them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import polars as pl

from collector.prometheus.series.catalogue import SCRAPE_LABELS
from collector.prometheus.series.metric import Series
from ledger.text import canonical_json


@dataclass(frozen=True)
class Identity:
    """Which cluster's samples to keep: a name, and the label that must carry it (None = all)."""

    cluster: str
    label: str | None = None


def label_table(
    texts: pl.Series,
    series: Series,
    who: Identity,
) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """One row per label set: its columns and numbers; and the sets put aside, by reason."""
    kept: list[dict[str, str | int | None]] = []
    strange: dict[str, list[str]] = {"bad_labels": [], "no_cluster": []}
    for text in texts:
        try:
            labels = msgspec.json.decode(text or "", type=dict[str, str])
        except (msgspec.DecodeError, UnicodeError):
            strange["bad_labels"].append(text)
            continue
        if who.label and not labels.get(who.label):
            strange["no_cluster"].append(text)
        elif not who.label or labels[who.label] == who.cluster:
            kept.append({"labels": text, **_columns(labels, series)})
    schema: dict[str, type[pl.DataType]] = {
        "labels": pl.String,
        **dict.fromkeys(series.columns, pl.String),
        "labels_kept": pl.String,
        "origin_text": pl.String,
        "richness": pl.Int64,
    }
    table = _number(pl.DataFrame(kept, schema=schema), series)
    return table, strange


def _columns(labels: dict[str, str], series: Series) -> dict[str, str | int | None]:
    """The columns of a label set, the labels kept, and who scraped it."""
    row: dict[str, str | int | None] = {}
    filled = 0
    exported = {key[9:] for key in labels if key.startswith("exported_")}
    for column, names in series.columns.items():
        value = None
        for name in names:
            value = (exported and labels.get(f"exported_{name}")) or labels.get(name) or None
            if value is not None:
                filled += 1
                break
        row[column] = value
    own, prefix = {}, series.prefix
    if prefix is not None:
        own = {
            series.spelling.get(key, key): value
            for key, value in labels.items()
            if key.startswith(prefix) and (series.keep is None or series.keep.fullmatch(key))
        }
    origin = {key: value for key, value in labels.items() if _of_scrape(key) or key in exported}
    return {
        **row,
        "labels_kept": canonical_json(own) if own else "{}",
        "origin_text": canonical_json(origin),
        "richness": len(own) + filled,
    }


@cache
def _of_scrape(label: str) -> bool:
    """Whether a label tells who scraped, not what was measured."""
    return label in SCRAPE_LABELS or (
        "replica" in label and "replicaset" not in label and not label.startswith("label_")
    )


def _number(table: pl.DataFrame, series: Series) -> pl.DataFrame:
    """Number identities and meanings by their text, label sets by (identity, richness, text)."""
    info = [*series.info, "labels_kept"]
    return (
        table.sort(
            [*series.identity, "richness", "labels"],
            nulls_last=True,
            descending=[*[False] * len(series.identity), True, False],
        )
        .with_row_index("series")
        .with_columns(
            ident=_first_seen([*series.identity]),
            meaning=_first_seen([*series.identity, *info]),
            origin=_first_seen(["origin_text"]),
        )
    )


def _first_seen(columns: Sequence[str]) -> pl.Expr:
    return pl.col("series").min().over(columns)
