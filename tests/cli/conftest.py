"""What the tests of the command line share: a clean environment and a way to run the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main

ROOT = Path(__file__).parents[2]
Invoke = Callable[..., Result]
Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine reaches a test; relative paths land in the test's own folder."""
    for name in list(os.environ):
        if name.startswith("RUNBILL_") and name not in ("RUNBILL_SHARED", "RUNBILL_CI"):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def invoke() -> Invoke:
    """Run the program in this process; stdout and stderr are apart."""

    def call(*args: str | Path, **options: str) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], **options)  # type: ignore[arg-type]  # click types each option apart

    return call


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run the program as its own process."""

    def call(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cli", *map(str, args)],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )

    return call
