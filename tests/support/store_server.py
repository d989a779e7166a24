"""A real S3 server on loopback behind a proxy that is slow and fails, and a server of files."""

from __future__ import annotations

import http.client
import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LATENCY = 0.020
FAILS_EVERY = 100
# Objects in these buckets are answered with an error: the bucket's name -> status, code.
REFUSED = {
    "denied": (403, "AccessDenied"),
    "badkey": (403, "InvalidAccessKeyId"),
    "unsigned": (403, "SignatureDoesNotMatch"),
    "expired": (400, "ExpiredToken"),
    "down": (503, "ServiceUnavailable"),
}


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a server, later; some get an error or no answer instead."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = port
        self.numbers = itertools.count(1)
        self.latency = LATENCY
        self.fails_every = FAILS_EVERY
        self.seen: list[tuple[str, str, str]] = []
        self.failed = 0
        # Requests of which this says true are held until `released` is set, then not passed on.
        self.holds: Any = lambda method, path: False
        self.held, self.released = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, address: Any) -> None:
        """A client that goes away is no error."""


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_: Any) -> None: ...

    def pass_on(self) -> None:
        proxy, bucket = self.server, self.path.strip("/").partition("/")[0].partition("?")[0]
        body = self.body()
        proxy.seen.append((self.command, self.path, self.headers.get("Range", "")))
        time.sleep(proxy.latency)
        if proxy.holds(self.command, self.path):
            proxy.held.set()
            proxy.released.wait(20)
            self.close_connection = True
            return
        if bucket in REFUSED:
            self.refuse(*REFUSED[bucket])
            return
        number = next(proxy.numbers)
        if proxy.fails_every and number % proxy.fails_every == 0:
            proxy.failed += 1
            if number % (2 * proxy.fails_every):
                self.refuse(503, "SlowDown")
            else:
                self.close_connection = True  # without an answer
            return
        behind = http.client.HTTPConnection("127.0.0.1", proxy.behind, timeout=20)
        fields = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
        behind.request(self.command, self.path, body, fields)
        answer = behind.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(key, value)
        if answer.getheader("Content-Length") is None:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        behind.close()

    def body(self) -> bytes:
        """The body as it came; one in chunks with their sizes, as it is passed on so."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while True:
            parts.append(self.rfile.readline())
            size = int(parts[-1].split(b";")[0], 16)
            parts.append(self.rfile.read(size + 2))
            if not size:
                return b"".join(parts)

    def refuse(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{code} here</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def s3_server() -> Iterator[int]:
    """Start moto's S3 server in a process of its own; yield its port."""
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    ) as server:
        try:
            for _ in range(300):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield port
        finally:
            server.kill()


@contextmanager
def served(server: ThreadingHTTPServer) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Files(ThreadingHTTPServer):
    """Serves the files of a folder by HTTP; with ranges, unless their path begins with /whole."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Giving)
        self.folder = folder
        self.seen: list[tuple[str, str]] = []
        self.fails_next: list[int] = []
        self.pause = 0.0  # before each byte of a content

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, address: Any) -> None:
        """A client that goes away is no error."""


class _Giving(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Files

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.strip("/")
        first, _, rest = path.partition("/")
        ranges = first != "whole"
        file = self.server.folder / (path if ranges else rest)
        self.server.seen.append((self.command, self.headers.get("Range", "")))
        status = self.server.fails_next.pop(0) if self.server.fails_next else 200
        if first == "secret":
            status = 403
        elif not file.is_file():
            status = 404
        data = file.read_bytes() if status == 200 else b"no"
        fields = {"Accept-Ranges": "bytes"} if ranges else {}
        asked = self.headers.get("Range")
        if asked and ranges and status == 200:
            low, _, high = asked.removeprefix("bytes=").partition("-")
            start, end = int(low), min(len(data), int(high or len(data)) + 1)
            fields["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            data, status = data[start:end], 206
        self.send_response(status)
        for key, value in (fields | {"Content-Length": str(len(data))}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            for byte in data if self.server.pause else ():
                time.sleep(self.server.pause)
                self.wfile.write(bytes([byte]))
            self.wfile.write(b"" if self.server.pause else data)

    do_HEAD = do_GET  # noqa: N815
