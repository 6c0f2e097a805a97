"""A server on this machine that answers as the Hugging Face hub and BEIR's server do.

Its repositories and archives are in memory. It answers HEAD and GET of files and archives, and
gives the facts and the tree of a repository. It takes new repositories and commits of models. A
test can ask it for faults (`Hub.fail`).
"""

import base64
import contextlib
import fnmatch
import hashlib
import json
import math
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

# ends of the names of files that the hub keeps in LFS
LARGE = (".safetensors", ".bin", ".h5", ".ot", ".spm", ".tar", ".csv", "simcse.txt")


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that gets no content."""

    status: int
    code: str = ""  # X-Error-Code
    message: str = ""  # X-Error-Message


class Refused(Exception):
    """A request is answered by a refusal."""

    def __init__(self, refusal: Refusal):
        super().__init__(refusal)
        self.refusal = refusal


REFUSALS = {
    "gone": Refusal(404, "RepoNotFound"),
    "gated": Refusal(401, "GatedRepo"),
    "denied": Refusal(401, message="Invalid credentials in Authorization header"),
    "busy": Refusal(429),
    "unavailable": Refusal(503),
}
# Faults that a request can meet. The list of a gated repository's files is public. A request for a
# file's size (HEAD) is refused only if the repository may not be read.
FAULTS_OF_LIST = REFUSALS.keys() - {"gated"}
FAULTS_OF_HEAD = ("gone", "gated", "denied")
FAULTS_OF_GET = REFUSALS.keys()
TOKEN = "hf_may_write"  # with which a request may change repositories
# the connection breaks off half-way; other bytes of the same length
DAMAGE = ("breaks", "wrong")


@dataclass
class Repository:
    """One model or data set at one commit."""

    kind: str  # models, datasets
    id: str
    commit: str
    files: dict[str, bytes]
    is_private: bool = False

    def etag(self, name: str) -> str:
        """Hash a file as the hub does: sha256 if it is in LFS, else git's hash of it."""
        content = self.files[name]
        if name.endswith(LARGE):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def entry(self, name: str) -> dict:
        """Describe a file as the hub's list does."""
        size = len(self.files[name])
        etag = self.etag(name)
        entry = {"type": "file", "path": name, "oid": etag[:40], "size": size}
        if name.endswith(LARGE):
            entry["lfs"] = {"oid": etag, "size": size, "pointerSize": 134}
        return entry


@dataclass
class Fault:
    """A fault that the next requests for some files meet."""

    kind: str  # of REFUSALS or DAMAGE
    repository: str
    file: str  # pattern; `list` is the list of files
    left: float  # requests that it will still meet

    def meets(self, repository: str, file: str) -> bool:
        return self.repository == repository and fnmatch.fnmatch(file, self.file) and self.left > 0


@dataclass
class Hub:
    """A hub, which runs inside `with`."""

    repositories: list[Repository] = field(default_factory=list)
    archives: dict[str, bytes] = field(default_factory=dict)  # path, such as beir/scifact.zip
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # METHOD path, in the order of their arrival
    large_files: dict[str, bytes] = field(default_factory=dict)  # uploaded to LFS, by sha256

    def __enter__(self) -> "Hub":
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fail(self, kind: str, repository: str, file: str = "*", times: float = math.inf) -> None:
        """Let the next requests for some files fail.

        Args:
            kind: of REFUSALS or DAMAGE.
            repository: id of a repository, or path of an archive.
            file: pattern of names in the repository. The list of its files is called `list`.
            times: how many requests fail.
        """
        assert kind in REFUSALS or kind in DAMAGE
        self.faults.append(Fault(kind, repository, file, times))

    def next_fault(self, kinds: Collection[str], repository: str, file: str) -> str | None:
        """Return the kind of fault that a request meets, and count the request."""
        for fault in self.faults:
            if fault.kind in kinds and fault.meets(repository, file):
                fault.left -= 1
                return fault.kind
        return None

    def find(self, kind: str, name: str) -> Repository | None:
        """Find a repository by its id."""
        for repository in self.repositories:
            if repository.kind == kind and repository.id == name:
                return repository
        return None

    def open(
        self, kind: str, name: str, revision: str, file: str, faults: Collection[str]
    ) -> Repository:
        """Return the repository of a request.

        Args:
            file: name of a file, or `list`.
            faults: kinds of faults that the request can meet.

        Raises:
            Refused: the request meets a fault, or there is nothing of this name.
        """
        repository = self.find(kind, name)
        if repository is None:
            raise Refused(REFUSALS["gone"])
        fault = self.next_fault(faults, name, file)
        if fault is not None:
            raise Refused(REFUSALS[fault])
        if revision not in (repository.commit, "main"):
            raise Refused(Refusal(404, "RevisionNotFound"))
        if file != "list" and file not in repository.files:
            raise Refused(Refusal(404, "EntryNotFound"))
        return repository


