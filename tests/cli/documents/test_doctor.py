"""``doctor``: the exit code of what cannot be read, and files that are cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from click.testing import Result

Invoke = Callable[..., Result]


@contextmanager
def refusing(status: int) -> Iterator[str]:
    """A server that answers every request with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cluster(folder: Path, **sources: object) -> None:
    blocks = {"clusters": [{"name": "a", **sources}], "prices": {"gpu": {"default": "2"}}}
    (folder / "runbill.yaml").write_text(json.dumps(blocks))


@pytest.mark.parametrize(("status", "code"), [(401, 4), (403, 4), (404, 5)])
def test_a_cluster_that_refuses_pods(
    status: int, code: int, tmp_path: Path, invoke: Invoke
) -> None:
    with refusing(status) as url:
        cluster(tmp_path, kubernetes={"server": url})
        done = invoke("doctor", "-o", "json")
    assert done.exit_code == code, done.stdout


def test_what_is_not_there_is_not_reachable(tmp_path: Path, invoke: Invoke) -> None:
    for block in ({"kubernetes": {"dump": "gone.json"}}, {"prometheus": {"export": "gone"}}):
        cluster(tmp_path, **block)
        assert invoke("doctor").exit_code == 5


def test_a_cut_file_beside_a_good_one_is_named(tmp_path: Path, invoke: Invoke) -> None:
    export, dump = tmp_path / "series", tmp_path / "objects"
    export.mkdir()
    dump.mkdir()
    schema = {"__name__": pl.String, "labels": pl.String, "value": pl.Float64}
    rows = pl.DataFrame(schema={**schema, "timestamp": pl.Datetime("us", "UTC")})
    rows.write_parquet(export / "good.parquet")
    whole = (export / "good.parquet").read_bytes()
    (export / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (dump / "good.json").write_text('{"kind": "PodList", "apiVersion": "v1", "items": []}')
    (dump / "cut.json").write_text('{"kind": "NodeList", "apiVersion": "v1", "items": [')
    cluster(tmp_path, kubernetes={"dump": "objects"}, prometheus={"export": "series"})
    done = invoke("doctor", "-o", "json")
    assert done.exit_code == 3
    blind = {need["need"] for need in json.loads(done.stdout)["needs"] if need["blind"]}
    assert {"read cut.parquet", "read cut.json"} <= blind
