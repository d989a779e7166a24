"""Break the sources in many places, one at a time, and count how many breaks the tests find.

    python benchmarks/mutations.py                       # the tests of this checkout
    python benchmarks/mutations.py --tests main          # those of a revision, on the same breaks
    python benchmarks/mutations.py --only 17 --show      # one of them

A break is a comparison turned round, + for -, a whole number off by one, `and` for `or`, a branch
that is never taken, a `not` that is left out. The sample is spread evenly over the folders, and the
same seed and sources give the same sample. Each break runs the tests of its folder and those of the
face, and ends at the first that fails. Found is what fails or takes longer than the limit; the rest
changes nothing that a test sees, which also holds of breaks that change no behaviour.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FACE = ["tests/contract", "tests/shown", "tests/results", "tests/config", "tests/cli"]
FOLDERS = {
    "engine": ["tests/engine"],
    "sources": ["tests/sources"],
    "analysis": ["tests/analysis"],
    "nightly": ["tests/nightly"],
    "metrics": ["tests/metrics"],
    "matching": ["tests/matching"],
}
"""Folder of the sources -> its tests, which run before those of the face."""
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
    for node in running(ast.parse(text)):
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


def tested(place: Path, folders: list[str], limit: float) -> tuple[str, float]:
    """Run tests until one fails: "passed", or what failed first, and the seconds."""
    there = [one for one in folders if (place / one).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    begin = time.monotonic()
    process = subprocess.Popen(
        [*command, "-p", "no:randomly", *there],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "over the limit", limit
    failed = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
    seconds = time.monotonic() - begin
    if process.returncode == 0:
        return "passed", seconds
    return (failed or [out[-200:].replace("\n", " ")])[0].split(" - ")[0], seconds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="of breaks (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--source", metavar="REVISION", help="of src; this checkout by default")
    parser.add_argument("--tests", metavar="REVISION", help="of tests; this checkout by default")
    parser.add_argument("--limit", type=float, default=600, help="seconds a break (%(default)s)")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these breaks")
    parser.add_argument("--show", action="store_true", help="only show the breaks")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        checked_out(options.source, ["src", "README.md", "pyproject.toml", "benchmarks"], place)
        checked_out(options.tests, ["tests", "conftest.py"], place)
        breaks = sample(place, options.count, options.seed)
        found: dict[str, list[int]] = {folder: [] for folder in FOLDERS}
        missed: dict[str, list[int]] = {folder: [] for folder in FOLDERS}
        for number, one in enumerate(breaks):
            if options.only and number not in options.only:
                continue
            if options.show:
                print(number, one)
                continue
            path = place / one.path
            whole = path.read_bytes()
            path.write_bytes(whole[: one.start] + one.new.encode() + whole[one.end :])
            how, seconds = tested(place, FOLDERS[one.folder] + FACE, options.limit)
            path.write_bytes(whole)
            (missed if how == "passed" else found)[one.folder].append(number)
            print(f"{number:3} {seconds:4.0f} s  {one}: {how}", flush=True)
        for folder in FOLDERS:
            both = len(found[folder]), len(found[folder]) + len(missed[folder])
            print(f"{folder}: {both[0]} of {both[1]} found; not: {missed[folder]}")
        total = sum(map(len, found.values()))
        print(f"{total} of {total + sum(map(len, missed.values()))} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
