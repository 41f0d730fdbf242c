"""Which records can be used, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from collector.slurm.hostlist import HostListError, expand
from collector.slurm.record import ENDED, STATES
from collector.slurm.tres import Tres, TresError, parse
from ledger.facts import Quarantine

_EARLIEST = 946_684_800  # the year 2000
_LATER = 2 * 86_400  # how far a clock may be ahead of the one that wrote the file

HOSTS_SCHEMA = {"nodes": pl.String(), "hosts": pl.List(pl.String()), "bad_hosts": pl.String()}
TRES_SCHEMA = {
    "tres": pl.String(),
    "cpus": pl.Int64(),
    "memory": pl.Int64(),
    "cards": pl.Int64(),
    "model": pl.String(),
    "shard": pl.Int64(),
    "mps": pl.Int64(),
    "bad_tres": pl.String(),
}


def with_hosts(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``hosts`` and ``bad_hosts`` (why the list cannot be read); each text is read once."""
    texts = rows["nodes"].drop_nulls().unique().to_list()
    found = pl.DataFrame([_hosts(text) for text in texts], schema=HOSTS_SCHEMA, orient="row")
    return rows.join(found, on="nodes", how="left", maintain_order="left")


def _hosts(text: str) -> tuple[str, list[str], str | None]:
    try:
        return text, list(expand(text)), None
    except HostListError as error:
        return text, [], error.message


def with_tres(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what ``tres`` says (``TRES_SCHEMA``); each distinct text is read once.

    ``cards`` is 0 where resources are told and none is a card; null where nothing is told.
    """
    texts = rows["tres"].drop_nulls().unique().to_list()
    found = pl.DataFrame([_tres(text) for text in texts], schema=TRES_SCHEMA, orient="row")
    return rows.join(found, on="tres", how="left", maintain_order="left")


def _tres(text: str) -> tuple[object, ...]:
    try:
        tres = parse(text)
    except TresError as error:
        return (text, *(None,) * (len(TRES_SCHEMA) - 2), error.message)
    told = tres != Tres()
    cards = tres.cards if tres.cards is not None else 0 if told else None
    parts = (tres.parts.get("gres/shard", 0), tres.parts.get("gres/mps", 0))
    return (text, tres.cpus, tres.memory, cards, tres.model, *parts, None)


def sort_out(
    rows: pl.DataFrame, where: str, exported: int
) -> tuple[pl.DataFrame, list[Quarantine]]:
    """The usable records of a file, and what was put aside.

    A job whose amounts cannot be read stays: it held its nodes, nobody knows how much of them.

    Args:
        rows: In the form of ``record.SCHEMA``.
        where: The file.
        exported: When it was written.

    Returns:
        The good rows with ``hosts`` and the columns of ``with_tres``.
    """
    looked = with_tres(with_hosts(rows)).with_columns(_reason(exported).alias("bad"))
    aside = looked.filter(pl.col("bad").is_not_null())
    good = looked.filter(pl.col("bad").is_null())
    return good, list(_quarantine(aside, where))


def _reason(exported: int) -> pl.Expr:
    """Why a record cannot be used, as ``reason: example``; null if it can."""
    start, end = pl.col("start"), pl.col("end")
    times = [pl.col(name) for name in ("submit", "start", "end")]
    far = [(time < _EARLIEST) | (time > exported + _LATER) for time in times]
    job = pl.format("job {}", pl.col("job"))
    known = pl.col("state").is_in(sorted(STATES))
    ran = start.is_not_null() & (end.is_null() | (end > start))
    nowhere = pl.col("hosts").list.len().fill_null(0) == 0
    elapsed = pl.col("elapsed").fill_null(1)
    tests: list[tuple[pl.Expr, str, pl.Expr]] = [
        (pl.col("job").is_null() | (pl.col("job") == ""), "missing_job", pl.lit("no job id")),
        (pl.any_horizontal(far), "out_of_window", job),
        (end < start, "end_before_start", job),
        ((elapsed < 0) | (pl.col("suspended") < 0), "negative", job),
        (end.is_null() & ~known, "unknown_state", pl.format("{} is {}", job, "state")),
        (
            start.is_not_null() & end.is_null() & pl.col("state").is_in(sorted(ENDED)),
            "no_end",
            pl.format("{} is {}", job, "state"),
        ),
        (pl.col("bad_hosts").is_not_null(), "bad_host_list", pl.format("{}: {}", job, "bad_hosts")),
        (ran & nowhere & (elapsed > 0), "no_nodes", job),
    ]
    reasons = [
        pl.when(test.fill_null(value=False)).then(pl.concat_str(pl.lit(f"{reason}: "), example))
        for test, reason, example in tests
    ]
    return pl.coalesce("bad", *reasons)


def _quarantine(aside: pl.DataFrame, where: str) -> Iterator[Quarantine]:
    parts = aside.select(
        pl.col("bad").str.extract(r"^(\w+)").alias("reason"),
        pl.col("bad").str.extract(r"(?s)^\w+: (.*)$").alias("example"),
    )
    counted = parts.group_by("reason").agg(pl.len(), pl.col("example").min()).sort("reason")
    for reason, count, example in counted.iter_rows():
        yield Quarantine(reason, where, count, example)
