"""What real bills look like, and what hostile ones do: read, put aside or refused, never lost."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from ledger.errors import BadInputError
from ledger.facts import Facts
from ledger.window import Window

Collect = Callable[..., Facts]
Text = Callable[..., str]


def billed(facts: Facts) -> list[Decimal]:
    return sorted(facts.tables["charges"]["BilledCost"].to_list())


def reasons(facts: Facts) -> dict[str, int]:
    return {entry.reason: entry.count for entry in facts.quarantine}


def one(facts: Facts, column: str) -> object:
    return facts.tables["charges"][column].item()


@pytest.mark.parametrize("word", ["NULL", "null", "None", "NaN", "", '""', '"NULL"', " NULL "])
def test_no_billed_cost_is_a_fault_and_not_zero(collect: Collect, text: Text, word: str) -> None:
    content = text([{"BilledCost": "@"}, {"BilledCost": "2"}]).replace("@", word)
    facts = collect(content)
    assert billed(facts) == [2]
    assert reasons(facts) == {"missing_cost": 1}
    no_value = "holds no value (nothing, NULL, null, None or NaN)"  # NaN is not nothing
    assert facts.quarantine[0].example == f"row 2: BilledCost {no_value}"


@pytest.mark.parametrize("column", ["EffectiveCost", "ListCost", "ContractedCost"])
def test_another_cost_that_is_not_given_is_unknown(collect: Collect, column: str) -> None:
    facts = collect([{column: "NULL"}])
    assert one(facts, column) is None
    assert reasons(facts) == {}
    assert any(note.startswith(f"{column} is not given on 1 line:") for note in facts.notes)


def test_null_words_in_text_are_null(collect: Collect) -> None:
    facts = collect(
        [{"ResourceId": "None", "Tags": "NULL", "ServiceName": "null", "InvoiceId": ""}]
    )
    row = facts.tables["charges"].row(0, named=True)
    assert [row[name] for name in ("ResourceId", "Tags", "ServiceName", "InvoiceId")] == [None] * 4


@pytest.mark.parametrize("start", ["2024-09-18T30:00:00Z", "31/02/2024", "NULL", "soon"])
def test_a_period_that_is_no_time_is_put_aside_with_its_row(collect: Collect, start: str) -> None:
    facts = collect([{}, {"ChargePeriodStart": start}])
    assert billed(facts) == [1]
    [entry] = facts.quarantine
    assert entry.reason == ("missing_date" if start == "NULL" else "bad_date")
    assert entry.example is not None
    assert entry.example.startswith("row 3: ChargePeriodStart")


def test_a_bad_billing_period_costs_no_row(collect: Collect) -> None:
    facts = collect([{"BillingPeriodStart": "2024-13-01"}])
    assert one(facts, "BillingPeriodStart") is None
    assert any(note.startswith("BillingPeriodStart cannot be read on 1") for note in facts.notes)


def test_zone_of_the_settings(collect: Collect) -> None:
    row = {"ChargePeriodStart": "2026-05-02 00:00:00", "ChargePeriodEnd": "2026-05-02 01:00:00"}
    facts = collect([row], timezone="Asia/Shanghai")
    assert one(facts, "ChargePeriodStart") == datetime(2026, 5, 1, 16, tzinfo=UTC)
    assert one(facts, "day") == date(2026, 5, 1)
    assert any(
        "2 time stamps without a zone: read as Asia/Shanghai" in note for note in facts.notes
    )


def test_periods_that_end_too_early_or_too_late(collect: Collect) -> None:
    facts = collect([
        {"ChargePeriodEnd": "2026-05-01T00:00:00Z"},
        {"ChargePeriodStart": "0001-01-01T00:00:00Z", "ChargePeriodEnd": "9999-12-31T00:00:00Z"},
        {"ChargePeriodEnd": "2026-05-02T00:00:00Z", "BilledCost": "3"},
    ])  # fmt: skip
    assert reasons(facts) == {"bad_period": 2}
    assert billed(facts) == [3]
    assert one(facts, "ChargePeriodEnd") == datetime(2026, 5, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "shape",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: "\n\n" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text + "\r\n \n",
        lambda text: text + ",,,,,,,,\n",
    ],
    ids=["bom", "crlf", "blank lines", "blank top", "no final newline", "blank tail", "commas"],
)
def test_shapes_of_a_file(collect: Collect, text: Text, shape: Callable[[str], str]) -> None:
    plain = text([{"BilledCost": "1"}, {"BilledCost": "2"}])
    shaped = collect(shape(plain))
    assert shaped.tables["charges"].equals(collect(plain).tables["charges"])
    assert shaped.quarantine == ()


@pytest.mark.parametrize("tail", ["\n", "", "\r\n\r\n"])
def test_header_only_is_no_row_and_no_error(collect: Collect, text: Text, tail: str) -> None:
    facts = collect(text([]).rstrip("\n") + tail)
    assert facts.tables["charges"].height == 0
    assert facts.gaps == ()
    assert facts.data_through is None


def test_decorated_and_scientific_amounts(collect: Collect) -> None:
    facts = collect([{"BilledCost": cell} for cell in ("$10,000.00 ", "1.81E-8", "-2.50", "(3)")])
    assert billed(facts) == [Decimal(n) for n in ("-3", "-2.50", "0.0000000181", "10000")]


def test_amounts_that_are_none_or_too_large(collect: Collect) -> None:
    facts = collect([
        {"BilledCost": "inf"}, {"EffectiveCost": "-inf"}, {"BilledCost": "1,5"},
        {"BilledCost": "1e30"}, {"ListCost": "9" * 40}, {"BilledCost": "-7"},
    ])  # fmt: skip
    assert billed(facts) == [-7]
    assert reasons(facts) == {"bad_number": 3, "too_large": 2}


def test_a_bad_quantity_costs_no_row(collect: Collect) -> None:
    facts = collect([{"PricingQuantity": "many", "ListUnitPrice": "1e99"}])
    assert one(facts, "PricingQuantity") is None
    assert billed(facts) == [1]
    assert any(note.startswith("ListUnitPrice cannot be read") for note in facts.notes)


def test_amounts_of_a_size_never_seen(collect: Collect) -> None:
    facts = collect([{"BillingCurrency": "KRW", "BilledCost": "16200000000000"}, {}])
    sums = facts.tables["charges"].group_by("BillingCurrency").agg(pl.col("BilledCost").sum())
    assert dict(sums.iter_rows()) == {"KRW": 16200000000000, "USD": 1}


def test_a_line_without_currency_is_put_aside(collect: Collect) -> None:
    facts = collect([{"BillingCurrency": ""}, {"BillingCurrency": " usd "}])
    assert reasons(facts) == {"missing_currency": 1}
    assert one(facts, "BillingCurrency") == "USD"


def test_headers_renamed_recased_and_stray(collect: Collect, text: Text) -> None:
    content = text([{"Id": "11472", "x_Team": "", "SkuPriceId": "P"}])
    content = content.replace("BilledCost", "billed_cost").replace("SkuPriceId", "SkuPriceid")
    facts = collect(content)
    assert billed(facts) == [1]
    assert one(facts, "SkuPriceId") == "P"
    assert one(facts, "x_Other") == '{"Id":"11472"}'
    joined = "\n".join(facts.notes)
    assert "SkuPriceid as SkuPriceId, billed_cost as BilledCost" in joined
    assert "kept in x_Other: Id, x_Team" in joined


def test_an_exact_header_wins_over_a_lookalike(collect: Collect, text: Text) -> None:
    content = text([{"sku_id": "other", "SkuId": "exact"}])
    facts = collect(content)
    assert one(facts, "SkuId") == "exact"
    assert json.loads(str(one(facts, "x_Other"))) == {"sku_id": "other"}


def test_headers_that_stand_twice(collect: Collect, text: Text) -> None:
    header, row = text([{}]).splitlines()
    facts = collect(f"{header},Extra,Extra\n{row},a,b\n")
    assert one(facts, "x_Other") == '{"Extra":"a","Extra#2":"b"}'
    assert any(note.startswith("columns that stand more than once: Extra") for note in facts.notes)
    with pytest.raises(BadInputError, match="BilledCost twice"):
        collect(f"{header},BilledCost\n{row},5\n")


@pytest.mark.parametrize(
    "column", ["BilledCost", "BillingCurrency", "ChargePeriodStart", "ChargePeriodEnd"]
)
def test_an_essential_column_that_is_missing_refuses_the_file(
    collect: Collect, text: Text, column: str
) -> None:
    content = text([{}]).replace(column, "Kosten")
    with pytest.raises(BadInputError, match=rf"bill\.csv lacks the column {column}; .*'Kosten'"):
        collect(content)


def test_columns_that_may_be_missing(collect: Collect) -> None:
    facts = collect(
        "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd\n"
        "5,USD,2026-05-01,2026-05-02\n"
    )
    row = facts.tables["charges"].row(0, named=True)
    assert (row["BilledCost"], row["ChargeCategory"], row["EffectiveCost"]) == (5, "Usage", None)
    assert (row["x_Dimension"], row["x_Elasticity"]) == ("other", "elastic")
    assert any("EffectiveCost" in note for note in facts.notes)
    assert any(note.startswith("ChargeCategory is not given on 1 line:") for note in facts.notes)


def test_zero_where_the_cost_is_not_known(collect: Collect) -> None:
    facts = collect([
        {"BilledCost": "0", "EffectiveCost": "6", "ListCost": "10", "ContractedCost": "0"},
        {"BilledCost": "4", "EffectiveCost": "4", "ListCost": "0", "ContractedCost": "4"},
        {"BilledCost": "0", "EffectiveCost": "0", "ListCost": "0", "ContractedCost": "0"},
    ])  # fmt: skip
    charges = facts.tables["charges"].sort("EffectiveCost")
    assert charges["ContractedCost"].to_list() == [0, 4, None]
    assert charges["ListCost"].to_list() == [0, None, 10]
    assert any(note.startswith("ContractedCost is 0 on 1 line ") for note in facts.notes)


def test_effective_cost_on_a_purchase_that_its_usage_carries_too(collect: Collect) -> None:
    purchase = {"ChargeCategory": "Purchase", "ChargeFrequency": "Recurring",
                "EffectiveCost": "2", "CommitmentDiscountId": "sp-1"}  # fmt: skip
    usage = {"EffectiveCost": "0.75", "BilledCost": "0", "CommitmentDiscountId": "sp-1",
             "ChargePeriodStart": "2026-05-09T00:00:00Z",
             "ChargePeriodEnd": "2026-05-09T01:00:00Z"}  # fmt: skip
    alone = {**purchase, "CommitmentDiscountId": "sp-2", "EffectiveCost": "5"}
    facts = collect([purchase, usage, alone])
    costs = facts.tables["charges"].sort("EffectiveCost")["EffectiveCost"].to_list()
    assert costs == [0, Decimal("0.75"), 5]
    assert any("alert effective_cost_on_purchase: 1 commitment" in note for note in facts.notes)
    alone_in_window = collect([purchase, usage, alone], Window.of_day(date(2026, 5, 2)))
    assert sorted(alone_in_window.tables["charges"]["EffectiveCost"].to_list()) == [0, 5]


def test_account_ids_keep_their_zeros(collect: Collect) -> None:
    facts = collect([{"BillingAccountId": "000012", "SubAccountId": "007"}])
    assert (one(facts, "BillingAccountId"), one(facts, "SubAccountId")) == ("000012", "007")


def test_provider_of_a_line(collect: Collect) -> None:
    facts = collect([
        {"ProviderName": "AWS", "ServiceProviderName": ""},
        {"ProviderName": "", "ServiceProviderName": "Azure"},
    ])  # fmt: skip
    names = facts.tables["charges"].select("ProviderName", "ServiceProviderName").rows()
    assert sorted(names) == [("AWS", "AWS"), ("Azure", "Azure")]


def test_tags_keep_their_keys(collect: Collect) -> None:
    facts = collect([{"Tags": '{"environment": "test", "Environment": "prod"}'}])
    assert one(facts, "Tags") == '{"Environment":"prod","environment":"test"}'


def test_tags_that_are_no_json_are_kept_beside(collect: Collect) -> None:
    facts = collect([{"Tags": "team=a;env=b"}])
    assert one(facts, "Tags") is None
    assert one(facts, "x_Other") == '{"Tags":"team=a;env=b"}'
    assert any(note.startswith("Tags is no JSON object on 1 line:") for note in facts.notes)


def test_quotes_and_line_breaks_in_cells(collect: Collect) -> None:
    odd = 'p5, "big"\nsecond line'
    facts = collect([{"ChargeDescription": odd}, {"BilledCost": "2"}])
    assert billed(facts) == [1, 2]
    assert odd in facts.tables["charges"]["ChargeDescription"].to_list()


def test_a_column_that_becomes_empty(collect: Collect) -> None:
    def line(month: int, day: int, tags: str) -> dict[str, str]:
        return {"ChargePeriodStart": f"2026-{month:02}-{day:02}", "Tags": tags,
                "ChargePeriodEnd": f"2026-{month:02}-{day + 1:02}"}  # fmt: skip

    filled, empty = '{"a":"b"}', ""
    rows = [line(4, 1, filled), line(4, 2, filled), line(4, 3, empty), line(5, 1, empty)]
    alerts = [note for note in collect(rows).notes if note.startswith("alert")]
    assert alerts == ["alert null_rate_jump: Tags is empty in all lines of 2026-05, and was filled "
                      "in the month before"]  # fmt: skip
    assert collect(rows).tables["charges"].height == 4


def test_dimension_and_elasticity(collect: Collect) -> None:
    facts = collect([
        {"ServiceCategory": "Compute", "InvoiceId": "1"},
        {"ServiceCategory": "AI and Machine Learning", "InvoiceId": "2"},
        {"ServiceCategory": "Storage", "InvoiceId": "3"},
        {"ServiceCategory": "Management and Governance", "ServiceName": "AmazonCloudWatch",
         "InvoiceId": "4"},
        {"ServiceCategory": "Management and Governance", "ServiceName": "AWS Config",
         "InvoiceId": "5"},
        {"ServiceCategory": "Networking", "ChargeFrequency": "Recurring", "InvoiceId": "6"},
        {"ChargeCategory": "Purchase", "ChargeFrequency": "One-Time", "InvoiceId": "7"},
    ])  # fmt: skip
    kinds = facts.tables["charges"].sort("InvoiceId").select("x_Dimension", "x_Elasticity").rows()
    assert kinds == [
        ("compute", "elastic"), ("compute", "elastic"), ("storage_logs", "elastic"),
        ("storage_logs", "elastic"), ("other", "elastic"), ("other", "fixed"),
        ("compute", "fixed"),
    ]  # fmt: skip


def test_a_row_with_too_many_cells_is_put_aside(collect: Collect, text: Text) -> None:
    facts = collect(text([{}]) + ",".join("x" * 40) + "\n" + text([{}]).splitlines()[1] + ",y\n")
    assert billed(facts) == [1]
    assert reasons(facts) == {"too_many_cells": 2}


def hostile(text: Text) -> dict[str, bytes]:
    plain = text([{"BilledCost": str(n)} for n in range(200)]).encode()
    packed = gzip.compress(plain)
    return {
        "nothing": b"",
        "blank": b"\n \n",
        "junk": os.urandom(4096),
        "all bytes": bytes(range(256)) * 64,
        "nul": b"\0" * 4096,
        "one long line": b"x" * 300_000,
        "utf-16": plain.decode().encode("utf-16"),
        "cut gzip": packed[:-40],
        "gzip with a wrong sum": packed[:-8] + b"\0" * 8,
        "gzip of nothing": gzip.compress(b""),
        "cut in a row": plain[:-30],
        "open quote": plain + b'"',
        "html": b"<html><body>404 Not Found</body></html>",
        "json": b'{"BilledCost": 1}',
        "fake parquet": b"PAR1" + os.urandom(500) + b"PAR1",
    }


@pytest.mark.parametrize("kind", sorted(hostile(lambda rows: "")))
def test_a_file_that_is_no_bill_is_one_clear_line(collect: Collect, text: Text, kind: str) -> None:
    with pytest.raises(BadInputError, match=r"bill\.csv") as caught:
        collect(hostile(text)[kind])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_a_cut_parquet_file_is_refused(
    collect: Collect, text: Text, tmp_path: Path, keep: float
) -> None:
    path = tmp_path / "whole.parquet"
    pl.DataFrame({"BilledCost": [1.0] * 1000}).write_parquet(path)
    data = path.read_bytes()
    with pytest.raises(BadInputError, match="cut or damaged"):
        collect(data[: int(len(data) * keep)], name="cut.parquet")


def test_bytes_that_are_no_utf8(collect: Collect, text: Text) -> None:
    facts = collect(text([{"ServiceName": "Café"}]).encode("latin-1"))
    assert billed(facts) == [1]
    assert any(note.startswith("1 line with bytes that are no UTF-8") for note in facts.notes)


def test_typed_parquet(collect_path: Collect, tmp_path: Path) -> None:
    path = tmp_path / "typed.parquet"
    start = datetime(2026, 5, 1)  # noqa: DTZ001 - the file carries no zone
    pl.DataFrame(
        {
            "BilledCost": [0.1, float("nan"), float("inf")],
            "EffectiveCost": [Decimal("0.10"), Decimal(1), Decimal(1)],
            "BillingCurrency": ["USD"] * 3,
            "ChargePeriodStart": [start] * 3,
            "ChargePeriodEnd": [datetime(2026, 5, 1, 1, tzinfo=UTC)] * 3,
            "BillingAccountId": [12, 12, 12],
            "Tags": [[{"key": "team", "value": 'a"b'}, {"key": "on", "value": None}]] * 3,
            "x_Discounts": [[{"key": "edp", "value": 1.5}]] * 3,
        }
    ).write_parquet(path)
    facts = collect_path(path)
    row = facts.tables["charges"].row(0, named=True)
    assert (row["BilledCost"], row["EffectiveCost"]) == (Decimal("0.1"), Decimal("0.1"))
    assert row["BillingAccountId"] == "12"
    assert json.loads(row["Tags"]) == {"team": 'a"b', "on": None}
    assert json.loads(json.loads(row["x_Other"])["x_Discounts"]) == {"edp": 1.5}
    assert reasons(facts) == {"missing_cost": 1, "bad_number": 1}
    assert facts.tables["charges"].height == 1
