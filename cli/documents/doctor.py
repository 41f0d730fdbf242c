"""What the sources let us see, and which identity rule named what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from cli import exits
from cli.document import Column, Document, Section, Tile, envelope, plain
from cli.documents.blind import blind_spots
from cli.render.text import percent
from cli.stages.guard import Failure, attempt
from cli.wiring import Context, Source, sources
from ledger.schema import COSTS, IDENTITY_KEYS, WORKLOADS
from ledger.window import Window

if TYPE_CHECKING:
    import polars as pl

    from ledger.load import LoadedSettings

_NEEDS = (
    Column("source", "Source"),
    Column("need", "Need"),
    Column("ok", "Can"),
    Column("detail", "Detail"),
    Column("blind", "Blind without it"),
    Column("reach", "Holds"),
)
_SOURCES = (
    Column("source", "Source"),
    Column("ok", "Readable"),
    Column("met", "Needs met"),
    Column("reach", "Holds"),
)
_BLIND = (
    Column("source", "Source"),
    Column("need", "Need"),
    Column("blind", "Blind"),
    Column("detail", "Why"),
)
_HITS = (
    Column("key", "Key"),
    Column("rule", "Rule"),
    Column("pods", "Pods", "number"),
    Column("cost", "Cost", "money"),
    Column("share", "Share", "ratio"),
    Column("example", "Example"),
)


def sources_document(loaded: LoadedSettings) -> tuple[Document, int]:
    """Probe every source once.

    Returns:
        The document and the exit code: 0 all can be read; 3 a need of a required source is not
        met; 4 or 5 if no source can be read at all.
    """
    probed = [(source, *_probe(source)) for source in sources(loaded)]
    # The prices of the settings are always at hand: they do not count.
    counted = [each for each in probed if each[0].kind != "prices"]
    codes = [code for _, _, code in counted or probed]
    absent = [_lacking(name, blind) for name, blind in blind_spots(loaded.settings)]
    needs = tuple([*(row for _, rows, _ in probed for row in rows), *absent])
    able = sum(code == exits.OK for code in codes)
    tiles = (
        Tile(
            "Sources",
            f"{able} of {len(codes)} can be read in full",
            tone="good" if codes and able == len(codes) else "warn",
        ),
        Tile("Settings", str(loaded.path) if loaded.path else "the defaults"),
    )
    sections = (
        Section(
            "sources",
            "Sources",
            _SOURCES,
            tuple(_summary(source, rows) for source, rows, _ in probed),
            empty="the settings name no source",
            tone="ok",
        ),
        Section(
            "blind",
            "What is blind, and why",
            _BLIND,
            tuple(row for row in needs if not row["ok"] and row["blind"]),
            empty="nothing",
        ),
        Section("needs", "Every need", _NEEDS, needs, tone="ok", brief=False),
    )
    data = envelope("doctor", needs=plain(needs))
    return Document("doctor", "Can every source be read?", data, tiles, sections), _code(codes)


def _code(codes: Sequence[int]) -> int:
    if all(code == exits.OK for code in codes):
        return exits.OK
    if exits.OK in codes or exits.GAPS in codes:
        return exits.GAPS
    return exits.ACCESS if exits.ACCESS in codes else max(codes)


def _summary(source: Source, rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
    met = sum(bool(row["ok"]) for row in rows)
    return {
        "source": source.name,
        "ok": met == len(rows),
        "met": f"{met} of {len(rows)}",
        "reach": next((row["reach"] for row in rows if row["reach"]), None),
    }


def _probe(source: Source) -> tuple[list[dict[str, object]], int]:
    """The needs of a source, and the exit code that they stand for."""
    answer = attempt(source.name, lambda: source.build().probe())
    if isinstance(answer, Failure):
        row = _row(source, "reach it", False, answer.detail, "everything of it")
        return [row], answer.code if source.required else exits.OK
    rows = [
        _row(source, probe.need, probe.ok, probe.detail, probe.blind, probe.reach)
        for probe in answer
    ]
    if not source.required or all(probe.ok for probe in answer):
        return rows, exits.OK
    failure = next((probe.failure for probe in answer if probe.failure), None)
    return rows, failure.exit_code if failure else exits.GAPS


def _row(
    source: Source, need: str, ok: bool, detail: str, blind: str, reach: Window | None = None
) -> dict[str, object]:
    return {
        "source": source.name,
        "need": need,
        "ok": ok,
        "detail": detail,
        "blind": blind or None,
        "reach": str(reach) if reach else None,
    }


def _lacking(name: str, blind: str) -> dict[str, object]:
    return {
        "source": name,
        "need": "settings",
        "ok": False,
        "detail": "not configured",
        "blind": blind,
        "reach": None,
    }


def identity_document(context: Context, window: Window) -> Document:
    """Pods, cost and share of cost by identity key and the rule that hit."""
    import polars as pl

    from attribution.identity import rule_hits

    pods = context.ledger.scan(WORKLOADS, window).collect()
    hits = rule_hits(pods, context.loaded.settings)
    costs = _cost_of_pods(context, window)
    joined = hits.join(costs, on=["cluster", "uid"], how="left")
    rows = tuple(_hit_rows(joined))
    total = _sum(costs)
    named = joined.filter((pl.col("key") == "experiment") & pl.col("rule").is_not_null())
    share = float(_sum(named) / total) if total else None
    tiles = (
        Tile("Window", str(window)),
        Tile("Pods", f"{pods.n_unique(['cluster', 'uid']):,}"),
        Tile(
            "Named",
            "no cost in this window"
            if share is None
            else f"{percent(share)} of pod cost has an experiment",
        ),
    )
    section = Section(
        "hits",
        "Which identity rule hit",
        _HITS,
        rows,
        empty="no pod was collected in this window",
        note="A phase that no rule names comes from the pod's role.",
    )
    currency = context.loaded.settings.currency
    data = envelope("identity", window=window.as_dict(), currency=currency, hits=plain(rows))
    return Document("identity", "Which identity rule hits what", data, tiles, (section,), currency)


def _cost_of_pods(context: Context, window: Window) -> pl.DataFrame:
    """Effective cost per pod in the settings' currency: ``cluster, uid, cost``."""
    import polars as pl

    return (
        context.ledger.scan(COSTS, window)
        .filter(
            pl.col("uid").is_not_null()
            & (pl.col("BillingCurrency") == context.loaded.settings.currency)
        )
        .group_by("cluster", "uid")
        .agg(_known_sum("EffectiveCost").alias("cost"))
        .collect()
    )


def _sum(rows: pl.DataFrame) -> Decimal:
    return Decimal(str(rows["cost"].sum() or 0))


def _known_sum(name: str) -> pl.Expr:
    """The sum of what is known; null if nothing is."""
    import polars as pl

    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())


def _hit_rows(joined: pl.DataFrame) -> Iterator[dict[str, object]]:
    import polars as pl

    grouped = (
        joined.group_by("key", "rule")
        .agg(
            pl.len().cast(pl.Int64).alias("pods"),
            _known_sum("cost"),
            pl.col("value").drop_nulls().min().alias("example"),
        )
        .with_columns(pl.col("cost").sum().over("key").alias("whole"))
    )
    order = {key: number for number, key in enumerate(IDENTITY_KEYS)}
    for row in sorted(
        grouped.iter_rows(named=True),
        key=lambda row: (order[row["key"]], row["rule"] is None, -row["pods"], row["rule"] or ""),
    ):
        whole = row.pop("whole")
        share = None if row["cost"] is None or not whole else float(row["cost"] / whole)
        yield {**row, "rule": row["rule"] or "(none hit)", "share": share}
