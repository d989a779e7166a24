"""`rankmill gate`: stop a system that does not keep its rules."""

from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

import rankmill
from rankmill.cli.command import FileCommand, table_command
from rankmill.cli.output_checks import inputs_of
from rankmill.cli.progress_bar import call, run
from rankmill.cli.run_outputs import page_of
from rankmill.cli.verdict_outputs import VerdictOutputs, start
from rankmill.config.face import face_of
from rankmill.config.given_inputs import source_of
from rankmill.errors import UsageError

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
    from rankmill.config.baseline_choice import is_choice
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
    from rankmill.nightly.gate.gate import gate, gate_in_detail

    given = face_of(gate, sources[0], sources[1], outputs.asked(rules, base, options))
    found = call(gate_in_detail, given, details=outputs.files["report"] is not None)
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
            raise UsageError(f"--power gives no verdict: leave out --{name.replace('_', '-')}")
    left = {name: one for name, one in options.items() if name not in ("undecided", "moved")}
    found = run(rankmill.gate_power, sources[0], sources[1], outputs.asked(rules, base, left))
    outputs.write(found)
