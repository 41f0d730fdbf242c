"""``init`` and ``doctor``: probing, answers, settings that validate."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from click.testing import Result

import cli
from cli.setup.answers import Answers, settings_text
from ledger.errors import SettingsError
from ledger.settings import Settings

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_prometheus_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that happens to run on this machine is not part of the test."""
    monkeypatch.setattr("cli.setup.probing._LOCAL", ())


@pytest.fixture
def prometheus() -> Iterator[str]:
    """A server that answers the probe as Prometheus does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "arn:aws:eks:eu-west-1:1:cluster/train-b",
                "contexts": [
                    {"name": "train-a"},
                    {"name": "arn:aws:eks:eu-west-1:1:cluster/train-b"},
                ],
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(path))


def written(folder: Path) -> Settings:
    return Settings.model_validate(yaml.safe_load((folder / "runbill.yaml").read_text()))


def test_flags_make_settings_that_validate(
    invoke: Invoke, tmp_path: Path, prometheus: str, kubeconfig: None
) -> None:
    (tmp_path / "bill.csv").write_text("x")
    done = invoke(
        "init",
        "--context",
        "train-a",
        "--prometheus",
        prometheus,
        "--bill",
        "bill.csv",
        "--gpu-price",
        "H100=2.50",
        "--timezone",
        "Asia/Shanghai",
        "-o",
        "json",
    )
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["prometheus"] == prometheus
    settings = written(tmp_path)
    cluster = settings.clusters[0]
    assert cluster.kubernetes
    assert cluster.prometheus
    assert (cluster.name, cluster.kubernetes.context) == ("train-a", "train-a")
    assert cluster.prometheus.url == prometheus
    assert settings.billing[0].path == "bill.csv"
    assert settings.prices
    assert settings.prices.gpu["H100"] == Decimal("2.5")
    assert invoke("config", "validate").exit_code == 0


def test_the_current_context_is_taken_without_a_terminal(
    invoke: Invoke, tmp_path: Path, kubeconfig: None
) -> None:
    assert invoke("init").exit_code == 0
    cluster = written(tmp_path).clusters[0]
    assert cluster.name == "train-b"
    assert cluster.kubernetes
    assert cluster.kubernetes.context == "arn:aws:eks:eu-west-1:1:cluster/train-b"


def test_nothing_found_still_writes_commented_settings(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("init")
    assert done.exit_code == 0
    assert "No source was found" in done.stdout
    for flag in ("--dump", "--context", "--prometheus", "--bill"):
        assert flag in done.stdout
    assert "runbill run" not in done.stdout
    assert written(tmp_path).clusters == ()
    assert "# clusters:" in (tmp_path / "runbill.yaml").read_text()


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "gpu-0",
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    },
    "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "8", "memory": "8Gi"}},
}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]})
    (tmp_path / "objects.json").write_text(text)
    return "objects.json"


def test_an_export_and_a_dump_are_taken_and_the_models_named(
    invoke: Invoke, tmp_path: Path, dump: str
) -> None:
    (tmp_path / "series").mkdir()
    done = invoke("init", "--dump", dump, "--prometheus", "series", "--cluster-name", "train-z")
    assert done.exit_code == 0, done.stderr
    cluster = written(tmp_path).clusters[0]
    assert cluster.name == "train-z"
    assert cluster.prometheus
    assert (cluster.prometheus.export, cluster.prometheus.url) == ("series", None)
    assert "NVIDIA-H100-80GB-HBM3" in done.stdout
    assert "runbill doctor, then runbill run" in done.stdout


def test_a_prometheus_that_does_not_answer_is_written_with_a_warning(
    invoke: Invoke, tmp_path: Path
) -> None:
    done = invoke("init", "--prometheus", "http://127.0.0.1:1", "--config", "other.yaml")
    assert done.exit_code == 0
    assert "no Prometheus answers at http://127.0.0.1:1; written anyway" in done.stderr
    assert "Next: runbill --config other.yaml doctor" in done.stdout


def interview(folder: Path, *answers: str) -> tuple[int, str]:
    """Run ``init`` on a terminal of its own; its exit code, and what the terminal showed."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    command = [sys.executable, "-m", "cli", "init", "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__path__[0]).parent)}
    # A server that happens to run on this machine is out of reach behind a proxy that is not there.
    environment |= {"http_proxy": "http://127.0.0.1:1", "no_proxy": "", "NO_PROXY": ""}
    with (folder / "stdout").open("w") as out:
        program = subprocess.Popen(
            command, cwd=folder, stdin=theirs, stdout=out, stderr=theirs, env=environment
        )
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux: the program has closed its end
            pass
        os.close(ours)
    return program.wait(timeout=60), shown.decode()


