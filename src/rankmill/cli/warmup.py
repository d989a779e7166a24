"""`rankmill warmup`: compile every kernel before the first evaluation."""

from __future__ import annotations

import click

from rankmill.cli.draw import emit

__all__ = ["command"]

_HELP = """Compile all kernels and keep them, so that later runs start at once.

Without it, the first evaluations compile what they need, a few seconds each. Run it once where a
container image is made, as the user who will evaluate there. NUMBA_CACHE_DIR says where compiled
kernels are kept, if not beside the package; they hold for one kind of processor, so set
NUMBA_CPU_NAME=generic, here and later, if the image will run on another.
"""


@click.command("warmup", help=_HELP)
def command() -> None:
    """Warm up, and say what came of it."""
    from rankmill.cli.warming import warmup

    done = warmup()
    kept = ", ".join(done.folders) or "nowhere: the next process compiles them anew"
    emit(
        f"compiled {done.compiled} kernels, {done.loaded} were there, "
        f"in {done.seconds:.1f} seconds\nkept in {kept}\n"
    )