class _Handler(BaseHTTPRequestHandler):
    """The answer to one request."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.requests.append(f"{self.command} {path}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            try:
                self.answer(path)
            except Refused as refused:
                self.send_refusal(refused.refusal)

    do_HEAD = do_GET
    do_POST = do_GET
    do_PUT = do_GET

    def answer(self, path: str) -> None:
        if self.command in ("POST", "PUT"):
            self.take(path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
        elif path in self.hub.archives:
            self.send_content(self.hub.archives[path], path)
        elif path.startswith(("api/models/", "api/datasets/")):
            self.send_facts(*path.split("/")[1:])
        elif path.startswith("api/"):  # the library asks for more than this hub has
            raise Refused(Refusal(404))
        elif path == "":  # the home page, which shows that the hub can be reached
            self.send_content(b"home", path)
        else:
            kind = "datasets" if path.startswith("datasets/") else "models"
            owner, name, _, revision, file = path.removeprefix("datasets/").split("/", 4)
            self.send_file(kind, f"{owner}/{name}", revision, file)

    def send_facts(self, kind, owner, name, operation="revision", revision="main", *folder) -> None:
        """Send a repository's facts (`revision`), or the list of files in a folder (`tree`)."""
        repository = self.hub.open(kind, f"{owner}/{name}", revision, "list", FAULTS_OF_LIST)
        if operation == "tree":
            prefix = "".join(f"{part}/" for part in folder)
            names = [file for file in repository.files if file.startswith(prefix)]
            answer = [repository.entry(file) for file in names]
        else:
            assert operation == "revision", operation
            answer = {
                "id": repository.id,
                "sha": repository.commit,
                "tags": [],
                "siblings": [{"rfilename": file} for file in repository.files],
            }
        self.send_json(answer)

    def send_json(self, answer: dict | list) -> None:
        body = json.dumps(answer).encode()
        self.send_head(200, {"Content-Type": "application/json", "Content-Length": len(body)})
        self.wfile.write(body)

    def send_file(self, kind: str, name: str, revision: str, file: str) -> None:
        faults = FAULTS_OF_GET if self.command == "GET" else FAULTS_OF_HEAD
        repository = self.hub.open(kind, name, revision, file, faults)
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{repository.etag(file)}"'}
        self.send_content(repository.files[file], name, file, **headers)

    def send_content(self, content: bytes, name: str, file: str = "", **headers: str) -> None:
        """Send a file or archive, or its head only; a GET can meet damage."""
        headers |= {"Content-Length": str(len(content))}
        if self.command == "HEAD":
            self.send_head(200, headers)
            return

        damage = self.hub.next_fault(DAMAGE, name, file)
        if damage == "wrong":
            content = bytes(byte ^ 1 for byte in content[:64]) + content[64:]
        self.send_head(200, headers)
        if damage == "breaks":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content)

    # ------------------------------------------------------------ uploads of models

    def take(self, path: str, body: bytes) -> None:
        """Answer a request that sends something: a new repository, a file, or a commit."""
        if self.command == "PUT":  # the address of a file in LFS, which needs no token
            self.hub.large_files[path.removeprefix("lfs/")] = body
            self.send_head(200, {})
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(REFUSALS["denied"])
        match path.split("/"):
            case ["api", "validate-yaml"]:
                self.send_json({"errors": [], "warnings": []})
            case ["api", "repos", "create"]:
                self.create(json.loads(body))
            case ["api", "models", _, _, "preupload", "main"]:
                self.send_json({"files": [upload_mode(file) for file in json.loads(body)["files"]]})
            case [_, _, "info", "lfs", "objects", "batch"]:
                objects = [self.lfs_object(entry) for entry in json.loads(body)["objects"]]
                self.send_json({"transfer": "basic", "objects": objects})
            case ["api", "models", owner, name, "commit", "main"]:
                lines = [json.loads(line) for line in body.splitlines()]
                self.commit(f"{owner}/{name}", lines)
            case _:
                raise AssertionError(path)

    def create(self, wanted: dict) -> None:
        """Make an empty repository, as the hub does: with a file `.gitattributes`."""
        name = f"{wanted['organization']}/{wanted['name']}"
        is_private = wanted.get("visibility") == "private"
        files = {".gitattributes": b"*.safetensors filter=lfs"}
        self.hub.repositories.append(Repository("models", name, "0" * 40, files, is_private))
        self.send_json({"url": f"{self.hub.endpoint}/{name}", "name": name})

    def lfs_object(self, entry: dict) -> dict:
        """Say where a large file is to be sent."""
        address = {"href": f"{self.hub.endpoint}/lfs/{entry['oid']}"}
        return {**entry, "actions": {"upload": address}}

    def commit(self, name: str, lines: list[dict]) -> None:
        """Add the files of a commit to a repository."""
        repository = self.hub.open("models", name, "main", "list", FAULTS_OF_LIST)
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "file":
                    repository.files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    repository.files[value["path"]] = self.hub.large_files[value["oid"]]
        names_and_hashes = [[file, repository.etag(file)] for file in sorted(repository.files)]
        content = json.dumps(names_and_hashes).encode()
        repository.commit = hashlib.sha1(content).hexdigest()
        address = f"{self.hub.endpoint}/{name}/commit/{repository.commit}"
        self.send_json({"commitUrl": address, "commitOid": repository.commit})

    def send_refusal(self, refusal: Refusal) -> None:
        headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message}
        if refusal.status == 429:
            headers["Retry-After"] = "7"
        self.send_head(refusal.status, headers)

    def send_head(self, status: int, headers: dict) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": 0} | headers).items():
            self.send_header(name, str(value))
        self.end_headers()


def upload_mode(file: dict) -> dict:
    """Say whether a file is to be sent to LFS or within the commit."""
    mode = "lfs" if file["path"].endswith(LARGE) else "regular"
    return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
