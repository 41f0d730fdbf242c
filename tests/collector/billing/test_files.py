"""Where bills lie: files, folders and globs, here and in S3; and files that cannot be read."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from collector.billing import FocusBill, from_settings
from collector.billing.s3 import matches
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.facts import Facts
from ledger.settings import Bill
from ledger.window import Window
from tests.conftest import unprivileged

Collect = Callable[..., Facts]
Text = Callable[..., str]
DAY = Window.of_day(date(2026, 5, 2))


def bill(path: Path | str, base: Path = Path("/")) -> FocusBill:
    made = from_settings(Bill(name="aws", path=str(path)), base)
    assert isinstance(made, FocusBill)
    return made


def total(facts: Facts) -> object:
    return facts.tables["charges"]["BilledCost"].sum()


@pytest.fixture
def folder(tmp_path: Path, text: Text) -> Path:
    """Two months, packed and plain, beside a manifest and notes."""
    root = tmp_path / "focus"
    for name, cost in (("BILLING_PERIOD=2026-05/a.csv", "1"), ("BILLING_PERIOD=2026-06/b.csv", "2"),
                       ("c.csv", "4")):  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text([{"BilledCost": cost}]))
    (root / "BILLING_PERIOD=2026-06/d.csv.gz").write_bytes(
        gzip.compress(text([{"BilledCost": "8"}]).encode())
    )
    (root / "manifest.json").write_text("{}")
    (root / ".hidden.csv").write_text("x")
    return root


def test_a_folder_is_read_at_any_depth_and_says_what_it_leaves_out(folder: Path) -> None:
    facts = bill("focus", folder.parent).collect(DAY)
    assert total(facts) == 15
    [note] = [note for note in facts.notes if "no bill data" in note]
    assert note.startswith("2 files")
    assert "manifest.json" in note
    assert facts.coverage == 1


@pytest.mark.parametrize(
    ("pattern", "sum_of"),
    [("*.csv", 4), ("*/*.csv", 3), ("**/*.csv", 7), ("**/*.csv.gz", 8), ("*05/?.csv", 1),
     ("**", 15), ("[ac].csv", 4)],
)  # fmt: skip
def test_globs(folder: Path, pattern: str, sum_of: int) -> None:
    assert total(bill(folder / pattern).collect(DAY)) == sum_of


def test_a_single_file_needs_no_known_ending(tmp_path: Path, text: Text) -> None:
    (tmp_path / "export.txt").write_text(text([{}]))
    assert total(bill(tmp_path / "export.txt").collect(DAY)) == 1


@pytest.mark.parametrize("path", ["missing.csv", "*.csv", "gs://bucket/bill"])
def test_nothing_there(tmp_path: Path, path: str) -> None:
    with pytest.raises((SourceError, BadInputError), match=re.escape(path)):
        bill(path, tmp_path).collect(DAY)


def test_a_folder_without_bills(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(SourceError, match="1 files there are no data"):
        bill(tmp_path).collect(DAY)


def test_one_export_delivered_twice_counts_once(folder: Path) -> None:
    content = (folder / "c.csv").read_bytes()
    (folder / "copy.csv").write_bytes(content)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(content))
    facts = bill(folder).collect(DAY)
    assert total(facts) == 15
    assert sum("has the same content as" in note for note in facts.notes) == 2


def test_lines_that_stand_in_two_files_are_said(folder: Path, text: Text) -> None:
    (folder / "newer.csv").write_text(text([{"BilledCost": "4"}, {"BilledCost": "32"}]))
    facts = bill(folder).collect(DAY)
    assert total(facts) == 15 + 4 + 32
    assert any("alert repeated_lines: 1 lines" in note for note in facts.notes)


def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(folder: Path) -> None:
    cut = folder / "BILLING_PERIOD=2026-06/d.csv.gz"
    cut.write_bytes(cut.read_bytes()[:-10])
    (folder / "c.csv").write_text("a,b\n1,2\n")
    facts = bill(folder).collect(DAY)
    assert total(facts) == 3
    assert {(gap.reason) for gap in facts.gaps} == {"unreadable_file", "missing_column"}
    assert {entry.where: entry.count for entry in facts.quarantine} == {
        str(cut): 1,
        str(folder / "c.csv"): 1,
    }
    assert facts.coverage == 0.5


def test_if_no_file_can_be_read_nothing_is_closed(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"{name}\n")
    with pytest.raises(BadInputError, match="none of the 2 files"):
        bill(tmp_path).collect(DAY)


def test_outside_the_window(collect: Collect) -> None:
    later = {"ChargePeriodStart": "2026-05-03T00:00:00Z", "ChargePeriodEnd": "2026-05-04T00:00:00Z"}
    facts = collect([{}, later], DAY)
    assert facts.tables["charges"].height == 1
    # Nothing is said of the rest: a day closes alike, whatever window it was asked with.
    alone = collect([{}], DAY)
    assert facts == replace(
        alone, tables=facts.tables, data_through=facts.data_through, read=facts.read
    )
    assert facts.read == 2


def test_data_through_and_reach(tmp_path: Path, text: Text) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(text([
        {"ChargePeriodStart": "2026-05-02T05:00:00Z", "ChargePeriodEnd": "2026-05-02T06:00:00Z"},
        {"ChargePeriodStart": "2026-05-01T00:00:00Z", "ChargePeriodEnd": "2027-05-01T00:00:00Z",
         "ChargeCategory": "Purchase", "ChargeFrequency": "One-Time"},
        {"ChargePeriodStart": "2026-05-01T00:00:00Z", "ChargePeriodEnd": "2026-05-03T00:00:00Z",
         "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring"},
    ]))  # fmt: skip
    assert bill(path).collect(DAY).data_through == datetime(2026, 5, 2, 6, tzinfo=UTC)
    assert bill(path).reach() == Window.of_days(date(2026, 5, 1), date(2026, 5, 2))
    path.write_text(text([]))
    assert bill(path).reach() is None


def test_probe(folder: Path, tmp_path: Path) -> None:
    found, *columns = bill(folder).probe()
    assert (found.ok, found.reach) == (True, DAY)
    assert "4 lines in 4 files" in found.detail
    assert all(probe.ok for probe in columns)
    (folder / "bare.csv").write_text(
        "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd\n1,USD,2026-05-02,2026-05-03"
    )
    (folder / "broken.csv").write_text("x\n")
    found, *columns = bill(folder).probe()
    assert not found.ok
    assert "BilledCost" in found.detail
    assert [probe.need for probe in columns if not probe.ok] == [
        f"column {name}"
        for name in (
            "EffectiveCost",
            "ContractedCost",
            "ListCost",
            "ChargeCategory",
            "ServiceCategory",
            "ResourceId",
            "Tags",
        )
    ]
    assert all(probe.blind for probe in columns if not probe.ok)
    [lost] = bill(tmp_path / "none.csv").probe()
    assert not lost.ok
    assert lost.blind


def test_what_the_collector_says_of_itself() -> None:
    block = Bill(name="aws", path="s3://b/k", required=False)
    source = from_settings(block, Path("/etc"))
    assert (source.name, source.required, source.snapshot) == ("aws", False, False)
    assert source.path == "s3://b/k"
    assert set(source.permissions.iam) == {"s3:GetObject", "s3:ListBucket"}


@pytest.mark.parametrize(
    ("key", "pattern", "fits"),
    [
        ("focus/a.csv", "focus/*.csv", True),
        ("focus/x/a.csv", "focus/*.csv", False),
        ("focus/x/y/a.csv", "focus/**/*.csv", True),
        ("focus/a.csv", "focus/**/*.csv", True),
        ("focus/a.csv", "focus/**", True),
        ("focus/a.csv.gz", "focus/*.csv", False),
    ],
)
def test_globs_of_keys(key: str, pattern: str, fits: bool) -> None:
    assert matches(key, pattern) is fits


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A moto server as a process of its own, on a free port."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = next(filter(None, (re.search(r"http://\S+:\d+", line) for line in server.stderr)))
            # Nobody reads its log, and a full pipe would stop it.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            yield url[0]
        finally:
            server.terminate()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:  # noqa: ANN401
    """An S3 client of the server; its bucket ``bills`` holds the folder below ``focus/``."""
    import boto3

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="bills")
    for path in folder.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "bills", f"focus/{path.relative_to(folder)}")
    client.put_object(Bucket="bills", Key="focus-other/e.csv", Body=b"no bill")
    return client


@pytest.mark.parametrize(
    ("url", "sum_of"),
    [
        ("s3://bills/focus/", 15),
        ("s3://bills/focus", 15),
        ("s3://bills/focus/c.csv", 4),
        ("s3://bills/focus/*/*.csv", 3),
        ("s3://bills/focus/**/*.csv.gz", 8),
    ],
)
def test_bills_in_a_bucket(bucket: object, url: str, sum_of: int) -> None:
    assert total(bill(url).collect(DAY)) == sum_of


def test_a_bucket_and_a_folder_give_the_same_lines(bucket: object, folder: Path) -> None:
    there, here = bill("s3://bills/focus/").collect(DAY), bill(folder).collect(DAY)
    assert there.tables["charges"].equals(here.tables["charges"])


@pytest.mark.parametrize("url", ["s3://bills/nothing/", "s3://no-such-bucket/focus/"])
def test_nothing_in_the_bucket(bucket: object, url: str) -> None:
    with pytest.raises(SourceError, match=url):
        bill(url).collect(DAY)


def test_a_store_without_credentials(bucket: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    with pytest.raises(AccessError, match="s3://bills/focus/"):
        bill("s3://bills/focus/").collect(DAY)


def test_a_store_that_does_not_answer(bucket: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(SourceError, match="cannot read s3://bills/focus/"):
        bill("s3://bills/focus/").collect(DAY)


def test_credentials_in_a_path_are_refused_and_not_shown() -> None:
    made = bill("s3://AKIAKEY:se/cret@bucket/focus")
    with pytest.raises(BadInputError, match="s3://bucket/focus holds credentials") as caught:
        made.collect(DAY)
    shown = f"{caught.value} {made.probe()}"
    assert "cret" not in shown.replace("credentials", "")
    assert "AKIAKEY" not in shown


def test_an_archive_without_end_is_refused(
    tmp_path: Path, text: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = text([{"BilledCost": "8"}]).encode()
    monkeypatch.setattr("collector.billing.files.LARGEST", len(content))
    (tmp_path / "fits.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "large.csv.gz").write_bytes(gzip.compress(content + b"\n"))
    facts = bill(tmp_path).collect(DAY)
    assert total(facts) == 8
    (gap,) = facts.gaps
    assert "large.csv.gz unpacks to more than" in gap.detail


@pytest.mark.parametrize("pattern", ["*.csv", "*.CSV", "**/*.csv"])
def test_a_folder_that_is_named_as_a_file_is_read(tmp_path: Path, text: Text, pattern: str) -> None:
    folder = tmp_path / f"bill{pattern[-4:]}"
    folder.mkdir()
    (folder / "part-0.csv").write_text(text([{"BilledCost": "8"}]))
    (folder / "_SUCCESS").touch()
    assert total(bill(tmp_path / pattern).collect(DAY)) == 8
    assert total(bill(folder).collect(DAY)) == 8


@pytest.mark.parametrize(
    "name", ["a bill.csv", "Rechnung für Mai (1).csv", "账单.csv", "a%20#?.csv"]
)
def test_names_may_hold_anything(tmp_path: Path, text: Text, name: str) -> None:
    (tmp_path / name).write_text(text([{"BilledCost": "8"}]))
    assert total(bill(tmp_path / name).collect(DAY)) == 8
    assert total(bill(tmp_path).collect(DAY)) == 8


def test_a_name_that_is_no_text_is_one_clear_line(tmp_path: Path, text: Text) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.csv", "w") as stream:
        stream.write(text([{"BilledCost": "8"}]))
    (tmp_path / "good.csv").write_text(text([{"BilledCost": "4"}]))
    facts = bill(tmp_path).collect(DAY)
    shown = f"{facts.gaps} {facts.notes} {facts.quarantine}"
    shown.encode()
    assert total(facts) == 4
    (gap,) = facts.gaps
    assert "\ufffd.csv cannot be found" in gap.detail


def test_a_folder_that_may_not_be_looked_into_is_a_gap(tmp_path: Path, text: Text) -> None:
    (tmp_path / "good.csv").write_text(text([{"BilledCost": "4"}]))
    (tmp_path / "closed").mkdir(mode=0o000)
    with unprivileged(tmp_path / "closed"):
        facts = bill(tmp_path).collect(DAY)
    assert total(facts) == 4
    (gap,) = facts.gaps
    assert (gap.reason, "closed" in gap.detail) == ("access_denied", True)
