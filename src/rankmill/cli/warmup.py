"""`rankmill warmup`: compile every kernel before the first evaluation."""

import time

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit


@table_command("warmup")
def command() -> None:
    """Compile all kernels and store them, so later runs start right away.

    Without this, the first evaluations of large inputs take a few seconds longer, because they
    compile the kernels that they need; small inputs run as plain Python until then. Run this
    command once when you build a container image, as the user who will evaluate there. The kernels
    are stored next to the package, or in the folder NUMBA_CACHE_DIR if it is set. A folder that
    other users can write to is not used, because stored kernels are code. Stored kernels only work
    on the same kind of processor. If the image will run on other processors, set
    NUMBA_CPU_NAME=generic for this command and for all later runs.
    """
    from rankmill.cli.compilation import warmup

    began = time.perf_counter()
    done = warmup()
    seconds = time.perf_counter() - began
    kept = ", ".join(done.folders) or "nowhere: the next process compiles them anew"
    emit(
        f"compiled {done.compiled} kernels, {done.loaded} were there, "
        f"in {seconds:.1f} seconds\nkept in {kept}\n"
    )
