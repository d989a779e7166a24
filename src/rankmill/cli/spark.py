"""`rankmill spark`, also `python -m rankmill.spark`: the commands on a session of Spark."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

import rankmill
from rankmill.cli import process
from rankmill.cli.command import Command, FileCommand, table_command
from rankmill.cli.compare import check_several
from rankmill.cli.compare import show as show_comparison
from rankmill.cli.evaluate import check_files, show
from rankmill.cli.gate import EXITS, VerdictOutputs, start
from rankmill.cli.run_outputs import (
    STANDARD_OUTPUT,
    RunOutputs,
    catalogue_sources,
    check_suffix,
    page_of,
)
from rankmill.config.document import joined
from rankmill.config.face import face_of, is_choice, source_of
from rankmill.config.options import options_of
from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, redacted

_HELP = """Score ranked PREDICTIONS against LABELS on Spark with 'rankmill spark evaluate'.

Use 'rankmill spark compare' and 'rankmill spark gate' to compare and gate systems on Spark.

An input is a path or URL that Spark can read, several of them separated by commas, or, with
--labels-as table, the name of a table. --train is read in the same way. The driver reads --items,
--features and the files of --by, which must fit into its memory.

The suffix sets the format: .csv and .tsv, with a header or --columns; .json and .jsonl; .orc;
anything else is Parquet. --labels-as and --predictions-as can also name another format of Spark,
such as delta. Instead of both inputs, a single FILE.toml can name them and the options, as for
'rankmill evaluate'.

The session is that of spark-submit, the one that Spark's variables and files define, or one on this
machine. The result is the same as that of 'rankmill evaluate', to the last bit. Long rows need a
rank or a confidence, because rows have no order in Spark. See 'rankmill docs spark'.
"""
_EXAMPLES = """
rankmill spark evaluate labels.parquet predictions.parquet -m map@12
rankmill spark evaluate db.labels s3a://bucket/run --labels-as table -m gap
rankmill spark compare labels.parquet old new -m map@12 --by country
rankmill spark gate rankmill.toml
spark-submit run.py evaluate labels.parquet old new -m map -o result.json
"""


_HELP_OF_COMPARE = """Compare the PREDICTIONS of systems with a baseline on Spark.

This is 'rankmill compare' for inputs that Spark reads, named as for 'rankmill spark evaluate': the
table is the same to the last bit, and so are FILE.toml and the exit codes.
"""
_EXAMPLES_OF_COMPARE = """
rankmill spark compare labels.parquet old new -m map@12
rankmill spark compare rankmill.toml --baseline old
spark-submit run.py compare rankmill.toml -o found.json
"""
_HELP_OF_GATE = """Check PREDICTIONS on Spark against rules, and exit with 1 if they break one.

This is 'rankmill gate' for inputs that Spark reads, named as for 'rankmill spark evaluate': the
verdict, FILE.toml and exit codes are the same. The driver writes all outputs, including the
history. A baseline can be predictions, the folder of an earlier --per-query, or a baseline of
'rankmill gate' on this machine.
"""
_EXAMPLES_OF_GATE = """
rankmill spark gate labels.parquet new --rule 'map@12 >= 0.08'
rankmill spark gate labels new --baseline old --rule 'map@12 drop <= 1% confidence 0.95'
spark-submit run.py gate rankmill.toml
"""
# How inputs are read, which a DataFrame does not need to be told.
_TOLD = "labels_as", "predictions_as", "columns", "label_columns", "encoding", "label_encoding"


class _SparkCommand(FileCommand):
    """A command on Spark, which refuses by name what the same command has on one machine."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse options that are not on Spark before click calls them unknown."""
        part = str(self.name).removeprefix("spark").strip() or "evaluate"
        here, there = (
            {flag for rows in options_of(name).values() for one in rows for flag in one.flags}
            for name in (str(self.name), part)
        )
        for word in args[: args.index("--")] if "--" in args else args:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag in there - here:
                raise click.UsageError(
                    f"{flag} is not supported on Spark: leave it out, or use 'rankmill {part}', "
                    "which reads the same files on one machine",
                    ctx,
                )
        return super().parse_args(ctx, args)


