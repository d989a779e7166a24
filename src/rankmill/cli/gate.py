"""`rankmill gate`: stop a system that does not keep its rules."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.draw import deliver, emit, format_for
from rankmill.cli.file_command import FileCommand
from rankmill.cli.inputs import check_outputs, source_of
from rankmill.cli.options import (
    catalogue_options,
    catalogue_sources,
    column_options,
    history_options,
    metric_option,
    output_options,
    resource_options,
    scope_options,
    semantics_options,
)
from rankmill.cli.paging import check_page, page_of, report_option
from rankmill.cli.progress import Progress
from rankmill.cli.suffixes import STANDARD_OUTPUT
from rankmill.errors import UsageError
from rankmill.results.table_files import NAMED

if TYPE_CHECKING:
    from rankmill.cli.recording import Recording
    from rankmill.gate.verdict import Verdict

__all__ = ["command"]

_HELP = """Evaluate PREDICTIONS, and tell by the exit code whether they keep rules.

LABELS and PREDICTIONS are as for 'rankmill evaluate'. A rule is about a metric, a count of the
audit, or the age of an input; 'rankmill docs gate' has the grammar. Standard error says in a line
for each rule why it was kept or not.

\b
Examples:
  rankmill gate labels.parquet new.parquet --rule 'map@12 >= 0.08'
  rankmill gate labels new --baseline old --rule 'map@12 drop <= 1% confidence 0.95'
  rankmill gate labels new --baseline old --rule 'map@12[country=*] drop <= 3%' --by users.csv
  rankmill gate labels new --baseline q.parquet --rule 'map@12 drop <= 0.002' \\
    --rule 'queries change <= 10%' --rule 'repeated_items == 0' --junit gate.xml
  rankmill gate rankmill.toml

\b
Exit codes:
  0    every rule was kept, or --undecided lets pass what the data do not decide
  1    a rule was broken: the system is worse, or its inputs are not as they should be
  2    wrong usage, as a rule that names something unknown
  3    wrong input data, such as a broken file
  4    too little memory, threads, open files or room on disk
  130  interrupted by Ctrl-C
  143  terminated (SIGTERM); 129 if the terminal was closed (SIGHUP)
"""


@click.command("gate", cls=FileCommand, apart=True, help=_HELP)
@click.option(
    "--rule", "rules", metavar="RULE", multiple=True, help="A rule to keep; repeat for more."
)
@click.option(
    "--baseline",
    metavar="INPUT",
    help="What to compare with: predictions; of an earlier run the Parquet file of --per-query or "
    "the JSON file of the result; or last, best or median:7 of --history.",
)
@metric_option("A metric to compute beside those of the rules; repeat for more.")
@click.option(
    "--undecided",
    type=click.Choice(("warn", "pass", "fail")),
    default="warn",
    show_default=True,
    help="What comes of a rule for which there are not enough data: warn and pass exit with 0.",
)
@click.option(
    "--min-overlap",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    default=0.9,
    show_default=True,
    help="Compare query by query if both sides have at least this share of all queries; else "
    "compare the two values as a whole.",
)
@click.option(
    "--by",
    metavar="COLUMN|FILE",
    multiple=True,
    help="Slices to compare beside those of the rules, as for 'rankmill compare'.",
)
@click.option(
    "--moved",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Also tell the N queries that gained most and the N that lost most.",
)
@column_options
@semantics_options
@scope_options
@catalogue_options
@output_options
@click.option(
    "--per-query",
    metavar="FILE",
    help=f"Also write the values of each query to FILE, in the format of its suffix: {NAMED}. "
    "Parquet is a baseline for a later run.",
)
@click.option(
    "--json",
    metavar="FILE",
    help="Also write all numbers to FILE, as JSON. '-' is standard output, if -o names a file.",
)
@click.option("--junit", metavar="FILE", help="Also write a test case for each rule, as JUnit XML.")
@click.option(
    "--markdown",
    metavar="FILE",
    help="Also write a summary for a pull request to FILE. '-' appends it to the file that "
    "$GITHUB_STEP_SUMMARY names.",
)
@report_option
@history_options
@resource_options
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
    recording: Recording,
    **options: Any,
) -> None:
    """Check what can be checked, judge, write all outputs or none, and exit with the verdict."""
    from rankmill.gate.earlier import is_choice
    from rankmill.gate.reports import check_junit, lines
    from rankmill.gate.rules import parse_rules
    from rankmill.gate.verdict import view_of

    output = None if output == "-" else output
    parse_rules(rules)
    summary = _step_summary() if markdown == "-" else None
    markdown = None if markdown == "-" else markdown
    sources = [source_of(labels, "LABELS"), source_of(predictions, "PREDICTIONS")]
    base = None if baseline is None else source_of(baseline, "--baseline")
    is_file = base is not None and not (isinstance(base, str) and is_choice(base))
    inputs = [*sources, *([base] if base is not None and is_file else [])]
    inputs += catalogue_sources(options)
    files = {"per_query": per_query, "json": json, "junit": junit, "markdown": markdown}
    appended = files | ({} if summary is None else {"markdown": summary})
    check_outputs(output, inputs, **appended, report=report, history=recording.place)
    check_page(report)
    chosen = format_for(format, output)
    if junit is not None:
        check_junit()

    from rankmill.gate.gate import gate

    with Progress() as progress:
        asked = {"baseline": base, "history": recording.history, **options}
        asked["time"] = recording.time
        asked["details"] = report is not None
        found = gate(*sources, rules, **asked, progress=progress)
    printed = _content("json", found) if json == STANDARD_OUTPUT else ""
    files |= {"json": None} if printed else {}
    written = [(path, _content(name, found)) for name, path in files.items() if path is not None]
    if report is not None:
        runs: dict[str, Any] = {"candidate": sources[1]}
        if (found.baseline or {}).get("kind") == "predictions":
            runs["baseline"] = base
        written.append(
            (
                report,
                page_of(found, sources[0], runs, options, recording.history, time=recording.time),
            )
        )
    written += recording.record_run(found, *sources)
    for line in lines(found):
        click.echo(line, err=True)
    with suppress(BrokenPipeError):  # the exit code still tells
        deliver(view_of(found), chosen, output, written)
        if printed:
            emit(printed)
    if summary is not None:
        _append(summary, found)
    recording.log_run([output, *files.values(), report])
    click.get_current_context().exit(found.exit_code)


def _content(name: str, found: Verdict) -> Any:
    """Return what one of the files holds."""
    from rankmill.gate import reports

    if name == "per_query":
        return found.result.per_query
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


def _append(path: str, found: Verdict) -> None:
    from rankmill.gate.reports import markdown

    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(markdown(found) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write to {path}: {error.strerror or error}") from None
