"""Reports of S3 Inventory."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import polars as pl
import pytest

from collector.storage import Inventory, from_settings
from ledger.errors import SourceError
from ledger.settings import Settings
from ledger.window import Window

SCHEMA = ("Bucket", "Key", "Size", "LastModifiedDate", "StorageClass")
PARQUET = (
    "message s3.inventory { required binary bucket (UTF8); required binary key (UTF8); "
    "optional int64 size; optional int64 last_modified_date (TIMESTAMP(MILLIS,true)); "
    "optional binary storage_class (UTF8); }"
)
DAY = date(2026, 11, 30)
Rows = list[tuple[Any, ...]]
ROWS: Rows = [
    ("grpo-7b/step 1/a.bin", 10, "2026-11-29T12:00:00.000Z", "STANDARD"),
    ("grpo-7b/step 2/b.bin", 200_000, "2026-08-01T00:00:00.000Z", "STANDARD_IA"),
    ("sft/c.bin", 5, "2026-11-29T12:00:00.000Z", "STANDARD"),
    ("top.txt", 1, "2026-11-29T12:00:00.000Z", None),
]


def report(
    root: Path, rows: Rows, *, day: date = DAY, bucket: str = "rollouts", form: str = "CSV",
    schema: tuple[str, ...] = SCHEMA,
) -> Path:  # fmt: skip
    """Write a report as S3 does: data first, the manifest last."""
    folder = root / "inv" / bucket / "daily"
    name = f"{day}.{'csv.gz' if form == 'CSV' else form.lower()}"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    data = folder / "data" / name
    if form == "CSV":
        lines = (
            ",".join(f'"{"" if v is None else v}"' for v in (bucket, quote_plus(key, "/"), *rest))
            for key, *rest in rows
        )
        data.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    elif form == "Parquet":
        names = ["key", "size", "last_modified_date", "storage_class"]
        frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
            pl.col("last_modified_date").str.to_datetime("%+", time_unit="ms", time_zone="UTC"),
            pl.lit(bucket).alias("bucket"),
        )
        frame.write_parquet(data)
    else:
        data.write_bytes(b"ORC")
    manifest = folder / f"{day}T01-00Z" / "manifest.json"
    manifest.parent.mkdir(exist_ok=True)
    created = datetime(day.year, day.month, day.day, 1, tzinfo=UTC)
    manifest.write_text(
        json.dumps(
            {
                "sourceBucket": bucket,
                "destinationBucket": "arn:aws:s3:::inventory",
                "version": "2016-11-30",
                "creationTimestamp": str(int(created.timestamp() * 1000)),
                "fileFormat": form,
                "fileSchema": ", ".join(schema) if form == "CSV" else PARQUET,
                "files": [{"key": f"inv/{bucket}/daily/data/{name}", "size": 1}],
            }
        )
    )
    return data


def inventory(path: Path | str, *, rules: tuple[str, ...] = (), **block: object) -> Inventory:
    data = {"kind": "s3-inventory", "path": str(path)} | block
    identity = {"experiment": list(rules) or ["label:experiment"]}
    settings = Settings.model_validate({"storage": [data], "identity": identity})
    found = from_settings(settings.storage[0], settings, Path("/"))
    assert isinstance(found, Inventory)
    return found


def sizes(rows: pl.DataFrame) -> dict[Any, int]:
    return dict(rows.group_by("prefix").agg(pl.col("bytes").sum()).iter_rows())


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
def test_a_report_is_rolled_up(tmp_path: Path, form: str) -> None:
    report(tmp_path, ROWS, form=form)
    facts = inventory(tmp_path).collect(Window.of_day(DAY))
    rows = facts.tables["objects"]
    told = rows.select("prefix", "storage_class", "age_band", "size_band", "count", "bytes").rows()
    assert sorted(told, key=str) == sorted(
        [
            ("s3://rollouts/grpo-7b/", "STANDARD", "0", "1", 1, 10),
            ("s3://rollouts/grpo-7b/", "STANDARD_IA", "90", "131072", 1, 200_000),
            ("s3://rollouts/sft/", "STANDARD", "0", "1", 1, 5),
            ("s3://rollouts/", None, "0", "1", 1, 1),
        ],
        key=str,
    )
    assert rows["resource"].unique().to_list() == ["rollouts"]
    assert rows["oldest"].min() == datetime(2026, 8, 1, tzinfo=UTC)
    assert (facts.gaps, facts.quarantine, facts.read) == ((), (), 4)
    assert facts.data_through == datetime(2026, 11, 30, 1, tzinfo=UTC)


def test_as_deep_as_the_path_rules_need(tmp_path: Path) -> None:
    report(tmp_path, [*ROWS, ("grpo-7b/x/y/z", 7, None, "STANDARD")])
    rules = ("path:s3://rollouts/*/{experiment}/", "path:s3://other/{experiment}/a/b/c/d/e")
    rows = inventory(tmp_path, rules=rules).collect(Window.of_day(DAY)).tables["objects"]
    assert sizes(rows) == {
        "s3://rollouts/grpo-7b/step 1/": 10,
        "s3://rollouts/grpo-7b/step 2/": 200_000,
        "s3://rollouts/grpo-7b/x/": 7,
        "s3://rollouts/sft/": 5,
        "s3://rollouts/": 1,
    }


def test_keys_are_decoded(tmp_path: Path) -> None:
    report(tmp_path, [("a+b/ü&%/x", 1, None, "STANDARD")])
    rows = inventory(tmp_path, depth=2).collect(Window.of_day(DAY)).tables["objects"]
    assert sizes(rows) == {"s3://rollouts/a+b/ü&%/": 1}


def test_the_newest_of_seven_days_applies(tmp_path: Path) -> None:
    report(tmp_path, ROWS[:1], day=date(2026, 11, 20))
    report(tmp_path, ROWS[2:3], day=date(2026, 11, 27))
    report(tmp_path, ROWS[3:], day=date(2026, 12, 1))
    found = inventory(tmp_path)
    facts = found.collect(Window.of_days(date(2026, 11, 19), date(2026, 11, 30)))
    by_day = facts.tables["objects"].group_by("day").agg("prefix").sort("day")
    grpo, sft = ["s3://rollouts/grpo-7b/"], ["s3://rollouts/sft/"]
    assert by_day.rows() == [
        *((date(2026, 11, day), grpo) for day in range(20, 27)),
        *((date(2026, 11, day), sft) for day in range(27, 31)),
    ]
    assert [gap.reason for gap in facts.gaps] == ["no_inventory"]
    reach = found.reach()
    assert reach is not None
    assert reach.start.date() == date(2026, 11, 20)


def test_several_buckets_or_one(tmp_path: Path) -> None:
    report(tmp_path, ROWS[:1])
    report(tmp_path, ROWS[:2], bucket="other")
    window = Window.of_day(DAY)
    both = inventory(tmp_path).collect(window).tables["objects"]
    assert both["resource"].unique().sort().to_list() == ["other", "rollouts"]
    one = inventory(tmp_path, bucket="other").collect(window).tables["objects"]
    assert one["resource"].unique().to_list() == ["other"]


def test_versions_count_and_delete_markers_do_not(tmp_path: Path) -> None:
    schema = (*SCHEMA, "IsLatest", "IsDeleteMarker")
    rows: Rows = [
        ("a/x", 3, "2026-11-29T12:00:00.000Z", "STANDARD", "true", "false"),
        ("a/x", 4, "2026-11-28T12:00:00.000Z", "STANDARD", "false", "false"),
        ("a/y", None, "2026-11-29T12:00:00.000Z", None, "true", "true"),
    ]
    report(tmp_path, rows, schema=schema)
    facts = inventory(tmp_path).collect(Window.of_day(DAY))
    assert (facts.tables["objects"]["count"].sum(), sizes(facts.tables["objects"])) == (
        2,
        {"s3://rollouts/a/": 7},
    )


def test_what_a_report_does_not_tell_is_unknown(tmp_path: Path) -> None:
    report(tmp_path, [("a/x",)], schema=("Bucket", "Key"))
    row = inventory(tmp_path).collect(Window.of_day(DAY)).tables["objects"].row(0, named=True)
    assert (row["count"], row["bytes"], row["size_band"], row["age_band"]) == (1, None, None, None)


def test_bad_cells_are_counted(tmp_path: Path) -> None:
    report(tmp_path, [*ROWS, ("sft/d", "ten", "yesterday", "STANDARD")])
    facts = inventory(tmp_path).collect(Window.of_day(DAY))
    aside = {each.reason: each.count for each in facts.quarantine}
    assert aside == {"bad_number": 1, "bad_date": 1}
    assert sizes(facts.tables["objects"])["s3://rollouts/sft/"] == 5


def test_what_cannot_be_read_is_a_gap_and_leaves_earlier_rows(tmp_path: Path) -> None:
    window = Window.of_day(DAY)
    report(tmp_path, ROWS, form="ORC")
    facts = inventory(tmp_path).collect(window)
    assert dict(facts.tables) == {}
    assert [gap.reason for gap in facts.gaps] == ["unreadable_file"]
    assert "ORC" in facts.gaps[0].detail
    report(tmp_path, ROWS).unlink()
    lost = inventory(tmp_path).collect(window)
    assert (dict(lost.tables), [gap.reason for gap in lost.gaps]) == ({}, ["incomplete_export"])
    data = report(tmp_path, ROWS)
    data.write_bytes(data.read_bytes()[:-9])
    cut = inventory(tmp_path).collect(window)
    assert (dict(cut.tables), [gap.reason for gap in cut.gaps]) == ({}, ["unreadable_file"])


def test_probes(tmp_path: Path) -> None:
    (probe,) = inventory(tmp_path).probe()
    assert not probe.ok
    report(tmp_path, ROWS)
    (probe,) = inventory(tmp_path).probe()
    assert (probe.ok, "2026-11-30" in probe.detail) == (True, True)
    with pytest.raises(SourceError):
        inventory(tmp_path / "gone").collect(Window.of_day(DAY))
    assert inventory("s3://inventory/x").permissions.iam == ("s3:ListBucket", "s3:GetObject")


def test_from_a_bucket(tmp_path: Path, s3: str) -> None:
    import boto3

    report(tmp_path, ROWS)
    client, bucket = boto3.client("s3"), s3.removeprefix("s3://")
    for file in tmp_path.rglob("*.*"):
        client.upload_file(str(file), bucket, str(file.relative_to(tmp_path)))
    facts = inventory(f"{s3}/inv/").collect(Window.of_day(DAY))
    assert sizes(facts.tables["objects"]) == {
        "s3://rollouts/grpo-7b/": 200_010,
        "s3://rollouts/sft/": 5,
        "s3://rollouts/": 1,
    }
