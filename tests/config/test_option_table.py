"""The table of options, and what is made from it or held to it: helps, keys, pages, signatures."""

from __future__ import annotations

import inspect
import re
import shlex
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import rankmill
from rankmill.analysis.statistics.significance import TESTS
from rankmill.cli import COMMANDS
from rankmill.config.option import FILE, Option
from rankmill.config.options import OPTIONS, keys, options_of
from rankmill.metrics.texts import SETS
from rankmill.semantics.choices import CHOICES
from repository import SOURCE

ROWS = [one for rows in OPTIONS.values() for one in rows]
EVERY = [*COMMANDS, "history prune", "spark compare", "spark gate"]


def rows_of(command: str) -> list[Option]:
    return [one for rows in options_of(key_of(command)).values() for one in rows]


def key_of(command: str) -> str:
    """The name of a command in the table."""
    return command.removeprefix("history ")


# ------------------------------------------------------------------ rows


def test_rows_are_sound() -> None:
    for one in ROWS:
        on = one.on.split()
        assert {*on} <= {*COMMANDS, "prune"}, one.spec
        assert {*one.short.split()} <= {*on}, one.spec
        assert one.help.endswith("."), one.spec
        assert one.table in (None, "", "columns", "semantics"), one.spec
    for command in EVERY:
        rows = rows_of(command)
        assert max(Counter(flag for one in rows for flag in one.flags).values()) == 1, command
        names = Counter(one.name for one in rows if one.bare in (None, ""))
        assert max(names.values()) == 1, command


def test_every_option_of_a_file_is_a_key_or_of_one_run() -> None:
    of_one_run = {"date", "format", "output", "only_plan", "partitions"}
    of_one_run |= {"part", "state", "second"}
    for command in FILE.split():
        for one in rows_of(command):
            apart = one.table == "semantics" or one.name in ("baseline", "per_query")
            assert apart or (one.name in keys()) != (one.name in of_one_run), one.spec


def test_which_keys_are_paths_and_in_which_table() -> None:
    # By what stands for their value; a new option with a path has to have FILE or DIR in it.
    paths = {name: one.path for name, one in keys().items() if one.path != "no"}
    assert paths.items() >= {"per_query": "yes", "history": "yes", "by": "maybe"}.items()
    tables = {name for name, one in keys().items() if one.table}
    assert {"query", "labels_as", "columns", "gain_function", "binary"} <= tables
    assert not {"metrics", "depth", "memory"} & tables


# ------------------------------------------------------------------ helps


@pytest.mark.parametrize("command", ["", *EVERY])
def test_a_help_fits_a_screen(command: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # the width of whoever runs the tests
    code, shown, error = run(*command.split(), "--help")
    assert (code, error) == (0, "")
    assert run(*command.split(), "-h")[:2] == (0, shown)
    lines = shown.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("  rankmill ") for line in lines) <= 3
    if not command:
        groups = re.findall(r"^(\w+):$", shown, re.M)
        assert groups == ["Options", "Score", "Compare", "Monitor", "Inspect", "Files"]
        assert all(re.search(rf"^  {name} +\S", shown, re.M) for name in COMMANDS)
        return
    left = sum(not one.is_short(key_of(command)) for one in rows_of(command))
    told = {0: "the exit codes", 1: "the other option"}.get(left, f"the other {left} options")
    assert lines[-1] == f"--help-all shows {told}."
    shown_here = {one.flags[0] for one in rows_of(command) if one.is_short(key_of(command))}
    # The single letters of trec_eval are no options of rankmill's, but those of its own program.
    letters = "-(?!-)" if command == "trec_eval" else "(?!)"
    found = re.findall(rf"^  (?!{letters})(--?[\w-]+)", shown, re.M)
    assert {*found} == shown_here
    assert "[default" not in shown


