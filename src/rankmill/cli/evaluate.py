"""`rankmill evaluate` scores predictions; `rankmill merge` adds up the states of parts of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import rankmill
from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.draw import call, emit, run
from rankmill.cli.run_outputs import RunOutputs, board, flag_of, inputs_of
from rankmill.config.face import face_of
from rankmill.errors import UsageError, plural
from rankmill.io import whole_files
from rankmill.io.whole_files import NAMED, suffix_of
from rankmill.results.result import WEIGHT, Result, check_values
from rankmill.show.writers import write

if TYPE_CHECKING:
    from rankmill.engine.state import State
    from rankmill.metrics.base import Metric

_HELP = """Score ranked PREDICTIONS against LABELS. Each is a file, a quoted glob ('run/*.parquet'),
a folder, several files separated by commas, a URL, or - for standard input. Instead of both, a
single FILE.toml can name them and the options.

Give several PREDICTIONS to score several systems side by side; the labels are read once. See
'rankmill docs data' for row shapes, formats, URLs, and how columns are found, and
'rankmill docs config' for FILE.toml.
"""
_EXAMPLES = """
rankmill evaluate labels.parquet predictions.parquet -m map@12
rankmill evaluate qrels.txt bm25.run dense.run -m map --preset trec_eval
rankmill evaluate labels.parquet 'p/*.parquet' -m mrr@5 -m gap --format csv
rankmill evaluate labels run -m ndcg@10 --gain stars --gain-function exp
rankmill evaluate labels bm25.run dense.run -m map@1..100 --plot map.svg
rankmill evaluate labels run -m map --binary --in-order
rankmill evaluate labels run -m map@12 --by country
rankmill evaluate l.parquet p.parquet -m map -o a.md --per-query q.parquet
rankmill evaluate rankmill.toml
rankmill evaluate solution.csv mine.csv -m map@5 --preset ml_metrics
zcat p.jsonl.gz | rankmill evaluate labels.jsonl -
"""


@table_command("evaluate", cls=FileCommand, outputs=RunOutputs, help=_HELP, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    only_plan: bool,
    part: str | None,
    second: str | None,
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.registry import parse_under

    parsed, _ = parse_under(options["metrics"], options["semantics"])
    label_source, runs, inputs = inputs_of(labels, systems, options)
    inputs += [second] if second else []
    if outputs.files["state"] is not None:
        outputs.check(inputs)
        options["part"] = part
        write_part(label_source, runs, second, outputs, only_plan, options)
        return
    if part or second:
        raise UsageError(f"--{'part' if part else 'second'} needs --state FILE: add it")
    check_files(outputs, parsed, len(runs), lambda: outputs.check(inputs))
    options["per_query"] = outputs.files["per_query"] is not None

    if only_plan:
        from rankmill.engine.evaluate import plan_runs, plan_view

        for name in ("by", "sums", "threads", "per_query"):
            del options[name]
        asked = face_of(plan_runs, label_source, runs, options)
        outputs.write(plan_view(plan_runs(**asked)))
        return
    details, given = None, {}
    results: Mapping[str, Result]
    if outputs.files["report"] is None:
        results = run(rankmill.evaluate_runs, label_source, runs, options)
    else:
        from rankmill.analysis.compare.view.details import evaluate_in_detail

        del options["per_query"]
        given = face_of(evaluate_in_detail, label_source, runs, options)
        results, details = call(evaluate_in_detail, given)
    show(
        rankmill.Results(results),
        outputs,
        (label_source, runs),
        lambda one: outputs.page(one, given, details),
    )


def show(
    results: rankmill.Results,
    outputs: RunOutputs,
    files: tuple[Any, Any],
    page: Callable[[Result], str],
) -> None:
    """Show one result, or several side by side, and write what else is asked for.

    `files` are the paths of the labels and, by system, of the predictions.
    """
    first = next(iter(results.values()))
    contents = {
        "curve": lambda: _points(results, outputs.files["curve"]),
        "plot": results.plot,
        "report": lambda: page(first),
        "leaderboard": lambda: board(results),
        "per_query": lambda: _values(results),
    }
    good = all(None not in one.metrics.values() for one in results.values())
    record = outputs.record_run(results, *files) if good else []
    outputs.write(results if len(results) > 1 else first, contents, record)
    check_values(results)
    outputs.log()


def _values(results: Mapping[str, Result]) -> Any:
    """Return the values of each query, of several systems beside each other."""
    from rankmill.analysis.compare.queries.alignment import join_per_query

    first, *others = results.values()
    found = join_per_query(results) if others else first.per_query
    if not {*found.column_names[1:]} - {WEIGHT}:
        raise UsageError(
            f"--per-query: none of {', '.join(first.metrics)} has a value for each query: leave it "
            "out, or add a metric that has one, such as -m map@10"
        )
    return found


def _points(results: Mapping[str, Result], path: str | None) -> Any:
    """Return the points of curves as a table, or as JSON."""
    from rankmill.engine.curves import curve_rows
    from rankmill.results.curves import view_of_curves

    table = curve_rows(results)
    return write(view_of_curves(table), "json") if suffix_of(path or "") == ".json" else table


def check_files(
    outputs: RunOutputs, metrics: Sequence[Metric], systems: int, check: Callable[[], None]
) -> None:
    """Check all outputs of an evaluation before anything is read, in between with `check`."""
    curve, report, leaderboard = (outputs.files[one] for one in ("curve", "report", "leaderboard"))
    if curve is not None:
        _check_points(curve)
    check()
    _check_curves(curve, metrics)
    if report is not None and systems > 1:
        raise UsageError("--report shows one system: 'rankmill report' compares several")
    if leaderboard is not None and systems < 2:
        raise UsageError(
            "--leaderboard takes the PREDICTIONS of two systems or more; found those of one: add "
            "those of another system, or leave out --leaderboard"
        )


def _check_points(path: str) -> None:
    """Raise UsageError if the file for the points of curves is a picture, or a metric."""
    from rankmill.metrics.registry import parse_all

    if suffix_of(path) == ".svg":
        raise UsageError(f"--plot {path} draws curves: --curve writes points, in .json, {NAMED}")
    with suppress(UsageError):
        parse_all([path])
        path = f"-m {path}"
    if path.startswith("-m "):
        raise UsageError(
            f"--curve takes a FILE, and -m the metrics: {path} prints the values, {path} --plot "
            f"curve.svg draws them, and {path} --curve curve.csv writes them as a table"
        )


def _check_curves(curve: str | None, metrics: Sequence[Metric]) -> None:
    """Raise UsageError before anything is read if there is no such curve."""
    if curve is None:
        return
    from rankmill.engine.curves import DRAWN, cuts_of
    from rankmill.metrics.aggregate import has_curve

    if not cuts_of([one.text for one in metrics]) and not any(map(has_curve, metrics)):
        raise UsageError(f"--curve needs {DRAWN}: add one with -m")


_MERGE_HELP = """Merge the states that 'evaluate --state' wrote for all parts, and show the result.

