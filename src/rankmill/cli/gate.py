"""`rankmill gate` stops a system that does not keep its rules, and all that it writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import rankmill
from rankmill.cli import process
from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import call, emit, run
from rankmill.cli.process import FAILED
from rankmill.cli.run_outputs import (
    STANDARD_OUTPUT,
    RunOutputs,
    check_outputs,
    command_line,
    flag_of,
    format_for,
    inputs_of,
    page_of,
    trends_of,
)
from rankmill.config.config import texts_of
from rankmill.config.document import parse_date
from rankmill.config.face import face_of, is_choice, source_of
from rankmill.errors import RankmillError, UsageError, is_shortage
from rankmill.io import signals
from rankmill.io.inert_text import visible
from rankmill.io.stores.urls import is_url, join, local_path, redacted, times_opened
from rankmill.io.whole_files import write_files
from rankmill.records import record
from rankmill.show.writers import write

if TYPE_CHECKING:
    from rankmill.nightly.rules.reports import Trends
    from rankmill.nightly.rules.verdict import Verdict


# ------------------------------------------------------------------ outputs

_USAGE = 2
UNFINISHED = "did not finish"
_INPUTS = ("labels", "predictions", "systems", "baseline", "train", "items", "features", "by")
# The outputs that say so from the start, and what is in the first bytes of an earlier one.
_FILES = ("output", "json", "junit", "markdown", "report", "summary")
_MARKS = (b"rankmill", b"verdict", b"rule,word", *map(str.encode, "✅❌⚠"))


def _page(found: Any) -> str:
    from rankmill.nightly.report.pages import page_without_verdict

    return page_without_verdict(found, command_line())


def start(given: Mapping[str, Any]) -> VerdictOutputs:
    """Let the outputs say that the run did not finish, before anything is checked.

    `given` is a command line, which may be wrong, as may be the FILE.toml that it names. What is
    no output of a gate stays as it is.
    """
    told: dict[str, Any] = {n: one for n, one in given.items() if isinstance(one, str | list)}
    time, date = datetime.now(UTC), told.get("date")
    with suppress(RankmillError, TypeError, ValueError):  # whatever is wrong is told later
        time = datetime.combine(parse_date(date), time.timetz())
        told = texts_of(told.get("labels", ""), date) | told
    inputs = [told[name] for name in told if name.partition(".")[0] in _INPUTS]
    texts = [one if isinstance(one, str) else ",".join(one) for one in inputs]
    read = [part for text in texts for part in (text, *text.split(","))]
    files = {name: told[name] for name in _FILES if _is_ours(name, told.get(name), read)}
    found = VerdictOutputs(files.pop("output", None), None, dict.fromkeys(_FILES) | files)
    found.time, found.rules = time, tuple(told.get("rules", ()))
    found.write_failure(None, UNFINISHED)
    signals.begun("; the outputs have no verdict" if files or found.output else signals.NOTHING)
    return found


def _is_ours(name: str, path: Any, read: Sequence[str]) -> bool:
    """Return whether a path is free for an output, or holds one of a gate, and is no input."""
    if not isinstance(path, str) or path == STANDARD_OUTPUT or is_url(path):
        return False
    try:
        check_outputs(os.devnull, read, **{name.replace("output", "o"): path})
        _ = format_for(None, path) if name == "output" else None
        path = local_path(path)
        if not os.path.isfile(path):
            return not os.path.exists(path)
        with open(path, "rb") as file:
            head = file.read(1 << 12)
    except (RankmillError, OSError):
        return False
    return any(one in head for one in _MARKS)


def append(path: str, text: str) -> None:
    """Append Markdown to the file of a step's summary."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        if is_shortage(error, f"writing {path}"):
            raise
        raise UsageError(f"cannot write to {path}: {error.strerror or error}") from None


