"""A real trace replayed as workloads on priced nodes: the published GPU-seconds, to the last one.

Kalos, the recovered jobs of AcmeTrace (CC BY 4.0), as half-open intervals from submission on. A
node per job that is up as long as its job runs, so that the days stay small.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from attribution.query.answer import Query, QueryResult, query
from attribution.run import attribute
from collector.prices import SettingsPrices
from ledger.money import split
from ledger.schema import COSTS, NODES, PRICES, TIME, WORKLOADS, Table
from ledger.settings import Cluster, KubernetesSource, Prices, Settings
from ledger.store import Ledger
from ledger.window import Window

NAMED = Settings(
    clusters=(Cluster(name="kalos", kubernetes=KubernetesSource(dump="kalos.json")),),
    prices=Prices(gpu={"default": Decimal("2.00")}),
)
MONTHS = {
    "2023-05": (39_263_464, 37_351_850, "42564.063"),
    "2023-06": (496_174_720, 26_625_819, "290444.744"),
    "2023-07": (942_117_416, 41_324, "523421.522"),
    "2023-08": (103_024_640, 34_592, "57255.129"),
}
"""GPU-seconds of Pretrain and Other by month of running, and both at $2.00 a GPU-hour."""


@pytest.fixture(scope="module")
def jobs(shared: Path) -> pl.DataFrame:
    """``row, type, gpus`` and ``start, end``, cut at midnights, with their ``day``."""
    path = shared / "data" / "traces" / "acme_kalos_recovered_jobs.csv"
    start = pl.col("submit_time").str.to_datetime("%Y-%m-%d %H:%M:%S%:z", time_zone="UTC")
    whole = pl.read_csv(path).select(
        "row",
        "type",
        pl.col("gpu_num").alias("gpus"),
        start.cast(TIME).alias("start"),
        (start + pl.duration(seconds="duration_s")).cast(TIME).alias("end"),
    )
    last = (pl.col("end") - timedelta(microseconds=1)).dt.date()
    cut = whole.with_columns(pl.date_ranges(pl.col("start").dt.date(), last).alias("day")).explode(
        "day"
    )
    midnight = pl.col("day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return cut.with_columns(
        pl.max_horizontal("start", midnight),
        pl.min_horizontal("end", midnight + timedelta(days=1)),
    )


def rows_of(jobs: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The jobs as rows of ``nodes`` or ``workloads``."""
    given = {
        "day": pl.col("day"),
        "source": pl.lit("kubernetes/kalos"),
        "cluster": pl.lit("kalos"),
        "node": pl.format("node-{}", "row"),
        "start": pl.col("start"),
        "end": pl.col("end"),
        "gpus": pl.col("gpus").cast(pl.Int64),
        "gpu_resource": pl.lit("nvidia.com/gpu"),
        "cpu_millicores": pl.lit(0, pl.Int64),
        "memory_bytes": pl.lit(0, pl.Int64),
    }
    if table is NODES:
        given |= {"gpu_model": pl.lit("NVIDIA-A100-SXM4-80GB"), "labels": pl.lit("{}")}
    else:
        given |= {
            "uid": pl.format("job-{}", "row"),
            "namespace": pl.lit("llm"),
            "pod": pl.format("job-{}", "row"),
            "state": pl.lit("running"),
            "labels": pl.concat_str(pl.lit('{"experiment":"'), "type", pl.lit('"}')),
        }
    return jobs.select(
        given.get(name, pl.lit(None)).cast(column.dtype).alias(name)
        for name, column in table.columns.items()
    )


