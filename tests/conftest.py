"""What all tests share: the hypothesis profile, and the command line run in this process."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill.errors import RankmillError, speak_to_command_line
from rankmill.kernels.plain import compile_all

# Programs of users, which test_programs.py runs beside files, and one that only mypy reads.
collect_ignore = ["programs", "support/client.py"]

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from missing import MODULES, Missing, skip  # noqa: E402

sys.meta_path.append(Missing())

# Checks of bounds need compiled kernels, however small their arrays are.
if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0":
    compile_all().__enter__()


def _set_up_hypothesis() -> None:
    """Derandomise: a failure in CI can be repeated everywhere. `scripts/test --all` tries more.

    There is no deadline, as the first example of a test includes the compilation.
    """
    import hypothesis

    for name, examples in (("all", 40), ("usual", 4)):
        hypothesis.settings.register_profile(
            name,
            deadline=None,
            derandomize=True,
            max_examples=examples,
            print_blob=True,
            suppress_health_check=[
                hypothesis.HealthCheck.too_slow,
                hypothesis.HealthCheck.data_too_large,
                hypothesis.HealthCheck.function_scoped_fixture,
            ],
        )
    hypothesis.settings.load_profile("usual")


if find_spec("hypothesis"):
    _set_up_hypothesis()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip what calls a library that needs another, such as pyarrow for a frame of pandas."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in MODULES:
            raise
        skip(error.name)


class CliOutcome:
    """What one run of the command line left behind."""

    def __init__(self, exit_code: int, stdout: str, stderr: str) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


@pytest.fixture
def run_cli() -> Callable[..., CliOutcome]:
    """Run ``rankmill ARGUMENTS`` in this process; an exception of its own is a failure."""
    from click.testing import CliRunner

    from rankmill.cli import main

    def run(*arguments: object) -> CliOutcome:
        outcome = CliRunner().invoke(main, [str(argument) for argument in arguments])
        if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return CliOutcome(outcome.exit_code, outcome.stdout, outcome.stderr)

    return run


def tells(error: object, wanted: list[str]) -> str:
    """Return the message after a check that it contains each wanted text ("this|or that").

    An error of Python says in its own words what is written for both; its words for the command
    line are returned.
    """
    message = typed = str(error)
    if isinstance(error, RankmillError):
        assert not re.search(r"(?<!convert )--[a-z]", message), message
        message = error.args[0]
        speak_to_command_line(True)
        typed = str(error)
        speak_to_command_line(False)
    for alternatives in wanted:
        assert any(one.lower() in message.lower() for one in alternatives.split("|")), (
            f"nothing of {alternatives!r} in: {message}"
        )
    assert "Traceback" not in message
    assert "This is a bug" not in message
    return typed


@pytest.fixture
def files(tmp_path: Path) -> Callable[[pa.Table, pa.Table], tuple[Path, Path]]:
    """Two tables as files called the-labels.parquet and the-predictions.parquet."""

    def write(labels: pa.Table, predictions: pa.Table) -> tuple[Path, Path]:
        paths = tmp_path / "the-labels.parquet", tmp_path / "the-predictions.parquet"
        for table, path in zip((labels, predictions), paths, strict=True):
            pq.write_table(table, path, row_group_size=2)
        return paths

    return write


@pytest.fixture
def cli_fails(run_cli: Callable[..., CliOutcome], tmp_path: Path) -> Callable[..., None]:
    """Assert the exit code and message of a run that fails, and that no file was changed."""

    def check(
        sources: tuple[object, object],
        code: int,
        wanted: list[str],
        metrics: list[str],
        *options: object,
    ) -> None:
        old = tmp_path / "old.json"
        old.write_text("kept")
        before = sorted(tmp_path.rglob("*"))
        asked = [word for metric in metrics for word in ("-m", metric)]
        for output in (tmp_path / "new.json", old):
            written = ("-o", output, "--per-query", tmp_path / "new.parquet")
            outcome = run_cli("evaluate", *sources, *asked, "--format", "json", *written, *options)
            assert outcome.exit_code == code, outcome.stderr
            assert outcome.stdout == ""
            tells(outcome.stderr, wanted)
            assert sorted(tmp_path.rglob("*")) == before
            assert old.read_text() == "kept"

    return check


@pytest.fixture
def run(run_cli: Any) -> Any:
    """Run a command line in this process; return exit code, standard output, standard error."""

    def call(*arguments: Any) -> tuple[int, str, str]:
        outcome = run_cli(*arguments)
        return outcome.exit_code, outcome.stdout, outcome.stderr

    return call


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update",
        action="store_true",
        help="write the files of tests/shown, or other expected output, again",
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether what is shown is written down, and not compared."""
    return bool(request.config.getoption("--update", False))


LONG = ("test_warmup.py", "test_benchmarks.py", "test_references_peers.py", "test_trace.py")


def pytest_configure() -> None:
    """Look for no garbage among the objects of 10,000 tests, while they come and when they run."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark rows of dear tests as long, but for some of each that are evenly spread.

    Begin with long tests: several workers end together if what is left for the end is short.
    """
    rows: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("rows") is not None:
            rows.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of in rows.values():
        (most,) = of[0].get_closest_marker("rows").args
        for i, item in enumerate(of):
            if i * most // len(of) == (i - 1) * most // len(of):
                item.add_marker("long")
    items.sort(key=lambda item: item.path.name not in LONG)
