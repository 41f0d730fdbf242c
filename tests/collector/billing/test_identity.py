"""Line ids: what a line says, never where it stands."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from collector.billing import from_settings
from ledger.facts import Facts
from ledger.settings import Bill

Collect = Callable[..., Facts]
Text = Callable[..., str]
costs = st.lists(st.integers(0, 5).map(str), min_size=1, max_size=15)


def charges(facts: Facts) -> pl.DataFrame:
    return facts.tables["charges"]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(costs=costs, seed=st.integers(), cut=st.integers(0, 15))
def test_reading_again_in_another_order_or_in_two_files_changes_no_cell(
    tmp_path: Path, text: Text, costs: list[str], seed: int, cut: int
) -> None:
    rows = [{"BilledCost": cost} for cost in costs]
    columns = text([]).strip().split(",")
    chance = random.Random(seed)
    chance.shuffle(columns)
    shuffled = chance.sample(rows, len(rows))
    parts = {
        "one/a.csv": text(rows),
        "two/a.csv": text(shuffled[:cut], columns),
        "two/b.csv": text(shuffled[cut:]),
    }
    assume(parts["two/a.csv"] != parts["two/b.csv"])  # that is one export delivered twice
    for name, content in parts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    one, two = (from_settings(Bill(name="aws", path=name), tmp_path) for name in ("one", "two"))
    reach = one.reach()
    assert reach is not None
    frame = charges(one.collect(reach))
    assert frame.height == len(costs)
    assert charges(two.collect(reach)).equals(frame)


def test_twins_both_stay(collect: Collect) -> None:
    facts = collect([{}, {}, {"BilledCost": "2"}])
    ids = charges(facts)["x_LineId"]
    assert ids.n_unique() == 3
    assert charges(facts)["BilledCost"].sum() == 4
    assert ids.str.contains(r"^[0-9a-f]{24}(-\d+)?$").all()


def test_any_cell_tells_two_lines_apart(collect: Collect) -> None:
    rows: list[dict[str, str]] = [
        {}, {"ResourceId": "i-0b"}, {"Tags": '{"a":1}'}, {"InvoiceId": "1"}, {"x_Mine": "1"},
        {"ListCost": ""}, {"BillingPeriodEnd": "2026-07-01T00:00:00Z"},
    ]  # fmt: skip
    ids = charges(collect(rows))["x_LineId"]
    assert ids.n_unique() == len(rows)
    assert not ids.str.contains("-").any()


def test_an_id_does_not_change_with_the_program(collect: Collect) -> None:
    """Ledgers outlive versions: whoever changes this value orphans the parts of split lines."""
    assert charges(collect([{}]))["x_LineId"].to_list() == ["012385b8cf9c75141e89c189"]


def test_columns_without_a_value_do_not_count(collect: Collect, text: Text) -> None:
    plain = charges(collect([{}]))["x_LineId"]
    assert charges(collect([{"SkuId": "", "x_Mine": "NULL"}]))["x_LineId"].equals(plain)


def test_tags_in_two_columns_both_count(collect: Collect) -> None:
    """Tags that are no JSON move to ``x_Other``; lines that differ only there stay apart."""
    tags = ["a=1", "a=2", '{"a":1}', '{"a":2}']
    ids = charges(collect([{"Tags": tag} for tag in tags]))["x_LineId"]
    assert ids.n_unique() == 4
    assert not ids.str.contains("-").any()
