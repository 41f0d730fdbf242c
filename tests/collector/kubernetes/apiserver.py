"""A stand-in for a Kubernetes API server: list semantics over HTTP, and faults on demand.

As a library, in a thread of the test's process::

    with ApiServer({"/api/v1/pods": [pod, ...]}) as server:
        KubernetesSource(server=server.url)

As a process of its own, from a folder of kubectl dumps or a file of them::

    python apiserver.py objects.json [--port 0]     # prints its URL on the first line

It speaks what a reader of lists can meet: `limit` and `continue` with a consistent snapshot,
410 Gone for an expired token, 403 for a resource, 429 with Retry-After, 5xx, a dropped connection,
an answer that never comes, 401 without the token, discovery of a group's resources, a single
object by its name, and the form with metadata only.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

CORE = (
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/resourcequotas",
    "/api/v1/events",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/cronjobs",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
)


@dataclass
class Fault:
    """An answer in place of the list.

    Args:
        status: HTTP status; 0 drops the connection without an answer.
        times: How many requests it hits; None = all.
        headers: Extra headers, e.g. Retry-After.
        only_continued: Hits only requests with a continue token (an expired one).
        body: Body in place of a Status object.
        seconds: Wait before answering.
    """

    status: int
    times: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    only_continued: bool = False
    body: bytes | None = None
    seconds: float = 0


@dataclass
class Request:
    """A request that the server saw."""

    path: str
    limit: int | None
    token: str | None
    at: float
    fields: str | None = None
    accept: str = ""


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A client that has hung up is no error; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ApiServer:
    """The server; a context manager that runs it in a thread.

    Args:
        lists: Path of a list to its objects. The built-in kinds exist even if they are not named.
        faults: Path to faults, used up in order.
        token: Bearer token without which it answers 401.
        now: Seconds since 1970 that its Date header shows; None = the real time.
        on_page: Called with the path after each page, e.g. to change the cluster half-way.
    """

    def __init__(
        self,
        lists: Mapping[str, Sequence[Json]] | None = None,
        faults: Mapping[str, Iterable[Fault]] | None = None,
        *,
        token: str | None = None,
        now: float | None = None,
        on_page: Callable[[str], None] | None = None,
        port: int = 0,
    ) -> None:
        self.lists: dict[str, list[Json]] = {path: [] for path in CORE}
        self.lists.update({path: list(items) for path, items in (lists or {}).items()})
        self.faults = {path: list(items) for path, items in (faults or {}).items()}
        self.token = token
        self.now = now
        self.on_page = on_page
        self.requests: list[Request] = []
        self._snapshots: dict[str, list[Json]] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = _Quiet(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def seen(self, path: str) -> list[Request]:
        """The requests for a path so far."""
        return [request for request in self.requests if request.path == path]

    def serve_forever(self) -> None:
        self._http.serve_forever(poll_interval=0.01)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(
        self, path: str, query: Mapping[str, list[str]], authorization: str, accept: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of a GET."""
        token = query.get("continue", [""])[0] or None
        limit = int(query["limit"][0]) if "limit" in query else None
        with self._lock:
            fields = query.get("fieldSelector", [""])[0] or None
            self.requests.append(Request(path, limit, token, time.monotonic(), fields, accept))
            fault = self._fault(path, token)
        if self.token and authorization.lower() != f"bearer {self.token}".lower():
            return 401, {}, _status(401, "Unauthorized")
        if fault:
            self._stopping.wait(fault.seconds)
            return fault.status, fault.headers, fault.body or _status(fault.status, "fault")
        if path in self.lists:
            return self._page(path, limit, token, accept)
        if (item := self._one(path)) is not None:
            return _formed(item, "PartialObjectMetadata", accept)
        return self._discovery(path)

    def _one(self, path: str) -> Json | None:
        """The object at a path, in a namespace or in none."""
        parent, _, name = path.rpartition("/")
        root, _, inner = parent.partition("/namespaces/")
        namespace, _, plural = inner.rpartition("/")
        for item in self.lists.get(f"{root}/{plural}" if namespace else parent, ()):
            where = item["metadata"].get("namespace") or ""
            if (item["metadata"]["name"], where) == (name, namespace):
                return item
        return None

    def _fault(self, path: str, token: str | None) -> Fault | None:
        for fault in self.faults.get(path, ()):
            if (fault.only_continued and not token) or fault.times == 0:
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None

    def _page(
        self, path: str, limit: int | None, token: str | None, accept: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        with self._lock:
            if token is None:
                key, start = f"{path}#{len(self._snapshots)}", 0
                self._snapshots[key] = list(self.lists[path])
            else:
                key, _, offset = token.rpartition("@")
                start = int(offset)
            items = self._snapshots.get(key)
        if items is None:
            return 410, {}, _status(410, "Expired")
        end = len(items) if not limit else start + limit
        metadata: Json = {"resourceVersion": "1000"}
        if end < len(items):
            metadata |= {"continue": f"{key}@{end}", "remainingItemCount": len(items) - end}
        body = {
            "kind": "List",
            "apiVersion": "v1",
            "metadata": metadata,
            "items": [_bare(item) for item in items[start:end]],
        }
        if self.on_page:
            self.on_page(path)
        return _formed(body, "PartialObjectMetadataList", accept)

    def _groups(self) -> tuple[int, Mapping[str, str], bytes]:
        """The named groups and their versions."""
        served = sorted({tuple(path.split("/")[2:4]) for path in self.lists if "/apis/" in path})
        versions: dict[str, list[Json]] = {}
        for group, version in served:
            one = {"groupVersion": f"{group}/{version}", "version": version}
            versions.setdefault(group, []).append(one)
        groups = [{"name": name, "versions": some} for name, some in versions.items()]
        return 200, {}, json.dumps({"kind": "APIGroupList", "groups": groups}).encode()

    def _discovery(self, root: str) -> tuple[int, Mapping[str, str], bytes]:
        if root == "/apis":
            return self._groups()
        resources: list[Json] = [
            {"name": path.rpartition("/")[2]}
            | ({"kind": kind_of(path, items), "namespaced": _namespaced(items)} if items else {})
            for path, items in self.lists.items()
            if _within(root, path.rpartition("/")[0])
        ]
        if not resources:
            return 404, {}, b"404 page not found\n"
        # Subresources stand beside their resource and bear its kind.
        resources += [{**one, "name": f"{one['name']}/status"} for one in resources]
        body = {
            "kind": "APIResourceList",
            "resources": sorted(resources, key=lambda one: one["name"]),
        }
        return 200, {}, json.dumps(body).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                status, headers, body = server.answer(
                    url.path,
                    parse_qs(url.query),
                    self.headers.get("Authorization") or "",
                    self.headers.get("Accept") or "",
                )
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return formatdate(server.now if timestamp is None else timestamp, usegmt=True)

            def log_message(self, format: str, *args: object) -> None:
                """Keep quiet."""

        return Handler


def _bare(item: Json) -> Json:
    """Items of a list carry neither kind nor apiVersion, as in the real API."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def _formed(body: Json, form: str, accept: str) -> tuple[int, Mapping[str, str], bytes]:
    """A body in the first form that is asked for; one that does not fit it is 406, as for real."""
    asked = accept.partition(",")[0].partition("as=")[2].partition(";")[0]
    if not asked:
        return 200, {}, json.dumps(body).encode()
    if asked != form:
        return 406, {}, _status(406, "NotAcceptable")
    bare = [_metadata_only(item) for item in body.get("items", ())]
    made = _metadata_only(body) | ({"items": bare} if form.endswith("List") else {})
    return 200, {}, json.dumps(made | {"kind": form, "apiVersion": "meta.k8s.io/v1"}).encode()


def _metadata_only(item: Json) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": item.get("metadata", {}),
    }


def kind_of(path: str, items: Sequence[Json]) -> str:
    """The kind that discovery tells of a list: that of its objects."""
    return str(items[0].get("kind") or path.rpartition("/")[2])


def _within(root: str, place: str) -> bool:
    """Whether a list stands in a group's version, be it in one namespace of it."""
    return place == root or place.startswith(f"{root}/namespaces/")


def _namespaced(items: Sequence[Json]) -> bool:
    return "namespace" in items[0]["metadata"]


def _status(code: int, reason: str) -> bytes:
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    ).encode()


def list_path(item: Json) -> str:
    """The list that an object stands in."""
    version, kind = str(item["apiVersion"]), str(item["kind"])
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{prefix}/{kind.lower()}s"


def by_list(items: Iterable[Json]) -> dict[str, list[Json]]:
    """Objects sorted into their lists."""
    lists: dict[str, list[Json]] = {}
    for item in items:
        lists.setdefault(list_path(item), []).append(item)
    return lists


def load(path: Path) -> dict[str, list[Json]]:
    """Lists from a dump, or from a folder of them."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    items: list[Json] = []
    for file in files:
        document = json.loads(file.read_text())
        items += document.get("items", [document])
    return by_list(items)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    server = ApiServer(load(options.dump), port=options.port)
    print(server.url, flush=True)  # noqa: T201 - the one line that a parent waits for
    server.serve_forever()


if __name__ == "__main__":
    main()
