"""Evaluate a dump from an object store whose every answer takes 20 ms longer, beside local files.

    python benchmarks/stores.py [--folder DUMP] [--delay 0.020] [--repeat 5] [--moto]

The store is a small server of this file that answers what S3 and HTTP clients ask in order to read:
HEAD, and GET with a range, straight from the disk. With --moto it is the S3 server of the tests,
moto behind a delaying proxy. Both are written in Python and share the machine with what is
measured, so the raw throughput of the server is printed, too.
"""

from __future__ import annotations

import argparse
import asyncio
import email.utils
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

CACHE = Path.home() / ".cache" / "rankmill" / "bench"
REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found"}


class Server:
    """Serves the files of a folder by HTTP, each answer after a delay, in a thread of its own."""

    def __init__(self, folder: Path, delay: float) -> None:
        self.folder, self.delay, self.requests = folder, delay, 0
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self._run, args=(started,), daemon=True).start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return
            lines = head.decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ", 2)
            fields = {
                key.lower(): value for key, _, value in (one.partition(": ") for one in lines[1:])
            }
            await asyncio.sleep(self.delay)
            self.requests += 1
            await self._answer(writer, method, target.partition("?")[0], fields.get("range"))

    async def _answer(
        self, writer: asyncio.StreamWriter, method: str, path: str, ranged: str | None
    ) -> None:
        file = self.folder / path.strip("/").rpartition("/")[2]
        if not file.is_file():
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        size, start = file.stat().st_size, 0
        end, code = size, 200
        if ranged:
            low, _, high = ranged.removeprefix("bytes=").partition("-")
            start, end, code = int(low), min(size, int(high or size) + 1), 206
        fields = {
            "Content-Length": end - start,
            "Accept-Ranges": "bytes",
            "ETag": f'"{file.stat().st_mtime_ns}"',
            "Last-Modified": email.utils.formatdate(file.stat().st_mtime, usegmt=True),
        }
        if code == 206:
            fields["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        told = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
        writer.write(f"HTTP/1.1 {code} {REASONS[code]}\r\n{told}\r\n".encode())
        await writer.drain()
        if method == "GET":
            with file.open("rb") as opened:
                await self.loop.sendfile(writer.transport, opened, start, end - start)


def evaluate(places: list[str], env: dict[str, str]) -> float:
    command = [sys.executable, "-m", "rankmill", "evaluate", *places, "-m", "map@12"]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=os.environ | env)
    return time.perf_counter() - start


def throughput(endpoint: str, name: str) -> float:
    """The bytes a second of a store, asked for eight ranges, four at a time."""
    from pyarrow.fs import S3FileSystem

    store = S3FileSystem(
        endpoint_override=endpoint, region="us-east-1", access_key="none", secret_key="none"
    )
    with store.open_input_file(f"bench/{name}") as file, ThreadPoolExecutor(4) as pool:
        size = file.size()
        start = time.perf_counter()
        list(pool.map(lambda part: file.read_at(size // 8, part * (size // 8)), range(8)))
        return size / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CACHE / "1000000-shuffled")
    parser.add_argument("--delay", type=float, default=0.020, help="seconds added to each answer")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--moto", action="store_true", help="a real S3 server, but a slow one")
    asked = parser.parse_args()
    if asked.moto:
        with moto(asked.folder, asked.delay) as (endpoint, count):
            measure(endpoint, count, asked.folder, asked.repeat, ["local", "s3"])
    else:
        server = Server(asked.folder, asked.delay)
        endpoint = f"http://127.0.0.1:{server.port}"
        ways = ["local", "s3", "http"]
        measure(endpoint, lambda: server.requests, asked.folder, asked.repeat, ways)


@contextmanager
def moto(folder: Path, delay: float) -> Iterator[tuple[str, Callable[[], int]]]:
    """Start moto behind the proxy of the tests, with the dump; yield its URL and a counter."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
    from pyarrow import fs

    import store_server

    with store_server.s3_server() as port, store_server.served(store_server.Proxy(port)) as proxy:
        proxy.latency, proxy.fails_every = delay, 0
        store = fs.S3FileSystem(
            endpoint_override=f"http://127.0.0.1:{port}",
            region="us-east-1",
            access_key="none",
            secret_key="none",
            allow_bucket_creation=True,
        )
        store.create_dir("bench")
        fs.copy_files(str(folder), "bench", destination_filesystem=store)
        yield proxy.url, lambda: len(proxy.seen)


def measure(
    endpoint: str, count: Callable[[], int], folder: Path, repeat: int, ways: list[str]
) -> None:
    env = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }
    names = ["labels.parquet", "predictions.parquet"]
    places = {
        "local": [str(folder / name) for name in names],
        "s3": [f"s3://bench/{name}" for name in names],
        "http": [f"{endpoint}/bench/{name}" for name in names],
    }
    print(f"raw {throughput(endpoint, names[1]) / 1e6:.0f} MB/s from the server")
    times: dict[str, list[float]] = {where: [] for where in ways}
    requests = {}
    for turn in range(repeat + 1):
        for where in ways:
            before = count()
            taken = evaluate(places[where], env)
            requests[where] = count() - before
            if turn:  # the first compiles
                times[where].append(taken)
    local = statistics.median(times["local"])
    for where, taken in times.items():
        median = statistics.median(taken)
        print(
            f"{where:6} {median:.2f} s ({min(taken):.2f} to {max(taken):.2f})  "
            f"{median / local:.2f} x local  {requests[where]} requests"
        )


if __name__ == "__main__":
    main()
