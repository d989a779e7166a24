"""What a gate leaves behind where it ends without a verdict: each of its outputs says why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rankmill.cli.draw import emit
from rankmill.cli.page import command_line
from rankmill.cli.suffixes import STANDARD_OUTPUT
from rankmill.errors import UsageError, is_shortage
from rankmill.io import signals
from rankmill.io.stores.read_paths import times_opened
from rankmill.io.whole_files import write_files
from rankmill.show.writers import write

if TYPE_CHECKING:
    from rankmill.cli.run_record import Recording

_USAGE = 2


@dataclass(frozen=True)
class Outputs:
    """The outputs of a gate that people and machines read: not the values of queries.

    Attributes
    ----------
    files : mapping of str to str or None
        "json", "junit", "markdown", "report" and "summary", and "o" for the result.
    format : str
        Of the result.
    asked : bool
        Whether the format was asked for, so that standard output is for a program.
    step : str or None
        The file that Markdown is appended to.
    recording : Recording
    rules : tuple of str
    inputs : mapping of str to str
    opened : int
        How often something was opened to read when all was checked that can be before.
    """

    files: Mapping[str, str | None]
    format: str
    asked: bool
    step: str | None
    recording: Recording
    rules: tuple[str, ...]
    inputs: Mapping[str, str]
    opened: int

    def fail(self, code: int, message: str) -> str:
        """Write that there is no verdict, and return what to say besides the message.

        Nothing is changed where the verdict is written already, and where the command line is wrong
        and no input was opened: then nothing is known of this night.
        """
        if signals.has_written() or (code == _USAGE and times_opened() == self.opened):
            return ""
        try:
            stale = self._write(code, message)
        except Exception as error:  # the message of the first error has to be told
            stale = [str(error)]
        return "".join(
            f"\nwarning: not every output says that there is no verdict: {one}" for one in stale
        )

    def _write(self, code: int, message: str) -> list[str]:
        """Write all outputs, or those that can be written; return why others cannot."""
        from rankmill.nightly.gate import no_verdict
        from rankmill.nightly.history.record import contents_of
        from rankmill.nightly.rules.reports import junit_of_errors
        from rankmill.nightly.runs.earlier_runs import NO_VERDICT

        lines = [line for line in message.splitlines() if line.startswith("error: ")]
        reason = (lines or [message])[0].removeprefix("error: ").removesuffix(signals.so_far())
        recording, time = self.recording, self.recording.time or datetime.now(UTC)
        found = no_verdict.NoVerdict(reason, code, self.rules, self.inputs, time)
        texts: dict[str, Any] = {
            "o": lambda: write(no_verdict.view_of(found), self.format),
            "json": lambda: found.to_json() + "\n",
            "junit": lambda: junit_of_errors(found.rules, reason, NO_VERDICT),
            "markdown": lambda: no_verdict.markdown(found),
            "report": lambda: _page(found),
            "summary": lambda: no_verdict.summary(found),
        }
        written: list[tuple[str, Any]] = []
        printed = "" if self.files["o"] is not None or not self.asked else texts["o"]()
        for name, path in self.files.items():
            if path == STANDARD_OUTPUT:
                printed = texts[name]()
            elif path is not None:
                written.append((path, texts[name]()))
        if recording.history is not None or recording.mlflow is not None:
            recording.run = no_verdict.run_table(found, recording.tags)
        if recording.history is not None and recording.run is not None:
            written += contents_of(recording.run, recording.history)
        files = [one for one in written if one[1] is not None]
        stale = []
        try:
            write_files(written)
        except Exception:
            # Better some that tell of it than none.
            folders = [one for one in written if one[1] is None]
            for path, content in files:
                try:
                    write_files([*folders, (path, content)])
                except Exception as error:
                    stale.append(str(error))
        if self.step is not None:
            append(self.step, no_verdict.markdown(found))
        with suppress(OSError):
            emit(printed)
        recording.log_run([path for path, _ in files])
        return stale


def _page(found: Any) -> str:
    from rankmill.nightly.report.pages import page_without_verdict

    return page_without_verdict(found, command_line())


def append(path: str, text: str) -> None:
    """Append Markdown to the file of a step's summary."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        if is_shortage(error, f"writing {path}"):
            raise
        raise UsageError(f"cannot write to {path}: {error.strerror or error}") from None
