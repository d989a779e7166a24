"""Messages: written once, with the options of the command line, and told in the reader's words."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError, RankmillError, UsageError
from rankmill.errors import speak_to_command_line, spoken
from test_package import SOURCE

AN_OPTION = re.compile(r"--[a-z]")


@pytest.fixture
def at_the_command_line() -> Iterator[None]:
    speak_to_command_line(True)
    yield
    speak_to_command_line(False)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("give one with --baseline", "give one with baseline="),
        ("give --keep, --keep-last", "give keep=, keep_last="),
        ("there is none: give one with --rule, or --preset", "rules=, or semantics="),
        ("leave out --in-order (in_order) or --rank (rank)", "leave out in_order= or rank="),
        ("--columns (columns=) names 3", "columns= names 3"),
        ("say which, with query_id (--query-id)", "say which, with query_id="),
        ("order 'given' (--semantics order=given)", """(semantics={"order": "given"})"""),
        ("name it: --item NAME on the command line, item= in Python", "name it: item="),
        ("leave out --gain (gain), or say --score 'a: b' on the command line, score=\"a: b\" in "
         "Python", "leave out gain=, or say score=\"a: b\""),
        ("say --labels-as or --a-b NAME on the command line, labels_as= or a_b= in Python; go",
         "say labels_as= or a_b=; go"),
        ("say --a b --columns q,i on the command line, a=\"b\", columns=\"q,i\" in Python",
         "say a=\"b\", columns=\"q,i\""),
        ("name all with --label-columns A,B,...", "name all with label_columns=A,B,..."),
        ("(rankmill convert --integers query makes)", "(rankmill convert --integers query makes)"),
        ("a--b.csv and x --- y and -- and --9", "a--b.csv and x --- y and -- and --9"),
    ],
)  # fmt: skip
def test_python_hears_its_own_words(written: str, told: str) -> None:
    assert spoken(written).endswith(told)
    assert str(RankmillError(written)) == spoken(written)
    assert RankmillError(written).args == (written,)


@pytest.mark.usefixtures("at_the_command_line")
def test_the_command_line_hears_its_own() -> None:
    assert str(UsageError("give one with --baseline")) == "give one with --baseline"


def messages() -> Iterator[tuple[str, str]]:
    """All texts of the library that name an option, X for what they fill in, but for commands."""
    for path in sorted(SOURCE.rglob("*.py")):
        if "cli" in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        joined = [one for one in ast.walk(tree) if isinstance(one, ast.JoinedStr)]
        within = {id(part) for one in joined for part in ast.walk(one)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                values = (getattr(one, "value", "X") for one in node.values)
                yield path.name, "".join(one if isinstance(one, str) else "x" for one in values)
            elif isinstance(node, ast.Constant) and id(node) not in within:
                yield path.name, str(node.value)


def test_no_message_tells_a_python_program_of_options() -> None:
    named = [(name, text) for name, text in messages() if AN_OPTION.search(text)]
    assert len(named) > 40
    for name, text in named:
        commands = re.sub(r"rankmill [a-z]+ --[a-z]+", "", spoken(text))
        assert not AN_OPTION.search(commands), (name, text)
        assert " in Python" not in commands, (name, text)


def test_errors_and_warnings_of_functions_speak_python(run_cli, tmp_path) -> None:
    table = pa.table({"query": [1], "item": [2]})
    rule = "map drop <= 0.01"
    with pytest.raises(UsageError, match=r"give one with baseline=$"):
        rankmill.gate(table, table, [rule])
    two = pa.table({"user": [1], "query": [1], "item": [2]})
    with pytest.raises(InputError, match=r"say which: query= ?$|query=$"):
        rankmill.evaluate(table, two, "map")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rankmill.evaluate(table.append_column("stars", pa.array([1])), table, "map")
    assert [str(one.message).count("--") for one in caught] == [0]
    assert 'say gain="stars"; ' in str(caught[0].message)
    path = tmp_path / "two.csv"
    path.write_text("user,query,item\n1,1,2\n")
    told = run_cli("evaluate", path, path).stderr
    assert "--label-query NAME on the command line" in told
