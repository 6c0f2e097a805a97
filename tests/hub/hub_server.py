"""A loopback server that answers as the Hugging Face hub and BEIR's server do, from content in memory.

What huggingface_hub, datasets and urllib ask for: repository facts, trees, HEAD and GET of `resolve/`, redirects of
large files to a second host (another port), ETag and X-Linked-* headers, Range requests. Faults on request: a gated
or removed repository, a token that is refused, a connection that breaks off, wrong bytes of the right length, a server
that is busy (429, with Retry-After) or not available (503).
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = (".safetensors", ".bin", ".h5", ".ot", ".spm", ".tar", ".csv", ".parquet")  # what the hub keeps in LFS
FOREVER = 10**9
FAULTS = ("gated", "gone", "denied", "breaks", "wrong", "busy", "unavailable")


@dataclass
class Repository:
    """One model or data set at one commit."""

    kind: str  # models, datasets
    id: str
    commit: str
    files: dict[str, bytes]

    def is_large(self, name: str) -> bool:
        return name.endswith(LARGE) or name == "wiki1m_for_simcse.txt"

    def etag(self, name: str) -> str:
        content = self.files[name]
        if self.is_large(name):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def entry(self, name: str) -> dict:
        """The file as `tree` and `paths-info` describe it."""
        content = self.files[name]
        entry = {"type": "file", "path": name, "oid": self.etag(name)[:40], "size": len(content)}
        if self.is_large(name):
            entry["lfs"] = {"oid": self.etag(name), "size": len(content), "pointerSize": 134}
        return entry

    def sibling(self, name: str, blobs: bool) -> dict:
        if not blobs:
            return {"rfilename": name}
        entry = self.entry(name)
        sibling = {"rfilename": name, "size": entry["size"], "blobId": entry["oid"]}
        if "lfs" in entry:
            sibling["lfs"] = {"sha256": entry["lfs"]["oid"], "size": entry["size"], "pointerSize": 134}
        return sibling


@dataclass
class Fault:
    """What goes wrong with the files of a repository, or with an archive, whose name matches; `left` more times."""

    kind: str
    repository: str
    file: str = "*"
    left: int = FOREVER


@dataclass
class Hub:
    """A running hub with its second host; a context manager."""

    repositories: list[Repository] = field(default_factory=list)
    archives: dict[str, bytes] = field(default_factory=dict)  # path below the first host, such as beir/scifact.zip
    faults: list[Fault] = field(default_factory=list)
    retry_after: str = "7"  # of a busy hub
    requests: list[str] = field(default_factory=list)  # METHOD host path, in the order of their arrival
    unknown: list[str] = field(default_factory=list)  # those that the server has no answer for

    def __enter__(self) -> Hub:
        self.lock = threading.Lock()
        self.hosts = []
        for role in ("hub", "cdn"):
            handler = type("Handler", (_Handler,), {"hub": self, "role": role})
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self.hosts.append(server)
        return self

    def __exit__(self, *_) -> None:
        for server in self.hosts:
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.hosts[0].server_port}"

    @property
    def second_host(self) -> str:
        return f"http://127.0.0.1:{self.hosts[1].server_port}"

    def fail(self, kind: str, repository: str, file: str = "*", times: int = FOREVER) -> None:
        """Let requests fail from now on, for files by name and for the list of them (`list`); one of FAULTS."""
        assert kind in FAULTS
        self.faults.append(Fault(kind, repository, file, times))

    def fault(self, kinds: tuple[str, ...], repository: str, file: str = "*") -> str | None:
        """The fault of a request, which uses it up by one."""
        with self.lock:
            for fault in self.faults:
                named = fault.repository == repository and fnmatch.fnmatch(file, fault.file)
                if fault.kind in kinds and named and fault.left > 0:
                    fault.left -= 1
                    return fault.kind
        return None

    def find(self, kind: str, name: str) -> Repository | None:
        return next((r for r in self.repositories if (r.kind, r.id) == (kind, name)), None)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    role: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.query, path = parse_qs(url.query), unquote(url.path).strip("/")
        self.hub.requests.append(f"{self.command} {self.role} {path}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if self.role == "cdn":
                self.send_blob(path)
            elif path in self.hub.archives:
                self.send_content(self.hub.archives[path], self.hub.fault(("breaks", "wrong", "gone"), path))
            elif path.startswith("api/resolve-cache/"):
                self.resolve(*self.located(path.removeprefix("api/resolve-cache/"), commit_at=0), cached=True)
            elif path.startswith("api/"):
                self.api(path.removeprefix("api/").split("/"))
            elif "/resolve/" in path:
                kind = "datasets" if path.startswith("datasets/") else "models"
                name, _, rest = path.removeprefix("datasets/").partition("/resolve/")
                revision, _, file = rest.partition("/")
                self.resolve(kind, name, revision, file)
            else:
                self.refuse(404, "EntryNotFound", "no such page")

    def located(self, path: str, commit_at: int) -> tuple[str, str, str, str]:
        kind, owner, name, revision, *file = path.split("/")
        return kind, f"{owner}/{name}", revision, "/".join(file)

    # ------------------------------------------------------------ answers

    def api(self, parts: list[str]) -> None:
        kind, name, rest = parts[0], "/".join(parts[1:3]), parts[3:]
        repository = self.hub.find(kind, name)
        if repository is None or self.hub.fault(("gone",), name):
            return self.refuse(404, "RepoNotFound", "Repository not found")
        if self.fails(name, "list"):
            return None
        operation, revision = (rest[0], rest[1]) if len(rest) > 1 else ("revision", "main")
        if revision not in (repository.commit, "main"):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if operation == "revision":
            gated = any(f.kind == "gated" and f.repository == name and f.left for f in self.hub.faults)
            facts = {"_id": "0" * 24, "id": name, "modelId": name, "sha": repository.commit, "private": False}
            facts |= {"gated": "manual" if gated else False, "disabled": False, "tags": [], "downloads": 0, "likes": 0}
            facts |= {"createdAt": "2022-03-02T23:29:04.000Z", "lastModified": "2024-02-19T11:06:12.000Z"}
            blobs = "blobs" in self.query
            return self.send_json(facts | {"siblings": [repository.sibling(f, blobs) for f in repository.files]})
        if operation == "tree":
            return self.send_json(self.tree(repository, "/".join(rest[2:])))
        if operation == "paths-info":
            content = self.body.decode()
            asked = json.loads(content)["paths"] if content.startswith("{") else parse_qs(content)["paths"]
            return self.send_json(self.paths(repository, asked))
        return self.refuse(404, "EntryNotFound", "no such endpoint")

    def tree(self, repository: Repository, folder: str) -> list[dict]:
        prefix, recursive = f"{folder}/" if folder else "", self.query.get("recursive", ["false"])[0].lower() == "true"
        entries = {}
        for name in repository.files:
            if not name.startswith(prefix):
                continue
            first, _, below = name.removeprefix(prefix).partition("/")
            if below:
                path = prefix + first
                entries[path] = {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
            if recursive or not below:
                entries[name] = repository.entry(name)
        return list(entries.values())

    def paths(self, repository: Repository, asked: list[str]) -> list[dict]:
        found = []
        for path in asked:
            if path in repository.files:
                found.append(repository.entry(path))
            elif any(name.startswith(f"{path}/") for name in repository.files):
                found.append({"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
        return found

    def fails(self, name: str, file: str) -> bool:
        """Answer a request that is to be refused by its status; of one for a file's size, no more than access."""
        fault = self.hub.fault(
            ("denied",) if self.command == "HEAD" else ("denied", "busy", "unavailable"), name, file
        )
        if fault == "denied":
            self.refuse(401, "", "Invalid credentials in Authorization header")
        elif fault == "busy":
            self.refuse(429, "", "Too many requests", {"Retry-After": self.hub.retry_after})
        elif fault == "unavailable":
            self.refuse(503, "", "Service unavailable")
        return fault is not None

    def resolve(self, kind: str, name: str, revision: str, file: str, cached: bool = False) -> None:
        if self.fails(name, file):
            return None
        repository = self.hub.find(kind, name)
        if repository is None or self.hub.fault(("gone",), name, file):
            return self.refuse(404, "RepoNotFound", "Repository not found")
        if self.hub.fault(("gated",), name, file):
            message = f"Access to model {name} is restricted. You must have access to it and be authenticated."
            return self.refuse(401, "GatedRepo", message)
        if revision not in (repository.commit, "main"):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if file not in repository.files:
            return self.refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": repository.commit})
        content, etag = repository.files[file], repository.etag(file)
        headers = {"X-Repo-Commit": repository.commit, "X-Linked-Size": len(content), "X-Linked-ETag": f'"{etag}"'}
        if repository.is_large(file):
            headers["Location"] = f"{self.hub.second_host}/{kind}/{name}/{file}?X-Amz-Expires=3600"
            return self.send_head(302, headers)
        if not cached:
            headers["Location"] = f"/api/resolve-cache/{kind}/{name}/{repository.commit}/{file}"
            return self.send_head(307, headers)
        headers["ETag"] = f'"{etag}"'
        fault = self.hub.fault(("breaks", "wrong"), name, file) if self.command == "GET" else None
        return self.send_content(content, fault, headers)

    def send_blob(self, path: str) -> None:
        kind, owner, name, *file = path.split("/")
        repository = self.hub.find(kind, f"{owner}/{name}")
        file = "/".join(file)
        if self.command == "HEAD":
            return self.send_content(repository.files[file], None)
        if self.fails(repository.id, file):
            return None
        fault = self.hub.fault(("breaks", "wrong"), repository.id, file)
        return self.send_content(repository.files[file], fault, {"ETag": f'"{repository.etag(file)[:32]}"'})

    def send_content(self, content: bytes, fault: str | None, headers: dict | None = None) -> None:
        if fault == "gone":
            return self.refuse(404, "EntryNotFound", "Not found")
        headers, total, start = {"Accept-Ranges": "bytes", **(headers or {})}, len(content), 0
        if fault == "wrong":
            content = bytes(byte ^ 1 for byte in content[:64]) + content[64:]
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first)
            content = content[start : int(last) + 1 if last else None]
            headers["Content-Range"] = f"bytes {start}-{start + len(content) - 1}/{total}"
            if start >= total:
                return self.send_head(416, {"Content-Range": f"bytes */{total}"})
        self.send_head(206 if start or asked else 200, headers | {"Content-Length": len(content)})
        if self.command == "GET":
            half = fault == "breaks" and len(content) > 1
            self.wfile.write(content[: len(content) // 2] if half else content)
            if half:
                self.close_connection = True
        return None

    def send_json(self, content) -> None:
        body = json.dumps(content).encode()
        self.send_head(200, {"Content-Type": "application/json", "Content-Length": len(body)})
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str, message: str, headers: dict | None = None) -> None:
        if code == "EntryNotFound" and headers is None:
            self.hub.unknown.append(self.path)
        self.send_head(status, {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})})

    def send_head(self, status: int, headers: dict) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": 0} | headers).items():
            self.send_header(name, str(value))
        self.end_headers()
