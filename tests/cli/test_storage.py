"""A store of the settings through the command line: probed, collected, split."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cli.main import main

DAY = datetime.now(UTC).date() - timedelta(days=1)
FOCUS = {
    "BillingCurrency": "USD",
    "ChargeCategory": "Usage",
    "ChargePeriodStart": f"{DAY}T00:00:00Z",
    "ChargePeriodEnd": f"{DAY + timedelta(days=1)}T00:00:00Z",
    "BillingPeriodStart": f"{DAY.replace(day=1)}T00:00:00Z",
    "BillingPeriodEnd": f"{(DAY.replace(day=28) + timedelta(days=5)).replace(day=1)}T00:00:00Z",
    "ServiceCategory": "Storage",
    "ServiceName": "Amazon FSx",
    "ProviderName": "AWS",
    "ResourceId": "arn:aws:fsx:us-east-1:123456789012:file-system/fs-0a",
    **dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), "12"),
}


def invoke(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    config = ["--config", str(folder / "runbill.yaml")]
    done = CliRunner().invoke(main, [*config, *arguments, "-o", "json"])
    assert done.exit_code in codes, done.stderr + done.stdout
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_a_file_system_is_split_by_its_folders(tmp_path: Path) -> None:
    for run, size in (("a", 3000), ("b", 1000)):
        file = tmp_path / "fsx/runs" / run / "rollouts.bin"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * size)
    (tmp_path / "bill.csv").write_text(f"{','.join(FOCUS)}\n{','.join(FOCUS.values())}\n")
    store = {"kind": "filesystem", "path": "fsx", "resource": "fs-0a"}
    rule = f"path:{tmp_path}/fsx/runs/{{experiment}}/"
    settings = {
        "billing": [{"name": "aws", "path": "bill.csv"}],
        "storage": [store],
        "identity": {"experiment": [rule]},
    }
    (tmp_path / "runbill.yaml").write_text(json.dumps(settings))
    needs = invoke(tmp_path, "doctor", codes=(0, 3))
    assert '"source": "storage/fsx", "need": "list ' in json.dumps(needs)
    invoke(tmp_path, "run", "--day", str(DAY))
    found = invoke(
        tmp_path,
        "query",
        "--by",
        "experiment",
        "--window",
        f"{DAY}..{FOCUS['ChargePeriodEnd'][:10]}",
    )
    assert {row["experiment"]: float(row["cost"]) for row in found["rows"]} == {"a": 9, "b": 3}
