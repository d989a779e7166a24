"""Break the sources in many places, one at a time, and count how many breaks the tests find.

    python benchmarks/mutations.py                       # the tests of this checkout
    python benchmarks/mutations.py --tests main          # those of a revision, on the same breaks
    python benchmarks/mutations.py --show                # which breaks there are

A break is a comparison turned round, + for -, a whole number off by one, `and` for `or`, a branch
that is never taken, a `not` that is left out, within a function. The sample is spread evenly over
the folders, and the same seed and sources give the same sample.

All tests run once, and note which of the functions that will be broken they call. For each break, a
child of this process then has its function broken, and runs the tests that call it, the quickest
first, until one fails. So tests that start processes of their own are not counted on. A break that
no test sees may be one that changes no behaviour.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import gc
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = "engine", "sources", "analysis", "nightly", "metrics", "matching"
TESTS = [
    *(f"tests/{folder}" for folder in FOLDERS),
    *("tests/contract", "tests/shown", "tests/results", "tests/config", "tests/cli"),
]
OTHERS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Break(NamedTuple):
    """A place of a file, and what stands there instead."""

    folder: str
    path: str
    line: int
    old: str
    new: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} -> {self.new!r}"


def broken(node: ast.AST) -> ast.expr | None:
    """What stands in place of an expression, or nothing."""
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in OTHERS:
            return ast.Compare(left, [OTHERS[type(operator)]()], right)
        case ast.BinOp(left, operator, right) if type(operator) in OTHERS:
            return ast.BinOp(left, OTHERS[type(operator)](), right)
        case ast.BoolOp(operator, values):
            return ast.BoolOp(OTHERS[type(operator)](), values)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(value) if type(value) is int:
            return ast.Constant(value + 1)
    return None


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that run: no annotations, no messages of errors."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "exc", "msg") or isinstance(tree, ast.JoinedStr):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from running(node)


def breaks_of(path: Path, source: Path) -> list[Break]:
    """All breaks of a file."""
    text = path.read_bytes()
    ends = [0]
    for line in text.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    name = str(path.relative_to(source))
    found = []
    functions = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef))
    bodies = [statement for one in functions for statement in one.body]
    for node in {id(node): node for one in bodies for node in running(one)}.values():
        new: ast.expr | None = broken(node)
        if isinstance(node, ast.If | ast.IfExp):
            node, new = node.test, ast.Constant(False)
        if new is None or not isinstance(node, ast.expr):
            continue
        start = ends[node.lineno - 1] + node.col_offset
        end = ends[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = ast.unparse(node)
        folder = name.split("/")[2]
        found.append(Break(folder, name, node.lineno, old, f"({ast.unparse(new)})", start, end))
    return found


def sample(source: Path, count: int, seed: int) -> list[Break]:
    """As many breaks of each folder, of other files while there are files enough."""
    chosen = []
    for folder in FOLDERS:
        draw = random.Random(f"{seed} {folder}")
        files = sorted((source / "src/rankmill" / folder).rglob("*.py"))
        left = [breaks for path in files if (breaks := breaks_of(path, source))]
        wanted = -(-count // len(FOLDERS))
        picked = draw.sample(left, min(len(left), wanted))
        picked += draw.choices(left, k=wanted - len(picked))
        chosen += [draw.choice(breaks) for breaks in picked]
    return chosen


def checked_out(revision: str | None, names: list[str], target: Path) -> None:
    """Copy files of a revision, or of this checkout as it stands."""
    target.mkdir(parents=True, exist_ok=True)
    if revision is None:
        packed = subprocess.run(["tar", "-cf-", *names], cwd=ROOT, check=True, capture_output=True)
    else:
        known = subprocess.run(
            ["git", "ls-tree", "--name-only", revision],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        names = [name for name in names if name in known]
        packed = subprocess.run(
            ["git", "archive", revision, *names], cwd=ROOT, check=True, capture_output=True
        )
    subprocess.run(["tar", "-xf-"], cwd=target, input=packed.stdout, check=True)


def codes(code: types.CodeType, path: tuple[int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Each code object within another, by its place."""
    for place, one in enumerate(code.co_consts):
        if isinstance(one, types.CodeType):
            yield (*path, place), one
            yield from codes(one, (*path, place))


def probe(tree: ast.Module, line: int, number: int) -> None:
    """Let the innermost function of a line note that it is called."""
    within = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef) and one.lineno <= line <= (one.end_lineno or 0)
    ]
    inner = max(within, key=lambda one: one.lineno)
    note = ast.parse(f"__import__('builtins').noted.add({number})").body[0]
    for node in ast.walk(note):
        node.lineno = node.end_lineno = inner.body[0].lineno
        node.col_offset = node.end_col_offset = 0
    inner.body.insert(0, note)


