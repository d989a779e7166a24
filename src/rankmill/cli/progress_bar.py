"""The progress bar of a long run."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rankmill.cli import process
from rankmill.cli.process import is_terminal
from rankmill.config.face import face_of
from rankmill.errors import plural

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

Value = TypeVar("Value")


def run(
    function: Callable[..., Value], labels: Any, runs: Any, options: Mapping[str, Any]
) -> Value:
    """Call a function of rankmill, given inputs and flat options as `face_of`, under a bar."""
    return call(function, face_of(function, labels, runs, options))


def call(function: Callable[..., Value], given: Mapping[str, Any], **more: Any) -> Value:
    """Call a function with these arguments under a bar."""
    with Progress() as progress:
        return function(**given, **more, progress=progress)


class Progress:
    """A progress bar on standard error that appears after a run has taken a second.

    Use it as a context manager, and call it with the number of rows done and, if known, the total
    number of rows. It prints nothing if standard error is not a terminal.
    """

    def __init__(self, delay: float = 1.0) -> None:
        self._wait = threading.Timer(delay, self._appear)
        self._wait.daemon = True
        self._lock = threading.Lock()
        self._first: tuple[float, int] | None = None
        self._counts: tuple[int, int | None] = (0, None)
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._over = False

    def __enter__(self) -> Progress:
        if is_terminal(sys.stderr) and not process.quiet:
            self._wait.start()
        return self

    def __call__(self, done_rows: int, total_rows: int | None) -> None:
        """Record the progress, and move the bar if it is visible."""
        if not gc.isenabled():
            # All modules and kernels are loaded now; freeze excludes them from garbage collection.
            gc.freeze()
            gc.enable()
        with self._lock:
            # The rate starts at the first rows, because the time before was spent on the labels.
            if self._first is None or done_rows < self._first[1]:
                self._first = (time.perf_counter(), done_rows)
            self._counts = (done_rows, total_rows)
            if self._bar is not None and self._task is not None:
                self._bar.update(
                    self._task, completed=done_rows, total=total_rows, state=self._state()
                )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wait.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def _state(self) -> str:
        """Return a text with the rows done and, if known, the rows a second and the time left."""
        if self._first is None:
            return "reading labels"
        began, first = self._first
        done, total = self._counts
        seconds = time.perf_counter() - began
        if done <= first or seconds <= 0:
            return plural(done, "row")
        rate = (done - first) / seconds
        if not total or done >= total:
            return f"{plural(done, 'row')}, {rate:,.0f} rows/s"
        minutes, rest = divmod(round((total - done) / rate), 60)
        return f"{plural(done, 'row')}, {rate:,.0f} rows/s, {minutes}:{rest:02} left"

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("evaluating"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
        )
        with self._lock:
            if self._over:
                return
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            done, total = self._counts
            self._task = self._bar.add_task("", completed=done, total=total, state=self._state())
            self._bar.start()