It equals the result of one evaluation of all queries, to the last bit. A metric over all
predictions, such as gap, needs a second pass: write the merged STATE with --state, evaluate each
part again with --second, and merge the merged STATE with the files of the second pass. See
'rankmill docs parts'.
"""
_MERGE_EXAMPLES = """
rankmill merge state-*.arrow
rankmill merge state-*.arrow --state merged.arrow
rankmill merge merged.arrow second-*.arrow -o result.json
rankmill merge state-*.arrow --history runs --tag model=a7
"""


@table_command(
    "merge",
    [click.Argument(["states"], metavar="STATE...", nargs=-1, required=True)],
    outputs=RunOutputs,
    help=_MERGE_HELP,
    examples=_MERGE_EXAMPLES,
)
def merge(states: tuple[str, ...], outputs: RunOutputs, threads: int | None) -> None:
    """Read all files, refuse what does not fit together, and show or write what they add up to."""
    from rankmill.engine.origin import check_whole
    from rankmill.engine.parts import merge_files, table_of_state

    outputs.check(states)
    if outputs.files["state"] is None:
        found = merge_files(states)
        if found.waiting:
            check_whole(found.state.origin)
            raise UsageError(f"{' and '.join(found.waiting)} {_PASS}")
        result = found.state.result(found.among, threads)
        good = None not in result.metrics.values()
        outputs.write(result, record=outputs.record_run(result) if good else [])
        check_values({"": result})
        outputs.log()
        return
    state = _checked_state(outputs)
    merged = merge_files(states)
    if merged.among:
        raise UsageError(
            "counts of a second pass do not belong in a state: leave out --state to see the "
            "result, or leave out their files"
        )
    whole_files.write_files([(state, table_of_state(merged.state))])
    emit(f"{described(merged.state)}, in {state}\n")


_PASS = (
    "needs a second pass: write the merged state with --state merged.arrow, evaluate each part "
    "again with --second merged.arrow and a --state of its own, and merge merged.arrow with these"
)


def described(state: State) -> str:
    """Return what a state covers, in a line."""
    counted = f"{plural(state.queries, 'query')} count" + "s" * (state.queries == 1)
    origin = state.origin
    if origin is None or not origin.of:
        return counted
    if not origin.missing:
        return f"all {origin.of} parts: {counted}"
    some = len(origin.numbers)
    part = f"part {origin.numbers[0]}" if some == 1 else f"{some} parts"
    return f"{part} of {origin.of}: {counted}"


def _checked_state(outputs: RunOutputs, **others: Any) -> str:
    """Return the file of --state; raise UsageError if it cannot be one, or if more is asked for."""
    from rankmill.engine.parts import check_state_name

    others |= {"o": outputs.output, "format": outputs.format, **outputs.files, "state": None}
    others |= {one: getattr(outputs, one) for one in ("history", "mlflow")}
    source = click.get_current_context().get_parameter_source
    for name, value in others.items():
        # What a FILE.toml has is for whole results.
        if value is not None and source(name) is not ParameterSource.DEFAULT_MAP:
            raise UsageError(
                f"--state writes a state and shows no result: leave out {flag_of(name)}"
            )
    state = str(outputs.files["state"])
    check_state_name(state)
    return state


def write_part(
    labels: Any,
    systems: dict[str, Any],
    second: str | None,
    outputs: RunOutputs,
    only_plan: bool,
    options: dict[str, Any],
) -> None:
    """Evaluate a part, or pass over it a second time, and write its state."""
    from rankmill.engine import parts
    from rankmill.engine.origin import check_whole

    state = _checked_state(outputs, plan=only_plan or None)
    if len(systems) > 1:
        raise UsageError("--state takes the PREDICTIONS of one system: type a command for each")
    ((_, predictions),) = systems.items()
    if second is None:
        found = run(parts.evaluate_part, labels, predictions, options)
        whole_files.write_files([(state, parts.table_of_state(found))])
        emit(f"{described(found)}, in {state}\n")
        return
    given = face_of(parts.evaluate_part, labels, predictions, options)
    merged = parts.merge_files([second]).state
    check_whole(merged.origin)
    parts.check_asked(merged, given)
    if not merged.two_passes:
        raise UsageError(f"no metric of {second} needs a second pass: 'rankmill merge' has all")
    more = {name: options[name] for name in ("part", "threads", "memory")}
    counts = parts.second_pass(merged, given["predictions"], **more)
    whole_files.write_files([(state, parts.table_of_counts(counts, options["part"]))])
    seen = max(one.seen.predictions for one in counts.values())
    emit(f"second pass: {plural(seen, 'prediction')}, in {state}\n")