class _Named(_SparkCommand):
    """The command that its first argument names."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        name, *others = args or [""]
        if name == "-h" or name.startswith("--help"):
            name, others = "evaluate", args
        if name == "evaluate":
            return super().make_context(f"{info_name} {name}", others, parent, **extra)
        if name in _OTHERS:
            return _OTHERS[name].make_context(f"{info_name} {name}", others, parent, **extra)
        found = f"found {name!r}" if args else "found nothing"
        raise UsageError(
            f"rankmill spark takes evaluate, compare or gate first, and {found}: type "
            f"rankmill spark evaluate {' '.join(args) or 'LABELS PREDICTIONS'}"
        )


class _Inputs:
    """The inputs of a command, as they are named, and its outputs.

    The options lose those that tell how inputs are read, and the outputs the folder of
    --per-query, which Spark writes.
    """

    def __init__(
        self, labels: str, systems: dict[str, str], options: dict[str, Any], outputs: RunOutputs
    ) -> None:
        self.labels, self.systems, self.options = labels, systems, options
        self.per_query, self._outputs = outputs.files.pop("per_query"), outputs
        self._told = {name: options.pop(name) for name in _TOLD}
        self._train = options["train"] and joined(options["train"])

    def check(self, *more: str) -> None:
        """Check the outputs, which must not replace inputs; `more` are other inputs."""
        if self.per_query == STANDARD_OUTPUT:
            raise UsageError(
                "--per-query takes the name of a new folder, and not - for standard output"
            )
        check_suffix(self.per_query or "", "a folder of Parquet", (".parquet",))
        given = [self.labels, *self.systems.values(), *more]
        inputs = [one for text in given for one in text.split(",") if os.path.isfile(one)]
        self._outputs.check([*inputs, *catalogue_sources(self.options)])

    def arguments(self, function: Callable[..., Any], **more: Any) -> dict[str, Any]:
        """Return the arguments of a function; what is read becomes a DataFrame.

        That is the labels, the predictions of each system, and what queries had in training. The
        driver reads all else.
        """
        from rankmill.spark.exchange.spark_request import read, session

        spark, told = session(quiet=process.quiet), self._told
        names = told["label_columns"] or told["columns"]
        encoding = told["label_encoding"] or told["encoding"]
        labels = read(spark, self.labels, told["labels_as"], names, encoding)
        train = {} if self._train is None else {"train": read(spark, self._train, None)}
        runs: Any = {name: self.predictions(text) for name, text in self.systems.items()}
        runs = runs.get("", runs)
        return face_of(function, labels, runs, self.options | train | more)

    def predictions(self, text: str) -> Any:
        """Return predictions as a DataFrame."""
        from rankmill.spark.exchange.spark_request import read, session

        how = (self._told[name] for name in ("predictions_as", "columns", "encoding"))
        return read(session(quiet=process.quiet), text, *how)

    def named(self, found: Any, predictions: str = "") -> Any:
        """Return a result that calls its inputs as they were given."""
        names = {"labels": self.labels, "predictions": predictions, "train": self._train}
        inputs = {
            side: {**one, "source": redacted(names[side])} if names.get(side) else one
            for side, one in found.inputs.items()
        }
        if "systems" in inputs:
            inputs["systems"] = {
                name: {**one, "source": redacted(self.systems[name])}
                for name, one in inputs["systems"].items()
            }
        return replace(found, inputs=inputs)

    def write(self, values: Any) -> None:
        """Write the values of each query, if that is asked for."""
        if self.per_query is not None:
            from rankmill.spark.exchange.spark_request import write

            write(values(), self.per_query)

    @property
    def files(self) -> tuple[Any, dict[str, Any]]:
        """The files that a history may look at: those of this machine alone."""
        of_runs = self._told["predictions_as"]
        runs = {name: _files(text, of_runs) for name, text in self.systems.items()}
        return _files(self.labels, self._told["labels_as"]), runs


def _files(text: str, told: str | None) -> Any:
    return () if told == "table" or is_url(text) else source_of(text, "an input")


@table_command("spark", cls=_Named, outputs=RunOutputs, help=_HELP, examples=_EXAMPLES)
def command(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, evaluate, and write the result whole or not at all."""
    from rankmill.metrics.registry import parse_under

    parsed, _ = parse_under(metrics, options["semantics"])
    given = _Inputs(labels, systems, options, outputs)
    check_files(outputs, parsed, len(systems), given.check)

    from rankmill.spark.executor import values_of_runs

    asked = given.arguments(rankmill.evaluate_runs, metrics=metrics)
    found = rankmill.evaluate_runs(**asked)
    results = {name: given.named(one, systems[name]) for name, one in found.items()}
    given.write(lambda: values_of_runs(asked))
    # If predictions decide which queries count, only their values tell whether these are the same.
    by_predictions = any(one.semantics.counts_by_predictions for one in results.values())
    several = rankmill.Results(results, None if by_predictions else True)
    show(several, outputs, given.files, lambda one: outputs.page(one, {}))


@table_command(
    "spark compare",
    cls=_SparkCommand,
    outputs=RunOutputs,
    help=_HELP_OF_COMPARE,
    examples=_EXAMPLES_OF_COMPARE,
)
def _compare(
    labels: str,
    systems: dict[str, str],
    metrics: tuple[str, ...],
    outputs: RunOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, compare, and write the outcome whole or not at all."""
    check_several(systems)
    given = _Inputs(labels, systems, options, outputs)
    given.check()

    found = rankmill.compare(**given.arguments(rankmill.compare, metrics=metrics))
    given.write(lambda: found.per_query)
    show_comparison(given.named(found), outputs, given.files, {}, systems.values())


@table_command(
    "spark gate",
    cls=_SparkCommand,
    outputs=VerdictOutputs,
    start=start,
    apart=True,
    help=_HELP_OF_GATE,
    examples=_EXAMPLES_OF_GATE,
    exits=EXITS,
)
def _gate(
    labels: str,
    predictions: str,
    rules: tuple[str, ...],
    baseline: str | None,
    outputs: VerdictOutputs,
    **options: Any,
) -> None:
    """Check what can be checked, judge, write all outputs or none, and exit with the verdict."""
    from rankmill.nightly.rules.rules import parse_rules

    parse_rules(rules)
    given = _Inputs(labels, {"": predictions}, options, outputs)
    given.check(*([] if baseline is None else [baseline]))
    outputs.begin(rules, labels, predictions)
    base = baseline if baseline is None or _is_run(baseline) else given.predictions(baseline)
    given.options = outputs.asked(rules, base, given.options)
    found = rankmill.gate(**given.arguments(rankmill.gate))
    found = replace(found, result=given.named(found.result, predictions), run=outputs.name)
    given.write(lambda: found.result.per_query)
    of_labels, of_runs = given.files
    sources = [of_labels, of_runs[""]]
    outputs.tell(found, sources, lambda trends: page_of(found, {}, trends))


def _is_run(baseline: str) -> bool:
    """Return whether a baseline is a run of a history, or a file of this machine that holds one."""
    from rankmill.nightly.rules.baseline import open_baseline

    if is_choice(baseline):
        return True
    return os.path.isfile(baseline) and open_baseline(baseline, ()).kind != "predictions"


_OTHERS: Mapping[str, Command] = {"compare": _compare, "gate": _gate}
