"""Walking a file system."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from collector.storage import FileSystem, from_settings
from ledger.errors import AccessError, SourceError
from ledger.schema import OBJECTS
from ledger.settings import Settings
from ledger.window import Window
from tests.conftest import unprivileged

NOW = datetime(2026, 12, 1, 1, tzinfo=UTC)
DAY = Window.of_day(NOW.date() - timedelta(days=1))


def write(path: Path, size: int, days_old: float = 0.5) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = (DAY.end - timedelta(days=days_old)).timestamp()
    os.utime(path, (then, then))
    return path


def store(root: Path, *, patterns: tuple[str, ...] = (), **block: object) -> FileSystem:
    data = {"kind": "filesystem", "name": "fsx", "path": str(root)} | block
    rules = [f"path:{pattern}" for pattern in patterns] or ["label:experiment"]
    settings = Settings.model_validate({"storage": [data], "identity": {"experiment": rules}})
    found = from_settings(settings.storage[0], settings, Path("/"))
    assert isinstance(found, FileSystem)
    return FileSystem(found.store, found.path, found.patterns, lambda: NOW)


def sizes(rows: pl.DataFrame, root: Path) -> dict[str, tuple[int, int]]:
    sums = rows.group_by("prefix").agg(pl.col("bytes").sum(), pl.col("count").sum())
    return {row[0].removeprefix(f"{root}/"): row[1:] for row in sums.iter_rows()}


def test_first_level_by_default(tmp_path: Path) -> None:
    write(tmp_path / "runs/a/step/x.bin", 10)
    write(tmp_path / "runs/b/y.bin", 5)
    write(tmp_path / "home/lin/z", 1)
    write(tmp_path / "top", 2)
    facts = store(tmp_path, resource="fs-0a").collect(DAY)
    rows = facts.tables["objects"]
    assert sizes(rows, tmp_path) == {"runs/": (15, 2), "home/": (1, 1), "": (2, 1)}
    assert rows["resource"].unique().to_list() == ["fs-0a"]
    assert rows.schema == {k: v for k, v in OBJECTS.schema.items() if k != "source"}
    assert rows["day"].unique().to_list() == [DAY.start.date()]
    assert (facts.window, facts.gaps) == (DAY, ())


def test_as_deep_as_the_path_rules_need(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / "runs" / run / "deep/er/x.bin", 10)
    write(tmp_path / "home/lin/z", 1)
    found = store(tmp_path, patterns=(f"{tmp_path}/runs/{{experiment}}/", "s3://b/{experiment}"))
    rows = found.collect(DAY).tables["objects"]
    assert sizes(rows, tmp_path) == {"runs/a/": (10, 1), "runs/b/": (10, 1), "home/": (1, 1)}


@pytest.mark.parametrize(("depth", "prefix"), [(0, ""), (1, "a/"), (2, "a/b/"), (9, "a/b/c/")])
def test_depth(tmp_path: Path, depth: int, prefix: str) -> None:
    write(tmp_path / "a/b/c/x", 1)
    rows = store(tmp_path, depth=depth).collect(DAY).tables["objects"]
    assert sizes(rows, tmp_path) == {prefix: (1, 1)}


def test_ages_and_sizes_in_bands(tmp_path: Path) -> None:
    write(tmp_path / "a", 0, 0.5)
    write(tmp_path / "b", 4096, 31)
    write(tmp_path / "c", 5000, 45)
    write(tmp_path / "d", 200_000, 400)
    write(tmp_path / "e", 1, -3)
    rows = store(tmp_path).collect(DAY).tables["objects"].sort("size_band", "age_band")
    assert rows.select("age_band", "size_band", "count", "bytes").rows() == [
        ("0", "0", 1, 0),
        ("0", "1", 1, 1),
        ("365", "131072", 1, 200_000),
        ("30", "4096", 2, 9096),
    ]
    old = rows.filter(age_band="30").row(0, named=True)
    assert (DAY.end - old["oldest"], DAY.end - old["newest"]) == (
        timedelta(days=45),
        timedelta(days=31),
    )


def test_links_and_further_names_count_once(tmp_path: Path) -> None:
    write(tmp_path / "a/x", 10)
    (tmp_path / "b").mkdir()
    os.link(tmp_path / "a/x", tmp_path / "b/again")
    (tmp_path / "b/link").symlink_to(tmp_path / "a/x")
    (tmp_path / "b/round").symlink_to(tmp_path)
    rows = store(tmp_path).collect(DAY).tables["objects"]
    assert (rows["count"].sum(), rows["bytes"].sum()) == (1, 10)


def test_folders_that_may_not_be_read_are_a_gap(tmp_path: Path) -> None:
    write(tmp_path / "a/x", 10)
    write(tmp_path / "b/secret/y", 5).parent.chmod(0)
    try:
        with unprivileged(tmp_path / "a"):
            facts = store(tmp_path).collect(DAY)
    finally:
        (tmp_path / "b/secret").chmod(0o755)
    assert sizes(facts.tables["objects"], tmp_path) == {"a/": (10, 1)}
    (gap,) = facts.gaps
    assert gap.reason == "access_denied"
    assert "b/secret" in gap.detail


def test_a_root_that_is_away_or_shut_fails(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        store(tmp_path / "gone").collect(DAY)
    assert not store(tmp_path / "gone").probe()[0].ok
    shut = tmp_path / "shut"
    shut.mkdir()
    shut.chmod(0)
    with unprivileged(shut), pytest.raises(AccessError):
        store(shut).collect(DAY)
    shut.chmod(0o755)
    assert store(shut).probe()[0].ok


def test_a_file_system_does_not_know_the_past(tmp_path: Path) -> None:
    write(tmp_path / "x", 1)
    old = Window.of_days(DAY.start.date() - timedelta(days=9), DAY.start.date() - timedelta(days=8))
    facts = store(tmp_path).collect(old)
    assert dict(facts.tables) == {}
    assert [gap.reason for gap in facts.gaps] == ["not_kept"]
    later = store(tmp_path).collect(Window(old.start, DAY.end))
    assert (later.window, later.rows) == (DAY, 1)
    assert next(iter(store(tmp_path).reach().days())) == DAY.start.date()


def test_names_that_are_no_utf_8_are_shown(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(folder)
    try:
        with open(os.path.join(folder, b"x"), "wb") as file:
            file.write(b"12")
        rows = store(tmp_path).collect(DAY).tables["objects"]
        assert sizes(rows, tmp_path) == {"caf\ufffd/": (2, 1)}
    finally:
        shutil.rmtree(folder)


def test_an_empty_file_system_has_no_rows_and_no_gap(tmp_path: Path) -> None:
    facts = store(tmp_path).collect(DAY)
    assert (facts.tables["objects"].height, facts.gaps) == (0, ())
