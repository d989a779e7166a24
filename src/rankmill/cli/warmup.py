"""`rankmill warmup`: compile every kernel before the first evaluation."""

from __future__ import annotations

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit

_HELP = """Compile all kernels and store them, so that later runs start at once.

Otherwise the first evaluations of large inputs compile the kernels that they need, which takes a
few seconds; small inputs run as plain Python until then.
Run this command once when you build a container image, as the user who will evaluate there. The
compiled kernels are stored beside the package, or in the folder NUMBA_CACHE_DIR if it is set. A
folder that other users can write to is not used, because saved kernels are code. They work only on
the same kind of processor. If the image will run on other processors, set NUMBA_CPU_NAME=generic
for this command and for all later runs.
"""


@table_command("warmup", help=_HELP)
def command() -> None:
    """Compile all kernels and print a summary."""
    from rankmill.cli.compilation import warmup

    done = warmup()
    kept = ", ".join(done.folders) or "nowhere: the next process compiles them anew"
    emit(
        f"compiled {done.compiled} kernels, {done.loaded} were there, "
        f"in {done.seconds:.1f} seconds\nkept in {kept}\n"
    )