@record
class VerdictOutputs(RunOutputs):
    """What a gate writes."""

    # The file that Markdown is appended to, if it is asked for by "-".
    step: str | None = field(init=False, default=None)
    rules: tuple[str, ...] = field(init=False, default=())
    inputs: Mapping[str, str] = field(init=False, default_factory=dict)
    # How often something was opened to read when all was checked that can be before.
    opened: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Tell the file of a step of GitHub from others."""
        if self.files["markdown"] == STANDARD_OUTPUT:
            self.step, self.files["markdown"] = _step_summary(), None

    def check(self, inputs: Sequence[str | list[str]]) -> None:
        """Check the outputs, which must not replace inputs."""
        files = self.files | ({} if self.step is None else {"markdown": self.step})
        check_outputs(self.output, inputs, **files, history=self.place)
        formatted = self.output is None and self.format is not None
        if self.files["summary"] == STANDARD_OUTPUT and (
            self.files["json"] == STANDARD_OUTPUT or formatted
        ):
            raise UsageError(
                "--summary - and another output are both for standard output: give one of them the "
                "name of a file"
            )
        _ = self.chosen  # which may be none

    @property
    def name(self) -> str:
        """What all outputs call the run."""
        from rankmill.nightly.runs.runs import run_text, time_of_run

        return run_text(time_of_run(self.time))

    def begin(self, rules: tuple[str, ...], labels: str, predictions: str) -> None:
        """See to it that all outputs tell of an error from now on."""
        self.rules, self.opened = rules, times_opened()
        self.inputs = {"labels": redacted(labels), "predictions": redacted(predictions)}
        click.get_current_context().meta[FAILED] = self.fail

    def fail(self, code: int, message: str) -> str:
        """Write that there is no verdict, and return what to say besides the message.

        Nothing is changed where the verdict is written already. Where the command line is wrong and
        no input was opened, nothing is known of this night, and none is recorded.
        """
        if signals.has_written():
            return ""
        if code == _USAGE and times_opened() == self.opened:
            self.history = self.mlflow = None
        lines = [line for line in message.splitlines() if line.startswith("error: ")]
        reason = (lines or [message])[0].removeprefix("error: ").removesuffix(signals.so_far())
        try:
            stale = self.write_failure(
                code, f"{UNFINISHED}: {reason}" if code == _USAGE else reason
            )
        except Exception as error:  # the message of the first error has to be told
            stale = [str(error)]
        return "".join(
            f"\nwarning: not every output says that there is no verdict: {one}" for one in stale
        )

    def write_failure(self, code: int | None, reason: str) -> list[str]:
        """Write all outputs, or those that can be written; return why others cannot."""
        from rankmill.nightly.rules import reports

        time = self.time or datetime.now(UTC)
        found = reports.NoVerdict(reason, code, self.rules, self.inputs, time)
        printed, written = self._apart(
            json=lambda: found.to_json(indent=2) + "\n",
            junit=lambda: reports.junit_without(found),
            markdown=lambda: reports.markdown_without(found),
            report=lambda: _page(found),
            summary=lambda: reports.summary_without(found),
        )
        result = write(found._view(), self.chosen)
        if self.output is not None:
            written.insert(0, (self.output, result))
        elif self.format is not None:
            printed = printed or result
        written += self.record_run(found)
        contents = [one for one in written if one[1] is not None]
        folders = [one for one in written if one[1] is None]
        stale = []
        for one in contents:  # better some that tell of it than none
            try:
                write_files([*folders, one])
            except Exception as error:
                stale.append(str(error))
        if self.step is not None:
            append(self.step, reports.markdown_without(found))
        with suppress(OSError):
            emit(printed)
        self.log([path for path, _ in contents])
        return stale

    def _apart(self, **contents: Callable[[], Any]) -> tuple[str, list[tuple[str, Any]]]:
        """Return what is printed of the texts asked for, and the files of the others."""
        made = self.made(contents)
        printed = "".join(text for path, text in made if path == STANDARD_OUTPUT)
        return printed, [one for one in made if one[0] != STANDARD_OUTPUT]

    def asked(self, rules: Any, baseline: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `gate` that are of no input."""
        of_run = {"history": self.history, "time": self.time}
        return {"rules": rules, "baseline": baseline, **of_run, **options}

    def tell(
        self,
        found: Verdict,
        sources: Sequence[Any],
        report: Callable[[Trends], str],
    ) -> None:
        """Write all outputs or none, of which `report` makes a page, and exit with the verdict."""
        from rankmill.nightly.rules import reports

        shown = self.files["report"] is not None or self.files["summary"] is not None
        trends = trends_of(found, self.history, self.time) if shown else {}
        printed, written = self._apart(
            summary=lambda: reports.summary_line(found, trends),
            json=lambda: found.to_json(indent=2) + "\n",
            junit=lambda: reports.junit(found),
            markdown=lambda: reports.markdown(found),
            report=lambda: report(trends),
            per_query=lambda: found.result.per_query,
        )
        written += self.record_run(found, *sources)
        only_line = self.files["summary"] == STANDARD_OUTPUT and self.output is None
        silent = process.quiet and not found.exit_code
        told = not only_line and _shows_table_beside_errors(self.chosen, self.output)
        if not (silent or told):
            for line in reports.lines(found):
                click.echo(line, err=True)
        with suppress(BrokenPipeError):  # the exit code still tells
            if only_line:
                write_files(written)
            else:
                self.write(found, record=written)
            if printed:
                emit(printed)
        if self.step is not None:
            append(self.step, reports.markdown(found))
        self.log()
        if not silent:
            self._note_trial(found)
        click.get_current_context().exit(found.exit_code)

    def _note_trial(self, found: Verdict) -> None:
        """Say that a run with rules of its own may be a baseline of those in the file."""
        source = click.get_current_context().get_parameter_source
        typed = source("rules") is ParameterSource.COMMANDLINE
        in_file = source("history") is ParameterSource.DEFAULT_MAP
        if typed and in_file and found.word == "held" and self.history is not None:
            assert self.run is not None  # as it was written
            file = redacted(join(self.history, f"{self.run['run'][0]}.parquet"))
            click.echo(
                "note: the rules are those of --rule, but this run is in the history of the file, "
                f"and may be its next baseline: to take it back, delete {visible(file)}; "
                "rankmill.gate in Python records nothing",
                err=True,
            )


