"""What evaluate, compare and gate do with a run besides showing it: record it, and tell MLflow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, join

if TYPE_CHECKING:
    import pyarrow as pa

    from rankmill.nightly.history.record import Found

TIME = "rankmill.time"
"""Where the time of the run is kept between the parsing of the command line and the run."""
FAILED = "rankmill.failed"
"""Where a command keeps what is to be done with its exit code and message if it fails."""


@dataclass
class Recording:
    """Where a run goes: the options --history, --tag and --mlflow, checked."""

    history: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    mlflow: str | None = None  # the address of the tracking server
    time: datetime | None = None  # that of the run; None for now
    run: pa.Table | None = None  # once it is known

    @property
    def place(self) -> str | None:
        """A name for a run that no input may read; None without a history that is there."""
        if self.history is None or not (is_url(self.history) or os.path.isdir(self.history)):
            return None
        return join(self.history, "run.parquet")

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

    def log_run(self, files: Sequence[str | None] = ()) -> None:
        """Tell MLflow of the recorded run, with files that were written; at the very end."""
        if self.mlflow is not None and self.run is not None:
            from rankmill.nightly.gate.mlflow import log_run

            log_run(self.run, self.mlflow, [one for one in files if one])


def recording_of(
    history: str | None, tags: Sequence[str], mlflow: str | None, time: datetime | None = None
) -> Recording:
    """Check the options of a recording before any work is done; UsageError if one is wrong."""
    named = _tags(tags)
    if named and history is None and mlflow is None:
        raise UsageError("--tag names a run in a history: give --history or --mlflow too")
    if history is not None:
        from rankmill.nightly.history.record import check_history

        check_history(history)
    if mlflow is not None:
        from rankmill.nightly.gate.mlflow import tracking_uri

        mlflow = tracking_uri(mlflow)
    return Recording(history, named, mlflow, time)


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