@pytest.fixture(scope="module")
def books(jobs: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """The trace, written and attributed day by day."""
    ledger = Ledger.open(str(tmp_path_factory.mktemp("acme") / "ledger"), create=True)
    days = jobs["day"].unique().sort().to_list()
    span = Window.of_days(days[0], days[-1])
    for table in (NODES, WORKLOADS):
        ledger.replace(table, rows_of(jobs, table).drop("source"), span, "kubernetes/kalos")
    prices = SettingsPrices(NAMED.prices or Prices(), NAMED.currency).collect(span)
    ledger.replace(PRICES, prices.tables["prices"], span, "prices/settings")
    attribute(ledger, NAMED, days, version="test")
    return ledger


def answer(ledger: Ledger, window: Window, *by: str) -> QueryResult:
    return query(ledger, Query(window, by=by))[0]


def month(name: str) -> Window:
    year, number = (int(part) for part in name.split("-"))
    start = datetime(year, number, 1, tzinfo=UTC)
    return Window(start, (start + timedelta(days=31)).replace(day=1))


def seconds(result: QueryResult) -> dict[str, int]:
    """GPU-seconds by experiment."""
    return {row["experiment"]: round(row["gpu_hours"] * 3600) for row in result.rows}


def test_the_whole_trace_has_its_published_gpu_seconds(books: Ledger) -> None:
    window = Window.of_days(date(2023, 5, 1), date(2023, 8, 31))
    result = answer(books, window, "experiment")
    assert seconds(result) == {"Pretrain": 1_580_580_240, "Other": 64_053_585}
    rows = books.scan(COSTS, window).select("gpu_seconds", "target").collect()
    assert rows["gpu_seconds"].sum() == 1_644_633_825
    assert set(rows["target"]) == {"workload"}  # no card of any node was free
    assert result.total
    assert result.total.quantize(Decimal("0.001")) == Decimal("913685.458")


@pytest.mark.parametrize("name", MONTHS)
def test_each_month_adds_up_to_the_cent(books: Ledger, name: str) -> None:
    pretrain, other, both = MONTHS[name]
    result = answer(books, month(name), "experiment")
    assert seconds(result) == {"Pretrain": pretrain, "Other": other}
    costs = [row["cost"] for row in result.rows]
    assert sum(costs) == result.total
    exact = Decimal((pretrain + other) * 2) / 3600
    assert abs((result.total or Decimal(0)) - exact) < Decimal("1e-9")  # a rounding per node-hour
    assert result.total
    assert result.total.quantize(Decimal("0.001")) == Decimal(both)


def test_cents_of_the_rows_add_up_to_the_cents_of_the_bill(books: Ledger) -> None:
    """Rounded by largest remainder, as a bill shows them: no cent is lost or made."""
    rows = [
        {"month": name, "weight": round(row["gpu_hours"] * 3600)}
        for name in MONTHS
        for row in answer(books, month(name), "experiment").rows
    ]
    frame = pl.DataFrame(rows).with_row_index("row")
    cents = frame.with_columns(pl.lit(91_368_546, pl.Int128).alias("cents"), bill=1)
    parts = split(
        cents.lazy(), group=["bill"], amounts=["cents"], weight="weight", order=["row"]
    ).collect()
    assert parts["cents"].sum() == 91_368_546
    exact = frame["weight"] * 200 / 3600
    assert ((parts["cents"].cast(pl.Float64) - exact).abs() < 1).all()


@pytest.mark.parametrize(
    ("row", "before", "after"),
    [
        (68, 8_247_296, 2_075_136),
        (69, 20_943_360, 35_962_880),
        (156, 10_869_760, 12_506_624),
    ],
)
def test_a_job_over_a_month_end_is_split_at_midnight(
    books: Ledger, jobs: pl.DataFrame, row: int, before: int, after: int
) -> None:
    days = jobs.filter(pl.col("row") == row)["day"]
    months = days.dt.strftime("%Y-%m").unique().sort()
    assert len(months) == 2
    found = [
        books.scan(COSTS, month(name))
        .filter(pl.col("uid") == f"job-{row}")
        .select(pl.col("gpu_seconds").sum())
        .collect()
        .item()
        for name in months
    ]
    assert found == [before, after]
