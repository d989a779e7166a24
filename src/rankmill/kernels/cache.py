"""Compiled kernels on disk, one file each: found, checked and linked without importing numba.

To import numba takes longer than a usual evaluation of small files. Only compiling needs it.

- A damaged file counts as missing. A file starts with a checksum of its content and of the request;
  if this is wrong, the kernel is compiled again and the file is replaced.
- So does what is not a plain file. It is not opened, as opening a pipe waits for its writer.
- So does a file that another user owns or may write, as this process runs what it contains.
- There is no index file, because processes that save at the same time would overwrite it.
"""

import ctypes
import functools
import hashlib
import json
import os
import stat
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, NamedTuple

from llvmlite import binding

# Up to this version we know what a saved kernel contains and which functions it is linked with.
NEWEST_NUMBA = 0, 68
# After so many processes that were slow without a kernel, the next compiles it.
SLOW_PROCESSES = 3
# The number of bytes of the checksum at the start of a saved kernel's file.
CHECKSUM = 16
# Variables NUMBA_... of the environment by which other code is compiled.
SETTINGS = (
    *("ENABLE_AVX", "BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE"),
    *("DISABLE_INTEL_SVML", "DEBUGINFO", "DEBUG_NRT"),
)
# C extensions of numba, and how compiled code names the functions in them.
PARTS = {"_helperlib": "numba_", "_dynfunc": "numba_", "core.runtime._nrt_python": "NRT_"}


class KernelFile(NamedTuple):
    """The file of one version of a kernel."""

    path: str
    asked: bytes  # all that the content depends on


class UnsafeFileError(Exception):
    """Another user could have written the file of a kernel."""


def checksum(*parts: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        found.update(len(part).to_bytes(8))
        found.update(part)
    return found.digest()


def digest_of_sources() -> bytes:
    """Return a digest of all files of kernels, which share helpers; b"" if no file is there."""
    folder = os.path.dirname(__file__)
    contents = []
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    contents += [name.encode(), file.read()]
    return checksum(*contents) if contents else b""


# Taken at import, because this process compiles these sources even if a file is replaced later.
SOURCES = digest_of_sources()


@functools.cache
def numba_version() -> str:
    """Return the version of numba, from its file: its import, and package metadata, are slow."""
    with suppress(OSError, ValueError, LookupError):  # a checkout of numba has another such file
        (folder,) = _folders_of_numba()
        with open(os.path.join(folder, "_version.py"), encoding="utf-8") as file:
            text = file.read().split("'''")[1]
        return str(json.loads(text)["version"])
    import numba

    return str(numba.__version__)


def numba_is_known(oldest: tuple[int, int] = (0, 0)) -> bool:
    """Return whether we know how this version of numba compiles and links."""
    found = numba_version().split(".")[:2]
    return all(map(str.isdecimal, found)) and oldest <= tuple(map(int, found)) <= NEWEST_NUMBA


@functools.cache
def processor() -> tuple[str, ...]:
    """Return what code is compiled for and how, as numba finds it."""
    name, features = map(os.environ.get, ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))
    if features is None:
        features = ""
        if (name or "").lower() != "generic":
            with suppress(RuntimeError):
                features = binding.get_host_cpu_features().flatten()
    settings = (os.environ.get(f"NUMBA_{one}", "") for one in SETTINGS)
    return binding.get_process_triple(), name or binding.get_host_cpu_name(), features, *settings


def place_of(function: Any, version: str, whose: str = "", content: str = "") -> KernelFile:
    """Return where a version of a function, for types of arguments, is kept: beside its file.

    `whose` and `content` are as in `rankmill.kernels.jit.compile_beside`. Raises RuntimeError if no
    folder can be written to, or others can write to it.
    """
    code = function.__code__
    folder = folder_of(os.path.dirname(os.path.abspath(code.co_filename)))
    named = repr((whose, version, processor())).encode()
    made_for = numba_version(), _content_of(code.co_filename), code.co_code, SOURCES, content
    stem = os.path.splitext(os.path.basename(code.co_filename))[0]
    function_name = function.__name__.strip("<>")
    tag = sys.implementation.cache_tag
    name = f"{stem}.{function_name}.{tag}.{checksum(named).hex()}.nbc"
    return KernelFile(os.path.join(folder, name), repr((tag, made_for)).encode() + named)


