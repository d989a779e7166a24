"""What a run writes: its table, its page and pictures, and its record in a history."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.draw import deliver
from rankmill.cli.output_checks import check_outputs, format_for
from rankmill.errors import InputError
from rankmill.io.stores.urls import redacted

if TYPE_CHECKING:
    from rankmill.analysis.compare.view.details import Details
    from rankmill.cli.run_record import Recording
    from rankmill.nightly.rules.breaches import Trends
    from rankmill.results.answer import Answer
    from rankmill.show.tables import View


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


@dataclass
class RunOutputs:
    """What a run writes: the options -o and --format, and the others that name files."""

    output: str | None
    format: str | None
    files: dict[str, str | None]  # as far as the command has them
    recording: Recording

    @property
    def chosen(self) -> str:
        """The format of the result."""
        return format_for(self.format, self.output)

    def check(self, inputs: Sequence[str | list[str]]) -> None:
        """Check before a long run that all outputs can be written and overwrite no input."""
        check_outputs(self.output, inputs, **self.files, history=self.recording.place)
        _ = self.chosen  # which may be none
        if self.files.get("plot") is not None:
            from rankmill.show.pictures import check_picture

            check_picture(str(self.files["plot"]))

    def page(
        self, found: Any, given: Mapping[str, Any], details: Details | None = None
    ) -> list[tuple[str, Any]]:
        """Return the file and the page of --report; the arguments are those of `page_of`."""
        path, recording = self.files["report"], self.recording
        if path is None:
            return []
        trends = trends_of(found, recording.history, recording.time)
        return [(path, page_of(found, given, trends, details))]

    def board(self, found: Any) -> list[tuple[str, Any]]:
        """Return the file and the page of --leaderboard about several systems."""
        path = self.files["leaderboard"]
        if path is None:
            return []
        from rankmill.nightly.report.pages import leaderboard_page

        return [(path, leaderboard_page(found, command_line()))]

    def picture(self, plot: Callable[[], Any]) -> list[tuple[str, Any]]:
        """Return the file and the picture of --plot, which a function draws."""
        path = self.files["plot"]
        if path is None:
            return []
        from rankmill.show.pictures import rendered

        return [(path, rendered(plot(), path))]

    def deliver(self, found: Answer | View, more: Sequence[tuple[str, Any]] = ()) -> None:
        """Show what was found, and write all other files with it or none."""
        deliver(found, self.chosen, self.output, more)

    def log(self) -> None:
        """Send the recorded run to MLflow, with the files; at the very end."""
        self.recording.log_run([self.output, *self.files.values()])