def _shows_table_beside_errors(format: str, output: str | None) -> bool:
    """Tell whether the result goes where standard error goes, and has the reasons already."""
    try:
        same = os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # closed, or no files
        return False
    return same and output is None and format in ("table", "markdown")


def _step_summary() -> str:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        raise UsageError(
            "--markdown - appends to the file that $GITHUB_STEP_SUMMARY names, and it is not set: "
            "give the name of a file"
        )
    return path


# ------------------------------------------------------------------ the command

_EXAMPLES = """
rankmill gate labels.parquet new.parquet --rule 'map@12 >= 0.08'
rankmill gate labels new --baseline old --rule 'map@12 drop <= 1% confidence 0.95'
rankmill gate rankmill.toml
rankmill gate labels new --baseline old --rule 'map@12[country=*] drop <= 3%' --by users.csv
rankmill gate labels new --baseline q.parquet --rule 'queries change <= 10%' --junit gate.xml
rankmill gate rankmill.toml --power
"""
EXITS = {
    0: "every rule was kept, or --undecided allows those that the data cannot decide",
    1: "a rule was broken: the system is worse, or its inputs are not as they should be",
    2: "wrong usage, such as a rule that names something unknown",
    3: "wrong input data, such as a broken file",
    4: "too little memory, threads, open files or disk space",
}


@table_command(
    "gate",
    cls=FileCommand,
    outputs=VerdictOutputs,
    start=start,
    apart=True,
    examples=_EXAMPLES,
    exits=EXITS,
)
def command(
    labels: str,
    predictions: str,
    rules: tuple[str, ...],
    baseline: str | None,
    outputs: VerdictOutputs,
    power: bool,
    **options: Any,
) -> None:
    """Check PREDICTIONS against rules, and exit with 1 if they break one.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'. A rule is about a metric, a
    count of the audit, or the age of an input; see 'rankmill docs gate' for the grammar. For each
    rule, a line on standard error says why it was kept or broken.
    """
    from rankmill.nightly.rules.rules import parse_rules

    parse_rules(rules)
    source, runs, inputs = inputs_of(labels, {"": predictions}, options)
    sources = [source, runs[""]]
    base = None if baseline is None else source_of(baseline, "--baseline")
    read = [] if base is None or (isinstance(base, str) and is_choice(base)) else [base]
    outputs.check([*inputs, *read])
    if power:
        _show_power(sources, rules, base, outputs, options)
        return
    outputs.begin(rules, labels, predictions)
    from rankmill.nightly.gate.gate import gate

    given = face_of(gate, sources[0], sources[1], outputs.asked(rules, base, options))
    found = call(gate, given, details=outputs.files["report"] is not None)
    found = replace(found, run=outputs.name)
    candidate = rankmill.Predictions.of(given["predictions"])
    runs = {"candidate": candidate}
    if (found.baseline or {}).get("kind") == "predictions":
        runs["baseline"] = replace(candidate, data=base)
    outputs.tell(found, sources, lambda trends: page_of(found, given | {"runs": runs}, trends))


def _show_power(
    sources: list[Any],
    rules: tuple[str, ...],
    base: Any,
    outputs: VerdictOutputs,
    options: dict[str, Any],
) -> None:
    """Show what the rules see; nothing is judged, and no run is recorded.

    Raises UsageError if the command line names an output that only a verdict has.
    """
    source = click.get_current_context().get_parameter_source
    for name, path in outputs.files.items():
        of_verdict = path is not None and name != "per_query"
        if of_verdict and source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--power gives no verdict: leave out {flag_of(name)}")
    left = {name: one for name, one in options.items() if name not in ("undecided", "moved")}
    found = run(rankmill.gate_power, sources[0], sources[1], outputs.asked(rules, base, left))
    outputs.write(found)
