"""Published sample bills against their exact sums."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from ledger.errors import BadInputError
from ledger.facts import Facts
from ledger.schema import CHARGES

Collect = Callable[..., Facts]
FDT_1_2 = "fdt_aws_1_2_cost_and_usage_rows100_seed42.csv"
FDT_1_3 = "fdt_aws_1_3_cost_and_usage_rows100_seed42.csv"
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


def exact(facts: Facts, column: str) -> Decimal:
    """The sum of a column with what rounding to 1e-12 took: the sum of the source text."""
    total = facts.tables["charges"][column].sum()
    assert isinstance(total, Decimal)
    return total + facts.residue.get(column, Decimal(0))


def by(facts: Facts, key: str, column: str = "BilledCost") -> dict[str, Decimal]:
    frame = facts.tables["charges"].group_by(key).agg(pl.col(column).sum())
    return dict(frame.iter_rows())


def lines(facts: Facts, key: str) -> dict[str, int]:
    frame = facts.tables["charges"].group_by(key).agg(pl.col("x_LineId").n_unique())
    return dict(frame.iter_rows())


def test_real_anonymised_bill_of_three_providers(shared: Path, collect_path: Collect) -> None:
    facts = collect_path(shared / "data/billing/focus10_sample.csv")
    charges = facts.tables["charges"]
    assert [exact(facts, name) for name in COSTS] == [
        Decimal("20.52022672899"),
        Decimal("14.97651418586"),
        Decimal("20.39090575119"),
        Decimal("14.97626039326"),
    ]
    assert (
        by(facts, "ProviderName")
        == by(facts, "ServiceProviderName")
        == {
            "AWS": Decimal("18.00663861840"),
            "Microsoft": Decimal("1.97651418586"),
            "Oracle": Decimal("0.53707392473"),
        }
    )
    assert lines(facts, "ProviderName") == {"AWS": 942, "Microsoft": 51, "Oracle": 7}
    assert by(facts, "ChargeCategory") == {
        "Usage": Decimal("22.86192672899"),
        "Credit": Decimal("-2.61370000000"),
        "Adjustment": Decimal("0.27200000000"),
    }
    months = charges.group_by(pl.col("BillingPeriodStart").dt.strftime("%Y-%m")).agg(
        pl.col("BilledCost").sum()
    )
    assert dict(months.iter_rows()) == {
        "2024-09": Decimal("20.28022672899"),
        "2024-10": Decimal("0.24"),
    }
    assert charges.filter(pl.col("BilledCost") < 0)["x_LineId"].n_unique() == 13
    assert charges.filter(pl.col("Tags").is_null())["x_LineId"].n_unique() == 289
    assert charges.filter(pl.col("ContractedCost").is_null())["x_LineId"].n_unique() == 7
    assert charges["x_Other"].str.json_path_match("$.Id").null_count() == 0
    assert facts.quarantine == ()
    assert any("4000 time stamps without a zone: read as UTC" in note for note in facts.notes)
    assert any("x_Other: Id" in note for note in facts.notes)


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        (FDT_1_2, ["1157.48882377213324", "403.45921877213324",
                   "1203.92341784103253", "1161.67908227773324"]),
        (FDT_1_3, ["1242.11561911486050", "215.67890111486050",
                   "1264.83229463617427", "1245.01174262206050"]),
    ],
)  # fmt: skip
def test_finer_than_twelve_decimals_with_the_exact_residue(
    shared: Path, collect_path: Collect, name: str, sums: list[str]
) -> None:
    facts = collect_path(shared / "data/billing" / name)
    assert [exact(facts, column) for column in COSTS] == [Decimal(text) for text in sums]
    assert facts.tables["charges"]["x_LineId"].n_unique() == 100


def test_lines_and_invoices_of_fdt(shared: Path, collect_path: Collect) -> None:
    older = collect_path(shared / "data/billing" / FDT_1_2)
    newer = collect_path(shared / "data/billing" / FDT_1_3)
    assert lines(older, "ChargeCategory") == {"Usage": 79, "Purchase": 20, "Tax": 1}
    assert lines(newer, "ChargeCategory") == {"Usage": 81, "Purchase": 17, "Tax": 2}
    billed = by(newer, "ChargeCategory")
    assert billed["Purchase"] == Decimal("1028.741870")
    assert billed["Tax"] == Decimal("37.271788")
    half = Decimal("1e-12") * 50
    for facts, invoice, amount in (
        (older, "INV-2026-05-0001", "916.35661193320386"),
        (newer, "INV-2026-05-0001", "373.31722480538816"),
        (newer, "INV-2026-05-0002", "868.79839430947234"),
    ):
        assert abs(by(facts, "InvoiceId")[invoice] - Decimal(amount)) <= half
    currencies = older.tables["charges"].select("BillingCurrency", "PricingCurrency").unique()
    assert set(currencies.iter_rows()) == {("USD", "USD"), ("USD", "EUR")}
    assert "AllocatedMethodId" in str(newer.tables["charges"]["x_Other"].to_list())


# File of the specification: lines, BilledCost, EffectiveCost
SPEC = {
    "commitment_discount_purchase_scenario_1": (1, "8760.00", "0.00"),
    "commitment_discount_usage_scenario_2": (1, "0.00", "1.00"),
    "commitment_discount_usage_scenario_4": (2, "0.50", "1.50"),
    "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_2_resources": (
        3, "2.00", "2.00"),
    "saas_spend_agreements_a1": (4, "1200", "1200"),
    "saas_spend_agreements_b1": (5, "1200", "1200"),
    "simple_saas_agreements_a1": (1, "10000.00", "10000.00"),
    "simple_saas_agreements_a3": (1, "1000.00", "1000.00"),
    "simple_saas_agreements_c": (3, "35800.00", "35800.00"),
    "virtual_currency_pricing_model_a2": (3, "0.00", "1230.00"),
    "virtual_currency_pricing_model_b2": (3, "0.00", "615.00"),
    "virtual_currency_pricing_model_c": (2, "53000.00", "0.00"),
}  # fmt: skip
NO_CURRENCY = [name for name in SPEC if name.startswith(("commitment", "one_hundred"))]


def with_currency(path: Path) -> str:
    """The worked examples on commitments leave the currency out; the rest stays as it is."""
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    if "BillingCurrency" not in rows[0]:
        rows = [
            [*row, "BillingCurrency" if row is rows[0] else "USD"] if row else row for row in rows
        ]
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def spec(shared: Path, name: str) -> Path:
    return shared / "data/billing/focus_spec_examples" / f"{name}.csv"


@pytest.mark.parametrize("name", SPEC)
def test_worked_examples_of_the_specification(
    shared: Path, collect: Collect, collect_path: Collect, name: str
) -> None:
    path = spec(shared, name)
    facts = collect(with_currency(path)) if name in NO_CURRENCY else collect_path(path)
    count, billed, effective = SPEC[name]
    assert facts.tables["charges"]["x_LineId"].n_unique() == count
    assert exact(facts, "BilledCost") == Decimal(billed)
    assert exact(facts, "EffectiveCost") == Decimal(effective)
    assert facts.quarantine == ()


@pytest.mark.parametrize("name", NO_CURRENCY)
def test_a_file_without_currency_is_refused_by_name(
    shared: Path, collect_path: Collect, name: str
) -> None:
    with pytest.raises(BadInputError, match=r"BillingCurrency.*'BilledCost'") as caught:
        collect_path(spec(shared, name))
    assert str(spec(shared, name)) in str(caught.value)


def test_hour_thirty_is_put_aside_with_its_row(shared: Path, collect: Collect) -> None:
    facts = collect(with_currency(spec(shared, "commitment_discount_purchase_scenario_3")))
    assert exact(facts, "BilledCost") == Decimal("4381.50") - Decimal("0.50")
    [entry] = facts.quarantine
    assert (entry.reason, entry.count) == ("bad_date", 1)
    assert entry.example is not None
    assert entry.example.startswith("row 5: ChargePeriodEnd '2023-02-01T30:00:00Z'")


def test_contracted_cost_of_an_upfront_agreement(shared: Path, collect_path: Collect) -> None:
    facts = collect_path(spec(shared, "saas_spend_agreements_b1"))
    assert exact(facts, "ContractedCost") == 2400
    tokens = collect_path(spec(shared, "virtual_currency_pricing_model_a2"))
    assert exact(tokens, "PricingCurrencyEffectiveCost") == 615


@pytest.mark.parametrize("form", ["csv.gz", "parquet", "double.parquet"])
@pytest.mark.parametrize("name", ["focus10_sample.csv", FDT_1_3])
def test_every_form_of_a_file_reads_the_same(
    shared: Path, tmp_path: Path, collect_path: Collect, name: str, form: str
) -> None:
    source = shared / "data/billing" / name
    copy = tmp_path / f"copy.{form}"
    if form == "csv.gz":
        copy.write_bytes(gzip.compress(source.read_bytes()))
    else:
        frame = pl.read_csv(source, infer_schema=False, null_values=["NULL"])
        if form == "double.parquet":
            money = [name for name in frame.columns if name in COSTS]
            frame = frame.with_columns(pl.col(money).cast(pl.Float64))
        frame.write_parquet(copy)
    first, second = collect_path(source), collect_path(copy)
    assert second.tables["charges"].equals(first.tables["charges"])
    assert second.residue == first.residue


def test_frames_fit_the_table(shared: Path, collect_path: Collect) -> None:
    charges = collect_path(shared / "data/billing/focus10_sample.csv").tables["charges"]
    wanted = {name: dtype for name, dtype in CHARGES.schema.items() if name != "x_Source"}
    assert dict(charges.schema) == wanted
    required = [
        name for name, column in CHARGES.columns.items() if column.required and name != "x_Source"
    ]
    assert sum(charges[name].null_count() for name in required) == 0
