"""A loopback server that answers as the Hugging Face hub and BEIR's server do, from content in memory.

What huggingface_hub, datasets and urllib ask for: facts and trees of repositories, HEAD and GET of `resolve/`, which
redirects to `blobs/`, ETag and X-Linked-* headers; and faults on request.
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
REFUSALS = {  # status, X-Error-Code, X-Error-Message
    "gone": (404, "RepoNotFound", "Repository not found"),
    "gated": (401, "GatedRepo", "Access to this repository is restricted."),  # the list of its files is public
    "denied": (401, "", "Invalid credentials in Authorization header"),
    "busy": (429, "", "Too many requests"),
    "unavailable": (503, "", "Service unavailable"),
}
DAMAGE = ("breaks", "wrong")  # the connection breaks off half-way; other bytes of the same length


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
        """The file as the hub's list describes it."""
        size, etag = len(self.files[name]), self.etag(name)
        lfs = {"lfs": {"oid": etag, "size": size, "pointerSize": 134}} if self.is_large(name) else {}
        return {"type": "file", "path": name, "oid": etag[:40], "size": size, **lfs}


@dataclass
class Fault:
    """What goes wrong with the files of a repository, or with an archive, whose name matches; `left` more times."""

    kind: str
    repository: str
    file: str
    left: int


@dataclass
class Hub:
    """A running hub; a context manager."""

    repositories: list[Repository] = field(default_factory=list)
    archives: dict[str, bytes] = field(default_factory=dict)  # path, such as beir/scifact.zip
    faults: list[Fault] = field(default_factory=list)
    retry_after: str = "7"  # of a busy hub
    requests: list[str] = field(default_factory=list)  # METHOD path, in the order of their arrival
    unknown: list[str] = field(default_factory=list)  # those that the server has no answer for

    def __enter__(self) -> Hub:
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fail(self, kind: str, repository: str, file: str = "*", times: int = FOREVER) -> None:
        """Let requests fail from now on, for files by name and for the list of them (`list`)."""
        assert kind in (*REFUSALS, *DAMAGE)
        self.faults.append(Fault(kind, repository, file, times))

    def fault(self, kinds: tuple[str, ...], repository: str, file: str) -> str | None:
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
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query, path = parse_qs(url.query), unquote(url.path).strip("/")
        self.hub.requests.append(f"{self.command} {path}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if path in self.hub.archives:
                self.send_content(self.hub.archives[path], path, "")
            elif path.startswith("api/"):
                self.list_files(query, *path.split("/")[1:])
            elif path.startswith("blobs/"):
                self.resolve(*path.split("/", 5)[1:], redirect=False)
            elif "/resolve/" in path:
                kind = "datasets" if path.startswith("datasets/") else "models"
                self.resolve(kind, *path.removeprefix("datasets/").replace("/resolve/", "/", 1).split("/", 3))
            else:
                self.refuse(404, "EntryNotFound", "no such page")

    do_HEAD = do_POST = do_GET

    def list_files(self, query, kind, owner, name, operation="revision", revision="main", *folder) -> None:
        """A repository's facts, or its tree of files."""
        name = f"{owner}/{name}"
        repository = self.hub.find(kind, name)
        if repository is None:
            return self.refuse(*REFUSALS["gone"])
        if fault := self.hub.fault(("gone", "denied", "busy", "unavailable"), name, "list"):
            return self.refuse(*REFUSALS[fault])
        if revision not in (repository.commit, "main"):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if operation == "revision":
            facts = {"_id": "0" * 24, "id": name, "sha": repository.commit, "private": False, "disabled": False}
            facts |= {"gated": False, "tags": [], "downloads": 0, "likes": 0}
            return self.send_json(facts | {"siblings": [{"rfilename": file} for file in repository.files]})
        if operation == "tree":
            inside = "".join(f"{part}/" for part in folder)
            return self.send_json([repository.entry(file) for file in repository.files if file.startswith(inside)])
        return self.refuse(404, "EntryNotFound", "no such endpoint")

    def resolve(self, kind, owner, name, revision, file, redirect=True) -> None:
        """A file; first a redirection."""
        name = f"{owner}/{name}"
        repository = self.hub.find(kind, name)
        # of a request for a file's size, no more than access is refused
        kinds = tuple(REFUSALS) if self.command == "GET" else ("gone", "gated", "denied")
        if fault := "gone" if repository is None else self.hub.fault(kinds, name, file):
            return self.refuse(*REFUSALS[fault])
        if revision not in (repository.commit, "main"):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if file not in repository.files:
            return self.refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": repository.commit})
        content, etag = repository.files[file], repository.etag(file)
        headers = {"X-Repo-Commit": repository.commit, "X-Linked-Size": len(content), "X-Linked-ETag": f'"{etag}"'}
        if not redirect:
            return self.send_content(content, name, file, headers | {"ETag": f'"{etag}"'})
        return self.send_head(302, headers | {"Location": f"/blobs/{kind}/{name}/{repository.commit}/{file}"})

    def send_content(self, content: bytes, name: str, file: str, headers: dict | None = None) -> None:
        """A file, or an archive, which may be gone."""
        fault = self.hub.fault(("gone", *DAMAGE), name, file) if self.command == "GET" else None
        if fault == "gone":
            return self.refuse(*REFUSALS["gone"])
        if fault == "wrong":
            content = bytes(byte ^ 1 for byte in content[:64]) + content[64:]
        self.send_head(200, {**(headers or {}), "Content-Length": len(content)})
        if self.command == "GET":
            self.wfile.write(content[: len(content) // 2] if fault == "breaks" else content)
            self.close_connection = fault == "breaks"
        return None

    def send_json(self, content) -> None:
        body = json.dumps(content).encode()
        self.send_head(200, {"Content-Type": "application/json", "Content-Length": len(body)})
        self.wfile.write(body)

    def refuse(self, status: int, code: str, message: str, headers: dict | None = None) -> None:
        if code == "EntryNotFound" and headers is None:
            self.hub.unknown.append(self.path)
        wait = {"Retry-After": self.hub.retry_after} if status == 429 else {}
        self.send_head(status, {"X-Error-Code": code, "X-Error-Message": message, **wait, **(headers or {})})

    def send_head(self, status: int, headers: dict) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": 0} | headers).items():
            self.send_header(name, str(value))
        self.end_headers()