def functions_of(place: Path) -> dict[str, list[types.FunctionType]]:
    """File -> the functions that were made of it."""
    found: dict[str, list[types.FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is types.FunctionType and one.__code__.co_filename.startswith(str(place)):
            found.setdefault(one.__code__.co_filename, []).append(one)
    return found


def replace_code(file: str, functions: list[types.FunctionType], old: Any, new: Any) -> None:
    """Give the functions of a module the code of other sources of it."""
    before, after = (dict(codes(compile(one, file, "exec"))) for one in (old, new))

    def key(code: types.CodeType) -> tuple[str, int]:
        return code.co_qualname, code.co_firstlineno

    for function in functions:
        places = [where for where, code in before.items() if key(code) == key(function.__code__)]
        same = [code for code in after.values() if key(code) == key(function.__code__)]
        if len(same) == 1:
            function.__code__ = same[0]
        elif len(places) == len(same):  # lambdas of one line: in their order
            known = [before[where] for where in places]
            if function.__code__ in known:
                function.__code__ = same[known.index(function.__code__)]


def forget(place: Path) -> None:
    """Empty the caches that what is broken may have filled."""
    for one in gc.get_objects():
        if type(one) is functools._lru_cache_wrapper:
            code = getattr(one.__wrapped__, "__code__", None)
            if code is not None and code.co_filename.startswith(str(place)):
                one.cache_clear()


class Campaign:
    """A plugin of pytest that runs its tests once, and then those that call what is broken."""

    def __init__(self, place: Path, breaks: list[Break], limit: int, most: int) -> None:
        self.place, self.breaks, self.limit, self.most = place, breaks, limit, most
        self.callers: dict[int, list[tuple[float, Any]]] = {n: [] for n in range(len(breaks))}
        self.ends: list[str] = []

    def pytest_runtestloop(self, session: Any) -> bool:
        from _pytest.runner import runtestprotocol

        gc.unfreeze()  # what is frozen is not listed
        noted: set[int] = set()
        builtins.noted = noted  # type: ignore[attr-defined]
        paths = {one.path for one in self.breaks}
        for path in paths:
            importlib.import_module(path[4:-3].replace("/", "."))
        self.functions = functions_of(self.place)
        for path in paths:
            text = (self.place / path).read_bytes()
            tree = ast.parse(text)
            for number, one in enumerate(self.breaks):
                if one.path == path:
                    probe(tree, one.line, number)
            self.replace(path, text, tree)
        begin = time.monotonic()
        gone = []
        for number, item in enumerate(session.items):
            noted.clear()
            started = time.monotonic()
            following = session.items[number + 1] if number + 1 < len(session.items) else None
            reports = runtestprotocol(item, log=False, nextitem=following)
            if any(one.failed for one in reports):
                gone.append(item.nodeid)
                continue
            for one in noted:
                self.callers[one].append((time.monotonic() - started, item))
        print(f"{len(session.items)} tests in {time.monotonic() - begin:.0f} s", flush=True)
        print(f"left out, as they fail: {gone}", flush=True)
        for number, one in enumerate(self.breaks):
            begin = time.monotonic()
            how = self.end_of(number, one)
            self.ends.append(how)
            print(f"{number:3} {time.monotonic() - begin:4.0f} s  {one}: {how}", flush=True)
        return True

    def replace(self, path: str, old: Any, new: Any) -> None:
        file = str(self.place / path)
        replace_code(file, self.functions.get(file, []), old, new)

    def end_of(self, number: int, one: Break) -> str:
        """Which test finds a break, or "" if none does."""
        from _pytest.runner import runtestprotocol

        callers = sorted(self.callers[number], key=lambda each: each[0])
        items = [item for _, item in callers[: self.most]]
        if not items:
            return ""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                text = (self.place / one.path).read_bytes()
                broken = text[: one.start] + one.new.encode() + text[one.end :]
                self.replace(one.path, text, broken)
                forget(self.place)
                for item in items:
                    item._initrequest()
                    reports = runtestprotocol(item, log=False, nextitem=None)
                    if any(each.failed for each in reports):
                        os.write(write, item.nodeid.encode())
                        os._exit(0)
            except BaseException as error:
                os.write(write, f"it ended with {error!r}".encode())
            os._exit(0)
        os.close(write)
        left = self.limit
        while left > 0 and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.1)
            left -= 0.1
        if left <= 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with os.fdopen(read, "rb") as told:
            found = told.read().decode()
        return found if left > 0 else "no end within the limit"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="of breaks (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--source", metavar="REVISION", help="of src; this checkout by default")
    parser.add_argument("--tests", metavar="REVISION", help="of tests; this checkout by default")
    parser.add_argument("--limit", type=int, default=300, help="seconds a break (%(default)s)")
    parser.add_argument("--most", type=int, default=100, help="tests a break (%(default)s)")
    parser.add_argument("--folders", nargs="+", default=TESTS, help="or files, of tests")
    parser.add_argument("--show", action="store_true", help="only show the breaks")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        checked_out(options.source, ["src", "README.md", "pyproject.toml", "benchmarks"], place)
        checked_out(options.tests, ["tests", "conftest.py"], place)
        breaks = sample(place, options.count, options.seed)
        if options.show:
            print(*(f"{number} {one}" for number, one in enumerate(breaks)), sep="\n")
            return 0
        os.chdir(place)
        sys.path.insert(0, str(place / "src"))
        os.environ["PYTHONPATH"] = str(place / "src")
        import pytest

        campaign = Campaign(place, breaks, options.limit, options.most)
        folders = [one for one in options.folders if (place / one).exists()]
        quiet = "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain"
        pytest.main([*quiet, "--show-capture=no", *folders], plugins=[campaign])
        for folder in FOLDERS:
            ends = [
                how for how, one in zip(campaign.ends, breaks, strict=True) if one.folder == folder
            ]
            print(f"| {folder} | {len(ends)} | {len([one for one in ends if one])} |")
        found = [one for one in campaign.ends if one]
        print(f"| all | {len(campaign.ends)} | {len(found)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
