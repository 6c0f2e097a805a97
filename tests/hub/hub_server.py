"""A loopback server that answers as the Hugging Face hub and BEIR's server do, from content in
memory: facts and trees of repositories, HEAD and GET of files and archives; and faults on
request."""

import contextlib
import fnmatch
import hashlib
import json
import math
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

# what the hub keeps in LFS
LARGE = (".safetensors", ".bin", ".h5", ".ot", ".spm", ".tar", ".csv", "simcse.txt")
# status, X-Error-Code and -Message
REFUSALS = {"gone": (404, "RepoNotFound", ""), "gated": (401, "GatedRepo", "")}
REFUSALS |= {"denied": (401, "", "Invalid credentials in Authorization header")}
REFUSALS |= {"busy": (429, "", ""), "unavailable": (503, "", "")}
OF_LISTS = REFUSALS.keys() - {"gated"}  # the list of a gated repository's files is public
# of a request for a file's size, no more than access is refused
OF_HEADS = ("gone", "gated", "denied")
DAMAGE = ("breaks", "wrong")  # the connection breaks off half-way; other bytes of the same length


@dataclass
class Repository:
    """One model or data set at one commit."""

    kind: str  # models, datasets
    id: str
    commit: str
    files: dict[str, bytes]

    def etag(self, name: str) -> str:
        content = self.files[name]
        if name.endswith(LARGE):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def entry(self, name: str) -> dict:
        """The file as the hub's list describes it."""
        size, etag = len(self.files[name]), self.etag(name)
        lfs = (
            {"lfs": {"oid": etag, "size": size, "pointerSize": 134}} if name.endswith(LARGE) else {}
        )
        return {"type": "file", "path": name, "oid": etag[:40], "size": size, **lfs}


@dataclass
class Hub:
    """A running hub; a context manager."""

    repositories: list[Repository] = field(default_factory=list)
    archives: dict[str, bytes] = field(default_factory=dict)  # path, such as beir/scifact.zip
    faults: list[SimpleNamespace] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # METHOD path, in the order of their arrival

    def __enter__(self) -> "Hub":
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self})
        )
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fail(self, kind: str, repository: str, file: str = "*", times: float = math.inf) -> None:
        """From now on, for an archive, for the files of a repository whose name matches, or
        their list (`list`)."""
        assert kind in (*REFUSALS, *DAMAGE)
        self.faults.append(SimpleNamespace(kind=kind, repository=repository, file=file, left=times))

    def fault(self, kinds, repository: str, file: str) -> str | None:
        """The fault of a request, which uses it up by one."""
        for fault in self.faults:
            named = fault.repository == repository and fnmatch.fnmatch(file, fault.file)
            if fault.kind in kinds and named and fault.left > 0:
                fault.left -= 1
                return fault.kind
        return None

    def find(self, kind: str, name: str) -> Repository | None:
        return next((r for r in self.repositories if (r.kind, r.id) == (kind, name)), None)

    def open(self, kind: str, name: str, revision: str, file: str, kinds) -> Repository:
        """A repository; raises PermissionError with the answer where the request is refused."""
        repository = self.find(kind, name)
        if fault := "gone" if repository is None else self.fault(kinds, name, file):
            raise PermissionError(REFUSALS[fault])
        if revision not in (repository.commit, "main"):
            raise PermissionError((404, "RevisionNotFound", ""))
        if file not in ("list", *repository.files):
            raise PermissionError((404, "EntryNotFound", ""))
        return repository


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.requests.append(f"{self.command} {path}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            try:
                if path in self.hub.archives:
                    self.send_content(self.hub.archives[path], path)
                elif path.startswith("api/"):
                    self.send_list(*path.split("/")[1:])
                else:
                    kind = "datasets" if path.startswith("datasets/") else "models"
                    owner, name, _, revision, file = path.removeprefix("datasets/").split("/", 4)
                    self.send_file(kind, f"{owner}/{name}", revision, file)
            except PermissionError as refusal:
                status, code, message = refusal.args[0]
                wait = {"Retry-After": "7"} if status == 429 else {}
                self.send_head(status, {"X-Error-Code": code, "X-Error-Message": message, **wait})

    do_HEAD = do_GET

    def send_list(self, kind, owner, name, operation="revision", revision="main", *folder) -> None:
        """A repository's facts, or its tree of files."""
        repository = self.hub.open(kind, f"{owner}/{name}", revision, "list", OF_LISTS)
        siblings, inside = (
            [{"rfilename": file} for file in repository.files],
            "".join(f"{part}/" for part in folder),
        )
        answers = {
            "revision": {
                "id": repository.id,
                "sha": repository.commit,
                "tags": [],
                "siblings": siblings,
            }
        }
        answers["tree"] = [
            repository.entry(file) for file in repository.files if file.startswith(inside)
        ]
        body = json.dumps(answers[operation]).encode()
        self.send_head(200, {"Content-Type": "application/json", "Content-Length": len(body)})
        self.wfile.write(body)

    def send_file(self, kind: str, name: str, revision: str, file: str) -> None:
        repository = self.hub.open(
            kind, name, revision, file, REFUSALS if self.command == "GET" else OF_HEADS
        )
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{repository.etag(file)}"'}
        self.send_content(repository.files[file], name, file, **headers)

    def send_content(self, content: bytes, name: str, file: str = "", **headers: str) -> None:
        fault = self.hub.fault(DAMAGE, name, file) if self.command == "GET" else None
        if fault == "wrong":
            content = bytes(byte ^ 1 for byte in content[:64]) + content[64:]
        self.send_head(200, headers | {"Content-Length": len(content)})
        if self.command == "GET":
            self.wfile.write(content[: len(content) // 2] if fault == "breaks" else content)
            self.close_connection = fault == "breaks"

    def send_head(self, status: int, headers: dict) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": 0} | headers).items():
            self.send_header(name, str(value))
        self.end_headers()
