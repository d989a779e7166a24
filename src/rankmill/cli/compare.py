"""`rankmill compare`: which system is better, on which queries, and is it real."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import call
from rankmill.cli.run_outputs import RunOutputs, board, command_line, inputs_of
from rankmill.config.document import joined
from rankmill.config.face import face_of
from rankmill.config.options import options_of
from rankmill.errors import InputError, UsageError
from rankmill.io.stores.urls import redacted, shown

if TYPE_CHECKING:
    from rankmill.analysis.compare.view.comparison import Comparison
    from rankmill.show.tables import View

# Options of both commands that do not change what is counted, or that each query has its own of.
_OWN = "labels", "predictions", "metrics", "date", "format", "output", "memory", "threads", "quiet"

_EXAMPLES = """
rankmill compare labels.parquet old.parquet new.parquet -m map@12
rankmill compare labels old new -m map@12 --by country --by users.csv
rankmill compare rankmill.toml --baseline old
rankmill compare labels a b c --baseline b -m map@12 -m ndcg@10 --format json
rankmill compare labels old new -m map@12 --moved 5 --per-query q.parquet
rankmill compare labels old new -m map@12 --margin 0.001
rankmill compare labels a b c -m map,recall --cutoffs 1,5,10,20
rankmill compare labels a b c -m map@12 -m ndcg@10 --all-pairs --format latex
rankmill compare labels a b c -m map@12 --by country --leaderboard board.html
rankmill compare labels old new -m map@12 -o table.tex --plot figure.svg
"""


@table_command("compare", cls=FileCommand, outputs=RunOutputs, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Compare the PREDICTIONS of systems with a baseline, and test the differences.

    LABELS and PREDICTIONS are the same as for 'rankmill evaluate'; the first PREDICTIONS are the
    baseline. All systems are averaged over the same queries, joined by query id. For each metric
    and system, a row shows the value; the difference from the baseline with its interval; the
    p-value, corrected over all metrics and systems; the verdict; and the queries won, tied and
    lost. See 'rankmill docs comparing' for which test to use when.
    """
    label_source, runs, inputs = inputs_of(labels, systems, options)
    check_several(runs)
    files = outputs.files
    outputs.check(inputs)

    from rankmill.analysis.compare.compare import compare
    from rankmill.analysis.compare.view.comparison import view_of

    given = face_of(compare, label_source, runs, options)
    found = call(compare, given, details=files["report"] is not None)
    explaining = _explaining(labels, systems, found.baseline)
    view = view_of(found, explaining, _listing(files["per_query"]))
    show(found, outputs, (label_source, runs), given, systems.values(), view)


def show(
    found: Comparison,
    outputs: RunOutputs,
    files: tuple[Any, Any],
    given: Mapping[str, Any],
    systems: Iterable[str],
    view: View | None = None,
) -> None:
    """Show a comparison, and write what else is asked for.

    `files` are the paths of the labels and, by system, of the predictions; `systems` are these as
    they are told.
    """
    contents = {
        "per_query": lambda: found.per_query,
        "plot": found.plot,
        "report": lambda: outputs.page(found, given),
        "leaderboard": lambda: board(found),
    }
    record = outputs.record_run(found, *files) if found.queries else []
    outputs.write(view or found, contents, record)
    if not found.queries:
        raise InputError(
            f"{', '.join(map(redacted, systems))}: no query counts for every system under "
            "these semantics: check that the query ids of all files agree, or count queries "
            "without predictions as well"
        )
    outputs.log()


def check_several(systems: Sized) -> None:
    """Raise UsageError if there is nothing to compare."""
    if len(systems) < 2:
        raise UsageError(
            "compare takes the PREDICTIONS of two systems or more; found those of one: add those "
            "of another system, or score one system with 'rankmill evaluate'"
        )


def _listing(per_query: str | None) -> str:
    """Return where all queries are that a system lacks, or the command that lists them."""
    if per_query is not None:
        return f"{shown(per_query)} has an empty value for each"
    return f"to list them with an empty value: {command_line()} --per-query queries.csv"


def _explaining(
    labels: str, paths: dict[str, str], baseline: str
) -> Callable[[str, str, int | str], str]:
    """Return a function that writes the command for a metric, a system and a query.

    It shows the lists of the baseline and of the system side by side.
    """
    given = _given(click.get_current_context())

    def line(metric: str, name: str, query: int | str) -> str:
        inputs = labels, paths[baseline], paths[name]
        words = ["rankmill", "explain", *map(redacted, inputs)]
        return shlex.join([*words, f"--query-id={query}", "-m", metric, *given])

    return line


def _given(context: click.Context) -> list[str]:
    """Return the options, of the command line or its file, that say how to read and count."""
    known = {flag for rows in options_of("explain").values() for one in rows for flag in one.flags}
    told, words = context.meta | context.params, []
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        by_user = source in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
        name = max(one.opts, key=len)
        if not by_user or name not in known or one.name in _OWN:
            continue
        values = told[one.name or ""]
        if isinstance(one, click.Option) and one.is_flag:
            words += [name] if values else []
        else:
            listed = values if isinstance(values, tuple) else [_text_of(values)]
            words += [f"{name}={value}" for value in listed]
    return words


def _text_of(value: Any) -> str:
    """Return the value of an option as it is written; the files of one stand between commas."""
    return redacted(joined(value)) if isinstance(value, str | list) else str(value)
