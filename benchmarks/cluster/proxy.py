"""A proxy that counts: what a server was asked, how long it took, and how large the answers were.

It runs in a process of its own and hands bytes on as they come. It knows how large a packed answer
is unpacked from the last four bytes of gzip (RFC 1952, ISIZE), so that nothing is unpacked.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, local
from urllib.parse import parse_qs, urlsplit

PIECE = 1 << 18
_PER_HOP = {"connection", "transfer-encoding", "keep-alive", "host", "content-length"}


@dataclass(frozen=True)
class Exchange:
    """A request and the size of its answer.

    Args:
        path: Path of the request.
        query: Its PromQL, or its selector; empty if it has none.
        status: Status of the answer; 0 if the server broke off.
        begin: Seconds since 1970.
        first: Seconds until the first byte.
        seconds: Seconds until the last byte.
        wire: Bytes of the answer as sent.
        plain: Bytes of the answer, unpacked.
    """

    path: str
    query: str
    status: int
    begin: float
    first: float
    seconds: float
    wire: int
    plain: int


@contextmanager
def counting(url: str, log: Path) -> Iterator[str]:
    """Stand before a server; yields the URL to ask instead.

    Args:
        url: Base URL of the server on this machine.
        log: Where the exchanges go, one JSON object a line.
    """
    command = [sys.executable, "-m", "benchmarks.cluster.proxy", url, str(log)]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        port = int(process.stdout.readline()) if process.stdout else 0
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def exchanges(log: Path) -> list[Exchange]:
    """What a log holds, in order of the answers' ends."""
    return [Exchange(**json.loads(line)) for line in log.read_text("utf-8").splitlines()]


def serve(url: str, log: Path) -> None:
    """Hand requests on until the process ends; the port stands on stdout."""
    upstream, prefix = urlsplit(url).netloc, urlsplit(url).path
    links, lock = local(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._hand_on(b"")

        def do_POST(self) -> None:
            self._hand_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _hand_on(self, body: bytes) -> None:
            begin, clock = time.time(), time.perf_counter()
            link = getattr(links, "link", None) or http.client.HTTPConnection(upstream)
            links.link = link
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _PER_HOP}
            link.request(self.command, prefix + self.path, body or None, headers)
            reply = link.getresponse()
            first = time.perf_counter() - clock
            self.send_response(reply.status)
            for key, value in reply.getheaders():
                if key.lower() not in _PER_HOP:
                    self.send_header(key, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            wire, tail = 0, b""
            while piece := reply.read1(PIECE):
                wire += len(piece)
                tail = (tail + piece[-4:])[-4:]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            packed = reply.getheader("Content-Encoding") == "gzip"
            done = Exchange(
                path=urlsplit(self.path).path,
                query=_query(self.path, body),
                status=reply.status,
                begin=round(begin, 3),
                first=round(first, 3),
                seconds=round(time.perf_counter() - clock, 3),
                wire=wire,
                plain=int.from_bytes(tail, "little") if packed else wire,
            )
            with lock, log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(done)) + "\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


def _query(path: str, body: bytes) -> str:
    asked = {**parse_qs(urlsplit(path).query), **parse_qs(body.decode("utf-8", "replace"))}
    return (asked.get("query") or asked.get("match[]") or [""])[0]


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
