"""What was found in an input while it was read, and is told: how often, and one example."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rankmill.columns.place import Place
from rankmill.errors import plural


class OddIds(NamedTuple):
    """A kind of ids of a column that are not compared as they stand."""

    source: str
    column: str
    rule: str
    what: tuple[str, str, str]  # a verb of one, that of several, and what follows
    todo: str

    def told(self, number: int, example: Any) -> str:
        """What is told of so many of them."""
        *verb, rest = self.what
        found = f"in {self.column!r}, {plural(number, 'id', *verb)} {rest}, such as {example!r}"
        return f"{self.source}: {found}: {self.todo}"


# The rules that make a column of several.
PARTS = {"part of the query", "column per rank"}


class InputFindings:
    """Notes on an input; a batch that is read again replaces what it told before."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._found: dict[OddIds, dict[tuple[str, int], tuple[int, Any]]] = {}
        self._missing: set[str] = set()
        self._rules: dict[tuple[str, str], None] = {}
        self.compared: Sequence[InputFindings] = ()  # of the inputs that have the same items

    def say(self, note: str) -> None:
        """Add a note, once."""
        self._said[note] = None

    def count(self, place: Place, kind: OddIds, number: int, example: Any) -> None:
        """Add how many ids of a kind a batch has, if any; any thread may call it."""
        if number:
            self.used(kind.rule, kind.column)
            of_kind = self._found.setdefault(kind, {})
            of_kind[place.source, place.first] = number, example

    def used(self, rule: str, column: str) -> None:
        """Add that a rule of `RULES` read a column."""
        self._rules[column, rule] = None

    def rules(self) -> dict[str, list[str]]:
        """The rules that read each column so far."""
        found: dict[str, list[str]] = {}
        for column, rule in list(self._rules):
            found.setdefault(column, []).append(rule)
        return found

    def missing(self, words: Iterable[str]) -> set[str]:
        """Add words that stand for missing items; return those that another input has, too."""
        self._missing.update(words)
        return self._missing & {word for one in self.compared for word in list(one._missing)}

    def forget(self) -> None:
        """Count anew, as other rows are read."""
        self._found.clear()

    def counts(self) -> dict[OddIds, tuple[int, Any]]:
        """How many ids of each kind there are, and the first of them by its text."""
        found = {kind: list(of_kind.values()) for kind, of_kind in self._found.items()}
        return {
            kind: (sum(number for number, _ in each), min(example for _, example in each))
            for kind, each in found.items()
        }

    def notes(self) -> list[str]:
        """Everything that is to be told, in an order that no thread changes."""
        found = self.counts()
        return [*self._said, *(kind.told(*found[kind]) for kind in sorted(found))]
