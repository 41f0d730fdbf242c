"""Buckets by inventoried bytes and counted requests, shared file systems by directory."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.schema import COST_COLUMNS
from ledger.settings import Identity, Settings
from tests.attribution.conftest import DAY, at
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
SOME = examples(15)
PATHS = ("label:experiment", "path:s3://rollouts/{experiment}/")
NAMED = Settings(identity=Identity(experiment=PATHS))
STORAGE = {"ConsumedUnit": "GB-Mo", "SkuMeter": "USE1-TimedStorage-ByteHrs"}
PUT = {"ConsumedUnit": "Requests", "SkuMeter": "USE1-Requests-Tier1"}
GET = {"ConsumedUnit": "Requests", "SkuMeter": "USE1-Requests-Tier2"}


def stored(
    day: DayBuilder, prefix: str, size: int | None, resource: str = "rollouts", **fields: object
) -> DayBuilder:
    base = {"day": DAY, "source": "storage/s3", "resource": resource, "prefix": prefix}
    base |= {"storage_class": "STANDARD", "age_band": "0", "size_band": "0", "count": 1}
    day.rows["objects"].append(base | {"bytes": size} | fields)
    return day


def asked(
    day: DayBuilder,
    prefix: str,
    operation: str,
    count: int | None,
    hour: float = 0,
    **fields: object,
) -> DayBuilder:
    base = {"day": DAY, "source": "storage/s3", "resource": "rollouts", "prefix": prefix}
    row = base | {"operation": operation, "hour": at(hour), "count": count} | fields
    day.rows["requests"].append(row)
    return day


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    """Two experiments of three and one parts, and a prefix that no rule names."""
    day = stored(new_day(), "s3://rollouts/a/", 3000)
    stored(day, "s3://rollouts/b/", 600)
    stored(day, "s3://rollouts/b/", 400, size_band="1024")
    return day


def test_bytes_split_a_bucket(day: DayBuilder) -> None:
    day.line("s", "arn:aws:s3:::rollouts", 0, 24, "8", Tags='{"owner":"lin"}', **STORAGE)
    rows = day.attribute(NAMED).costs.select(
        "target", "experiment", "owner", "phase", "resource", "path", "confidence", "EffectiveCost"
    )
    assert rows.rows() == [
        ("charge", "a", "lin", "unknown", "storage", "s3://rollouts/a/", "high", Decimal(6)),
        ("charge", "b", "lin", "unknown", "storage", "s3://rollouts/b/", "high", Decimal(2)),
    ]


def test_paths_come_before_the_tags_of_the_bucket(day: DayBuilder, cost_by: Sums) -> None:
    stored(day, "s3://rollouts/", 4000)
    day.line("s", "rollouts", 0, 24, "8", Tags='{"experiment":"bucket"}', **STORAGE)
    assert cost_by(day.attribute(NAMED).costs) == {
        "a": Decimal(3),
        "b": Decimal(1),
        "bucket": Decimal(4),
    }


def test_a_prefix_without_a_name_is_unattributed(day: DayBuilder, cost_by: Sums) -> None:
    stored(day, "s3://rollouts/", 4000).line("s", "rollouts", 0, 24, "8", **STORAGE)
    keys = ("target", "reason", "experiment", "path")
    assert cost_by(day.attribute(NAMED).costs, keys) == {
        ("charge", None, "a", "s3://rollouts/a/"): Decimal(3),
        ("charge", None, "b", "s3://rollouts/b/"): Decimal(1),
        ("__unattributed__", "no_rule", "__unattributed__", "s3://rollouts/"): Decimal(4),
    }


def test_a_line_of_a_class_splits_by_the_bytes_of_that_class(
    day: DayBuilder, cost_by: Sums
) -> None:
    stored(day, "s3://rollouts/a/", 1000, storage_class="STANDARD_IA")
    stored(day, "s3://rollouts/c/", 3000, storage_class="STANDARD_IA")
    day.line("ia", "rollouts", 0, 24, "4", SkuMeter="USE1-TimedStorage-SIA-ByteHrs")
    day.line("deep", "rollouts", 0, 24, "8", SkuMeter="USE1-TimedStorage-GDA-ByteHrs")
    costs = day.attribute(NAMED).costs
    assert cost_by(costs.filter(x_LineId="ia")) == {"a": 1, "c": 3}
    deep = costs.filter(x_LineId="deep")
    assert cost_by(deep) == {"a": 4, "b": 1, "c": 3}
    assert deep["confidence"].unique().to_list() == ["low"]


def test_requests_split_by_the_counts_of_their_class(day: DayBuilder, cost_by: Sums) -> None:
    asked(asked(day, "s3://rollouts/a/", "PutObject", 10), "s3://rollouts/b/", "GetObject", 90)
    asked(asked(day, "s3://rollouts/b/", "ListObjectsV2", 30), "s3://rollouts/a/", "HeadObject", 10)
    asked(day, "s3://rollouts/a/", "DeleteObjects", 10**9)
    day.line("put", "rollouts", 0, 24, "4", **PUT).line("get", "rollouts", 0, 24, "10", **GET)
    day.line("all", "rollouts", 0, 24, "14", ConsumedUnit="Requests")
    costs = day.attribute(NAMED).costs
    assert cost_by(costs.filter(x_LineId="put")) == {"a": 1, "b": 3}
    assert cost_by(costs.filter(x_LineId="get")) == {"a": 1, "b": 9}
    assert cost_by(costs.filter(x_LineId="all")) == {"a": 2, "b": 12}
    assert costs["resource"].unique().to_list() == ["requests"]


@pytest.mark.parametrize(
    ("words", "who"),
    [
        ({"ChargeDescription": "$0.005 per 1,000 PUT, COPY, POST, or LIST requests"}, "put"),
        ({"ChargeDescription": "$0.0004 per 1,000 GET and all other requests"}, "get"),
        ({"SkuMeter": "Regional Standard Class A Operations", "ConsumedUnit": "count"}, "put"),
        ({"SkuMeter": "Regional Standard Class B Operations", "ConsumedUnit": "count"}, "get"),
        ({"SkuMeter": "Hot LRS Write Operations", "PricingUnit": "10K"}, "put"),
        ({"SkuMeter": "Hot Read Operations", "PricingUnit": "10K"}, "get"),
        ({"x_Other": '{"x_UsageType":"EUC1-Requests-Tier1"}'}, "put"),
        ({"ChargeDescription": "$0.023 per GB - first 50 TB / month of storage used"}, "store"),
        ({"SkuMeter": "Standard Storage US Multi-region", "ConsumedUnit": "GiBy.mo"}, "store"),
        ({"SkuMeter": "Hot LRS Data Stored", "ConsumedUnit": "GB"}, "store"),
        ({"SkuMeter": "USE1-DataTransfer-Out-Bytes", "ConsumedUnit": "GB"}, "out"),
        ({"SkuMeter": "Download Worldwide Destinations", "ConsumedUnit": "gibibyte"}, "out"),
        ({"ConsumedUnit": "Objects", "SkuMeter": "USE1-Monitoring-Automation-INT"}, "many"),
        ({}, "store"),
    ],
)
def test_what_a_line_pays_for(
    new_day: type[DayBuilder], cost_by: Sums, words: dict[str, str], who: str
) -> None:
    day = stored(stored(new_day(), "s3://rollouts/store/", 10**9), "s3://rollouts/many/", 1)
    day.rows["objects"][0]["count"] = 0
    asked(asked(day, "s3://rollouts/put/", "PutObject", 5), "s3://rollouts/get/", "GetObject", 5)
    asked(day, "s3://rollouts/out/", "GetObject", 0, bytes=10**12)
    rows = cost_by(day.line("l", "rollouts", 0, 24, "1", **words).attribute(NAMED).costs)
    assert max(rows, key=lambda name: rows[name]) == who


def test_an_hourly_line_splits_by_the_counts_of_its_hours(day: DayBuilder, cost_by: Sums) -> None:
    asked(asked(day, "s3://rollouts/a/", "GetObject", 5, 1), "s3://rollouts/b/", "GetObject", 5, 2)
    costs = day.line("one", "rollouts", 1, 2, **GET).attribute(NAMED).costs
    assert cost_by(costs) == {"a": 8}


def test_requests_that_nobody_counted_go_to_the_tags_with_a_note(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.line("get", "rollouts", 0, 24, Tags='{"experiment":"bucket"}', **GET)
    day.line("out", "rollouts", 0, 24, SkuMeter="USE1-DataTransfer-Out-Bytes")
    books = day.attribute(NAMED)
    assert cost_by(books.costs, ("experiment", "confidence")) == {
        ("bucket", "low"): Decimal(8),
        ("__unattributed__", "low"): Decimal(8),
    }
    assert [note for note in books.notes if "line of the bill" in note] == [
        "1 line of the bill: no counted bytes that stores moved; whole to the line's own tags",
        "1 line of the bill: no counted requests of stores; whole to the line's own tags",
    ]


def test_an_unknown_or_empty_inventory_is_no_evidence(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = stored(stored(new_day(), "s3://rollouts/a/", None), "s3://rollouts/b/", 0)
    costs = day.line("s", "rollouts", 0, 24, **STORAGE).attribute(NAMED).costs
    assert cost_by(costs, ("target", "confidence")) == {("__unattributed__", "low"): Decimal(8)}


@pytest.mark.parametrize(
    ("bill", "inventory", "provider", "meets"),
    [
        ("arn:aws:s3:::rollouts", "rollouts", "AWS", True),
        ("rollouts", "arn:aws:s3:::rollouts", "AWS", True),
        ("s3://rollouts", "rollouts", None, True),
        ("//storage.googleapis.com/projects/_/buckets/rollouts", "gs://rollouts", None, True),
        ("rollouts", "gs://rollouts", "Google Cloud", True),
        ("rollouts", "gs://rollouts", "AWS", False),
        ("arn:aws:s3:::rollouts", "gs://rollouts", None, False),
        ("arn:aws:s3:::rollouts-2", "rollouts", None, False),
        (
            "/subscriptions/S/resourceGroups/R/providers/Microsoft.Storage/storageAccounts/Acc",
            "acc/box",
            "Microsoft",
            True,
        ),
        ("https://acc.blob.core.windows.net/box", "abfss://box@acc.dfs.core.windows.net", "", True),
        ("https://acc.blob.core.windows.net/box", "acc/other", "Microsoft", False),
        (None, "rollouts", "AWS", False),
    ],
)
def test_a_bucket_meets_its_lines(
    new_day: type[DayBuilder],
    bill: str | None,
    inventory: str,
    provider: str | None,
    meets: bool,
) -> None:
    day = stored(new_day(), "box/a/", 1, inventory).line("s", bill, 0, 24, ProviderName=provider)
    assert day.attribute().costs["path"].to_list() == (["box/a/"] if meets else [None])


def test_an_account_is_split_over_its_containers(new_day: type[DayBuilder]) -> None:
    account = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/acc"
    day = stored(stored(new_day(), "one/", 3, "acc/one"), "two/", 1, "acc/two")
    costs = day.line("s", account, 0, 24).attribute().costs
    assert dict(costs.select("path", "EffectiveCost").iter_rows()) == {"one/": 6, "two/": 2}


def test_a_file_system_by_directory(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day()
    for folder, size in (("/fsx/runs/a/", 5), ("/fsx/runs/b/", 2), ("/fsx/home/", 1)):
        stored(day, folder, size, "fs-0a", storage_class=None)
    day.line("fsx", "arn:aws:fsx:us-east-1:123456789012:file-system/fs-0a", 0, 24)
    named = Settings(identity=Identity(experiment=("path:/fsx/runs/{experiment}",)))
    assert cost_by(day.attribute(named).costs, ("target", "experiment", "path")) == {
        ("charge", "a", "/fsx/runs/a/"): Decimal(5),
        ("charge", "b", "/fsx/runs/b/"): Decimal(2),
        ("__unattributed__", "__unattributed__", "/fsx/home/"): Decimal(1),
    }


def test_sizes_beyond_64_bits_still_split(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = stored(stored(new_day(), "s3://rollouts/a/", 2**62), "s3://rollouts/b/", 2**62)
    stored(day, "s3://rollouts/a/", 2**62, size_band="1").line("s", "rollouts", 0, 24, "9")
    assert cost_by(day.attribute(NAMED).costs) == {"a": 6, "b": 3}


amounts = st.one_of(st.none(), st.decimals(-100, 100, places=6))


@settings(max_examples=SOME)
@given(
    sizes=st.lists(st.one_of(st.none(), st.integers(0, 2**60)), max_size=6),
    counts=st.lists(st.integers(0, 10**6), max_size=6),
    lines=st.lists(
        st.tuples(st.sampled_from([STORAGE, PUT, GET, {}]), st.tuples(*[amounts] * 4)),
        min_size=1,
        max_size=5,
    ),
    turn=st.integers(0, 5),
)
def test_parts_add_up_whatever_the_order(
    new_day: type[DayBuilder],
    sizes: list[int | None],
    counts: list[int],
    lines: list[tuple[dict[str, str], tuple[Decimal | None, ...]]],
    turn: int,
) -> None:
    day = new_day()
    for number, size in enumerate(sizes):
        stored(day, f"s3://rollouts/{number}/", size)
    for number, count in enumerate(counts):
        asked(day, f"s3://rollouts/{number}/", ("PutObject", "GetObject")[number % 2], count)
    for number, (words, costs) in enumerate(lines):
        money: dict[str, Any] = dict(zip(COST_COLUMNS, costs, strict=True))
        day.line(f"l{number}", "rollouts", 0, 24, **words, **money)
    books = day.attribute(NAMED)
    for line in day.rows["charges"]:
        parts = books.costs.filter(x_LineId=line["x_LineId"])
        for name in COST_COLUMNS:
            known = parts[name].drop_nulls()
            assert known.len() == (0 if line[name] is None else parts.height)
            assert parts.height > 0
            assert line[name] is None or known.sum() == line[name]
    for rows in day.rows.values():
        rows[:] = rows[turn:] + rows[:turn]
    assert day.attribute(NAMED).costs.equals(books.costs)
