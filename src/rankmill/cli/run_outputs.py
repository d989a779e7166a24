"""What a run writes: its table, page, pictures and record; and what is checked of them before."""

from __future__ import annotations

import glob
import itertools
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import click
from click.core import ParameterSource

from rankmill.cli.draw import deliver
from rankmill.cli.process import TIME, output_failure
from rankmill.config.face import source_of
from rankmill.errors import InputError, UsageError
from rankmill.io import whole_files as writing
from rankmill.io.inert_text import visible
from rankmill.io.stores.urls import is_url, join, local_path, opened, place_of, redacted, shown
from rankmill.io.whole_files import check_table_name, suffix_of
from rankmill.records import record

if TYPE_CHECKING:
    import pyarrow as pa

    from rankmill.analysis.compare.view.details import Details
    from rankmill.nightly.record import Found
    from rankmill.nightly.rules.reports import Trends
    from rankmill.results.answer import Answer
    from rankmill.show.tables import View


# ------------------------------------------------------------------ checks before a run

STANDARD_OUTPUT = "-"
FORMAT_OF_SUFFIX = {
    **{".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".tex": "latex"},
    ".txt": "table",
}
# What an option writes, and the suffixes that say so. Names without a suffix are taken as well.
_TEXTS = {
    "json": ("JSON", (".json",)),
    "junit": ("JUnit XML", (".xml",)),
    "markdown": ("Markdown", (".md", ".markdown", ".txt")),
    "leaderboard": ("HTML", (".html", ".htm")),
    "report": ("HTML", (".html", ".htm")),
    "summary": ("a line of text", (".txt", ".md", ".markdown")),
}
# The options that write a table, in the format of the suffix; and what these may be besides.
_TABLES = {"per_query": (), "curve": (".json",)}


def flag_of(name: str) -> str:
    """Return the name of an option as it is typed."""
    return f"-{'-' * (len(name) > 1)}{name.replace('_', '-')}"


def check_names(output: str | None, others: Mapping[str, str | None]) -> None:
    """Raise UsageError if a file of an option would not hold what its suffix says.

    `others` is name of an option -> its file; those that are not known here are checked elsewhere.
    """
    for name, path in others.items():
        # GitHub and those like it choose the name of the file of a step.
        if path in (None, os.devnull, os.environ.get("GITHUB_STEP_SUMMARY")):
            continue
        if name in _TABLES:
            check_table_name(path, _TABLES[name])
        if name not in _TEXTS:
            continue
        what, suffixes = _TEXTS[name]
        if path == STANDARD_OUTPUT and name not in ("json", "summary"):
            raise UsageError(
                f"--{name} takes the name of a file, such as {name}{suffixes[0]}, and not - for "
                "standard output"
            )
        if path == STANDARD_OUTPUT and name == "json" and output is None:
            raise UsageError(
                "the result and --json are both for standard output: give one of them the name of "
                "a file (-o FILE or --json FILE)"
            )
        check_suffix(path, what, suffixes)


def check_suffix(path: str, what: str, suffixes: tuple[str, ...]) -> None:
    """Raise UsageError if a name has a suffix that does not stand for what is written."""
    if suffix_of(path) not in ("", *suffixes):
        named = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise UsageError(
            f"cannot write {what} to {shown(path)}: the suffix sets the format; expected a name "
            f"that ends in {named}"
        )


def format_for(chosen: str | None, output: str | None, tables: tuple[str, ...] = ()) -> str:
    """Return the format asked for, else the one that the output file's suffix tells, else table.

    It raises UsageError if the suffix stands for no format of a result. `tables` are more suffixes
    that the command takes, for the message.
    """
    if chosen is not None:
        return chosen
    check_suffix(output or "", "a result", (*dict.fromkeys((*FORMAT_OF_SUFFIX, *tables)),))
    return FORMAT_OF_SUFFIX.get(suffix_of(output or ""), "table")


def check_outputs(
    output: str | None, inputs: Sequence[str | list[str]], **others: str | None
) -> None:
    """Check before a long run that its outputs can be written and overwrite no input.

    UsageError is raised if an output cannot be written, is one of the inputs, is in a place where
    the next run would read it as an input, or has a suffix of no format that it could have.

    The outputs are that of -o, where None is standard output, and of `others` by their names.
    """
    printed = output is None or STANDARD_OUTPUT in others.values()
    failed = output_failure() if printed else None
    if failed is not None:
        raise failed
    named = {name: one for name, one in {"o": output, **others}.items() if one is not None}
    read = [path for one in inputs for path in ([one] if isinstance(one, str) else one)]
    if any(is_url(one) or os.path.isfile(place_of(one)) for one in named.values()):
        _note(read)
    for path in named.values():
        if path == STANDARD_OUTPUT:
            continue
        writing.check_target(path)
        for text in read:
            if is_url(text) == is_url(path) and _would_be_read(path, text):
                raise UsageError(
                    f"cannot write to {shown(local_path(path))}: the next run over {shown(text)} "
                    "would read it as an input; choose another folder"
                )
    files = [(name, path) for name, path in named.items() if path != os.devnull]
    for (one, path), (other, same) in itertools.combinations(files, 2):
        if place_of(path) == place_of(same):
            both = f"{flag_of(one)} and {flag_of(other)}"
            raise UsageError(f"{both} are the same file, {shown(path)}: give two names")
    check_names(output, others)


def inputs_of(
    labels: str, systems: Mapping[str, str], options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], list[Any]]:
    """Return the labels, the predictions of each system, and all that is read."""
    source = source_of(labels, "LABELS")
    runs = {name: source_of(text, "PREDICTIONS") for name, text in systems.items()}
    return source, runs, [source, *runs.values(), *catalogue_sources(options)]