def test_a_mistyped_answer_is_asked_again(tmp_path: Path, dump: str) -> None:
    answers = ("nope.json", dump, "nope", "http://127.0.0.1:1", "nope.csv", "", "H100", "H100=2.5")
    code, shown = interview(tmp_path, *answers)
    assert code == 0, shown
    for wrong in (
        "there is no nope.json",
        "no nope;",
        "there is no nope.csv",
        "'H100' is no price",
    ):
        assert wrong in shown
    assert "written anyway" in shown
    assert "Price per GPU-hour in USD of NVIDIA-H100-80GB-HBM3" in shown
    settings = written(tmp_path)
    assert settings.prices
    assert settings.prices.gpu == {"H100": Decimal("2.5")}
    assert settings.clusters[0].kubernetes
    assert settings.clusters[0].kubernetes.dump == dump


def test_existing_settings_are_kept(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "runbill.yaml").write_text("timezone: UTC\n")
    done = invoke("init")
    assert done.exit_code == 2
    assert "--force" in done.stderr
    assert (tmp_path / "runbill.yaml").read_text() == "timezone: UTC\n"
    assert invoke("init", "--force").exit_code == 0
    assert "# Settings of runbill" in (tmp_path / "runbill.yaml").read_text()


def test_the_settings_go_where_config_says(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text("x")
    assert invoke("init", "--config", "deep/er/runbill.yaml", "--bill", "bill.csv").exit_code == 0
    settings = written(tmp_path / "deep/er")
    assert settings.billing[0].path == str(tmp_path / "bill.csv")


@pytest.mark.parametrize(
    "args",
    [
        ["--context", "nope"],
        ["--bill", "nope.csv"],
        ["--dump", "nope.json"],
        ["--dump", "s3://bucket/dump"],
        ["--prometheus", "nope"],
        ["--prometheus", "s3://bucket/export"],
        ["--prometheus", "http://127.0.0.1:1", "--prometheus", "nope"],
        ["--gpu-price", "H100"],
        ["--gpu-price", "H100=free"],
        ["--gpu-price", "H100=-1"],
        ["--gpu-price", "H100=NaN"],
        ["--timezone", "Mars"],
        ["--currency", "dollars"],
        ["--cluster", "no spaces", "--dump", "."],
        ["--context", "a", "--dump", "."],
    ],
)
def test_wrong_answers_write_nothing(invoke: Invoke, tmp_path: Path, args: list[str]) -> None:
    done = invoke("init", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runbill.yaml").exists()


def test_answers_cannot_break_out_of_their_place() -> None:
    hostile = '"}\nprices: {gpu: {default: 0}} #'
    data = yaml.safe_load(settings_text(Answers(bill=hostile, ledger=hostile)))
    assert data["billing"][0]["path"] == hostile
    assert data["ledger"] == hostile
    assert "prices" not in data
    with pytest.raises(SettingsError):
        settings_text(Answers(timezone=hostile))


def test_doctor_says_what_is_blind_and_why(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "runbill.yaml").write_text(
        json.dumps({"billing": [{"name": "gone", "path": "gone.csv"}]})
    )
    done = invoke("doctor", "-o", "json")
    assert done.exit_code in (3, 5)
    needs = json.loads(done.stdout)["needs"]
    assert any(not need["ok"] and need["source"] == "gone" and need["blind"] for need in needs)
    assert any(need["source"] == "clusters" for need in needs)


def test_secrets_are_masked(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hush-hush")
    (tmp_path / "runbill.yaml").write_text(
        json.dumps(
            {
                "clusters": [
                    {
                        "name": "a",
                        "prometheus": {
                            "url": "http://me:hush@p:9090",
                            "token": "${TOKEN}",
                            "headers": {"X-Scope": "hush-hush"},
                        },
                    }
                ]
            }
        )
    )
    for output in ("table", "json", "csv", "markdown", "html"):
        done = invoke("config", "show", "--origin", "-o", output)
        assert done.exit_code == 0
        assert "hush" not in done.stdout


def test_origin_says_where_a_value_came_from(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runbill.yaml").write_text("timezone: Asia/Shanghai\n")
    monkeypatch.setenv("RUNBILL_CURRENCY", "EUR")
    data = json.loads(invoke("config", "show", "--origin", "-o", "json").stdout)
    assert data["origins"]["timezone"] == "runbill.yaml"
    assert data["origins"]["currency"] == "environment"
    assert data["origins"]["ledger"] == "default"
