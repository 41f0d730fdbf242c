"""Owners of a pod by two sources: the API as of when it was asked, samples all day long.

A job that finished may be gone from the API when a pod of it is still there: the chain of owners
then ends early, though samples saw the whole of it. More often it is the pod that is gone, and its
job still there: then other pods of it tell what stands above, and with which labels.
"""

from __future__ import annotations

import msgspec
import polars as pl

from ledger.text import canonical_json

POD = ("cluster", "uid")
_OF_SAMPLES = ("owners", "root_kind", "root_name", "role", "owner_labels")
_ROOT = ("cluster", "namespace", "root_kind", "root_name")
_TOP = ("cluster", "namespace", "top_kind", "top_name")
_LINKS = pl.List(pl.Struct({"kind": pl.String, "name": pl.String}))
_DEPTH = 8  # owners above each other; no system has more than four


def with_sampled_owners(told: pl.DataFrame, sampled: pl.DataFrame) -> pl.DataFrame:
    """What the API tells, and where samples know more of owners and role, that.

    Where the two chains differ in what both tell, the API's stands as it is.

    Args:
        told: Rows of the API: ``cluster, uid, owners, root_kind, root_name, role, owner_labels``
            and more.
        sampled: The same of samples, with ``start``.

    Returns:
        ``told`` in its order and columns.
    """
    seen = (
        sampled.sort("start")
        .group_by(POD)
        .agg(pl.col(name).drop_nulls().last().alias(f"{name}_seen") for name in _OF_SAMPLES)
    )
    rows = told.join(seen, on=list(POD), how="left", maintain_order="left")
    start = pl.col("owners").str.strip_suffix("]")
    start = pl.when(start == "[").then(start).otherwise(start + ",")
    longer = pl.col("owners_seen").str.starts_with(start) & (pl.col("owners_seen") != "[]")
    labels = pl.when(pl.col("owner_labels") != "{}").then("owner_labels")
    return rows.with_columns(
        *(
            pl.when(longer.fill_null(value=False)).then(f"{name}_seen").otherwise(name).alias(name)
            for name in ("owners", "root_kind", "root_name")
        ),
        role=pl.coalesce("role", "role_seen"),
        owner_labels=pl.coalesce(labels, "owner_labels_seen", "owner_labels"),
    ).select(told.columns)


def with_told_owners(sampled: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """What samples tell, with what the API tells of the same owners by other pods.

    That is what owns the last owner that samples know, and the labels that all pods of that root
    inherit alike.

    Args:
        sampled: Rows of samples: ``cluster, namespace, root_kind, root_name, owner_labels`` and
            more.
        told: The same of the API, with ``owners``.

    Returns:
        ``sampled`` in its order and columns.
    """
    if told.is_empty() or sampled.is_empty():
        return sampled
    roots = _climb(sampled.select(_ROOT).drop_nulls().unique(), _above(told))
    roots = roots.join(_labels(told), left_on=_TOP, right_on=_ROOT, how="left")
    rows = sampled.join(roots, on=_ROOT, how="left", maintain_order="left")
    return rows.with_columns(
        root_kind=pl.coalesce("top_kind", "root_kind"),
        root_name=pl.coalesce("top_name", "root_name"),
        owner_labels=pl.coalesce("owner_labels", "told_labels"),
    ).select(sampled.columns)


def _above(told: pl.DataFrame) -> pl.DataFrame:
    """Each owner and the one above it: ``_TOP``, ``next_kind``, ``next_name``.

    A name under two owners (one after the other) is left out.
    """
    chains = told.select("cluster", "namespace", "owners").drop_nulls().unique()
    links = chains.with_columns(pl.col("owners").str.json_decode(_LINKS)).with_row_index("chain")
    each = links.explode("owners").drop_nulls("owners").unnest("owners")
    after = pl.col("kind", "name").shift(-1).over("chain").name.prefix("next_")
    above = each.with_columns(after).drop_nulls().drop("chain").unique()
    above = above.rename({"kind": "top_kind", "name": "top_name"})
    return above.filter(pl.len().over(_TOP) == 1)


def _climb(roots: pl.DataFrame, above: pl.DataFrame) -> pl.DataFrame:
    """``_ROOT`` with the last owner above each: ``top_kind``, ``top_name``."""
    at = roots.with_columns(top_kind="root_kind", top_name="root_name")
    for _ in range(_DEPTH):
        at = at.join(above, on=_TOP, how="left", maintain_order="left")
        ended = at["next_kind"].null_count() == at.height
        at = at.with_columns(
            top_kind=pl.coalesce("next_kind", "top_kind"),
            top_name=pl.coalesce("next_name", "top_name"),
        ).drop("next_kind", "next_name")
        if ended:
            break
    return at


def _labels(told: pl.DataFrame) -> pl.DataFrame:
    """``_ROOT`` and ``told_labels``: what the owners of all its pods are labelled alike."""
    texts = told.select(*_ROOT, "owner_labels").drop_nulls().unique()
    one = pl.col("owner_labels").unique().sort()
    roots = texts.group_by(_ROOT).agg(one)
    alike = [_alike(found.to_list()) for found in roots["owner_labels"]]
    return roots.select(_ROOT).with_columns(told_labels=pl.Series(alike, dtype=pl.String))


def _alike(texts: list[str]) -> str:
    """The keys that have the same value in each of some JSON objects."""
    if len(texts) == 1:
        return texts[0]
    first, *others = (msgspec.json.decode(text, type=dict[str, str]) for text in texts)
    common = {
        key: value
        for key, value in first.items()
        if all(other.get(key) == value for other in others)
    }
    return canonical_json(common)
