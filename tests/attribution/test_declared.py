"""Declared costs in the books: by their tags, or as the price of a machine of one's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from attribution.day import attribute_day
from attribution.facts import DayFacts
from collector.billing import DeclaredCosts
from ledger.schema import CHARGES
from ledger.settings import Bill, Settings
from ledger.window import Window

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

DAY = date(2026, 11, 30)
HEAD = "name,amount,currency,per,from,dimension,resource,tags\n"


def declared(folder: Path, rows: str) -> pl.DataFrame:
    path = folder / "costs.csv"
    path.write_text(HEAD + rows)
    bill = Bill(name="people", kind="declared", path=str(path))
    facts = DeclaredCosts(bill, str(path)).collect(Window.of_day(DAY))
    return facts.tables["charges"].select(
        pl.lit("people").alias(name) if name == "x_Source" else pl.col(name)
        for name in CHARGES.columns
    )


def test_tags_say_whose_a_declared_cost_is(
    tmp_path: Path, cost_by: Callable[..., dict[Any, Decimal]]
) -> None:
    rows = "annotation,30,USD,month,2026-11,data,,owner=lin; experiment=grpo-7b\n"
    rows += "licence,2,USD,day,2026-11-01,other,,\n"
    books = attribute_day(DayFacts(DAY, charges=declared(tmp_path, rows)), Settings())
    assert cost_by(books.costs, ["experiment", "owner"]) == {
        ("grpo-7b", "lin"): 1,
        ("__unattributed__", "__unattributed__"): 2,
    }
    assert set(books.costs["x_Basis"]) == {"declared"}
    assert books.costs["BilledCost"].sum() == 0


def test_an_amortised_node_is_split_over_its_pods_and_idle(
    tmp_path: Path, new_day: type[DayBuilder], cost_by: Callable[..., dict[Any, Decimal]]
) -> None:
    day = new_day().node("gpu-17", provider_id=None, gpus=8)
    day.pod("u", 0, 12, node="gpu-17", gpus=4, labels={"experiment": "sft"})
    facts = day.facts()
    charges = declared(tmp_path, "rack,720,USD,month,2026-11,compute,node/gpu-17,\n")
    books = attribute_day(
        DayFacts(DAY, charges, nodes=facts.nodes, workloads=facts.workloads), Settings()
    )
    assert cost_by(books.costs) == {"sft": 6, "__idle__": 18}
    assert not books.gaps
    assert set(books.costs["node"]) == {"gpu-17"}
