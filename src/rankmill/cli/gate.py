"""`rankmill gate`: stop a system that does not keep its rules."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankmill.cli.command import table_command
from rankmill.cli.draw import deliver, emit, format_for
from rankmill.cli.failed_outputs import Outputs, append
from rankmill.cli.file_command import FileCommand
from rankmill.cli.output_checks import catalogue_sources, check_outputs
from rankmill.cli.page import page_of, trends_of
from rankmill.cli.progress_bar import Progress, run
from rankmill.cli.run_record import FAILED
from rankmill.cli.suffixes import STANDARD_OUTPUT
from rankmill.config.face import face_of
from rankmill.config.given_inputs import source_of
from rankmill.errors import UsageError
from rankmill.io.stores.read_paths import times_opened
from rankmill.io.stores.urls import redacted
from rankmill.io.whole_files import write_files

if TYPE_CHECKING:
    from rankmill.cli.run_record import Recording
    from rankmill.nightly.rules.verdict import Verdict

_HELP = """Evaluate PREDICTIONS, and tell by the exit code whether they keep rules (0) or not (1).

LABELS and PREDICTIONS are as for 'rankmill evaluate'. A rule is about a metric, a count of the
audit, or the age of an input; 'rankmill docs gate' has the grammar. Standard error says in a line
for each rule why it was kept or not.
"""
_EXAMPLES = """
rankmill gate labels.parquet new.parquet --rule 'map@12 >= 0.08'
rankmill gate labels new --baseline old --rule 'map@12 drop <= 1% confidence 0.95'
rankmill gate rankmill.toml
rankmill gate labels new --baseline old --rule 'map@12[country=*] drop <= 3%' --by users.csv
rankmill gate labels new --baseline q.parquet --rule 'queries change <= 10%' --junit gate.xml
rankmill gate rankmill.toml --history history --power
"""
_EXITS = """
0    every rule was kept, or --undecided lets pass what the data do not decide
1    a rule was broken: the system is worse, or its inputs are not as they should be
2    wrong usage, as a rule that names something unknown
3    wrong input data, such as a broken file
4    too little memory, threads, open files or room on disk
70   a mistake of rankmill, which asks for a report
130  interrupted by Ctrl-C
143  terminated (SIGTERM); 129 if the terminal was closed (SIGHUP)
"""


@table_command("gate", cls=FileCommand, apart=True, help=_HELP, examples=_EXAMPLES, exits=_EXITS)
def command(
    labels: str,
    predictions: str,
    rules: tuple[str, ...],
    baseline: str | None,
    format: str | None,
    output: str | None,
    per_query: str | None,
    json: str | None,
    junit: str | None,
    markdown: str | None,
    report: str | None,
    summary: str | None,
    recording: Recording,
    power: bool,
    **options: Any,
) -> None:
    """Check what can be checked, judge, write all outputs or none, and exit with the verdict."""
    from rankmill.config.baseline_choice import is_choice
    from rankmill.nightly.rules.reports import check_junit, lines, summary_line
    from rankmill.nightly.rules.reports import markdown as markdown_of
    from rankmill.nightly.rules.rules import parse_rules
    from rankmill.nightly.rules.verdict import view_of

    parse_rules(rules)
    step = _step_summary() if markdown == "-" else None
    markdown = None if markdown == "-" else markdown
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    base = None if baseline is None else source_of(baseline, "--baseline")
    is_file = base is not None and not (isinstance(base, str) and is_choice(base))
    inputs = [*sources, *([base] if base is not None and is_file else [])]
    inputs += catalogue_sources(options)
    files = {"json": json, "junit": junit, "markdown": markdown, "summary": summary}
    appended = files | {"per_query": per_query} | ({} if step is None else {"markdown": step})
    check_outputs(output, inputs, **appended, report=report, history=recording.place)
    chosen = format_for(format, output)
    _check_printed(output, format, json, summary)
    if power:
        _check_power({**files, "report": report})
        _show_power(sources, rules, base, recording, options, chosen, output)
        return
    if junit is not None:
        check_junit()

    context = click.get_current_context()
    outputs = Outputs(
        {"o": output, **files, "report": report},
        *(chosen, format is not None, step, recording, rules),
        {"labels": redacted(labels), "predictions": redacted(predictions)},
        times_opened(),
    )
    context.meta[FAILED] = outputs.fail
    from rankmill.nightly.gate.gate import gate, gate_in_detail
    from rankmill.sources.nouns import Predictions

    with Progress() as progress:
        asked = {"rules": rules, "baseline": base, "history": recording.history, **options}
        asked |= {"time": recording.time, "progress": progress}
        given = face_of(gate, sources[0], sources[1], asked)
        found = gate_in_detail(**given, details=report is not None)
    shown = report is not None or summary is not None
    trends = trends_of(found, recording.history, recording.time) if shown else {}
    texts = {"summary": summary_line(found, trends)} if summary is not None else {}
    texts |= {name: _content(name, found) for name in ("json", "junit", "markdown") if files[name]}
    printed = "".join(text for name, text in texts.items() if files[name] == STANDARD_OUTPUT)
    written: list[tuple[str, Any]] = [
        (path, texts[name]) for name, path in files.items() if path not in (None, STANDARD_OUTPUT)
    ]
    if per_query is not None:
        written.append((per_query, found.result.per_query))
    if report is not None:
        candidate = Predictions.of(given["predictions"])
        runs = {"candidate": candidate}
        if (found.baseline or {}).get("kind") == "predictions":
            runs["baseline"] = replace(candidate, data=base)
        written.append((report, page_of(found, given | {"runs": runs}, trends)))
    written += recording.record_run(found, *sources)
    only_line = summary == STANDARD_OUTPUT and output is None
    if only_line or not _shows_table_beside_errors(chosen, output):
        for line in lines(found):
            click.echo(line, err=True)
    with suppress(BrokenPipeError):  # the exit code still tells
        if only_line:
            write_files(written)
        else:
            deliver(view_of(found), chosen, output, written)
        if printed:
            emit(printed)
    if step is not None:
        append(step, markdown_of(found))
    recording.log_run([output, *files.values(), per_query, report])
    context.exit(found.exit_code)


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


def _check_power(files: dict[str, str | None]) -> None:
    """Raise UsageError if the command line names an output that only a verdict has."""
    source = click.get_current_context().get_parameter_source
    for name, path in files.items():
        if path is not None and source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--power gives no verdict: leave out --{name.replace('_', '-')}")


def _show_power(
    sources: list[Any],
    rules: tuple[str, ...],
    base: Any,
    recording: Recording,
    options: dict[str, Any],
    chosen: str,
    output: str | None,
) -> None:
    """Show what the rules see; nothing is judged, and no run is recorded."""
    from rankmill.nightly.gate.power import gate_power
    from rankmill.nightly.gate.power_view import view_of

    left = {name: one for name, one in options.items() if name not in ("undecided", "moved")}
    asked = {"rules": rules, "baseline": base, "history": recording.history, **left}
    found = run(gate_power, sources[0], sources[1], asked | {"time": recording.time})
    deliver(view_of(found), chosen, output)


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
