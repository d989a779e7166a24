#!/usr/bin/env python3
"""Run the quick tests with other versions than those of .venv.

That is with the lowest dependencies that pyproject.toml allows, on the oldest Python installed, and
with the newest, on each of Python 3.11 to 3.14. ``scripts/test --all`` does this at its end. With
versions as arguments it is with the newest on these alone, for which ``scripts/test-python`` finds
an interpreter; ``--find VERSION`` only says whether there is one.

Each run installs, compiles and tests in a virtual environment of its own, which is then removed. It
needs a network and 1.5 GB of disk. It takes about 5 minutes on two idle cores, and 30 at most.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SECONDS = 30 * 60  # the most that one run may take
# Linters judge the sources, not what is installed. torch is large, no quick test needs it, and
# torchmetrics brings it.
APART = ("codespell", "mypy", "proselint", "ruff", "torch", "torchmetrics")
SHOW = "import importlib.metadata as m; print(*(f'{one} {m.version(one)}' for one in %r), sep=', ')"


def requirements(which: str, table: str = "") -> list[str]:
    """The dependencies and those of the extra "test", at their bounds if `which` is "lowest"."""
    project = tomllib.loads(table or (ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    wanted = [one for one in wanted if name_of(one) not in APART]
    return [one.replace(">=", "==") if which == "lowest" else one for one in wanted]


def name_of(requirement: str) -> str:
    """The name in a requirement such as "moto[server]>=5.0"."""
    found = re.fullmatch(r"([\w-]+)(\[[\w,]+\])?[>=]=[\d.]+", requirement)
    if found is None:
        sys.exit(f"error: pyproject.toml has {requirement!r}; expected a name and one lower bound")
    return found[1]


def python_of(version: str) -> str | None:
    """A Python of that version that can make an environment, or None."""
    # Shims of pyenv are on the path, but start only the versions that are switched on.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    check = f"import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for one in (f"python{version}", *map(str, found)):
        with contextlib.suppress(OSError):
            if subprocess.run([one, "-c", check], capture_output=True, check=False).returncode == 0:
                return one
    return None


def steps(python: str, which: str, folder: Path) -> list[list[str]]:
    """The commands of a run in a folder: install, compile and test."""
    own, dependencies = str(folder / "bin" / "python"), requirements(which)
    small = [one for one in ROOT.glob("tests/**/test_*.py") if "mark.small" in one.read_text()]
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    pytest = [own, "-m", "pytest", "-q", "-n", str(os.cpu_count()), "--dist", "worksteal"]
    marks = "small and not lengthy and not long"
    chosen = ["-m", marks, "-p", "no:cacheprovider"]
    return [
        [python, "-m", "venv", str(folder)],
        [*pip, *dependencies, "--editable", str(ROOT)],
        [own, "-c", SHOW % [name_of(one) for one in dependencies]],
        [own, "-m", "rankmill", "warmup"],
        [*pytest, *chosen, *map(str, sorted(small))],
    ]


def done(commands: list[list[str]], folder: Path, seconds: float = SECONDS) -> bool:
    """Whether all commands end well, one after the other, within so many seconds."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    for name in ("PYTHONPATH", "NUMBA_DISABLE_JIT", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    end = time.monotonic() + seconds
    for command in commands:
        # A session of its own, so that nothing it has started outlives it.
        process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
        try:
            if process.wait(end - time.monotonic()):
                return False
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            print(f"error: not done after {seconds / 60:g} minutes", file=sys.stderr)
            return False
    return True


def main(asked: list[str]) -> int:
    if asked[:1] == ["--find"]:
        return int(python_of(asked[1]) is None)
    wanted = asked or PYTHONS
    pythons = {version: python_of(version) for version in wanted}
    found = {version: python for version, python in pythons.items() if python}
    runs = [("lowest", version) for version in list(found)[: not asked]]
    runs += [("newest", version) for version in found]
    failed = []
    for which, version in runs:
        title = f"the {which} dependencies on Python {version}"
        print(f"\n== {title}", flush=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "environment"
            if not done(steps(found[version], which, folder), folder):
                failed.append(title)
    if missing := [version for version in wanted if version not in found]:
        print(f"skipped, as it is not installed: Python {', '.join(missing)} (scripts/test-python)")
    if failed:
        print(f"FAILED: {'; '.join(failed)}")
    return 1 if failed or not runs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
