from __future__ import annotations

from pathlib import Path

from collector.folders import walk


def test_files_at_any_depth_in_order(tmp_path: Path) -> None:
    for name in ("b.csv", "x/a.csv", "x/y/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files, barred = walk(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in files] == ["b.csv", "x/a.csv", "x/y/c.csv"]
    assert barred == []


def test_the_tables_of_a_ledger_are_no_source(tmp_path: Path) -> None:
    table = tmp_path / "ledger/charges"
    (table / "_delta_log").mkdir(parents=True)
    (table / "part.parquet").touch()
    (tmp_path / "bill.csv").touch()
    files, _ = walk(tmp_path)
    assert files == [tmp_path / "bill.csv"]
