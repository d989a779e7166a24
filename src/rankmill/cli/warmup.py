"""`rankmill warmup`: compile every kernel ahead of time, and check the installation by them."""

import platform
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click

import rankmill
from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.errors import RankmillError
from rankmill.io.inert_text import visible_message
from rankmill.package import __version__

DUMP = Path(__file__).parent / "dump"
# Only sums and quotients: a logarithm need not have the same last bit in every system's library.
GOLDEN = {
    "map@12": "0x1.98a95fc914601p-3",
    "first_hit@5": "0x1.47cc36247cc36p-2",
    "recall@12": "0x1.041e9a3041e9ap-1",
    "precision@5": "0x1.289b5d9289b5ep-3",
    "gap": "0x1.ae88d2c009d7ap-3",
}
COUNTS = {"queries_labelled": 29, "queries_predicted": 29, "queries_in_both": 28}
"""What the audit of the dump says: its sides each lack a query of the other one."""


@table_command("warmup", exits={0: "all checks passed", 1: "a check failed"})
@click.pass_context
def command(context: click.Context) -> None:
    """Compile all kernels and check the installation, so later runs start right away.

    Without this, the first evaluations of large inputs take a few seconds longer, because they
    compile the kernels that they need; small inputs run as plain Python until then. Run this
    command once when you build a container image, as the user who will evaluate there. The kernels
    are stored next to the package, or in the folder NUMBA_CACHE_DIR if it is set. A folder that
    other users can write to is not used, because stored kernels are code. Stored kernels only work
    on the same kind of processor. If the image will run on other processors, set
    NUMBA_CPU_NAME=generic for this command and for all later runs.

    A small dataset that comes with rankmill is scored in each way in which larger ones are, and the
    values must match to the last bit. If a check fails, its line says why, and the exit code is 1.
    """
    failed = False
    for name, check in CHECKS.items():
        try:
            word, told = "ok", check()
        except Exception as error:  # whatever is wrong is told in its line, and the others follow
            ours = isinstance(error, (ArithmeticError, RankmillError, RuntimeError))
            failed, word = True, "FAILED"
            told = visible_message(str(error) if ours else repr(error))
        emit(f"{word:<8}{name:<10}{told}\n")
    context.exit(int(failed))


def _versions() -> str:
    named = (f"{one} {version(one)}" for one in ("numpy", "numba", "pyarrow"))
    return f"rankmill {__version__}, Python {platform.python_version()}, {', '.join(named)}"


def _kernels() -> str:
    """Compile all kernels, and score the dump by them only."""
    from rankmill.cli.compilation import warmup
    from rankmill.kernels.jit import compiled_so_far
    from rankmill.kernels.plain import compile_all

    began = time.perf_counter()
    warmup()
    seconds = time.perf_counter() - began
    with compile_all():
        told = _scored()
    return f"{sum(compiled_so_far()[:2])} kernels are compiled after {seconds:.1f} seconds; {told}"


def _parquet() -> str:
    """Score the same as Parquet, which this pyarrow wrote, with little memory."""
    from rankmill.kernels.plain import compile_all

    with compile_all(), tempfile.TemporaryDirectory(prefix="rankmill-") as folder:
        for name in ("labels", "predictions"):
            rankmill.convert(DUMP / f"{name}.csv", Path(folder, f"{name}.parquet"))
        return _scored(Path(folder), "parquet", memory=1 << 9)


def _cache() -> str:
    from rankmill.kernels.jit import compiled_so_far

    folders = compiled_so_far().folders
    if not folders:
        raise RuntimeError(
            "no folder can be written to, so every process compiles its kernels again: set "
            "NUMBA_CACHE_DIR to a folder of yours"
        )
    return f"kernels are kept in {', '.join(folders)}"


def _scored(folder: Path = DUMP, suffix: str = "csv", memory: int = 1 << 30) -> str:
    """Evaluate; raise ArithmeticError where a value differs from the expected one."""
    labels, predictions = (folder / f"{name}.{suffix}" for name in ("labels", "predictions"))
    result = rankmill.evaluate(labels, predictions, [*GOLDEN], memory=memory)
    for name, wanted in GOLDEN.items():
        if result[name] != float.fromhex(wanted):
            raise ArithmeticError(
                f"{name} is {result[name]!r}, expected {float.fromhex(wanted)!r}: reinstall "
                "rankmill and its dependencies; if the error stays, report it with the line of "
                "versions"
            )
    found = {name: result.audit[name] for name in COUNTS}
    if found != COUNTS:
        raise ArithmeticError(f"the audit counts {found}, expected {COUNTS}: report this")
    return f"{len(GOLDEN)} values of {COUNTS['queries_labelled']} queries are as expected"


CHECKS: dict[str, Callable[[], str]] = {
    "versions": _versions,
    "text": _scored,  # as plain Python where no kernel is kept yet
    "kernels": _kernels,
    "parquet": _parquet,
    "cache": _cache,
}
"""Each returns what it found, or raises."""
