"""Meters of engines: what serves requests in a pod, per pod and quarter of an hour.

Several engines of a pod are added up, or averaged where each is a ratio. Ranks that speak of one
engine count once, and so does an engine that Ray gives again under another name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import polars as pl

from collector.prometheus.meters.pods import Meter, Parts
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import engine_series as e
from collector.prometheus.series.metric import Series

_PLACE = ["namespace", "pod", "uid", "slot"]
_RANKS = 100_000  # more than any engine has
_LABELS = (
    "container",
    "model",
    "engine",
    "kind",
    "dp",
    "worker",
    "finished",
    "ip",
    "device",
    "state",
)


@dataclass(frozen=True)
class EngineMeter:
    """A meter of engines.

    Args:
        name: Its name in the table.
        series: What says it, of engines that have nothing in common.
        counter: Whether its rate is meant.
        mean: Whether a pod has the mean of its engines, not their sum.
        only: Label and value of the series that are meant, if not all.
        per: By what values are divided.
    """

    name: str
    series: tuple[Series, ...]
    counter: bool = False
    mean: bool = False
    only: dict[str, str] = field(default_factory=dict)
    per: float = 1.0


ENGINE_METERS = (
    EngineMeter("generation_tokens", (e.VLLM_GENERATED, e.SGLANG_GENERATED), counter=True),
    EngineMeter("prompt_tokens", (e.VLLM_PROMPT, e.SGLANG_PROMPT), counter=True),
    EngineMeter("requests_running", (e.VLLM_RUNNING, e.SGLANG_RUNNING)),
    EngineMeter("requests_waiting", (e.VLLM_WAITING, e.SGLANG_WAITING)),
    EngineMeter("kv_cache_usage", (e.VLLM_CACHE, e.SGLANG_CACHE), mean=True),
    EngineMeter("preemptions", (e.VLLM_PREEMPTED,), counter=True),
    EngineMeter("requests_finished", (e.VLLM_FINISHED,), counter=True),
    EngineMeter("ray_gpu_utilization", (e.RAY_CARDS,), mean=True, per=100.0),
    EngineMeter("object_store_spilled", (e.RAY_OBJECTS,), only={"Location": "SPILLED"}),
)


def engine_rows(
    reader: Reader, meter: EngineMeter, read: Callable[[Meter], pl.DataFrame | None]
) -> pl.DataFrame | None:
    """The rows of a meter of engines; None if the source holds nothing of it.

    Each name is read by itself. Of the names of one series, the first that speaks of a pod in a
    slot counts; what different series say of a pod is put together.

    Args:
        reader: Knows which names are held.
        meter: Which meter.
        read: Reads a meter of pods of one name.
    """
    found: list[pl.DataFrame] = []
    for series in meter.series:
        first: pl.DataFrame | None = None
        for name in reader.names(series):
            rows = read(_of(meter, replace(series, metric=name, also={})))
            if rows is None:
                continue
            if first is not None:
                rows = rows.join(first, on=_PLACE, how="anti", nulls_equal=True)
                rows = pl.concat([first, rows.select(first.columns)])
            first = rows
        if first is not None:
            found.append(first)
    if not found:
        return None
    rows = found[0] if len(found) == 1 else _together(found, meter)
    return rows.with_columns(pl.col(*_kept(meter)) / meter.per, meter=pl.lit(meter.name))


def _kept(meter: EngineMeter) -> tuple[str, ...]:
    """The statistics of a slot: of rates the mean alone, which is what is cheap to ask."""
    return ("mean",) if meter.counter else ("mean", "min", "max")


def _of(meter: EngineMeter, series: Series) -> Meter:
    """A meter of pods that reads one name."""
    parts = Parts(things, mean=meter.mean, only=meter.only)
    return Meter(meter.name, series, counter=meter.counter, kept=_kept(meter), parts=parts)


def _together(found: list[pl.DataFrame], meter: EngineMeter) -> pl.DataFrame:
    """What several kinds of engines say of one pod as one row."""
    values = pl.col(*_kept(meter))
    return (
        pl.concat(found)
        .group_by(*_PLACE, maintain_order=True)
        .agg(
            values.mean() if meter.mean else values.sum(),
            pl.col("node").first(),
            pl.col("samples", "expected").max(),
        )
    )


def things(meanings: pl.DataFrame) -> pl.DataFrame:
    """Series that name a pod, with the engine that each speaks of.

    Two engines of a pod may differ only by the port that they are scraped at; the address before
    it may be spelled in several ways.

    Returns:
        ``meanings`` of pods, with ``thing``: text, one per engine; ``turn`` Int64: the series of
        an engine with the least counts.
    """
    rows = meanings.drop_nulls(["namespace", "pod"])
    labels = [pl.col(name).fill_null("") for name in _LABELS if name in rows.columns]
    port = pl.col("instance").str.extract(r":(\d+)$").fill_null("")
    ranks = [pl.col(name).cast(pl.Int64, strict=False) for name in e.RANKS if name in rows.columns]
    turn = pl.lit(0, pl.Int64)
    for rank in ranks:
        turn = turn * _RANKS + rank.fill_null(0)
    return rows.with_columns(
        thing=pl.concat_str([*labels, port], separator="\0"),
        turn=turn,
    )
