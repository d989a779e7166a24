"""An option: one row of the table that commands, rankmill.toml, helps and pages are made from."""

import re
from typing import Any, Literal

from rankmill.records import record

Kind = Literal["text", "texts", "pairs", "integer", "number", "flag", "input", "size", "auto"]

FILE = "evaluate compare gate report spark"
"""The commands that take a FILE.toml."""
SIDES = f"{FILE} explain explain-evaluators"
"""The commands that score predictions against labels."""


@record(eq=False)
class Option:
    """A row of the table."""

    # Its names on the command line, and what stands for its value in the help: "-m --metric
    # METRIC". A value that is a path, relative to the folder of a rankmill.toml, has FILE or DIR.
    spec: str
    help: str  # the short help shows the first sentence
    # What it becomes at the face: words such as "Labels.query"; or "margin", of the function that
    # the command is called after. "" for what only commands have, such as names of outputs.
    parameter: str = ""
    on: str = SIDES  # the commands that take it
    short: str = ""  # those whose short help shows it; "*" for all that take it
    # The table of a rankmill.toml in which it is a key; "" for the top, None if it is no key.
    table: str | None = None
    name: str = ""  # of the key, and of a command's argument; by default that of the long name
    # "texts" and "pairs" may be repeated; "auto" is "flag" without a value, else "text".
    kind: Kind = "auto"
    default: Any = None
    choices: tuple[str, ...] = ()  # the only texts, if there are but these
    pairs: bool = False  # whether texts of pairs, such as "1=3,2=7", may replace the choices
    least: int | None = None  # the bounds of a number
    most: int | None = None
    required: bool = False
    bare: str | None = None  # the value where the option is given without one

    def __post_init__(self) -> None:
        """Read the names from the text that has them."""
        words = self.spec.split()
        self.flags = [word for word in words if word.startswith("-")]
        self.metavar = " ".join(words[len(self.flags) :])
        long = next((word for word in self.flags if word.startswith("--")), "")
        self.name = self.name or long.removeprefix("--").replace("-", "_")
        if self.kind == "auto":
            self.kind = "text" if self.metavar else "flag"
        if self.short == "*":
            self.short = self.on

    @property
    def place(self) -> tuple[str, ...]:
        """Where it stands in a rankmill.toml."""
        return (self.table, self.name) if self.table else (self.name,)

    @property
    def path(self) -> Literal["no", "yes", "maybe"]:
        """Whether its value is a path; or may be one, among others."""
        words = {*re.findall("[A-Z]+", self.metavar)}
        return "no" if not words & {"FILE", "DIR"} else "maybe" if "COLUMN" in words else "yes"

    def is_short(self, command: str) -> bool:
        """Return whether the short help of a command shows it."""
        on = {*self.short.split()}
        return command.split()[-1] in on or on == {command.split()[0]}

    @property
    def counts(self) -> bool:
        """Whether it decides what is counted, and not only how an input is opened."""
        owner, _, field = self.parameter.split(" ")[0].partition(".")
        read = field in ("format", "columns", "encoding")
        return owner in ("Labels", "Predictions", "Catalogue", "Semantics") and not read
