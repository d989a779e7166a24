"""What the commands on Spark have in common: the inputs, and what they refuse."""

import os
from collections.abc import Mapping
from typing import Any

import click

from rankmill.cli import process
from rankmill.cli.file_command import FileCommand
from rankmill.cli.output_checks import STANDARD_OUTPUT, catalogue_sources, check_suffix
from rankmill.cli.run_outputs import RunOutputs
from rankmill.config.given_inputs import source_of
from rankmill.config.keys import joined
from rankmill.config.options import options_of
from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, redacted

# How inputs are read, which a DataFrame does not need to be told.
_TOLD = "labels_as", "predictions_as", "columns", "label_columns", "encoding", "label_encoding"


class SparkCommand(FileCommand):
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


class SparkInputs:
    """The inputs of a command, as they are named; `frames` reads them.

    The options of the command lose those that tell how inputs are read, and its outputs the folder
    `per_query`, which Spark writes.
    """

    def __init__(
        self, labels: str, systems: dict[str, str], options: dict[str, Any], outputs: RunOutputs
    ) -> None:
        self.labels, self.systems = labels, systems
        self.per_query, self._outputs = outputs.files.pop("per_query"), outputs
        self._told = {name: options.pop(name) for name in _TOLD}
        self._options = options
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
        self._outputs.check([*inputs, *catalogue_sources(self._options)])

    def frames(self) -> tuple[Any, dict[str, Any]]:
        """Return the labels and the predictions of each system as DataFrames.

        What queries had in training becomes one in the options, too. The driver reads all else.
        """
        from rankmill.spark.exchange.session import read, session

        spark, told = session(quiet=process.quiet), self._told
        names = told["label_columns"] or told["columns"]
        encoding = told["label_encoding"] or told["encoding"]
        frame = read(spark, self.labels, told["labels_as"], names, encoding)
        if self._train is not None:
            self._options["train"] = read(spark, self._train, None)
        return frame, {name: self.predictions(text) for name, text in self.systems.items()}

    def predictions(self, text: str) -> Any:
        """Return predictions as a DataFrame."""
        from rankmill.spark.exchange.session import read, session

        how = (self._told[name] for name in ("predictions_as", "columns", "encoding"))
        return read(session(quiet=process.quiet), text, *how)

    def named(self, inputs: Mapping[str, Any], predictions: str = "") -> dict[str, Any]:
        """Return what a result says of its inputs, called as they were given."""
        names = {"labels": self.labels, "predictions": predictions, "train": self._train}
        found = {
            side: {**one, "source": redacted(names[side])} if names.get(side) else one
            for side, one in inputs.items()
        }
        if "systems" in found:
            found["systems"] = {
                name: {**one, "source": redacted(self.systems[name])}
                for name, one in found["systems"].items()
            }
        return found

    @property
    def files(self) -> tuple[Any, dict[str, Any]]:
        """The files that a history may look at: those of this machine alone."""
        of_runs = self._told["predictions_as"]
        runs = {name: _files(text, of_runs) for name, text in self.systems.items()}
        return _files(self.labels, self._told["labels_as"]), runs


def _files(text: str, told: str | None) -> Any:
    return () if told == "table" or is_url(text) else source_of(text, "an input")
