"""Compiled kernels on disk: damaged, stale, shared between processes, and not writable."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from rankmill.kernels import cache, jit

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)

KERNEL = """
from rankmill.kernels import jit
from rankmill.kernels.jit import heavy_kernel, helper

@helper
def scaled(value):
    return value * 2

@heavy_kernel
def total(values, out):
    for i in range(len(values)):
        out[0] += scaled(values[i])
"""
# Forked children start with numba set up and no kernel compiled or loaded. Each child prints the
# sum over [1, 2, 3], and how many versions of kernels it compiled and loaded.
CHILDREN = """
import json, os, sys
import numba
import numpy as np
import some_kernel
from rankmill.kernels.jit import compiled_so_far

numba.njit(lambda: 0)()

def child(kind):
    try:
        out = np.zeros(1, kind)
        some_kernel.total(np.array([1, 2, 3], kind), out)
        counted = compiled_so_far()
        line = json.dumps([out[0].item(), counted.compiled, counted.loaded]) + "\\n"
        os.write(1, line.encode())
    except BaseException as error:
        os.write(1, (json.dumps(repr(error)) + "\\n").encode())
    finally:
        os._exit(0)

for line in sys.stdin:
    kinds = line.split()
    children = []
    for kind in kinds:
        children.append(os.fork())
        if children[-1] == 0:
            child(kind)
    codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children]
    os.write(1, (json.dumps(codes) + "\\n").encode())
