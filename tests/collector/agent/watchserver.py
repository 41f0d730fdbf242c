"""A stand-in for a Kubernetes API server that also speaks ``watch``.

Objects are put and removed; each change gets the next resourceVersion and stands in a log. A watch
answers what the log holds after its version, then a bookmark, and ends (as at its time limit), or
stays open for new changes. On demand it breaks: in the middle of a line, by an ERROR event, by 410
for a version that the log no longer reaches back to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.collector.kubernetes.apiserver import ApiServer, Json, list_path

GONE = {
    "kind": "Status",
    "apiVersion": "v1",
    "code": 410,
    "reason": "Expired",
    "message": "too old",
}


class WatchServer(ApiServer):
    """The server.

    Args:
        hold: Seconds for which a watch stays open once it has answered everything.
        mangle: Called with the path and the lines (bytes) that a watch is about to send; returns
            what is really sent. An answer that does not end in a line end is a cut.
    """

    def __init__(
        self,
        *,
        hold: float = 0,
        mangle: Callable[[str, list[bytes]], list[bytes]] | None = None,
        **more: Any,  # noqa: ANN401
    ) -> None:
        self.version = 1000
        self.log: list[tuple[int, str, str, Json]] = []
        self.forgotten: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self.hold = hold
        self.mangle = mangle
        self.watches: list[tuple[str, str]] = []
        super().__init__(**more)

    def put(self, item: Json) -> None:
        """Add an object, or change the one of its uid."""
        path = list_path(item)
        with self._lock:
            self.version += 1
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
            uid = item["metadata"]["uid"]
            held = self.lists.setdefault(path, [])
            place = next((n for n, it in enumerate(held) if it["metadata"]["uid"] == uid), None)
            if place is None:
                held.append(item)
            else:
                held[place] = item
            self.log.append((self.version, path, "ADDED" if place is None else "MODIFIED", item))

    def remove(self, item: Json) -> None:
        """Remove the object of that uid; the last word is as given."""
        path, uid = list_path(item), item["metadata"]["uid"]
        with self._lock:
            self.version += 1
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
            self.lists[path] = [it for it in self.lists[path] if it["metadata"]["uid"] != uid]
            self.log.append((self.version, path, "DELETED", item))

    def forget(self, *paths: str) -> None:
        """Compact: versions up to now are too old for a watch."""
        with self._lock:
            for path in paths or tuple(self.lists):
                self.forgotten[path] = self.version

    def _page(
        self, path: str, limit: int | None, token: str | None, accept: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        key = token.rpartition("@")[0] if token else f"{path}#{len(self._snapshots)}"
        version = self._versions.setdefault(key, self.version)
        status, headers, body = super()._page(path, limit, token, accept)
        body = body.replace(b'"resourceVersion": "1000"', b'"resourceVersion": "%d"' % version, 1)
        return status, headers, body

    def lines(self, path: str, version: int, after: int = 0) -> list[bytes]:
        """What a watch from a version says, each with its line end."""
        with self._lock:
            entries = [each for each in self.log if each[1] == path and each[0] > version]
            found = [_line(kind, item) for _, _, kind, item in entries[after:]]
            kind = {"/api/v1/pods": "Pod", "/api/v1/nodes": "Node"}.get(path, "Event")
            mark = {"kind": kind, "metadata": {"resourceVersion": str(self.version)}}
        return [*found, _line("BOOKMARK", mark)]

    def chunks(self, path: str, version: int) -> Iterator[bytes]:
        """The answer of a watch, piece by piece."""
        if version < self.forgotten.get(path, 0):
            yield _line("ERROR", GONE)
            return
        lines = self.lines(path, version)
        if self.mangle:
            lines = self.mangle(path, lines)
        yield b"".join(lines)
        if lines and not lines[-1].endswith(b"\n"):
            return
        until, sent = time.monotonic() + self.hold, len(lines) - 1
        while time.monotonic() < until and not self._stopping.wait(0.02):
            fresh = self.lines(path, version, sent)
            if len(fresh) > 1:
                sent += len(fresh) - 1
                yield b"".join(fresh)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server, base = self, super()._handler()

        class Handler(base):  # type: ignore[misc, valid-type]
            def do_GET(self) -> None:
                from urllib.parse import parse_qs, urlsplit

                url = urlsplit(self.path)
                query = parse_qs(url.query)
                if "watch" not in query:
                    super().do_GET()
                    return
                version = query["resourceVersion"][0]
                server.watches.append((url.path, version))
                fault = server._fault(url.path + "?watch", None)
                if fault:
                    self._answer(fault.status, fault.body or b"{}")
                    return
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                cut = False
                for chunk in server.chunks(url.path, int(version)):
                    if chunk:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                        self.wfile.flush()
                        cut = not chunk.endswith(b"\n")
                if cut:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def _line(change: str, item: Json) -> bytes:
    return json.dumps({"type": change, "object": item}).encode() + b"\n"