@functools.cache
def _content_of(path: str) -> bytes:
    """Return a digest of a source file, or of the archive of a package that is in one."""
    for found in (path, getattr(globals().get("__loader__"), "archive", "")):
        with suppress(OSError), open(found, "rb") as file:
            return checksum(file.read())
    return b""


def folder_of(directory: str) -> str:
    """Return the folder for the kernels of a directory of sources; RuntimeError if there is none.

    As with numba, it is in NUMBA_CACHE_DIR, beside the sources, or with the user's other caches.
    """
    return _folder_of(directory, os.environ.get("NUMBA_CACHE_DIR", ""))


@functools.cache
def _folder_of(directory: str, named: str) -> str:
    own = f"{os.path.basename(directory)}_{hashlib.sha1(directory.encode()).hexdigest()}"
    beside = os.path.join(directory, "__pycache__")
    candidates = [os.path.join(named, own)] if named else []
    for folder in [*candidates, beside, os.path.join(_user_folder(), own)]:
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                folder = os.path.realpath(folder)
                check_folder(folder, named)
                return folder
    raise RuntimeError("no folder for them can be written to")


def _user_folder() -> str:
    """Return the folder of numba's compiled functions in the home of a user."""
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA", ""), "numba", "Cache")
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    chosen = None if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME")
    return os.path.join(chosen or os.path.expanduser(usual), "numba")


def load(place: KernelFile) -> Callable[..., Any] | None:
    """Return the kernel that a file contains, or None if there is no usable one.

    Raises UnsafeFileError if others can write to the file.
    """
    if not os.path.isfile(place.path):
        return None
    try:
        with open(place.path, "rb") as file:
            reason = why_unsafe(file.fileno())
            found = b"" if reason else file.read()
        if not reason and found[:CHECKSUM] == checksum(place.asked, found[CHECKSUM:]):
            header, code = found[CHECKSUM:].split(b"\n", 1)
            return _linked(code, *json.loads(header))
    except Exception:  # any error: the kernel is then compiled, which reports real problems
        return None
    if reason:
        raise UnsafeFileError(f"{place.path} {reason}")
    return None


def add_slow(place: KernelFile) -> None:
    """Note that a process was slow without a kernel. Raises OSError if this fails."""
    with open(f"{place.path}.slow", "ab") as file:
        file.write(b".")


def is_slow(place: KernelFile) -> bool:
    """Whether so many processes were slow without a kernel that it is worth compiling."""
    with suppress(OSError):
        return os.path.getsize(f"{place.path}.slow") >= SLOW_PROCESSES
    return False


def save(
    place: KernelFile, code: bytes, wrapper: str, environment: str, needs: Sequence[str]
) -> None:
    """Save the object file of a compiled version. Raises OSError if this fails.

    `wrapper` and `environment` are the names in it of the function that Python calls, and of its
    pointer to constants; `needs` are the functions and variables that are not in it.
    """
    if digest_of_sources() != SOURCES:
        return  # the source files changed since this process compiled them
    content = json.dumps([wrapper, environment, [*needs]]).encode() + b"\n" + code
    unfinished = f"{place.path}.tmp.{uuid.uuid4().hex[:16]}"
    try:
        # A file that nobody else can write, whatever the umask: others are not loaded again.
        with open(unfinished, "xb", opener=functools.partial(os.open, mode=0o644)) as file:
            file.write(checksum(place.asked, content) + content)
        os.replace(unfinished, place.path)
        with suppress(OSError):
            os.unlink(f"{place.path}.slow")
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def _linked(
    code: bytes, wrapper: str, environment: str, needs: list[str]
) -> Callable[..., Any] | None:
    """Return a compiled function as Python calls it, or None if what it needs is not there."""
    engine = _engine()  # it finds the functions of the C library and of Python
    functions = _register_helpers()
    for name in needs:
        if name in functions:  # of the C library, as numba's own modules call it
            binding.add_symbol(name, functions[name])
    if not all(map(binding.address_of_symbol, needs)):
        import numba  # noqa: F401  it loads more libraries, such as Intel's for vectors of numbers

        if not all(map(binding.address_of_symbol, needs)):
            return None
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(wrapper)
    if not address:
        return None
    dynamic = _part("_dynfunc")
    held = dynamic.Environment({})
    pointer = engine.get_global_value_address(environment)
    ctypes.c_void_p.from_address(pointer).value = id(held)
    made = dynamic.make_function(sys.modules[__name__], wrapper, "", address, held, ())
    return made  # type: ignore[no-any-return]


