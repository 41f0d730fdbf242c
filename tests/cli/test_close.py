"""Closing real and simulated days through the command line, end to end."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

import cli
from cli.main import main

SCHEMAS = Path(cli.__path__[0]).parent / "docs/schemas"
SEPTEMBER = "2024-09-01..2024-10-01"
Invoke = Callable[..., Result]


def document(result: Result) -> dict[str, Any]:
    """The one JSON document on stdout, checked against its schema."""
    data: dict[str, Any] = json.loads(result.stdout)
    schema = json.loads((SCHEMAS / f"{data['kind']}.json").read_text())
    Draft202012Validator(schema).validate(data)
    return data


def settings(folder: Path, **blocks: object) -> None:
    (folder / "runbill.yaml").write_text(json.dumps(blocks))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed demo of two days."""
    folder = tmp_path_factory.mktemp("world")
    done = CliRunner().invoke(
        main, ["demo", str(folder), "--days", "2", "--end", "2026-11-30", "-o", "json"]
    )
    (folder.parent / "demo.json").write_text(done.stdout)
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def copied(world: Path, tmp_path: Path) -> Path:
    """A copy of the closed demo, to break."""
    folder = tmp_path / "copy"
    shutil.copytree(world, folder)
    return folder


@pytest.fixture(scope="session")
def sample(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed month of the FOCUS sample, as the only source; the folder of its settings."""
    folder = tmp_path_factory.mktemp("sample")
    bill = shared / "data/billing/focus10_sample.csv"
    settings(folder, billing=[{"name": "sample", "path": str(bill)}])
    done = CliRunner().invoke(
        main, ["--config", str(folder / "runbill.yaml"), "run", "--window", SEPTEMBER]
    )
    assert done.exit_code == 0, done.stderr
    assert "clusters" in done.stdout  # it says what is blind
    return folder


def test_a_bill_alone_closes_to_the_last_digit(sample: Path, invoke: Invoke) -> None:
    config = sample / "runbill.yaml"
    found = document(
        invoke(
            "--config",
            config,
            "query",
            "--by",
            "provider",
            "--cost",
            "billed",
            "--window",
            SEPTEMBER,
            "-o",
            "json",
        )
    )
    assert Decimal(found["total"]) == Decimal(found["billed"]) == Decimal("20.52022672899")
    assert {row["provider"]: Decimal(row["cost"]) for row in found["rows"]} == {
        "AWS": Decimal("18.00663861840"),
        "Microsoft": Decimal("1.97651418586"),
        "Oracle": Decimal("0.53707392473"),
    }
    assert found["window"] == {"start": "2024-09-01T00:00:00Z", "end": "2024-10-01T00:00:00Z"}


def test_filters_hide_and_never_change(sample: Path, invoke: Invoke) -> None:
    config = sample / "runbill.yaml"
    found = document(
        invoke(
            "--config",
            config,
            "query",
            "--by",
            "provider",
            "--cost",
            "billed",
            "--filter",
            "provider=A*",
            "-o",
            "json",
        )
    )
    assert [row["provider"] for row in found["rows"]] == ["AWS"]
    assert Decimal(found["total"]) == Decimal("18.00663861840")
    assert Decimal(found["total"]) + Decimal(found["hidden"]) == Decimal("20.52022672899")


def test_the_query_in_csv_names_units_and_window(sample: Path, invoke: Invoke) -> None:
    done = invoke("--config", sample / "runbill.yaml", "query", "--by", "provider", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {"provider", "cost_usd", "gpu_hours", "window_start", "coverage"} <= rows[0].keys()
    assert {row["window_end"] for row in rows} == {"2024-10-01T00:00:00Z"}


def test_the_demo_equals_its_truth(world: Path) -> None:
    data = json.loads((world.parent / "demo.json").read_text())
    Draft202012Validator(json.loads((SCHEMAS / "report.json").read_text())).validate(data)
    assert data["truth"]["agrees"] is True
    assert data["run"]["exit_code"] == 0
    assert Decimal(data["total"]) == sum(Decimal(row["cost"]) for row in data["experiments"])
    for row in data["truth"]["rows"]:
        exact = not Decimal(row["stated_error"])
        assert not exact or row["cost"] == row["truth"]
    assert (world / "report.html").read_text().startswith("<!doctype html>")
    assert (world / "ledger/costs/_delta_log").is_dir()


def test_query_by_experiment_equals_truth_json(world: Path, invoke: Invoke) -> None:
    found = document(invoke("--config", world / "runbill.yaml", "query", "-o", "json"))
    truth = json.loads((world / "truth.json").read_text())
    costs = {row["experiment"]: Decimal(row["cost"]) for row in found["rows"]}
    assert costs.keys() >= {target["experiment"] for target in truth["targets"]}
    for target in truth["targets"]:
        difference = costs[target["experiment"]] - Decimal(target["cost"])
        assert abs(difference) <= Decimal(target["stated_error"]), target
    assert found["window"] == truth["window"]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (["report"], "report"),
        (["checklist"], "checklist"),
        (["checklist", "-v"], "checklist"),
        (["attribute", "--day", "2026-11-30"], "attribute"),
        (["ledger", "history"], "ledger-history"),
        (["ledger", "coverage", "--window", "2026-11-30"], "ledger-coverage"),
        (["ledger", "coverage", "--nodes", "--window", "2026-11-30"], "ledger-coverage"),
        (["collect", "--day", "2026-11-30"], "collect"),
        (["doctor"], "doctor"),
        (["doctor", "--identity", "--window", "2026-11-29..2026-12-01"], "identity"),
        (["config", "show", "--origin"], "config"),
        (["config", "validate"], "config-validity"),
        (["rules", "list"], "rules"),
        (["rules", "explain", "rb102"], "rule"),
        (["ledger", "schema"], "ledger-schema"),
        (["ledger", "schema", "costs"], "ledger-schema"),
        (["query", "--by", "owner,phase", "--share-idle"], "query"),
        (["query", "--by", "owner", "--compare", "previous", "--window", "2026-11-30"], "query"),
        (["query", "--share", "phase=reward:even", "--overhead", "1.5", "--top", "2"], "query"),
    ],
)
def test_every_document_fits_its_schema(
    copied: Path, invoke: Invoke, args: list[str], kind: str
) -> None:
    done = invoke("--config", copied / "runbill.yaml", *args, "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert document(done)["kind"] == kind


def test_a_second_run_leaves_the_same_rows(copied: Path, invoke: Invoke) -> None:
    def rows() -> dict[str, pl.DataFrame]:
        ledger = copied / "ledger"
        return {
            path.name: pl.read_delta(str(path))
            .drop("version", strict=False)
            .pipe(lambda frame: frame.sort(frame.columns))
            for path in sorted(ledger.iterdir())
            if path.is_dir()
        }

    before = rows()
    config = copied / "runbill.yaml"
    halves = ("2026-11-30T00:00Z..2026-11-30T12:00Z", "2026-11-30T12:00Z..2026-12-01")
    for window in ("2026-11-29..2026-12-01", "2026-11-29", "2026-11-30", *halves):
        done = invoke("--config", config, "run", "--window", window)
        assert done.exit_code == 0, done.stderr
    after = rows()
    assert before.keys() == after.keys()
    for name in before:
        assert before[name].equals(after[name]), name


def test_identity_says_which_rule_hit(world: Path, invoke: Invoke) -> None:
    found = document(
        invoke(
            "--config",
            world / "runbill.yaml",
            "doctor",
            "--identity",
            "--window",
            "2026-11-29..2026-12-01",
            "-o",
            "json",
        )
    )
    rules = {hit["rule"] for hit in found["hits"] if hit["key"] == "experiment"}
    assert {"(none hit)", "workload"} & rules
    for key in ("experiment", "owner"):
        shares = [hit["share"] for hit in found["hits"] if hit["key"] == key and hit["share"]]
        assert sum(shares) == pytest.approx(1)


def test_the_report_of_one_day(world: Path, invoke: Invoke) -> None:
    done = invoke("--config", world / "runbill.yaml", "report", "--day", "2026-11-29")
    assert done.exit_code == 0
    assert "2026-11-29T00:00:00Z..2026-11-30T00:00:00Z" in done.stdout
    assert "Coverage" in done.stdout


def test_the_demo_refuses_a_folder_of_others(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("x")
    done = invoke("demo", tmp_path / "mine")
    assert (done.exit_code, done.stdout) == (2, "")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_the_demo_runs_again_over_itself(copied: Path, invoke: Invoke) -> None:
    done = invoke("demo", copied, "--days", "1", "--end", "2026-11-30", "--seed", "2", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert document(done)["truth"]["agrees"] is True
    window = document(invoke("--config", copied / "runbill.yaml", "query", "-o", "json"))["window"]
    assert window["start"] == "2026-11-30T00:00:00Z"


def test_simulate_writes_inputs_only(tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("simulate", "w", "--days", "1", "--end", "2026-11-30", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert "truth.json" in document(done)["files"]
    assert not (tmp_path / "w/ledger").exists()
    settings_done = invoke("--config", "w/runbill.yaml", "config", "validate", "-o", "json")
    assert document(settings_done)["billing"] == 1


@pytest.mark.parametrize(
    ("flag", "value", "named"),
    [("--days", "0", "days"), ("--timezone", "Mars", "Mars"), ("--end", "9999-12-31", "9999")],
)
def test_what_no_world_can_have_is_a_usage_error(
    invoke: Invoke, flag: str, value: str, named: str
) -> None:
    done = invoke("simulate", "w", flag, value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert named in done.stderr


def test_fail_on_only_counts_findings_at_or_above(world: Path, invoke: Invoke) -> None:
    config = world / "runbill.yaml"
    found = document(invoke("--config", config, "checklist", "-o", "json"))
    assert found["findings"] == []  # two days are too few for the night rule
    assert invoke("--config", config, "checklist", "--fail-on", "low").exit_code == 0


def test_the_demo_never_touches_the_books_of_the_environment(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNBILL_LEDGER", str(tmp_path / "real-books"))
    done = invoke("demo", "d", "--days", "1", "--end", "2026-11-30", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "d/ledger/costs").is_dir()
    assert not (tmp_path / "real-books").exists()


def test_a_default_run_fills_in_and_reports_what_changed(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run reads what is held; a later one reads a late bill and says what changed."""
    monkeypatch.setattr("cli.stages.pipeline.now", lambda: datetime(2026, 11, 4, 6, tzinfo=UTC))
    assert invoke("simulate", "w", "--days", "2", "--end", "2026-11-03").exit_code == 0
    first = invoke("--config", "w/runbill.yaml", "run", "-o", "json")
    assert first.exit_code == 0, first.stderr
    assert {"2026-11-02", "2026-11-03"} <= set(document(first)["run"]["attributed"])
    costs = document(invoke("--config", "w/runbill.yaml", "query", "-o", "json"))
    again = document(invoke("--config", "w/runbill.yaml", "run", "-o", "json"))
    assert (again["run"]["attributed"], again["restatements"]) == ([], [])

    late = tmp_path / "w/bill/focus.csv.gz"
    with gzip.open(late, "rt", newline="") as file:
        lines = list(csv.DictReader(file))
    line = next(line for line in lines if line["ChargePeriodStart"].startswith("2026-11-02"))
    line["EffectiveCost"] = str(Decimal(line["EffectiveCost"]) + 7)
    with gzip.open(late, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    third = document(invoke("--config", "w/runbill.yaml", "run", "-o", "json"))
    assert third["run"]["attributed"] == ["2026-11-02"]
    changes = third["restatements"]
    assert {row["day"] for row in changes} == {"2026-11-02"}
    assert {row["why"] for row in changes} == {"bill"}
    assert sum(Decimal(row["new"]) - Decimal(row["old"]) for row in changes) == 7
    after = document(invoke("--config", "w/runbill.yaml", "query", "-o", "json"))
    assert Decimal(after["total"]) - Decimal(costs["total"]) == 7


def test_a_file_that_cannot_be_written_is_a_usage_error(
    tmp_path: Path, world: Path, invoke: Invoke
) -> None:
    (tmp_path / "file").write_text("in the way")
    done = invoke("--config", world / "runbill.yaml", "report", "--out-file", "file/report.html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot write" in done.stderr


def test_amounts_of_any_size_add_up(tmp_path: Path, invoke: Invoke) -> None:
    header = (
        "BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd"
    )
    amounts = ("99999999999999999999.000000000001", "0.000000000001", "-1e19")
    lines = [
        f"{cost},{cost},KRW,Usage,2026-11-30T00:00:00Z,2026-11-30T01:00:00Z" for cost in amounts
    ]
    (tmp_path / "bill.csv").write_text("\n".join([header, *lines]))
    (tmp_path / "runbill.yaml").write_text("ledger: ./b\nbilling: [{name: a, path: bill.csv}]\n")
    for output in ("table", "json", "csv", "markdown", "html"):
        done = invoke("run", "--day", "2026-11-30", "-o", output)
        assert done.exit_code == 0, done.stderr
    found = document(invoke("query", "-o", "json"))
    assert found["total"] == found["billed"] == "89999999999999999999.000000000002"
