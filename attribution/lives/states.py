"""What each pod was, and from when on: the API's word, cut where samples show a change."""

from __future__ import annotations

import polars as pl

from attribution.lives.labels import then
from attribution.spans import intersect

POD = ("cluster", "uid")
AMOUNTS = ("cpu_millicores", "memory_bytes")
CARDS = ("gpus", "gpu_resource", "gpu_request")
REQUESTS = (*AMOUNTS, *CARDS)
ATTRIBUTES = (
    "namespace",
    "pod",
    "root_kind",
    "root_name",
    "role",
    "labels",
    "owner_labels",
    "annotations",
    "environment",
    *REQUESTS,
)
_SHOWN = ("labels", *REQUESTS)
_FOREVER = 2**62


def pod_states(sampled: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """What each pod was and from when on: by the API if it knows the pod, else by the samples.

    Where the API tells one state all day long, samples may show another one at some time: of labels
    what they showed then (``labels.then``), of requests by how much they differ from the last one
    that they show (the API's holds more: init containers, overhead), of cards what they show, where
    that changes. A request that the API does not tell is the one that samples do.

    Args:
        sampled: ``cluster, uid, start`` and ``ATTRIBUTES`` of samples; no overlaps in a pod.
        told: The same of the API.

    Returns:
        ``cluster, uid, start, end`` and ``ATTRIBUTES``; the states of a pod follow each other
        without a hole, from 0 on.
    """
    others = _steps(sampled.join(told, on=list(POD), how="anti"), ATTRIBUTES)
    api = _steps(told, ATTRIBUTES)
    known = sampled.join(told, on=list(POD), how="semi")
    alone = api.join(known, on=list(POD), how="anti")
    both = _joined(api, known)
    return pl.concat([_steps(both, ATTRIBUTES), alone, others])


def _steps(rows: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """The rows at which a state begins, each up to the next one; the first holds ever before."""
    rows = rows.select(*POD, "start", *names).sort(*POD, "start")
    first, moved = _differs(POD), _differs(names)
    changes = rows.with_columns(first.alias("first")).filter(pl.col("first") | moved)
    ends = pl.col("first").shift(-1, fill_value=True)
    return changes.with_columns(
        pl.when("first").then(0).otherwise("start").alias("start"),
        pl.when(ends).then(_FOREVER).otherwise(pl.col("start").shift(-1)).alias("end"),
    ).drop("first")


def _differs(names: tuple[str, ...]) -> pl.Expr:
    """Whether any column differs from the row before; true of the first row."""
    moved = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in names)
    return moved | (pl.int_range(pl.len()) == 0)


def _joined(api: pl.DataFrame, sampled: pl.DataFrame) -> pl.DataFrame:
    """The states of pods that both know, cut where either changes."""
    shown = _steps(sampled, _SHOWN)
    seen, constant = _seen(shown), _constant(api)
    shown = shown.rename({name: f"{name}_shown" for name in _SHOWN})
    rows = intersect(api, shown, POD).join(seen, on=list(POD)).join(constant, on=list(POD))
    return _with_labels(rows).with_columns(
        *(_amount(name).alias(name) for name in AMOUNTS),
        *(_card(name).alias(name) for name in CARDS),
    )


def _single() -> pl.Expr:
    """Whether a step is its pod's only one, as nearly all are: those need no grouping."""
    return (pl.col("start") == 0) & (pl.col("end") == _FOREVER)


def _seen(shown: pl.DataFrame) -> pl.DataFrame:
    """What samples showed of each pod at any time: all labels, and how its requests moved."""
    cards, no = pl.struct(CARDS), pl.lit(value=False)
    once = shown.filter(_single()).select(
        *POD,
        pl.col("labels").fill_null("").alias("ever"),
        *(pl.col(name).alias(f"{name}_first") for name in REQUESTS),
        *(pl.col(name).alias(f"{name}_last") for name in AMOUNTS),
        *(no.alias(f"{name}_moves") for name in AMOUNTS),
        no.alias("cards_move"),
    )
    often = (
        shown.filter(~_single())
        .group_by(POD)
        .agg(
            pl.col("labels").drop_nulls().unique().sort().str.join("\n").alias("ever"),
            *(pl.col(name).drop_nulls().first().alias(f"{name}_first") for name in REQUESTS),
            *(
                pl.col(name).sort_by("start").drop_nulls().last().alias(f"{name}_last")
                for name in AMOUNTS
            ),
            *(
                (pl.col(name).drop_nulls().n_unique() > 1).alias(f"{name}_moves")
                for name in AMOUNTS
            ),
            (cards.filter(pl.col("gpus").is_not_null()).n_unique() > 1).alias("cards_move"),
        )
    )
    return pl.concat([once, often])


def _constant(api: pl.DataFrame) -> pl.DataFrame:
    """Which attributes of each pod the API tells alike all day long."""
    cards, yes = pl.struct(CARDS), pl.lit(value=True)
    names = [f"{name}_constant" for name in ("labels", *AMOUNTS, "cards")]
    once = api.filter(_single()).select(*POD, *(yes.alias(name) for name in names))
    often = (
        api.filter(~_single())
        .group_by(POD)
        .agg(
            *(
                (pl.col(name).n_unique() == 1).alias(f"{name}_constant")
                for name in ("labels", *AMOUNTS)
            ),
            (cards.n_unique() == 1).alias("cards_constant"),
        )
    )
    return pl.concat([once, often])


def _amount(name: str) -> pl.Expr:
    told, shown = pl.col(name), pl.col(f"{name}_shown")
    moved = (told + shown - pl.col(f"{name}_last")).clip(0)
    moves = pl.col(f"{name}_moves") & pl.col(f"{name}_constant")
    return pl.coalesce(pl.when(moves).then(moved), told, shown, f"{name}_first")


def _card(name: str) -> pl.Expr:
    moves = pl.col("cards_move") & pl.col("cards_constant") & pl.col("gpus_shown").is_not_null()
    shown = pl.col(f"{name}_shown")
    return pl.when(moves).then(shown).otherwise(pl.coalesce(name, shown, f"{name}_first"))


def _with_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Put the labels of the time in, by distinct texts."""
    texts = ["labels", "labels_shown", "ever"]
    differ = pl.col("labels_constant") & (pl.col("ever") != "{}")
    asked = rows.filter(differ).select(texts).drop_nulls().unique()
    merged = [then(*row) for row in asked.iter_rows()]
    found = asked.with_columns(pl.Series("merged", merged, pl.String))
    joined = rows.join(found, on=texts, how="left", maintain_order="left")
    own = pl.when("labels_constant").then("merged")
    return joined.with_columns(pl.coalesce(own, "labels").alias("labels"))
