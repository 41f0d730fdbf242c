"""A simulated cluster closed through real servers and through the export: one ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest
import yaml
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from cli.main import main
from collector.simulate import WorldOptions, simulate, write_world
from ledger.schema import CLOSES, TABLES, Table
from ledger.store import Ledger
from tests.effort import SOAK
from tests.real_servers import SERVERS as ALL_SERVERS

WORLD = WorldOptions(days=2, end=date(2026, 11, 30), nodes=3, gpus_per_node=4, interval=60)
WINDOW = "2026-11-29..2026-12-01"
# The collector's own tests run on every server each time; a whole ledger of each is for the soak.
SERVERS = ALL_SERVERS if SOAK else {"prometheus": ALL_SERVERS["prometheus"]}
PATHS = (*SERVERS, "export")


@dataclass(frozen=True)
class Closed:
    """A simulated world and the settings of each way to close it."""

    folder: Path

    def config(self, path: str) -> Path:
        return self.folder / f"{path}.yaml"

    def ledger(self, path: str) -> Ledger:
        return Ledger.open(str(self.folder / f"ledger-{path}"))

    def truth(self) -> dict[str, object]:
        data: dict[str, object] = json.loads((self.folder / "truth.json").read_text())
        return data


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    """The ledger of each way, closed by ``runbill run``."""
    folder = tmp_path_factory.mktemp("two-paths")
    world = Closed(folder / "world")
    files = write_world(simulate(WORLD), world.folder, openmetrics=True)
    series = [path for path in files if path.suffix == ".om"]
    assert len(series) == WORLD.days
    with ExitStack() as running:
        sources = {
            name: {"url": running.enter_context(server.serve(folder / name, series))}
            for name, server in SERVERS.items()
        }
        for path, source in (sources | {"export": {"export": "prometheus"}}).items():
            settings = yaml.safe_load((world.folder / "runbill.yaml").read_text())
            settings["ledger"] = f"./ledger-{path}"
            settings["clusters"][0]["prometheus"] = source
            world.config(path).write_text(yaml.safe_dump(settings))
            arguments = ["run", "--config", str(world.config(path)), "--window", WINDOW]
            done = CliRunner().invoke(main, arguments)
            assert done.exit_code == 0, done.stderr
        yield world


def query(config: Path, *by: str) -> list[dict[str, str | None]]:
    arguments = ["query", "--config", str(config), "--window", WINDOW, "--by", ",".join(by)]
    done = CliRunner().invoke(main, [*arguments, "-o", "json"])
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, str | None]] = json.loads(done.stdout)["rows"]
    return rows


def rows_of(ledger: Ledger, table: Table) -> pl.DataFrame:
    rows = ledger.scan(table).collect()
    if table is CLOSES:
        # What the ledgers may differ in: the settings name the source differently, and digests of
        # facts tell the last digit of a float.
        rows = rows.drop("settings_hash", "inputs", "digest")
    return rows.sort(~cs.float(), cs.float(), nulls_last=True)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_both_ledgers_hold_the_same_rows(closed: Closed, table: Table, server: str) -> None:
    live, export = (rows_of(closed.ledger(path), table) for path in (server, "export"))
    assert live.select(~cs.float()).equals(export.select(~cs.float()))
    # Servers add up in an order of their own, and VictoriaMetrics keeps 15 digits of a number.
    assert_frame_equal(live, export, rel_tol=1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_the_ledgers_are_not_empty(closed: Closed, path: str) -> None:
    counts = {name: rows_of(closed.ledger(path), TABLES[name]).height for name in TABLES}
    for name in ("charges", "nodes", "workloads", "usage", "costs", "costs_daily", "outcomes"):
        assert counts[name] > 0, name


@pytest.mark.parametrize("path", PATHS)
def test_query_by_experiment_is_the_truth(closed: Closed, path: str) -> None:
    costs = {row["experiment"]: row for row in query(closed.config(path), "experiment")}
    targets = closed.truth()["targets"]
    assert isinstance(targets, list)
    assert {target["experiment"] for target in targets} == costs.keys()
    for target in targets:
        row = costs[target["experiment"]]
        off = abs(Decimal(str(row["cost"])) - Decimal(target["cost"]))
        assert off <= Decimal(target["stated_error"]), target
        if target["exact"]:
            assert row["cost"] == target["cost"]


@pytest.mark.parametrize("path", PATHS)
def test_what_lives_off_the_grid_carries_a_mark(closed: Closed, path: str) -> None:
    marked = {
        row["experiment"]: row["confidence"] for row in query(closed.config(path), "experiment")
    }
    assert marked["smoke-test"] == "low"
    assert marked["grpo-7b"] == "high"


@pytest.mark.parametrize("path", PATHS)
def test_every_experiment_phase_and_node_is_the_truth(closed: Closed, path: str) -> None:
    rows = query(closed.config(path), "experiment", "phase", "node")
    costs = {(r["experiment"], r["phase"], r["node"]): r["cost"] for r in rows}
    total = closed.truth()["total"]
    assert isinstance(total, dict)
    exact = {t["experiment"] for t in closed.truth()["targets"] if t["exact"]}  # type: ignore[attr-defined]
    compared = [node for node in total["nodes"] if node["experiment"] in exact]
    assert len(compared) > 5
    for node in compared:
        key = (node["experiment"], node["phase"], f"{node['node']}")
        assert costs[key] == node["cost"], key
