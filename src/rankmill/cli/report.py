"""`rankmill report`: a page about a system, and how it differs from others."""

import os
import sys
from typing import Any

from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import emit
from rankmill.cli.output_checks import catalogue_sources, check_outputs
from rankmill.cli.process import is_terminal
from rankmill.cli.progress_bar import call
from rankmill.cli.run_outputs import page_of, trends_of
from rankmill.config.face import face_of
from rankmill.config.given_inputs import source_of
from rankmill.errors import UsageError
from rankmill.io import whole_files as writing

_EXAMPLES = """
rankmill report labels.parquet new.parquet -m map@12 -o page.html
rankmill report labels.parquet new.parquet old.parquet -m map@12 --by country -o page.html
rankmill report rankmill.toml
"""


@table_command("report", cls=FileCommand, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    baseline: str | None,
    report: str | None,
    history: str | None,
    **options: Any,
) -> None:
    """Write an HTML report on PREDICTIONS: their metrics, slices and queries to look at.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'. The report is about the first
    PREDICTIONS. If there are more, the second are the baseline, and all others are compared with
    it. The report is one self-contained HTML file without scripts. See 'rankmill docs report'.
    """
    if report is None and is_terminal(sys.stdout):
        raise UsageError(
            "the page is HTML for a browser, not for a terminal: name a file, such as -o "
            "page.html, or use -o - to print it anyway"
        )
    report = None if report == "-" else report
    source = source_of(labels, "LABELS")
    runs = {name: source_of(text, "PREDICTIONS") for name, text in systems.items()}
    inputs = [source, *runs.values(), *catalogue_sources(options)]
    check_outputs(report and os.devnull, inputs, report=report)
    if len(runs) == 1 and baseline is not None:
        raise UsageError("--baseline names one of several systems: give its PREDICTIONS too")

    from rankmill.analysis.compare.compare import compare, compare_in_detail
    from rankmill.analysis.compare.view.details import evaluate_in_detail
    from rankmill.results.result import check_values

    found: Any
    details = None
    if len(runs) == 1:
        given = face_of(evaluate_in_detail, source, runs, options)
        results, details = call(evaluate_in_detail, given)
        check_values(results)
        (found,) = results.values()
    else:
        given = face_of(compare, source, runs, options | {"baseline": baseline or [*runs][1]})
        found = call(compare_in_detail, given)
    page = page_of(found, given, trends_of(found, history), details)
    writing.write_files([] if report is None else [(report, page)])
    if report is None:
        emit(page)