@functools.cache
def _engine() -> Any:
    """Return a linker. What it links is never unloaded."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


@functools.cache
def _register_helpers() -> dict[str, int]:
    """Tell the linker the functions of numba that compiled code calls; return the address of each.

    Numba does the same when it is imported.
    """
    functions = {}
    # What a kernel allocates before numba is imported may be freed after that.
    _part("core.runtime._nrt_python").memsys_use_cpython_allocator()
    binding.add_symbol("_Py_NoneStruct", id(None))
    for part, prefix in PARTS.items():
        for name, address in _part(part).c_helpers.items():
            whole = prefix == "NRT_" and name.startswith("_")
            binding.add_symbol(name if whole else prefix + name, address)
            functions[name] = address
    for name, value in vars(__import__("builtins")).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            binding.add_symbol(f"PyExc_{name}", id(value))
    return functions


def _folders_of_numba() -> list[str]:
    spec = find_spec("numba")
    return list(spec.submodule_search_locations or ()) if spec else []


@functools.cache
def _part(name: str) -> Any:
    """Return a C extension of numba, without importing numba."""
    full = f"numba.{name}"
    if full in sys.modules:
        return sys.modules[full]
    inner = name.split(".")[:-1]
    spec = PathFinder.find_spec(full, [os.path.join(one, *inner) for one in _folders_of_numba()])
    if spec is None or spec.loader is None:
        raise ImportError(f"{full} is not there")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_folder(path: str, named: str) -> None:
    """Raise RuntimeError if another user than this one and root can put a file into a folder.

    Its path has no symbolic links, so that what is checked is what is opened later. `named` is the
    folder that NUMBA_CACHE_DIR names, of which it is a subfolder; "" if it is not set.
    """
    kept = {path, os.path.realpath(named) if named else path}
    while True:
        found = os.stat(path)
        # In a folder with the sticky bit, such as /tmp, nobody can replace what others own.
        shared = path not in kept and bool(found.st_mode & stat.S_ISVTX)
        reason = why_unsafe(path, found, shared=shared)
        if reason is not None:
            raise RuntimeError(f"{path} {reason}, whose code would run as yours")
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def check_files(folder: str) -> None:
    """Raise RuntimeError if others can write to a folder of NUMBA_CACHE_DIR, or a file in it.

    Also if something in it is not a plain file: opening a pipe would wait for its writer.
    """
    check_folder(os.path.realpath(folder), os.environ.get("NUMBA_CACHE_DIR", ""))
    paths = (os.path.join(folder, name) for name in os.listdir(folder))
    for path in filter(os.path.exists, paths):  # another process may have replaced one
        if not os.path.isfile(path):
            raise RuntimeError(f"{path} is not a plain file")
        reason = why_unsafe(path)
        if reason is not None:
            raise RuntimeError(f"{path} {reason}, whose code would run as yours")


def why_unsafe(
    file: int | str, found: os.stat_result | None = None, *, shared: bool = False
) -> str | None:
    """Return why another user could have written an open file or a path, None if none could.

    If it is `shared`, it does not matter who may write to it, only whom it belongs to.
    """
    if os.name == "nt":  # its permissions say nothing there
        return None
    found = os.stat(file) if found is None else found
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {found.st_uid})"
    if shared:
        return None
    if found.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if found.st_mode & stat.S_IWGRP and not (_only_own(found.st_gid) and not _has_list(file)):
        return f"can be written by other users (gid {found.st_gid})"
    return None


@functools.cache
def _only_own(group: int) -> bool:
    """Return whether nobody but this user and root is in a group."""
    import grp
    import pwd

    try:
        user, of_group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    users = pwd.getpwall()
    members = {*of_group.gr_mem, *(one.pw_name for one in users if one.pw_gid == group)}
    # A list of users that lacks this one, as that of a directory service may, lacks others too.
    complete = user in {one.pw_name for one in users} or of_group.gr_name == user
    return complete and members <= {user, "root"}


def _has_list(file: int | str) -> bool:
    """Return whether an access control list, of which the mode is a mask, may name other users."""
    with suppress(AttributeError, OSError):
        return bool(os.getxattr(file, "system.posix_acl_access"))
    return False
