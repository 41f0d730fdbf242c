"""Who owns a pod and what its role is, by series of owners, and by labels and annotations."""

from __future__ import annotations

import msgspec
import polars as pl

from collector.prometheus.cluster.owner_links import LINK, latest, links
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s
from collector.systems import Link, Pod, continued, role
from ledger.text import canonical_json

_DEPTH = 8  # owners above each other; no system has more than four
_TEXTS = ("owners", "whole", "labels", "annotations")


class _Owner(msgspec.Struct):
    kind: str
    name: str


def owner_chains(
    reader: Reader,
    info: pl.DataFrame,
    names: pl.DataFrame,
    labels: pl.DataFrame,
    annotations: pl.DataFrame,
) -> pl.DataFrame:
    """The chain and the role of each pod.

    Where series end, labels and annotations go on (``collector.systems``); where neither tells
    more, the chain ends at the last known owner.

    Args:
        reader: Where the owner series are read.
        info: Frame of ``kube_pod_info``, which knows the first owner as ``created_by``.
        names: ``uid``, ``namespace``, ``pod``.
        labels: Changes of the pods' labels: ``uid``, ``time``, ``labels`` (JSON).
        annotations: The same of ``annotations``.

    Returns:
        ``uid``, ``owners`` (JSON list of {kind, name}, nearest first), ``root_kind``,
        ``root_name`` (null: no owner), ``role`` (null: untold).
    """
    pods = names.select("uid", "namespace").join(_first(reader, info), on="uid", how="left")
    for changes, column in ((labels, "labels"), (annotations, "annotations")):
        told = changes.filter(pl.col(column) != "{}").sort("uid", "time")
        last = told.group_by("uid").agg(pl.col(column).last())
        pods = pods.join(last, on="uid", how="left")
    heads = pods.select(LINK).drop_nulls().unique()
    pods = pods.join(_walk(heads, links(reader, heads)), on=LINK, how="left")
    texts = pods.select(_TEXTS).unique(maintain_order=True)
    schema = dict.fromkeys(("told", "root_kind", "root_name", "role"), pl.String)
    read = pl.DataFrame([_read(*row) for row in texts.iter_rows()], schema=schema, orient="row")
    found = pl.concat([texts, read], how="horizontal")
    rows = pods.join(found, on=_TEXTS, how="left", nulls_equal=True)
    return rows.select("uid", pl.col("told").alias("owners"), "root_kind", "root_name", "role")


def _first(reader: Reader, info: pl.DataFrame) -> pl.DataFrame:
    """``uid``, ``kind``, ``name`` of the owner next to each pod; null: it has none."""
    made = info.select("uid", "time", kind="created_by_kind", name="created_by_name")
    first = latest(made, ["uid"])
    read = reader.read_steps(s.POD_OWNER)
    if read is None:
        return first
    named = read.select("uid", "time", kind="owner_kind", name="owner_name")
    told = latest(named.filter(pl.col("uid").is_not_null()), ["uid"])
    return first.join(told, on="uid", how="left", suffix="_told").select(
        "uid",
        kind=pl.coalesce("kind_told", "kind"),
        name=pl.coalesce("name_told", "name"),
    )


def _walk(heads: pl.DataFrame, above: pl.DataFrame) -> pl.DataFrame:
    """Follow owners upwards.

    Args:
        heads: ``LINK`` of the owners next to pods.
        above: ``owner_links.links``.

    Returns:
        ``LINK``, ``owners`` (JSON list, from the head on), and ``whole``: whether its last is known
        to have no owner.
    """
    step = above.rename({"kind": "kind1", "name": "name1"}).with_columns(told=pl.lit(value=True))
    on = ["namespace", "kind1", "name1"]
    at = heads.with_columns(
        kind1="kind", name1="name", owners=_link("kind", "name"), whole=pl.lit(value=False)
    )
    for _ in range(_DEPTH):
        at = at.join(step, on=on, how="left", maintain_order="left")
        more = pl.col("kind2").is_not_null()
        longer = pl.concat_str("owners", pl.lit(","), _link("kind2", "name2"))
        ended = at["kind2"].null_count() == at.height
        at = at.with_columns(
            owners=pl.when(more).then(longer).otherwise("owners"),
            whole=pl.col("told").fill_null(value=False) & ~more,
            kind1=pl.coalesce("kind2", "kind1"),
            name1=pl.coalesce("name2", "name1"),
        ).drop("kind2", "name2", "told")
        if ended:
            break
    return at.select(*LINK, owners=pl.format("[{}]", "owners"), whole="whole")


def _link(kind: str, name: str) -> pl.Expr:
    owner = pl.struct(pl.col(kind).alias("kind"), pl.col(name).alias("name"))
    return owner.struct.json_encode()


def _read(
    owners: str | None, whole: bool | None, labels: str | None, annotations: str | None
) -> tuple[str, str | None, str | None, str | None]:
    """The owners with those that the pod's own words add, the last one, and the role."""
    known = msgspec.json.decode(owners or "[]", type=list[_Owner])
    chain = [Link(owner.kind, owner.name) for owner in known]
    pod = Pod(_object(labels), _object(annotations))
    chain += continued(chain, pod, whole=bool(whole))
    text = canonical_json([{"kind": link.kind, "name": link.name} for link in chain])
    kind, name = (chain[-1].kind, chain[-1].name) if chain else (None, None)
    return text, kind, name, role(chain, pod)


def _object(text: str | None) -> dict[str, str]:
    return msgspec.json.decode(text or "{}", type=dict[str, str])