def catalogue_sources(options: Mapping[str, Any]) -> list[str | list[str]]:
    """Return the inputs that these options and --by name, which no output may replace."""
    named = [options[name] for name in ("train", "items", "features") if options[name] is not None]
    if options.get("by"):
        from rankmill.engine.cuts import chosen, cuts_of

        named += [chosen(table)[0] for table in cuts_of(options["by"]).tables]
    return named


def _note(inputs: Sequence[str]) -> None:
    """Take note of all files of the inputs, before they are opened, for `check_target`.

    What is not among the inputs here is known once it is opened: before anything is written. An
    input that is not there is an error then.
    """
    from rankmill.sources.files.files import find_files, is_pipe

    for path in inputs:
        if is_url(path) or is_pipe(path):
            opened(path)
            continue
        with suppress(InputError):
            find_files([path])


def _would_be_read(path: str, text: str) -> bool:
    """Tell whether an input, if it is a folder or a glob, would include a file at a path."""
    from rankmill.sources.files.files import matches
    from rankmill.sources.files.formats import format_of_name

    target = place_of(path)
    if not is_url(path) and os.path.exists(target) and not os.path.isfile(target):
        return False  # a device or a pipe is not replaced by a file
    read = place_of(text)
    pattern = (glob.escape(read) if os.path.exists(text) else read).rstrip("/").split("/")
    parts = target.split("/")
    if matches(parts, pattern):
        return True
    return format_of_name(parts[-1]) is not None and any(
        matches(parts[:n], pattern) and not any(one[:1] in ("", ".", "_") for one in parts[n:])
        for n in range(1, len(parts))
    )


# ------------------------------------------------------------------ what a run writes

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
    from rankmill.nightly.report.pages import lists_of, page
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
    from rankmill.nightly.history import History
    from rankmill.nightly.report.subject import subject_of
    from rankmill.nightly.rules.reports import slice_trends
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
    # How a run without a verdict is recorded if a FILE.toml has rules; None if they are judged.
    unjudged: ParameterSource | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Take what is written from the options of a command.

        UsageError is raised before any work is done if the run could not be recorded.
        """
        files = {one: given.pop(one) for one in _FILES if one in given}
        outputs = cls(given.pop("output"), given.pop("format"), files)
        if "mlflow" in given:
            ctx = click.get_current_context()
            outputs.time = ctx.meta.get(TIME)
            if "rules" not in ctx.params and "rules" in (ctx.default_map or {}):
                outputs.unjudged = ctx.get_parameter_source("history")
            outputs.history, outputs.tags = given.pop("history"), _tags(given.pop("tags"))
            outputs.mlflow = given.pop("mlflow")
            outputs._check_record()
        return outputs

    def _check_record(self) -> None:
        if self.tags and self.history is None and self.mlflow is None:
            raise UsageError("--tag names a run in a history: give --history or --mlflow too")
        if self.history is not None:
            from rankmill.nightly.record import check_history

            check_history(self.history)
        if self.mlflow is not None:
            from rankmill.nightly.rules.reports import tracking_uri

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

        The history of a FILE.toml with rules is their gate's: it has to be typed for others.
        The labels and predictions are the paths that were read; by system if there may be several.
        """
        if self.history is None and self.mlflow is None:
            return []
        from rankmill.nightly.record import contents_of, run_table

        if isinstance(predictions, Mapping) and len(predictions) == 1:
            (predictions,) = predictions.values()
        files = {"labels": labels, "predictions": predictions}
        self.run = run_table(found, tags=self.tags, time=self.time, **files)
        if self.history is None or self.unjudged is ParameterSource.DEFAULT_MAP:
            return []
        return contents_of(self.run, self.history)

    def log(self, files: Sequence[str | None] | None = None) -> None:
        """Send the recorded run to MLflow, with all files, or some; at the very end."""
        typed = self.unjudged is ParameterSource.COMMANDLINE
        if typed and self.history is not None and self.run is not None:
            file = visible(redacted(join(self.history, f"{self.run['run'][0]}.parquet")))
            click.echo(f"note: recorded as {file}, without a verdict", err=True)
        if self.mlflow is not None and self.run is not None:
            from rankmill.nightly.rules.reports import log_run

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
