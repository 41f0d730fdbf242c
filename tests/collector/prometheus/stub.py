"""A stand-in for the HTTP API of Prometheus that misbehaves on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """What the server was asked."""

    method: str
    path: str
    query: str
    time: float
    headers: dict[str, str]
    in_url: str
    form: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """What it answers; ``wait`` holds the reply back until the test is over."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    wait: bool = False


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]], **more: object) -> Reply:
    """A successful answer."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    return Reply(
        body={"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    )


def error(status: int, text: str, **headers: str) -> Reply:
    """An answer of the API that is an error."""
    return Reply(
        status,
        {"status": "error", "errorType": "execution", "error": text},
        {key.replace("_", "-"): value for key, value in headers.items()},
    )


@dataclass
class Stub:
    """A running server and everything it was asked."""

    url: str
    requests: list[Request] = field(default_factory=list)

    def queries(self, metric: str) -> list[Request]:
        """The raw queries of one metric."""
        return [one for one in self.requests if one.query.startswith((f"{metric}[", f"{metric}{{"))]


@contextmanager
def serving(answer: Callable[[Request], Reply]) -> Iterator[Stub]:
    """Serve ``answer`` on a free loopback port."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._serve("")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

        def _serve(self, body: str) -> None:
            parts = urlsplit(self.path)
            asked = parse_qs(body)
            request = Request(
                self.command,
                parts.path,
                asked.get("query", [""])[0],
                float(asked.get("time", ["0"])[0]),
                dict(self.headers.items()),
                parts.query,
                {name: values[0] for name, values in asked.items()},
                body.encode(),
            )
            stub.requests.append(request)
            reply = answer(request)
            if reply.wait:
                over.wait(30)
                self.close_connection = True
                return
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for key, value in {**reply.headers, "Content-Length": str(len(data))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield stub
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
