"""A night without a verdict: why, in every form that a verdict has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from rankmill.io.inert_text import markdown_text, visible_message
from rankmill.nightly.history.record import sealed_table, utf8
from rankmill.nightly.rules.verdict import RuleOutcome
from rankmill.nightly.runs.earlier_runs import NO_VERDICT
from rankmill.nightly.runs.runs import CountingRules, new_name, run_text
from rankmill.package import __version__
from rankmill.results.answer import Answer
from rankmill.show.tables import Cell, Column, Facts, Table, View


@dataclass(frozen=True, repr=False, eq=False)
class NoVerdict(Answer):
    """Why there is no verdict."""

    reason: str  # the message of the error
    exit_code: int | None  # 3 for wrong data, 4 for a lack of memory, and so on; None if not known
    rules: Sequence[str]  # those that were not judged
    inputs: Mapping[str, str]  # what was to be read: "labels" and "predictions"
    time: datetime

    @property
    def headline(self) -> str:
        """Say that there is no verdict, and why."""
        return f"{NO_VERDICT}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that a verdict has, and the reason."""
        return {
            "word": NO_VERDICT,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "rules": [*self.rules],
            "outcomes": [],
            "baseline": None,
            "result": None,
            "comparison": None,
            "notes": [],
            "run": run_text(self.time),
        }

    def _view(self) -> View:
        def exact() -> Table:
            names = [*RuleOutcome.__dataclass_fields__]
            known: dict[str, Cell] = {"word": NO_VERDICT, "reason": self.reason}
            rules = self.rules or [""]
            rows = [[(known | {"rule": rule}).get(name) for name in names] for rule in rules]
            return Table([Column(name) for name in names], rows)

        told = [("verdict", self.headline), ("run", run_text(self.time))]
        facts = Facts([*told, *self.inputs.items()], aligned=False)
        return View(lambda: [facts], lambda: [self.headline], exact, self.to_dict)


def summary(found: NoVerdict) -> str:
    """Return a line for a chat."""
    return f"❌ {visible_message(found.headline)} ({run_text(found.time)})\n"


def markdown(found: NoVerdict) -> str:
    """Return a summary for a pull request."""
    rules = "".join(f"- not judged: {markdown_text(rule)}\n" for rule in found.rules)
    run = f"Run of {run_text(found.time)}.\n\n"
    return f"## ❌ rankmill: {NO_VERDICT}\n\n{run}{markdown_text(found.reason)}\n\n{rules}"


def run_table(found: NoVerdict, tags: Mapping[str, str]) -> pa.Table:
    """Return the run as a history has it: one row, without a metric."""
    row: dict[str, Any] = {"run": new_name(found.time), "time": found.time, "version": __version__}
    row |= {"verdict": NO_VERDICT, "reason": utf8(found.reason), "tags": [*tags.items()]}
    row |= {**CountingRules()._asdict(), "metric": None, "audit": []}
    return sealed_table([row | {f"{side}_source": one for side, one in found.inputs.items()}])
