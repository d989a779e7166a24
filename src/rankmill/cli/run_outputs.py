"""What a run writes: its table, its page and pictures, and its record in a history."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import click

from rankmill.cli.draw import deliver
from rankmill.cli.output_checks import check_outputs, format_for
from rankmill.cli.process import TIME
from rankmill.errors import InputError, UsageError
from rankmill.io.stores.urls import is_url, join, redacted
from rankmill.records import record

if TYPE_CHECKING:
    import pyarrow as pa

    from rankmill.analysis.compare.view.details import Details
    from rankmill.nightly.history.record import Found
    from rankmill.nightly.rules.breaches import Trends
    from rankmill.results.answer import Answer
    from rankmill.show.tables import View

_FILES = (
    *("per_query", "curve", "plot", "report", "leaderboard"),
    *("state", "json", "junit", "markdown", "summary"),
)


def page_of(
    found: Any,
    given: Mapping[str, Any],
    trends: Trends,
    details: Details | None = None,
) -> str:
    """Return the page about a result, a comparison or a verdict.

    `given` are the arguments of `evaluate_runs`, with the predictions of each system by its name in
    `found`, perhaps among others.
    """
    from rankmill.nightly.report.pages import page
    from rankmill.nightly.report.query_sections import lists_of
    from rankmill.nightly.report.subject import subject_of

    details = details or subject_of(found).details
    return page(
        found,
        details=details,
        lists=lists_of(details, given),
        history=trends,
        command=command_line(),
    )


def board(found: Any) -> str:
    """Return the page of --leaderboard about several systems."""
    from rankmill.nightly.report.pages import leaderboard_page

    return leaderboard_page(found, command_line())


def command_line() -> str:
    """Return the command line as a shell takes it, without credentials."""
    words = click.get_current_context().find_root().obj
    return shlex.join(["rankmill", *map(redacted, words or [])])


def trends_of(found: Any, folder: str | None, time: datetime | None = None) -> Trends:
    """Return the runs of a history that count as this one, which is the last, of each metric.

    Of a verdict, also those of each slice that a rule is about. Without a `time` the run is now.
    """
    if folder is None:
        return {}
    from rankmill.nightly.history.history import History
    from rankmill.nightly.report.subject import subject_of
    from rankmill.nightly.rules.breaches import slice_trends
    from rankmill.nightly.runs.runs import beside_of, rules_text

    subject = subject_of(found)
    with suppress(InputError):  # this may be the first run of the history
        earlier = History(folder)
        semantics, scope = subject.rules
        inputs = getattr(subject.comparison or subject.result, "inputs", {})
        rules = rules_text(semantics, vars(scope) | beside_of(inputs))
        # Runs of one system alone have no name for it.
        systems = [subject.main, None] if subject.comparison and not subject.verdict else [None]
        now = time or datetime.now(UTC)
        trends: dict[Any, list[Any]] = {}
        of_slices: dict[str, list[Any]] = {}
        for metric, of in subject.values.items():
            one, word = of[subject.main], getattr(subject.verdict, "word", "")
            for system in systems:
                with suppress(InputError):  # no earlier run has this metric
                    points = earlier.trend(metric, system, rules=rules).points
                    points = [p for p in points if p.run.time <= now]
                    runs = [
                        (p.run.time, p.value, p.standard_error, p.run.verdict or "") for p in points
                    ]
                    trends[metric] = [*runs, (now, one.value, one.standard_error, word)]
                    of_slices[metric] = [p.run for p in points]
                    break
        if subject.verdict is not None:
            trends |= slice_trends(found, folder, of_slices, now)
        return trends
    return {}


@record
class RunOutputs:
    """What a run writes, and the history and the MLflow server that it is recorded in."""

    output: str | None
    format: str | None
    files: dict[str, str | None]  # the other options that name files, as far as a command has them
    history: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    mlflow: str | None = None  # the address of the server
    time: datetime | None = None  # that of the run; None for now
    run: pa.Table | None = None  # once it is known

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Take what is written from the options of a command.

        UsageError is raised before any work is done if the run could not be recorded.
        """
        files = {one: given.pop(one) for one in _FILES if one in given}
        outputs = cls(given.pop("output"), given.pop("format"), files)
        if "mlflow" in given:
            outputs.time = click.get_current_context().meta.get(TIME)
            outputs.history, outputs.tags = given.pop("history"), _tags(given.pop("tags"))
            outputs.mlflow = given.pop("mlflow")
            outputs._check_record()
        return outputs

    def _check_record(self) -> None:
        if self.tags and self.history is None and self.mlflow is None:
            raise UsageError("--tag names a run in a history: give --history or --mlflow too")
        if self.history is not None:
            from rankmill.nightly.history.record import check_history

            check_history(self.history)
        if self.mlflow is not None:
            from rankmill.nightly.gate.mlflow import tracking_uri

            self.mlflow = tracking_uri(self.mlflow)

    @property
    def chosen(self) -> str:
        """The format of the result."""
        return format_for(self.format, self.output)

    @property
    def place(self) -> str | None:
        """A name for a run that no input may read; None without a history that is there."""
        if self.history is None or not (is_url(self.history) or os.path.isdir(self.history)):
            return None
        return join(self.history, "run.parquet")

    def check(self, inputs: Sequence[str | list[str]]) -> None:
        """Check before a long run that all outputs can be written and overwrite no input."""
        check_outputs(self.output, inputs, **self.files, history=self.place)
        _ = self.chosen  # which may be none
        if self.files.get("plot") is not None:
            from rankmill.show.pictures import check_picture

            check_picture(str(self.files["plot"]))

    def page(self, found: Any, given: Mapping[str, Any], details: Details | None = None) -> str:
        """Return the page of --report; the arguments are those of `page_of`."""
        return page_of(found, given, trends_of(found, self.history, self.time), details)

    def made(self, contents: Mapping[str, Callable[[], Any]]) -> list[tuple[str, Any]]:
        """Return the files that are asked for, with what the option of each writes."""
        asked = [(name, path) for name, path in self.files.items() if path is not None]
        made = [(path, contents[name]()) for name, path in asked if name in contents]
        return [(path, f"{one.svg()}\n" if hasattr(one, "svg") else one) for path, one in made]

    def write(
        self,
        found: Answer | View,
        contents: Mapping[str, Callable[[], Any]] = {},
        record: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Show what was found, and write it, all other files and the record with it or none."""
        deliver(found, self.chosen, self.output, [*self.made(contents), *record])

    def record_run(
        self, found: Found, labels: Any = None, predictions: Any = None
    ) -> list[tuple[str, pa.Table | None]]:
        """Return what `write_files` is to write of a good run; nothing without a history.

        The labels and predictions are the paths that were read; by system if there may be several.
        """
        if self.history is None and self.mlflow is None:
            return []
        from rankmill.nightly.history.record import contents_of, run_table

        if isinstance(predictions, Mapping) and len(predictions) == 1:
            (predictions,) = predictions.values()
        files = {"labels": labels, "predictions": predictions}
        self.run = run_table(found, tags=self.tags, time=self.time, **files)
        return [] if self.history is None else contents_of(self.run, self.history)

    def log(self, files: Sequence[str | None] | None = None) -> None:
        """Send the recorded run to MLflow, with all files, or some; at the very end."""
        if self.mlflow is not None and self.run is not None:
            from rankmill.nightly.gate.mlflow import log_run

            every = [self.output, *self.files.values()] if files is None else files
            log_run(self.run, self.mlflow, [one for one in every if one])


def _tags(texts: Sequence[str]) -> dict[str, str]:
    tags: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"--tag {text!r} is not KEY=VALUE, such as model=a7")
        if key in tags:
            raise UsageError(f"--tag {key} is given twice, as {tags[key]!r} and {value!r}")
        tags[key] = value
    return tags
