"""A proxy before a real Prometheus that goes wrong on demand."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fault(Enum):
    """What happens to a request."""

    ERROR = auto()  # 500
    STALL = auto()  # no reply until the test is over
    CUT = auto()  # half of the body
    GARBAGE = auto()  # half of the body, as if it were the whole
    GONE = auto()  # the connection is closed, as by a process that was killed
    DRIP = auto()  # a byte at a time


@dataclass
class Proxy:
    """A running proxy.

    Args:
        url: Base URL.
        fault: What happens to a request, by its path and body; None = it goes through.
        asked: Paths and bodies so far.
    """

    url: str = ""
    fault: Callable[[str], Fault | None] = lambda _: None
    asked: list[str] = field(default_factory=list)


@contextmanager
def proxied(upstream: str) -> Iterator[Proxy]:
    """Serve a proxy before ``upstream`` on a free loopback port."""
    over, proxy = threading.Event(), Proxy()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._pass(None)

        def do_POST(self) -> None:
            self._pass(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _pass(self, body: bytes | None) -> None:
            text = f"{self.path} {(body or b'').decode()}"
            proxy.asked.append(text)
            fault = proxy.fault(text)
            self.close_connection = True
            if fault is Fault.GONE:
                return
            if fault is Fault.STALL:
                over.wait(30)
                return
            status, answer = (500, b"{}") if fault is Fault.ERROR else self._ask(body)
            sent = answer[: len(answer) // 2] if fault in (Fault.CUT, Fault.GARBAGE) else answer
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            size = len(sent) if fault is Fault.GARBAGE else len(answer)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if fault is Fault.DRIP:
                self._drip(sent)
            else:
                self.wfile.write(sent)

        def _drip(self, body: bytes) -> None:
            try:
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    if over.wait(0.1):
                        return
            except OSError:  # who read it has given up
                return

        def _ask(self, body: bytes | None) -> tuple[int, bytes]:
            request = urllib.request.Request(f"{upstream}{self.path}", data=body)
            if kind := self.headers.get("Content-Type"):
                request.add_header("Content-Type", kind)
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    return reply.status, reply.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield proxy
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