"""


class Processes:
    """Calls of the kernel in fresh processes, which share a folder of compiled kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "some_kernel.py").write_text(KERNEL)
        self.process: Any = None

    def start(self) -> None:
        with (self.folder / "errors").open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CHILDREN],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                text=True,
                env=os.environ | {"NUMBA_CACHE_DIR": str(self.folder / "cache")},
            )

    def call(self, *kinds: str) -> list[Any]:
        """Call the kernel in a process for each kind of number, all at once."""
        self.process.stdin.write(" ".join(kinds) + "\n")
        self.process.stdin.flush()
        answers = [json.loads(self.process.stdout.readline()) for _ in range(len(kinds) + 1)]
        assert answers.pop() == [0] * len(kinds)
        return sorted(answers)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def kept(self) -> list[Path]:
        return sorted(path for path in (self.folder / "cache").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    found = Processes(tmp_path_factory.mktemp("kernel"))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def processes(started):
    shutil.rmtree(started.folder / "cache", ignore_errors=True)
    return started


def damages(content: bytes) -> dict[str, bytes]:
    """The possible contents of a file after a full disk, a killed container or a bad sector."""
    draw = random.Random(0)

    def flipped(place: int) -> bytes:
        changed = bytearray(content)
        changed[place] ^= 1 << draw.randrange(8)
        return bytes(changed)

    lengths = (0, 16, len(content) // 2, len(content) - 1)
    places = (0, 16, draw.randrange(len(content)), draw.randrange(len(content)))
    return {
        **{f"cut to {length}": content[:length] for length in lengths},
        **{f"flipped at {place}": flipped(place) for place in places},
        "longer": content + b"\0",
        "zeros": bytes(len(content)),
    }


@pytest.mark.long
def test_a_damaged_file_is_compiled_anew_and_replaced(processes):
    assert processes.call("int64") == [[12, 1, 0]]
    assert processes.call("int64") == [[12, 0, 1]]
    (path,) = processes.kept()
    for name, content in damages(path.read_bytes()).items():
        path.write_bytes(content)
        assert (name, processes.call("int64")) == (name, [[12, 1, 0]])
        assert processes.kept() == [path]
    assert processes.call("int64") == [[12, 0, 1]]


@pytest.mark.long
def test_a_file_is_of_the_types_that_it_is_used_for(processes):
    processes.call("int64")
    (of_integers,) = processes.kept()
    processes.call("float64")
    (of_floats,) = {*processes.kept()} - {of_integers}
    of_floats.write_bytes(of_integers.read_bytes())
    assert processes.call("float64") == [[12.0, 1, 0]]


def test_a_changed_source_is_compiled_anew(processes):
    assert processes.call("int64") == [[12, 1, 0]]
    processes.stop()
    (processes.folder / "some_kernel.py").write_text(KERNEL.replace("value * 2", "value * 3"))
    processes.start()
    assert processes.call("int64") == [[18, 1, 0]]
    assert processes.call("int64") == [[18, 0, 1]]
    assert len(processes.kept()) == 1
    processes.stop()
    (processes.folder / "some_kernel.py").write_text(KERNEL)
    processes.start()


def test_a_kernel_is_stale_where_a_file_beside_it_changed(monkeypatch):
    from rankmill.kernels.hits import mark_repeats

    place = cache.place_of(mark_repeats.__wrapped__, "")
    assert cache.place_of(mark_repeats.__wrapped__, "") == place
    monkeypatch.setattr(cache, "SOURCES", b"those of another version")
    other = cache.place_of(mark_repeats.__wrapped__, "")
    assert other.path == place.path
    assert other.asked != place.asked


@pytest.mark.long
def test_what_was_compiled_of_files_that_changed_since_is_not_kept(processes, monkeypatch):
    """An update of the package may replace files while an old process runs."""
    processes.stop()
    start = CHILDREN.replace(
        "import some_kernel", "import some_kernel; some_kernel.jit.cache.SOURCES = b''"
    )
    monkeypatch.setattr(sys.modules[__name__], "CHILDREN", start)
    processes.start()
    assert processes.call("int64") == [[12, 1, 0]]
    assert processes.kept() == []
    processes.stop()
    monkeypatch.undo()
    processes.start()


def test_a_kernel_is_of_the_fields_of_its_arguments():
    """Named tuples of the same name may have other fields, or their order is another."""
    from collections import namedtuple

    def text(argument):
        return jit.text_of(jit._kind_of(argument))

    first = text(namedtuple("Both", "a b")(1, namedtuple("Inner", "c d")(1, 2)))
    for other in (
        namedtuple("Both", "b a")(1, namedtuple("Inner", "c d")(1, 2)),
        namedtuple("Both", "a b")(1, namedtuple("Inner", "d c")(1, 2)),
    ):
        assert text(other) != first
    both = [np.zeros(1, [("a", kind)]) for kind in ("<i4", "<f4")]
    assert text(both[0]) != text(both[1])


@pytest.mark.long
def test_processes_that_start_together_keep_what_each_compiled(processes):
    kinds = ["int64", "float64", "int32", "float32"]
    assert processes.call(*kinds, *kinds) == [[12, 1, 0]] * 8
    assert processes.call(*kinds) == [[12, 0, 1]] * 4
    assert len(processes.kept()) == 4


@pytest.mark.long
def test_a_file_that_cannot_be_replaced_is_a_warning(processes):
    processes.call("int64")
    (path,) = processes.kept()
    path.unlink()
    path.mkdir()
    assert processes.call("int64") == [[12, 1, 0]]
    assert (
        "compiled kernels cannot be saved ([Errno 21] Is a directory"
        in (processes.folder / "errors").read_text()
    )
    assert processes.kept() == []


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
# Of a group that no user is in but, perhaps, others that are not listed.
UNKNOWN = 54_321
# The modes of a folder and of the one above it, the folder's owner and group, and the error.
FOLDERS = [
    (0o755, 0o755, 0, 0, None),
    (0o755, 0o1777, 0, 0, None),
    (0o775, 0o775, 0, 0, None),
    (0o700, 0o777, 0, 0, "can be written by everybody"),
    (0o777, 0o755, 0, 0, "can be written by everybody"),
    (0o1777, 0o755, 0, 0, "can be written by everybody"),
    (0o755, 0o755, UNKNOWN, 0, f"belongs to another user (uid {UNKNOWN})"),
    (0o755, 0o755, 0, UNKNOWN, None),
    (0o775, 0o755, 0, UNKNOWN, f"can be written by other users (gid {UNKNOWN})"),
]


@AS_ROOT
@pytest.mark.parametrize(("mode", "above", "user", "group", "said"), FOLDERS)
def test_a_folder_that_others_can_write_is_refused(tmp_path, mode, above, user, group, said):
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    os.chown(folder, user, group)
    folder.chmod(mode)
    folder.parent.chmod(above)
    if said is None:
        cache.check_folder(str(folder), "")
    else:
        with pytest.raises(RuntimeError, match=re.escape(said)):
            cache.check_folder(str(folder), "")


@AS_ROOT
def test_a_folder_above_that_another_owns_is_refused(tmp_path):
    (tmp_path / "above" / "cache").mkdir(parents=True)
    os.chown(tmp_path / "above", UNKNOWN, 0)
    with pytest.raises(RuntimeError, match=f"above belongs to another user .uid {UNKNOWN}"):
        cache.check_folder(str(tmp_path / "above" / "cache"), "")


def test_the_named_folder_may_not_be_a_shared_one(tmp_path):
    (tmp_path / "cache" / "kernels_1").mkdir(parents=True)
    (tmp_path / "cache").chmod(0o1777)
    path = str(tmp_path / "cache" / "kernels_1")
    cache.check_folder(path, "")
    with pytest.raises(RuntimeError, match="cache can be written by everybody"):
        cache.check_folder(path, str(tmp_path / "cache"))


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_shared_folder_is_neither_read_nor_written(processes, mode):
    before = (processes.folder / "errors").read_text()
    processes.call("int64")
    kept = processes.kept()
    (processes.folder / "cache").chmod(mode)
    assert processes.call("int64") == [[12, 1, 0]]
    assert processes.call("float64") == [[12.0, 1, 0]]
    assert processes.kept() == kept
    said = (processes.folder / "errors").read_text().removeprefix(before)
    assert said.count("cache can be written by everybody, whose code would run as yours") == 2
    (processes.folder / "cache").chmod(0o755)
    assert processes.call("int64") == [[12, 0, 1]]


def test_a_file_that_others_can_write_is_not_loaded_but_replaced(processes):
    processes.call("int64")
    (path,) = processes.kept()
    for mode in (0o646, 0o666):
        path.chmod(mode)
        assert processes.call("int64") == [[12, 1, 0]]
        assert processes.call("int64") == [[12, 0, 1]]
        assert stat.S_IMODE(path.stat().st_mode) & 0o022 == 0
    assert f"{path} can be written by everybody" in (processes.folder / "errors").read_text()


@AS_ROOT
def test_a_file_of_another_user_is_not_loaded_but_replaced(processes):
    processes.call("int64")
    (path,) = processes.kept()
    os.chown(path, UNKNOWN, UNKNOWN)
    assert processes.call("int64") == [[12, 1, 0]]
    assert processes.call("int64") == [[12, 0, 1]]
    assert path.stat().st_uid == 0


@pytest.mark.long
def test_a_kernel_is_saved_for_oneself_under_any_umask(processes):
    processes.stop()
    before = os.umask(0)
    try:
        (processes.folder / "cache").mkdir(mode=0o755)
        processes.start()
    finally:
        os.umask(before)
    processes.call("int64")
    # The folder that numba makes within is open to all, under such a umask.
    assert processes.kept() == []
    next((processes.folder / "cache").iterdir()).chmod(0o755)
    processes.call("int64")
    assert processes.call("int64") == [[12, 0, 1]]
    processes.stop()
    processes.start()


def test_this_numba_is_as_known():
    assert cache.numba_is_known()
    assert cache.numba_version() == numba.__version__


ALONE = """
import sys
import numpy as np
import some_kernel
from rankmill.kernels import cache, jit

if sys.argv[1] == "newer":
    cache.NEWEST_NUMBA = (0, 0)
some_kernel.total(np.arange(4), out := np.zeros(1, np.int64))
print(out[0], jit.compiled_so_far().compiled, "numba" in sys.modules)
"""


def called(folder: Path, version: str, code: str = ALONE) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, version],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def linked_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


# What may be in the place of a saved kernel. Opening a pipe waits for somebody who writes to it.
NOT_FILES = {
    "pipe": os.mkfifo,
    "link to a pipe": linked_to_a_pipe,
    "socket": bound,
    "link to a device": lambda path: path.symlink_to("/dev/null"),
    "link to nothing": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.rows(1)
@pytest.mark.parametrize("made", NOT_FILES.values(), ids=NOT_FILES)
@pytest.mark.long
def test_what_is_not_a_file_is_not_opened_but_replaced(processes, made, monkeypatch):
    processes.call("int64")
    (path,) = processes.kept()
    path.unlink()
    monkeypatch.chdir(path.parent)  # the path of a socket has to be short
    made(Path(path.name))
    assert called(processes.folder, "known") == "12 1 True\n"
    assert called(processes.folder, "known") == "12 0 False\n"


@pytest.mark.parametrize("made", [os.mkfifo, bound, Path.mkdir])
def test_numba_opens_nothing_in_a_folder_with_what_is_not_a_file(tmp_path, made, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache.check_files(".")
    Path("link").symlink_to("nothing")
    cache.check_files(".")
    made(Path("entry"))
    with pytest.raises(RuntimeError, match="entry is not a plain file"):
        cache.check_files(".")


def test_a_saved_kernel_is_loaded_without_numba(processes):
    assert called(processes.folder, "known") == "12 1 True\n"
    assert called(processes.folder, "known") == "12 0 False\n"


@pytest.mark.long
def test_a_newer_numba_keeps_kernels_in_its_own_way(processes):
    assert called(processes.folder, "newer") == "12 1 True\n"
    assert called(processes.folder, "newer") == "12 0 True\n"
    assert {path.suffix for path in processes.kept()} == {".nbc", ".nbi"}
    processes.kept()[0].chmod(0o666)
    kept = {path: path.stat().st_mtime_ns for path in processes.kept()}
    assert called(processes.folder, "newer") == "12 1 True\n"
    assert {path: path.stat().st_mtime_ns for path in processes.kept()} == kept


@pytest.mark.long
def test_numba_links_what_was_linked_before_it_was_imported(processes):
    """Both know the functions of its C extensions, which are there once."""
    code = (
        ALONE
        + """
import numba
print(numba.njit(lambda values: values.sum())(np.ones(3)))
some_kernel.total(np.arange(4.0), more := np.zeros(1))
print(more[0])
"""
    )
    for _ in range(2):
        found = called(processes.folder, "known", code)
    assert found == "12 0 False\n3.0\n12.0\n"


EMPTY = """
import numpy as np
import some_kernel
from rankmill.kernels.jit import compiled_so_far

try:
    some_kernel.total(np.arange(4), np.zeros(2, np.int64)[:0])
except IndexError:
    print("out of bounds")
print(compiled_so_far().compiled)
"""


@pytest.mark.long
def test_a_kernel_that_checks_bounds_is_another(processes, monkeypatch):
    assert called(processes.folder, "", EMPTY) == "1\n"
    assert called(processes.folder, "", EMPTY) == "0\n"
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert called(processes.folder, "", EMPTY) == "out of bounds\n1\n"
    assert called(processes.folder, "", EMPTY) == "out of bounds\n0\n"
    monkeypatch.delenv("NUMBA_BOUNDSCHECK")
    assert called(processes.folder, "", EMPTY) == "0\n"


FREED = """
import ctypes, sys
import numpy as np
import some_kernel
from rankmill.kernels import cache

some_kernel.total(np.arange(4), np.zeros(1, np.int64))
functions = cache._part("core.runtime._nrt_python").c_helpers
allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(functions["Allocate"])
free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions["Free"])
place = allocate(100)
before = "numba" in sys.modules
import numba
free(place)
print(before)
"""


def test_what_a_kernel_allocated_is_freed_after_numba_is_imported(processes, monkeypatch):
    """Another thread may import numba while a kernel runs."""
    processes.call("int64")
    monkeypatch.setenv("PYTHONMALLOC", "debug")  # it aborts where one allocator frees another's
    assert called(processes.folder, "", FREED) == "False\n"


def test_the_version_of_a_checkout_of_numba_is_found(monkeypatch, tmp_path):
    (tmp_path / "_version.py").write_text("git_refnames = 'HEAD'\n")
    monkeypatch.setattr(cache, "_folders_of_numba", lambda: [str(tmp_path)])
    assert cache.numba_version.__wrapped__() == numba.__version__


@pytest.mark.long
def test_a_kernel_with_constants_of_python_is_not_kept(processes):
    code = """
import numpy as np
from rankmill.kernels.jit import compiled_so_far, heavy_kernel

@heavy_kernel
def doubled(values):
    return values * 2

print(doubled(np.arange(4)), compiled_so_far().compiled)
"""
    (processes.folder / "returning.py").write_text(code)
    for _ in range(2):
        assert called(processes.folder, "", "import returning") == "[0 2 4 6] 1\n"


def test_a_program_may_tell_numba_to_compile_nothing(processes):
    code = """
import numba
numba.config.DISABLE_JIT = 1
import numpy as np
from rankmill.kernels.text import has_runs
print(has_runs(np.full(1 << 17, 9, np.uint8)))
"""
    assert called(processes.folder, "", code) == "True\n"
