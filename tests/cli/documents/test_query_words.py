"""What stands above and below the rows of ``query``, in words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from attribution.query.answer import Query, Sharing, query
from attribution.query.compare import compare
from attribution.query.question import Pool
from cli.documents.queries import query_document
from ledger.store import Ledger
from ledger.window import Window
from tests.attribution.query_books import DAY, days_before, row, write

WINDOW = Window.of_day(DAY)
NAMESPACE = {"workload": "a", "__idle__": None}


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    """A node that is held and one that is not, on two days of which the first cost more."""
    rows = [
        row(
            cost,
            target=target,
            day=day,
            cluster="c",
            node=node,
            resource="gpu",
            namespace=NAMESPACE[target],
        )
        for day, cost in ((days_before(1), 10), (DAY, 9))
        for target, node in (("workload", "n1"), ("__idle__", "n1"), ("__idle__", "n2"))
    ]
    return write(Ledger.open(str(tmp_path / "ledger"), create=True), rows)


@pytest.mark.parametrize(
    ("shares", "pool", "said"),
    [
        (True, "node", "__idle__: where nobody held the rest of a node that day; --share-idle"),
        (True, "cluster", None),
        (False, "node", None),
    ],
)
def test_idle_that_is_left_after_sharing_says_why(
    books: Ledger, shares: bool, pool: Pool, said: str | None
) -> None:
    sharing = Sharing(idle=shares, pool=pool)
    (result,) = query(books, Query(WINDOW, ("namespace",), sharing=sharing))
    note = query_document(result, ()).sections[0].note
    assert (note or "").startswith(said) if said else note is None


def test_a_change_has_one_sign(books: Ledger) -> None:
    (found,) = compare(books, Query(WINDOW, ("namespace",)), [days_before(1), DAY])
    tiles = {tile.label: tile for tile in query_document(found.result, (), found).tiles}
    assert "now -10.0 %" in (tiles["Before"].detail or "")


def test_a_window_without_costs_has_no_dash_on_an_invoice(books: Ledger) -> None:
    day = timedelta(days=9)
    empty = Window(WINDOW.start - day, WINDOW.end - day)
    (result,) = query(books, Query(empty, ("namespace",)))
    total = query_document(result, ()).tiles[1]
    assert (total.value, total.detail or "") == ("–", "")
