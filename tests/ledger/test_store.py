from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Barrier

import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ledger.errors import AccessError, ConflictError, LedgerError, SourceError
from ledger.schema import CLOSES, COSTS, MONEY, PRICES, TABLES, TIME, Column, Table
from ledger.store import Ledger, _reported
from ledger.window import Window
from tests.conftest import unprivileged

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)


def prices(day: date, *values: str) -> pl.DataFrame:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return pl.DataFrame(
        {
            "day": day,
            "resource": "gpu",
            "currency": "USD",
            "start": start,
            "end": start,
            "price_per_hour": list(values),
        },
    ).with_columns(pl.col("start", "end").cast(TIME), pl.col("price_per_hour").cast(MONEY))


def held(ledger: Ledger) -> list[tuple[date, str, str]]:
    rows = ledger.scan(PRICES).select("day", "source", pl.col("price_per_hour").cast(pl.Float64))
    return [(d, s, f"{p:g}") for d, s, p in rows.collect().sort(pl.all()).iter_rows()]


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A local folder and an object store: the same tests hold for both."""
    if request.param == "folder":
        return str(tmp_path / "ledger")
    bucket: str = request.getfixturevalue("s3")
    return f"{bucket}/books"


def test_a_ledger_that_is_not_there_is_named(place: str) -> None:
    with pytest.raises(LedgerError, match="no ledger at") as caught:
        Ledger.open(place)
    assert caught.value.exit_code == 2
    assert "runbill run" in str(caught.value)


def test_a_table_without_rows_still_has_its_columns(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    for table in TABLES.values():
        assert ledger.scan(table).collect_schema() == table.schema
        assert ledger.days(table) == []


def test_replace_touches_its_own_days_and_source_only(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    for day in (FIRST, SECOND):
        ledger.replace(PRICES, prices(day, "1", "2"), Window.of_day(day), "a/x")
    ledger.replace(PRICES, prices(FIRST, "7"), Window.of_day(FIRST), "it's b")
    ledger.replace(PRICES, prices(FIRST, "3"), Window.of_day(FIRST), "a/x")
    assert held(ledger) == [
        (FIRST, "a/x", "3"), (FIRST, "it's b", "7"), (SECOND, "a/x", "1"), (SECOND, "a/x", "2"),
    ]  # fmt: skip
    assert ledger.days(PRICES) == [FIRST, SECOND]
    assert ledger.scan(PRICES, Window.of_day(SECOND), "a/x").collect().height == 2


def test_replacing_twice_leaves_the_same_rows(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    for _ in range(2):
        ledger.replace(PRICES, prices(FIRST, "2", "1"), Window.of_day(FIRST), "a")
    assert held(ledger) == [(FIRST, "a", "1"), (FIRST, "a", "2")]


def test_an_empty_frame_empties_the_partition_and_no_other(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    for day in (FIRST, SECOND):
        ledger.replace(PRICES, prices(day, "1"), Window.of_day(day), "a")
    ledger.replace(PRICES, prices(FIRST), Window.of_day(FIRST), "a")
    assert held(ledger) == [(SECOND, "a", "1")]


def test_one_transaction_replaces_many_days(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    ledger.replace(PRICES, prices(SECOND, "9"), Window.of_day(SECOND), "a")
    both = pl.concat([prices(FIRST, "1"), prices(SECOND, "2")])
    ledger.replace(PRICES, both, Window.of_days(FIRST, SECOND), "a")
    assert held(ledger) == [(FIRST, "a", "1"), (SECOND, "a", "2")]


def test_stages_of_one_source_are_replaced_apart(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    row = pl.DataFrame({"day": [FIRST], "status": ["closed"]})
    for stage in ("collect", "attribute", "collect"):
        ledger.replace(CLOSES, row, Window.of_day(FIRST), "x", stage=stage)
    stages = ledger.scan(CLOSES).collect()["stage"]
    assert sorted(stages) == ["attribute", "collect"]


def test_money_survives_to_the_last_digit(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    text = "12345678901234567890123456.123456789012"
    ledger.replace(PRICES, prices(FIRST, text), Window.of_day(FIRST), "a")
    assert str(ledger.scan(PRICES).collect()["price_per_hour"].item()) == text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda f: f.with_columns(extra=1), "unknown columns extra"),
        (lambda f: f.drop("resource"), "columns resource are missing"),
        (lambda f: f.with_columns(currency=pl.lit(None, pl.String)), "currency must not be null"),
        (lambda f: f.with_columns(price_per_hour=pl.lit(1.5)), "price_per_hour is Float64"),
        (lambda f: f.with_columns(day=pl.lit(SECOND)), "lies outside"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_whole(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], complaint: str
) -> None:
    ledger = Ledger.open(str(tmp_path), create=True)
    ledger.replace(PRICES, prices(FIRST, "1"), Window.of_day(FIRST), "a")
    with pytest.raises(LedgerError, match=complaint):
        ledger.replace(PRICES, change(prices(FIRST, "2")), Window.of_day(FIRST), "a")
    assert held(ledger) == [(FIRST, "a", "1")]


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(LedgerError, match=r"holds other things than a ledger, e\.g\. thesis\.tex"):
        Ledger.open(str(tmp_path), create=True)


def test_a_ledger_of_an_older_version_gains_the_new_columns(place: str) -> None:
    ledger = Ledger.open(place, create=True)
    ledger.replace(PRICES, prices(FIRST, "1"), Window.of_day(FIRST), "a")
    newer = replace(PRICES, columns={**PRICES.columns, "tier": Column(pl.String(), "a new one")})
    assert ledger.scan(newer).collect()["tier"].to_list() == [None]
    rows = prices(SECOND, "2").with_columns(tier=pl.lit("x"))
    ledger.replace(newer, rows, Window.of_day(SECOND), "a")
    assert sorted(ledger.scan(newer).collect()["tier"], key=str) == [None, "x"]
    assert held(ledger) == [(FIRST, "a", "1"), (SECOND, "a", "2")]


@pytest.mark.parametrize(
    "name", ["my books", "Bücher", "a#b", "100%", "{x}", "why?", "~x", '"q"', "*", "it's"]
)
def test_a_folder_may_have_any_usual_name(tmp_path: Path, name: str) -> None:
    place = str(tmp_path / name / "books")
    ledger = Ledger.open(place, create=True)
    for values in (("1",), ("2", "3")):
        ledger.replace(PRICES, prices(FIRST, *values), Window.of_day(FIRST), "a/x y")
    ledger.replace(PRICES, prices(SECOND, "4"), Window.of_day(SECOND), "a/x y")
    ledger.replace(CLOSES, CLOSES.empty(), Window.of_day(FIRST), "a", stage="collect")
    again = Ledger.open(place)
    expected = [(FIRST, "a/x y", "2"), (FIRST, "a/x y", "3"), (SECOND, "a/x y", "4")]
    assert held(ledger) == held(again) == expected
    assert again.scan(PRICES, Window.of_day(SECOND), "a/x y").collect().height == 1
    again.replace(PRICES, prices(FIRST), Window.of_day(FIRST), "a/x y")
    newer = replace(PRICES, columns={**PRICES.columns, "tier": Column(pl.String(), "a new one")})
    assert again.scan(newer).collect()["tier"].to_list() == [None]


@pytest.mark.parametrize(
    "place", ["a=b", "a%20b", "a[b", "a|b", "a\\b", "https://books", "foo://x"]
)
def test_a_place_that_tables_cannot_take_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(place if "://" in place else str(tmp_path / place), create=True)
    assert caught.value.hint
    assert not list(tmp_path.iterdir())


def test_what_a_desktop_leaves_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").touch()
    Ledger.open(str(tmp_path), create=True)


def test_a_part_of_a_day_cannot_be_replaced(tmp_path: Path) -> None:
    window = Window(datetime(2026, 11, 1, 6, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
    with pytest.raises(LedgerError, match="whole days"):
        Ledger.open(str(tmp_path), create=True).replace(COSTS, COSTS.empty(), window)


def at_once(place: str, monkeypatch: pytest.MonkeyPatch, *frames: pl.DataFrame) -> list[bool]:
    """Let one writer per frame commit after all have read the same version; who landed?"""
    together = Barrier(len(frames))
    create = Ledger._create

    def create_together(self: Ledger, table: Table) -> DeltaTable:
        opened = create(self, table)
        together.wait(timeout=60)
        return opened

    monkeypatch.setattr(Ledger, "_create", create_together)

    def land(frame: pl.DataFrame) -> bool:
        day = frame["day"][0]
        try:
            Ledger.open(place).replace(PRICES, frame, Window.of_day(day), "a")
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(len(frames)) as pool:
        return list(pool.map(land, frames))


def test_two_writers_of_different_days_both_land(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(place, create=True)
    ledger.replace(PRICES, prices(FIRST, "0"), Window.of_day(FIRST), "a")
    ledger.replace(CLOSES, CLOSES.empty(), Window.of_day(FIRST), "a", stage="collect")
    monkeypatch.setattr(Ledger, "exists", lambda _: True)
    landed = at_once(place, monkeypatch, prices(FIRST, "1"), prices(SECOND, "2"))
    assert landed == [True, True]
    assert held(ledger) == [(FIRST, "a", "1"), (SECOND, "a", "2")]


def test_two_writers_of_one_day_leave_one_winner_whole(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(place, create=True)
    ledger.replace(PRICES, prices(FIRST, "0"), Window.of_day(FIRST), "a")
    monkeypatch.setattr(Ledger, "exists", lambda _: True)
    landed = at_once(place, monkeypatch, prices(FIRST, "1", "1"), prices(FIRST, "2", "2"))
    assert sorted(landed) == [False, True]
    winner = "1" if landed[0] else "2"
    assert held(ledger) == [(FIRST, "a", winner)] * 2


def test_a_store_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true", "max_retries": "0",
        "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1",
    }  # fmt: skip
    with pytest.raises(SourceError, match="cannot be read or written") as caught:
        Ledger.open("s3://nobody/home", options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        DeltaError("Server returned non-2xx status code\n\x1b[31m↳\x1b[0m 403 Forbidden"),
        DeltaError("Client error with status 401 for GET"),
        DeltaError("<Error><Code>SignatureDoesNotMatch</Code></Error>"),
        OSError("Generic LocalFileSystem error: Permission denied (os error 13)"),
        PermissionError(13, "Permission denied"),
        OSError("Os { code: 30, kind: ReadOnlyFilesystem } (os error 30)"),
    ],
)
def test_a_refusal_is_an_access_error(error: Exception) -> None:
    with pytest.raises(AccessError, match="refuses access") as caught, _reported("s3://b/books"):
        raise error
    assert caught.value.exit_code == 4
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "no such file: charges/day=2026-11-01/part-00403-4011.parquet",
        "Generic S3 error: status 503 in 401 ms",
        "cannot read s3://b/AccessDenied/403-books: it is damaged",
    ],
)
def test_a_number_in_a_name_is_no_refusal(text: str) -> None:
    with pytest.raises(SourceError) as caught, _reported("s3://b/AccessDenied/403-books"):
        raise DeltaError(text)
    assert not isinstance(caught.value, AccessError)


@pytest.mark.parametrize("create", [True, False])
def test_a_file_is_no_ledger(tmp_path: Path, create: bool) -> None:
    file = tmp_path / "ledger"
    file.write_text("x")
    with pytest.raises(LedgerError, match=r"is a file|File exists"):
        Ledger.open(str(file), create=create)


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_refuses_is_an_access_error(tmp_path: Path, mode: int) -> None:
    root = tmp_path / "ledger"
    ledger = Ledger.open(str(root), create=True)
    ledger.replace(CLOSES, CLOSES.empty(), Window.of_day(FIRST), "a", stage="collect")
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    try:
        for folder in reversed(folders):
            folder.chmod(mode)
        with unprivileged(root), pytest.raises(AccessError) as caught:
            Ledger.open(str(root)).replace(PRICES, prices(FIRST, "1"), Window.of_day(FIRST), "a")
        assert "\n" not in str(caught.value)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_credentials_in_the_place_of_a_ledger_are_refused_and_not_shown() -> None:
    with pytest.raises(LedgerError, match="s3://b/books holds credentials") as caught:
        Ledger.open("s3://KEY:SECRET@b/books")
    assert "SECRET" not in str(caught.value)


def test_a_lazy_frame_is_written_batch_by_batch(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store._BATCH", 7)
    ledger, window = Ledger.open(place, create=True), Window.of_day(FIRST)
    rows = prices(FIRST, *(str(number) for number in range(50)))
    rows.write_parquet(tmp_path / "rows.parquet")
    lazy = pl.scan_parquet(tmp_path / "rows.parquet")
    ledger.replace(PRICES, prices(FIRST, "99"), window, "a")
    ledger.replace(PRICES, lazy, window, "a")
    assert sorted(int(price) for _, _, price in held(ledger)) == list(range(50))
    for wrong in (
        lazy.with_columns(pl.lit(None).alias("currency")),
        lazy.drop("day"),
        lazy.with_columns(pl.lit(SECOND).alias("day")),
    ):
        with pytest.raises(LedgerError):
            ledger.replace(PRICES, wrong, window, "a")
    assert len(held(ledger)) == 50
    ledger.replace(PRICES, lazy.head(0), window, "a")
    assert held(ledger) == []
