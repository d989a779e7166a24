"""Read ORC in another process, which is all that ends if a broken file crashes pyarrow's reader.

It has a limit of memory, because the footer does not tell how long texts are. Both sides are here.
The other process opens no file: it asks this one for bytes, so that objects in a store are read in
the same way. A request and each answer is a line of JSON. The answer "read" asks for bytes; an
Arrow stream follows the answer "rows".
"""

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import pyarrow as pa

# The reader holds a stripe compressed, a part of it decompressed, and what it has read twice while
# that grows.
TIMES = 4
BESIDE = 1 << 26
ROWS = 1 << 16
# Without NumPy pyarrow is there in half the time.
_COMMAND = (
    "import sys; memory, *sys.path = sys.argv[1:]; sys.modules['numpy'] = None; "
    "from rankmill.sources.readers.orc_process import serve; serve(int(memory))"
)


class LimitError(Exception):
    """A file needs more memory than its reader may take."""


class Readers:
    """The processes that read the files of a source: one for each thread that reads at once.

    `close` ends them; so does the end of this object.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._idle: list[Reader] = []
        self.close = weakref.finalize(self, _end, self._idle)

    @contextmanager
    def reader(self) -> Iterator["Reader"]:
        """Yield a process that is idle, else a new one; it ends if it is left by an exception."""
        try:
            one = self._idle.pop()
        except IndexError:
            one = Reader(self._memory)
        try:
            yield one
        except BaseException:
            one.end()
            raise
        self._idle.append(one)


def _end(readers: list["Reader"]) -> None:
    while readers:
        readers.pop().end()


class Reader:
    """A process that reads ORC, within a limit of memory where the system has one."""

    def __init__(self, memory: int) -> None:
        limit = str(TIMES * memory + BESIDE)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _COMMAND, limit, *sys.path],
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},  # reserves nothing
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._process.wait()

    def footer(self, raw: Any) -> tuple[Any, int, int]:
        """The schema, rows and stripes of an open file."""
        (rows, stripes), batches = self._read(raw, None, [])
        list(batches)
        return batches.schema, rows, stripes

    def stripe(self, raw: Any, stripe: int, columns: list[str]) -> tuple[int, int, Any]:
        """The rows and bytes of a stripe of an open file, and its record batches."""
        (rows, size), batches = self._read(raw, stripe, columns)
        return rows, size, batches

    def _read(self, raw: Any, stripe: int | None, columns: list[str]) -> tuple[list[int], Any]:
        with suppress(BrokenPipeError):  # why it ended is told below
            self._send(json.dumps([raw.size(), stripe, columns]).encode() + b"\n")
            for line in iter(self._process.stdout.readline, b""):  # type: ignore[union-attr]
                answer, *told = json.loads(line)
                if answer == "read":
                    offset, size = told
                    data = raw.read_at(size, offset)
                    self._send(len(data).to_bytes(8, "little") + data)
                elif answer == "rows":
                    return told, pa.ipc.open_stream(self._process.stdout)
                elif answer == "memory":
                    raise LimitError(told[0])
                else:
                    raise pa.ArrowInvalid(told[0])
        self._fail()

    def _send(self, data: bytes) -> None:
        self._process.stdin.write(data)  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]

    def _fail(self) -> NoReturn:
        code = self._process.wait()
        if code == -9:  # SIGKILL, as the system sends it if it has no memory left
            raise MemoryError("the process that reads ORC was killed")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise pa.ArrowInvalid(
            f"pyarrow's reader of ORC crashed ({how}); if the file is whole, --memory "
            "allows too little"
        )


# ------------------------------------------------------------------ the other process


def serve(memory: int) -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the other side
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    from pyarrow import orc

    _limit(memory)
    for line in iter(requests.readline, b""):
        size, stripe, columns = json.loads(line)
        asked = _Asked(requests, answers, size)
        try:
            file = orc.ORCFile(pa.PythonFile(asked, "r"))
            if stripe is None:
                data = pa.RecordBatch.from_arrays([], [])
                answer, schema = ["rows", file.nrows, file.nstripes], file.schema
            else:
                data = file.read_stripe(stripe, columns=columns)
                answer, schema = ["rows", data.num_rows, data.nbytes], data.schema
        except Exception as error:
            lacks = isinstance(error, MemoryError)
            answers.write(json.dumps(["memory" if lacks else "failed", str(error)]).encode())
            answers.write(b"\n")
        else:
            answers.write(json.dumps(answer).encode() + b"\n")
            with pa.ipc.new_stream(answers, schema) as writer:
                for start in range(0, data.num_rows, ROWS):
                    writer.write_batch(data.slice(start, ROWS))
            del data
        answers.flush()


def _limit(memory: int) -> None:
    """Let this process take so much more memory, and leave no file of a crash."""
    with suppress(ImportError, OSError, ValueError):  # not on this system
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, most))


class _Asked:
    """A file of which the other side reads the bytes."""

    closed = False

    def __init__(self, requests: Any, answers: Any, size: int) -> None:
        self._requests, self._answers, self._size, self._place = requests, answers, size, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position."""
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def tell(self) -> int:
        """Return the position."""
        return self._place

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        rest = max(0, self._size - self._place)
        size = rest if size < 0 else min(size, rest)
        self._answers.write(json.dumps(["read", self._place, size]).encode() + b"\n")
        self._answers.flush()
        data: bytes = self._requests.read(int.from_bytes(self._requests.read(8), "little"))
        self._place += len(data)
        return data
