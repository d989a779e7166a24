"""`rankmill merge`: what the states of all parts add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.run_outputs import RunOutputs
from rankmill.errors import UsageError, plural
from rankmill.io import whole_files
from rankmill.results.result import check_values

if TYPE_CHECKING:
    from rankmill.engine.state import State

_HELP = """Merge the states that 'evaluate --state' wrote for all parts, and show the result.

It equals the result of one evaluation of all queries, to the last bit. A metric over all
predictions, such as gap, needs a second pass: write the merged STATE with --state, evaluate each
part again with --second, and merge the merged STATE with the files of the second pass. See
'rankmill docs parts'.
"""
_EXAMPLES = """
rankmill merge state-*.arrow
rankmill merge state-*.arrow --state merged.arrow
rankmill merge merged.arrow second-*.arrow -o result.json
rankmill merge state-*.arrow --history runs --tag model=a7
"""


@table_command(
    "merge",
    [click.Argument(["states"], metavar="STATE...", nargs=-1, required=True)],
    outputs=RunOutputs,
    help=_HELP,
    examples=_EXAMPLES,
)
def command(states: tuple[str, ...], outputs: RunOutputs, threads: int | None) -> None:
    """Read all files, refuse what does not fit together, and show or write what they add up to."""
    from rankmill.engine.origin import check_whole
    from rankmill.engine.state_files import merge_files, table_of_state

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
    from rankmill.engine.state_files import check_state_name

    others |= {"o": outputs.output, "format": outputs.format, **outputs.files, "state": None}
    others |= {one: getattr(outputs, one) for one in ("history", "mlflow")}
    for name in (name for name, value in others.items() if value is not None):
        option = f"-{'-' * (len(name) > 1)}{name.replace('_', '-')}"
        raise UsageError(f"--state writes a state and shows no result: leave out {option}")
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
    from rankmill.cli.progress_bar import run
    from rankmill.config.face import face_of
    from rankmill.engine import state_files
    from rankmill.engine.origin import check_whole
    from rankmill.engine.parts import evaluate_part, second_pass

    state = _checked_state(outputs, plan=only_plan or None)
    if len(systems) > 1:
        raise UsageError("--state takes the PREDICTIONS of one system: type a command for each")
    ((_, predictions),) = systems.items()
    if second is None:
        found = run(evaluate_part, labels, predictions, options)
        whole_files.write_files([(state, state_files.table_of_state(found))])
        emit(f"{described(found)}, in {state}\n")
        return
    given = face_of(evaluate_part, labels, predictions, options)
    merged = state_files.merge_files([second]).state
    check_whole(merged.origin)
    state_files.check_asked(merged, given)
    if not merged.two_passes:
        raise UsageError(f"no metric of {second} needs a second pass: 'rankmill merge' has all")
    more = {name: options[name] for name in ("part", "threads", "memory")}
    counts = second_pass(merged, given["predictions"], **more)
    whole_files.write_files([(state, state_files.table_of_counts(counts, options["part"]))])
    seen = max(one.seen.predictions for one in counts.values())
    emit(f"second pass: {plural(seen, 'prediction')}, in {state}\n")
