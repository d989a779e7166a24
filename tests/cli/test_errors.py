"""Messages: written once, with the options of the command line, and told in the reader's words."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError, RankmillError, UsageError
from rankmill.config.options import OPTIONS
from rankmill.errors import in_python, speak_to_command_line, spoken
from repository import SOURCE

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
        ("leave out --in-order or --weight",
         "leave out Predictions(in_order=True) or Labels(weight=...)"),
        ("give --train, or --items with --item-group",
         "give Catalogue(train=...), or Catalogue(items=...) with Catalogue(group=...)"),
        ("--rel and --undecided", "Semantics(rel=...) and Rules(undecided=...)"),
        ("choose one with --query-id ID", "choose one with query_id="),
        ("leave out --weight, or choose --semantics order=given",
         'leave out Labels(weight=...), or choose Semantics(order="given")'),
        ("name it: --item NAME on the command line, item= in Python", "name it: item="),
        ("leave out --gain, or say --score 'a: b' on the command line, score=\"a: b\" in "
         "Python", "leave out Labels(gain=...), or say score=\"a: b\""),
        ("say --label-query or --a-b NAME on the command line, x= or a_b= in Python; go",
         "say x= or a_b=; go"),
        ("say --a b --columns q,i on the command line, a=\"b\", columns=\"q,i\" in Python",
         "say a=\"b\", columns=\"q,i\""),
        ("name all with --label-columns A,B,...", "name all with Labels(columns=...)"),
        ("name it with --labels-as or --predictions-as",
         "name it with Labels(format=...) or Predictions(format=...)"),
        ("(rankmill convert --quiet makes)", "(rankmill convert --quiet makes)"),
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
    both = "say --score 'a: b' on the command line, Predictions(score=\"a: b\") in Python; go"
    assert str(UsageError(both)) == "say --score 'a: b'; go"


def messages(*, of_errors: bool = False) -> Iterator[tuple[str, str]]:
    """All texts of the library, or those of errors, but for commands; x is what they fill in."""
    for path in sorted(SOURCE.rglob("*.py")):
        if {"cli", "config"} & {*path.relative_to(SOURCE).parts}:
            continue
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        if of_errors:
            made = [one for one in nodes if isinstance(one, ast.Call)]
            made = [one for one in made if getattr(one.func, "id", "").endswith("Error")]
            nodes = [part for one in made for part in ast.walk(one)]
        joined = [one for one in nodes if isinstance(one, ast.JoinedStr)]
        within = {id(part) for one in joined for part in ast.walk(one)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                values = (getattr(one, "value", "X") for one in node.values)
                yield path.name, "".join(one if isinstance(one, str) else "x" for one in values)
            elif isinstance(node, ast.Constant) and id(node) not in within:
                yield path.name, str(node.value)


# Only commands have these, so that no Python program meets their errors.
OF_COMMANDS = {"--mlflow", "--keep", "--keep-last", "--html", "--man", "--power"}
OF_COMMANDS |= {"--worst-slices", "--min-overlap", "--replicates"}  # which are gone
# Words that flat options had, and Python has not.
FLAT = {one.name for rows in OPTIONS.values() for one in rows if one.parameter}
FLAT -= {"fields", "date", "output"}  # these are words, too


def public() -> dict[str, set[str]]:
    """Public name -> its parameters; and all those of functions and methods, under ""."""
    found: dict[str, set[str]] = {"": set()}
    for name in rankmill.__all__:
        one = getattr(rankmill, name)
        if isinstance(one, type) and not issubclass(one, Exception):
            methods = [method for key, method in vars(one).items() if key[0] != "_"]
            for method in filter(callable, methods):
                found[""] |= {*inspect.signature(method).parameters}
        if not (isinstance(one, type) and issubclass(one, Exception)):
            found[name] = {*inspect.signature(one).parameters}
    functions = (name for name in found if name[:1].islower())
    return found | {"": found[""].union(*(found[name] for name in functions))}


PUBLIC = public()
FIELDS = set().union(*(PUBLIC[name] for name in PUBLIC))
A_FLAT = re.compile(rf"\b(?:{'|'.join(sorted(FLAT - FIELDS))})\b")


def unknown_words(text: str) -> list[str]:
    """The parameters that a text names as Python hears it, and that Python has not."""
    text = text.replace("xon the command", "x on the command")  # what is filled in ends in a blank
    said = re.sub(r"rankmill [a-z]+ --[a-z]+", "", spoken(text))
    said = re.sub(r"https?://\S+", "", said)
    called = re.findall(r"\b([A-Z]\w+|gate)\(([^()]*)\)", said)
    wrong = [
        f"{name}({field}=)"
        for name, inside in called
        for field in re.findall(r"(\w+)=(?!=)", inside)
        if field not in {*PUBLIC.get(name, ()), "x"}  # x: what is filled in
    ]
    bare = re.sub(r"\b([A-Z]\w+|gate)\([^()]*\)", "", said)
    # A field is said with its noun, but where the sentence has it: "of both", "of Labels".
    wrong += [
        name
        for name in re.findall(r"\b(\w+)=(?=[ ,;:.)]|$)", bare)
        if name not in {*PUBLIC[""], "x"}
    ]
    return (
        wrong
        + A_FLAT.findall(said)
        + ["in Python"] * (" in Python" in said)
        + AN_OPTION.findall(said)
    )


@pytest.mark.parametrize("text", [
    "say label_query= or so", "item_group is", "Labels(score=...)", "give --nonsense", "a --- --",
    "take labels_as", "gate(bassline=...)",
])  # fmt: skip
def test_the_sweep_finds_what_is_wrong(text: str) -> None:
    assert bool(unknown_words(text)) == ("---" not in text)


@pytest.mark.long
def test_no_message_names_what_python_has_not() -> None:
    named = [(name, text) for name, text in messages() if AN_OPTION.search(text)]
    assert len(named) > 40
    for name, text in {*named, *messages(of_errors=True)}:
        if not {*re.findall(r"--[a-z-]+", text)} & OF_COMMANDS:
            assert not unknown_words(text), (name, text, spoken(text))


def test_options_are_said_as_the_table_has_them() -> None:
    nouns = {"preset": "semantics=", "rule": "rules=", "test": "tests="}  # these are taken bare
    checked = 0
    for one in (one for rows in OPTIONS.values() for one in rows):
        flag = next((flag[2:] for flag in one.flags if flag.startswith("--")), "")
        words = one.parameter.split()
        of_one_input = {"convert", "head", "check"} >= {*one.on.split()}  # it has one name there
        if not flag or not words or of_one_input or flag == "semantics":
            continue
        value = "True" if one.kind == "flag" else "..."
        fields = {f"{word.replace('.', '(')}={value})" for word in words if "." in word}
        plain = {f"{word}=" for word in words if "." not in word}
        told = {nouns[flag]} if flag in nouns else plain or fields
        assert {*in_python(flag).split(" or ")} == told or flag == "metric", one.spec
        checked += 1
    assert checked > 50


def test_errors_and_warnings_of_functions_speak_python(run_cli, tmp_path) -> None:
    table = pa.table({"query": [1], "item": [2]})
    rule = "map drop <= 0.01"
    with pytest.raises(UsageError, match=r"give one with baseline=, such as "):
        rankmill.gate(table, table, [rule])
    two = pa.table({"user": [1], "query": [1], "item": [2]})
    with pytest.raises(InputError, match=r"say which: Predictions\(query=\.\.\.\)$"):
        rankmill.evaluate(table, two, "map")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stars = table.append_column("stars", pa.array([1]))
        rankmill.explain(stars, table, "map", 1)
    assert rankmill.evaluate(stars, table, "map").notes == [str(caught[0].message)]
    assert [str(one.message).count("--") for one in caught] == [0]
    assert 'use Labels(gain="stars"); ' in str(caught[0].message)
    path = tmp_path / "two.csv"
    path.write_text("user,query,item\n1,1,2\n")
    told = run_cli("evaluate", path, path).stderr
    assert "say which: --label-query NAME\n" in told
