"""What a run writes: its table, its page and pictures, and its record in a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankmill.cli.draw import deliver, format_for
from rankmill.cli.output_checks import check_outputs
from rankmill.cli.page import command_line, page_of, trends_of

if TYPE_CHECKING:
    from rankmill.analysis.compare.view.details import Details
    from rankmill.cli.run_record import Recording
    from rankmill.show.tables import View


@dataclass
class RunOutputs:
    """What a run writes.

    Attributes
    ----------
    output, format : str or None
        The options of these names.
    files : dict of str to str or None
        The other options that name files, as far as the command has them.
    recording : Recording
    """

    output: str | None
    format: str | None
    files: dict[str, str | None]
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

    def picture(self, found: Any) -> list[tuple[str, Any]]:
        """Return the file and the picture of --plot."""
        path = self.files["plot"]
        if path is None:
            return []
        from rankmill.show.pictures import rendered

        return [(path, rendered(found.plot(), path))]

    def deliver(self, view: View, more: Sequence[tuple[str, Any]]) -> None:
        """Show the result, and write all other files with it or none."""
        deliver(view, self.chosen, self.output, more)

    def log(self) -> None:
        """Send the recorded run to MLflow, with the files; at the very end."""
        self.recording.log_run([self.output, *self.files.values()])