@pytest.mark.parametrize("command", ["", *EVERY])
def test_a_help_nearly_fits_a_narrow_screen(
    command: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, shown, error = run(*command.split(), "--help")
    assert (code, error) == (0, "")
    lines = shown.splitlines()
    assert len(lines) <= 42
    # Examples are lines to copy, and never broken.
    assert max(len(one) for one in lines if not one.startswith("  rankmill ")) <= 80


@pytest.mark.parametrize("command", EVERY)
def test_the_whole_help_has_all_options_in_groups(
    command: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code, shown, error = run(*command.split(), "--help-all")
    assert (code, error) == (0, "")
    assert max(map(len, shown.splitlines())) <= 100
    told = [*options_of(key_of(command)), "Help", "Exit codes"]
    assert [one for one in re.findall(r"^(\w[\w ]+):$", shown, re.M) if one != "Examples"] == told
    told_all = squeezed(shown)
    for one in rows_of(command):
        assert squeezed(", ".join(one.flags) + one.metavar) in told_all
        assert squeezed(one.help) in told_all
        if one.default is not None:
            default = ", ".join(one.default) if isinstance(one.default, tuple) else one.default
            assert squeezed(f"[default: {default}") in told_all
    assert "130  interrupted by Ctrl-C" in shown


def squeezed(text: str) -> str:
    """A text without what may stand where a line is broken."""
    return re.sub(r"[\s-]", "", text)


@pytest.mark.parametrize("command", EVERY)
def test_examples_have_options_that_exist(command: str, run: Any) -> None:
    shown = run(*command.split(), "--help-all")[1]
    known = {flag for one in rows_of(command) for flag in one.flags}
    known |= {flag for one in rows_of("prune") for flag in one.flags if command == "history"}
    for line in shown.partition("Examples:\n")[2].partition("\n\n")[0].splitlines():
        assert {word for word in shlex.split(line) if re.match("--?[a-z]", word)} <= known, line


def test_exit_codes_of_a_gate(run: Any) -> None:
    assert "a rule was broken" in run("gate", "--help-all")[1]
    assert "done" in run("evaluate", "--help-all")[1]


# ------------------------------------------------------------------ pages


def table_of_keys(table: str) -> str:
    """The keys of a table of rankmill.toml in Markdown, by the commands that take them."""
    found: dict[str, list[str]] = {}
    for one in (one for one in keys().values() if one.table == table):
        taken = [name for name in FILE.split() if any(name in r.on.split() for r in named(one))]
        who = "all" if len(taken) == len(FILE.split()) else ", ".join(taken)
        found.setdefault(who, []).append(f"`{one.name}`")
    lines = [f"| {who} | {', '.join(found[who])} |" for who in sorted(found, key=_width)]
    return "\n".join(["| commands | keys |", "|---|---|", *lines]) + "\n"


def _width(who: str) -> tuple[int, str]:
    return -9 if who == "all" else -who.count(","), who


def named(row: Option) -> list[Option]:
    return [one for one in ROWS if one.name == row.name]


@pytest.mark.parametrize("table", ["", "columns"])
def test_the_page_has_the_keys_of_the_table(table: str) -> None:
    page = (SOURCE / "docs" / "config.md").read_text("utf-8")
    assert table_of_keys(table) in page, table_of_keys(table)


# ------------------------------------------------------------------ Python

# What a command has as an argument, makes itself, or has a file for; and what only Python has.
NO_ROW = {
    *("data", "labels", "predictions", "runs", "source", "path", "semantics"),
    *("catalogue", "progress", "per_query", "details", "partitions"),
}
OWNERS = ("Labels", "Predictions", "Catalogue", "Semantics", "Rules", "Tests")
CALLED = ("evaluate", "compare", "gate", "explain", "explain-evaluators")

# The rows say what options become in functions of inputs that know their columns.
of_the_face = pytest.mark.skipif(
    not all(hasattr(rankmill, owner) for owner in OWNERS), reason="the functions are flat"
)


def parameters_of(taker: Callable[..., Any]) -> set[str]:
    names = inspect.signature(taker).parameters
    # How to count is one option, --semantics, for all choices.
    choices = CHOICES if taker is rankmill.Semantics else ()
    return {name for name in names if name not in choices and not name.startswith("_")}


def described(taker: Callable[..., Any]) -> set[str]:
    """The names in the section of parameters, or attributes, of a docstring."""
    text = inspect.getdoc(taker) or ""
    title, end = r"^(?:Parameters|Attributes)\n-+\n", r"(?:\n\n\w+\n-+\n|\Z)"
    section = re.search(f"{title}(.*?){end}", text, re.M | re.S)
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section[1], re.M) if section else []
    return {name for head in heads for name in head.split(", ")}


@of_the_face
@pytest.mark.parametrize("owner", [*OWNERS, *CALLED, "convert"])
def test_parameters_are_those_of_the_rows(owner: str) -> None:
    taker = getattr(rankmill, owner.replace("-", "_"))
    words = {word for one in ROWS for word in one.parameter.split()}
    if owner in OWNERS:
        rows = {word.partition(".")[2] for word in words if word.startswith(f"{owner}.")} - {""}
    else:
        rows = {
            word
            for one in rows_of(owner)
            for word in one.parameter.split()
            if "." not in word and word[0].islower()
        }
        if owner in ("evaluate", "explain"):
            rows -= {"history", "time"}  # which record a run, or fill in the name of a file
        if owner == "compare":
            rows -= {"history", "time"}
            rows -= {"seed"}  # of Tests, there
            rows |= {"tests"}
        if owner == "gate":
            rows |= {"rules"}
    lacking = {name for name in NO_ROW if "." not in name}
    lacking |= {name.partition(".")[2] for name in NO_ROW if name.startswith(f"{owner}.")}
    assert rows <= parameters_of(taker)
    assert parameters_of(taker) - rows <= lacking
    assert parameters_of(taker) <= described(taker)


@of_the_face
def test_help_has_every_choice() -> None:
    told = inspect.getdoc(rankmill.Semantics) or ""
    for field, choices in CHOICES.items():
        section = re.search(rf"^{field} : (.*?)(?=^\w)", told, re.M | re.S)
        assert section is not None, field
        assert [one for one in choices if f'"{one}"' not in section[1]] == [], field
    for name in TESTS:
        assert f'"{name}"' in (inspect.getdoc(rankmill.Tests) or ""), name
    for function in (rankmill.evaluate, rankmill.compare, rankmill.gate):
        text = " ".join((inspect.getdoc(function) or "").split())
        assert [name for name in SETS if f'"{name}"' not in text] == [], function.__name__
