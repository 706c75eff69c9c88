# SPDX-License-Identifier: Apache-2.0
"""A hub for tests: its API, and a second host that keeps the large files, each with faults that a test chooses."""

import functools
import hashlib
import json
import random
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = (".safetensors", ".gguf")


@functools.cache
def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_large(name):
    return name.endswith(LARGE)


@functools.cache
def sha256(data):
    return hashlib.sha256(data).hexdigest()


def file_hash(name, data):
    return sha256(data) if is_large(name) else git_hash(data)


class Repository:
    """Files of commits, and the commits that revisions stand for."""

    def __init__(self):
        self.commits, self.revisions = {}, {}

    def commit(self, files, revision="main"):
        text = json.dumps({name: file_hash(name, data) for name, data in files.items()}, sort_keys=True)
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.revisions[revision] = self.revisions[commit] = commit
        return commit

    def tree(self, revision):
        """What huggingface_hub asks for in place of a listing."""
        entries = []
        for sibling in self.listing(revision)["siblings"]:
            entry = {"type": "file", "path": sibling["rfilename"], "size": sibling["size"], "oid": sibling["blobId"]}
            if "lfs" in sibling:
                entry["lfs"] = dict(sibling["lfs"], oid=sibling["lfs"]["sha256"])
            entries.append(entry)
        return entries

    def listing(self, revision):
        commit = self.revisions[revision]
        siblings = []
        for name, data in self.commits[commit].items():
            entry = {"rfilename": name, "size": len(data), "blobId": git_hash(data)}
            if is_large(name):
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 130}
            siblings.append(entry)
        return {"id": "org/name", "sha": commit, "siblings": siblings}


class Faults:
    """What goes wrong, until a test says otherwise."""

    def __init__(self):
        self.cut = None  # a function: after how many bytes of a body the connection ends, or None
        self.statuses = []  # (host, status, headers) of the next answers of a host, in place of what it has
        self.ignores_ranges = False
        self.total = None  # the size that ranges are said to be of
        self.spoil = None  # a function of the bytes of a body
        self.etag = None  # in place of the large file's hash
        self.delay = 0  # seconds before each 64 KiB
        self.token = None  # that the hub wants for files
        self.gated = False
        self.listing = None  # in place of the list of files


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.server.name, self.command, self.path, dict(self.headers)))
            fault = next((f for f in hub.faults.statuses if f[0] == self.server.name), None)
            if fault:
                hub.faults.statuses.remove(fault)
        try:
            if fault:
                self.answer(fault[1], b"no", fault[2])
            elif self.server.name == "files":
                self.send_file(*hub.blobs[self.path])
            else:
                self.serve_hub(hub, urllib.parse.urlsplit(self.path).path)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def serve_hub(self, hub, path):
        parts = path.strip("/").split("/")
        is_api = parts[:2] == ["api", "models"]
        repository = hub.repositories.get("/".join(parts[2:4] if is_api else parts[:2]))
        if not repository:
            return self.refuse(401, "RepoNotFound")
        if hub.faults.gated and not is_api:
            return self.refuse(403 if self.headers.get("Authorization") else 401, "GatedRepo")
        if hub.faults.token and self.headers.get("Authorization") != f"Bearer {hub.faults.token}":
            return self.refuse(401, "RepoNotFound")
        revision = urllib.parse.unquote(parts[5] if is_api else parts[3]) if len(parts) > 3 else ""
        if revision not in repository.revisions:
            return self.refuse(404, "RevisionNotFound")
        if is_api and parts[4] == "tree":
            return self.answer(200, json.dumps(repository.tree(revision)).encode())
        if is_api:
            listing = hub.faults.listing or json.dumps(repository.listing(revision))
            return self.answer(200, listing.encode())
        return self.send_named(hub, repository.revisions[revision], repository, urllib.parse.unquote("/".join(parts[4:])))

    def send_named(self, hub, commit, repository, name):
        data = repository.commits[commit].get(name)
        if data is None:
            return self.refuse(404, "EntryNotFound")
        digest = hub.faults.etag or file_hash(name, data)
        if not is_large(name):
            return self.send_file(name, data, {"X-Repo-Commit": commit, "ETag": f'"{digest}"'})
        place = f"/{file_hash(name, data)}?signature=1"
        hub.blobs[place] = (name, data, {"ETag": '"of-the-store"'})
        return self.answer(302, b"", {"Location": hub.files_url + place, "X-Repo-Commit": commit, "ETag": '"pointer"',
                                      "X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))})

    def refuse(self, status, code):
        self.answer(status, b"{}", {"X-Error-Code": code, "X-Error-Message": "a sentence of the hub"})

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, name, data, headers):
        faults = self.server.hub.faults
        total = len(data)
        span = self.headers.get("Range")
        self.send_response(206 if span and not faults.ignores_ranges else 200)
        if span and not faults.ignores_ranges:
            first, last = span.removeprefix("bytes=").split("-")
            first, last = int(first), min(int(last or total - 1), total - 1)
            self.send_header("Content-Range", f"bytes {first}-{last}/{faults.total or total}")
            data = data[first:last + 1]
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(faults.spoil(data) if faults.spoil else data, faults)

    def send_body(self, data, faults):
        cut = faults.cut() if faults.cut else None
        data = memoryview(data)[:cut]
        for begin in range(0, len(data), 1 << 16):
            if faults.delay:
                time.sleep(faults.delay)
            self.wfile.write(data[begin:begin + (1 << 16)])
            with self.server.hub.lock:
                self.server.hub.sent += len(data[begin:begin + (1 << 16)])
        if cut is not None:
            self.close_connection = True


class Host(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients that are killed


class Hub:
    """Two hosts on free ports of this machine."""

    def __init__(self):
        self.repositories, self.requests, self.blobs = {}, [], {}
        self.faults, self.lock, self.sent = Faults(), threading.Lock(), 0
        self.servers = []
        for name in ("hub", "files"):
            server = Host(("127.0.0.1", 0), Handler)
            server.hub, server.name = self, name
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            self.servers.append(server)
        self.url = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.files_url = f"http://localhost:{self.servers[1].server_port}"

    def add(self, name, files, revision="main"):
        return self.repositories.setdefault(name, Repository()).commit(files, revision)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


def random_bytes(count, seed):
    return random.Random(seed).randbytes(count)
