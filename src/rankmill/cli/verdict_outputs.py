"""The outputs of a gate: the verdict as a table, for machines, and for people who read a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.draw import deliver, emit
from rankmill.cli.failed_outputs import Outputs, append
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.page import trends_of
from rankmill.cli.run_outputs import RunOutputs
from rankmill.cli.run_record import FAILED
from rankmill.cli.suffixes import STANDARD_OUTPUT
from rankmill.errors import UsageError
from rankmill.io.stores.read_paths import times_opened
from rankmill.io.stores.urls import redacted
from rankmill.io.whole_files import write_files

if TYPE_CHECKING:
    from rankmill.nightly.rules.breaches import Trends
    from rankmill.nightly.rules.verdict import Verdict


@dataclass
class VerdictOutputs(RunOutputs):
    """What a gate writes.

    Attributes
    ----------
    step : str or None
        The file that Markdown is appended to, if it is asked for by "-".
    """

    step: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Tell the file of a step of GitHub from others."""
        if self.files["markdown"] == STANDARD_OUTPUT:
            self.step, self.files["markdown"] = _step_summary(), None

    def check(self, inputs: Sequence[str | list[str]]) -> None:
        """Check the outputs, which must not replace inputs."""
        files = self.files | ({} if self.step is None else {"markdown": self.step})
        check_outputs(self.output, inputs, **files, history=self.recording.place)
        _check_printed(self.output, self.format, self.files["json"], self.files["summary"])
        _ = self.chosen  # which may be none

    def begin(self, rules: tuple[str, ...], labels: str, predictions: str) -> None:
        """See to it that all outputs tell of an error from now on."""
        from rankmill.nightly.rules.reports import check_junit

        if self.files["junit"] is not None:
            check_junit()
        told = {name: self.files[name] for name in (*_TEXTS, "summary", "report")}
        outputs = Outputs(
            {"o": self.output, **told},
            *(self.chosen, self.format is not None, self.step, self.recording, rules),
            {"labels": redacted(labels), "predictions": redacted(predictions)},
            times_opened(),
        )
        click.get_current_context().meta[FAILED] = outputs.fail

    def asked(self, rules: Any, baseline: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `gate` that are of no input."""
        of_run = {"history": self.recording.history, "time": self.recording.time}
        return {"rules": rules, "baseline": baseline, **of_run, **options}

    def trends(self, found: Verdict) -> Trends:
        """Return the history, if an output shows it."""
        shown = self.files["report"] is not None or self.files["summary"] is not None
        return trends_of(found, self.recording.history, self.recording.time) if shown else {}

    def write(
        self,
        found: Verdict,
        trends: Trends,
        sources: Sequence[Any],
        more: Sequence[tuple[str, Any]],
    ) -> None:
        """Write all outputs or none, `more` among them, and exit with the verdict."""
        from rankmill.nightly.rules.reports import lines, summary_line
        from rankmill.nightly.rules.reports import markdown as markdown_of
        from rankmill.nightly.rules.verdict import view_of

        files, chosen = self.files, self.chosen
        texts = {"summary": summary_line(found, trends)} if files["summary"] is not None else {}
        texts |= {name: _content(name, found) for name in _TEXTS if files[name]}
        printed = "".join(text for name, text in texts.items() if files[name] == STANDARD_OUTPUT)
        written: list[tuple[str, Any]] = [
            (str(files[name]), text)
            for name, text in texts.items()
            if files[name] != STANDARD_OUTPUT
        ]
        written += [*more, *self.recording.record_run(found, *sources)]
        only_line = files["summary"] == STANDARD_OUTPUT and self.output is None
        if only_line or not _shows_table_beside_errors(chosen, self.output):
            for line in lines(found):
                click.echo(line, err=True)
        with suppress(BrokenPipeError):  # the exit code still tells
            if only_line:
                write_files(written)
            else:
                deliver(view_of(found), chosen, self.output, written)
            if printed:
                emit(printed)
        if self.step is not None:
            append(self.step, markdown_of(found))
        self.log()
        click.get_current_context().exit(found.exit_code)


_TEXTS = "json", "junit", "markdown"


def _shows_table_beside_errors(format: str, output: str | None) -> bool:
    """Tell whether the result goes where standard error goes, and has the reasons already."""
    try:
        same = os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # closed, or no files
        return False
    return same and output is None and format in ("table", "markdown")


def _check_printed(
    output: str | None, format: str | None, json: str | None, summary: str | None
) -> None:
    """Raise UsageError if two outputs are for standard output, beside the table of the result."""
    if summary == STANDARD_OUTPUT and (
        json == STANDARD_OUTPUT or (output is None and format is not None)
    ):
        raise UsageError(
            "--summary - and another output are both for standard output: give one of them the "
            "name of a file"
        )


def _content(name: str, found: Verdict) -> Any:
    """Return what one of the files holds."""
    from rankmill.nightly.rules import reports

    if name == "json":
        return found.to_json(indent=2) + "\n"
    text: str = getattr(reports, name)(found)
    return text


def _step_summary() -> str:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        raise UsageError(
            "--markdown - appends to the file that $GITHUB_STEP_SUMMARY names, and it is not set: "
            "give the name of a file"
        )
    return path
