"""rankmill.toml: what is read from it, and how mistakes are told."""

from __future__ import annotations

import datetime
import random
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from cli_runs import write_dump
from conftest import tells
from rankmill.config.filling import fill
from rankmill.config.lines import lines_of
from rankmill.config.written import toml_value
from rankmill.errors import UsageError

DAY = datetime.date(2024, 5, 1)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a text as rankmill.toml."""

    def written(text: str) -> Path:
        path = tmp_path / "rankmill.toml"
        path.write_text(text, "utf-8")
        return path

    return written


# ------------------------------------------------------------------ lines


def test_lines_of_every_form_of_toml() -> None:
    text = '''# a comment = [
a = 1
"b c".d = "]#" # "
'e' = """
[not.a.table]
x = 1 \\""" still""""
f = [
  1, # ]
  "a,b", [2, 3], { g = \'\'\'
\'\'\' , h.i = 4 },
]
[t]
j = 1979-05-27 07:32:00
[[u.v]]
k = true
[[u.v]]
k = [ [
 1e3]]
[[u.v.w]]
l = {}
[ u . "x" ]
m = inf'''
    assert tomllib.loads(text)
    assert lines_of(text) == {
        ("a",): 2,
        ("b c",): 3,
        ("b c", "d"): 3,
        ("e",): 4,
        ("f",): 7,
        ("f", 0): 8,
        ("f", 1): 9,
        ("f", 2): 9,
        ("f", 2, 0): 9,
        ("f", 2, 1): 9,
        ("f", 3): 9,
        ("f", 3, "g"): 9,
        ("f", 3, "h"): 10,
        ("f", 3, "h", "i"): 10,
        ("t",): 12,
        ("t", "j"): 13,
        ("u",): 14,
        ("u", "v"): 14,
        ("u", "v", 0): 14,
        ("u", "v", 0, "k"): 15,
        ("u", "v", 1): 16,
        ("u", "v", 1, "k"): 17,
        ("u", "v", 1, "k", 0): 17,
        ("u", "v", 1, "k", 0, 0): 18,
        ("u", "v", 1, "w"): 19,
        ("u", "v", 1, "w", 0): 19,
        ("u", "v", 1, "w", 0, "l"): 20,
        ("u", "x"): 21,
        ("u", "x", "m"): 22,
    }


def places(value: Any, place: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """All keys and elements of a document, as tomllib has them."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = set()
    for key, one in inner:
        found.add((*place, key))
        if isinstance(one, dict | list):
            found |= places(one, (*place, key))
    return found


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = st.one_of(
    TEXTS.map(toml_value),
    TEXTS.filter(lambda text: text.isprintable() and "'" not in text).map(lambda text: f"'{text}'"),
    st.sampled_from(
        ['"""', '"""\n', "1.5", "-inf", "true", "07:32:00", "1979-05-27T07:32:00Z"]
    ).map(lambda text: f'{text}a\n"" # [x]\n"""' if text[0] == '"' else text),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda many: "[ # ]\n" + ", # c\n".join(many) + "\n]"),
        st.dictionaries(TEXTS.map(toml_value), inner, max_size=2).map(
            lambda pairs: f"{{ {', '.join(f'{key}={one}' for key, one in pairs.items())} }}"
        ),
    ),
    max_leaves=5,
)


PAIRS = st.dictionaries(TEXTS, VALUES, max_size=2)


@pytest.mark.small
@given(
    st.lists(
        st.tuples(TEXTS, st.booleans(), st.dictionaries(TEXTS, VALUES, max_size=2)), max_size=4
    )
)
def test_lines_are_those_where_keys_were_written(
    tables: list[tuple[str, bool, dict[str, str]]],
) -> None:
    # Which tables are arrays is chosen once for a name; a table of one name comes but once.
    kinds: dict[str, bool] = {}
    lines: list[str] = []
    expected: dict[tuple[Any, ...], int] = {}
    counts: dict[str, int] = {}
    for name, several, pairs in tables:
        if kinds.setdefault(name, several) != several or (not several and name in counts):
            continue
        counts[name] = counts.get(name, -1) + 1
        place: tuple[Any, ...] = (name, counts[name]) if several else (name,)
        expected.setdefault((name,), len(lines) + 1)
        expected[place] = len(lines) + 1
        lines.append(f"[[{toml_value(name)}]]" if several else f"[ {toml_value(name)} ] # {name!r}")
        for key, value in pairs.items():
            expected[*place, key] = len(lines) + 1
            lines += f"{toml_value(key)}\t= {value}".split("\n")
    text = "\n".join(lines)
    found = lines_of(text)
    assert found.keys() == places(tomllib.loads(text))
    assert {place: found[place] for place in expected} == expected


# ------------------------------------------------------------------ filling in


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("p/{date}/x", "p/2024-05-01/x"),
        ("{date:%Y%m%d}{date:%j}", "20240501122"),
        ("${A}/${B:-b}/${A:-b}", "a/b/a"),
        ("${EMPTY:-b}${B:-}${B:-{date}}", "b2024-05-01"),
        ("{1} {a,b} $A }{", "{1} {a,b} $A }{"),
        ("${TRICK}", "${A}{date}"),
    ],
)
def test_texts_are_filled_in(text: str, filled: str) -> None:
    assert fill(text, DAY, {"A": "a", "EMPTY": "", "TRICK": "${A}{date}"}) == filled


@pytest.mark.parametrize("text", ["p/{dat}/x", "{Date:%Y}", "${B:-{day}}"])
def test_an_unknown_name_in_braces_is_no_path(text: str) -> None:
    with pytest.raises(rankmill.UsageError, match=r"is unknown .* expected \{date\}"):
        fill(text, DAY, {})


# ------------------------------------------------------------------ mistakes

GOOD = 'labels = "l.parquet"\npredictions = "p.parquet"\n'


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        # The document.
        (GOOD + "metrics = [", 3, ["no valid TOML"]),
        (GOOD + "\n\nmetrics = map@12\n", 5, ["no valid TOML"]),
        (GOOD + 'labels = "m"\n', 3, ["overwrite"]),
        (GOOD + "x = " + "[" * 5000, None, ["too deep"]),
        (GOOD + "x = " + "1" * 5000, None, ["no valid TOML"]),
        # Keys.
        (GOOD + 'metric = "map"\n', 3, ["metric: there is no such key", "mean metrics"]),
        (GOOD + 'per-query = "q.parquet"\n', 3, ["did you mean per_query"]),
        (GOOD + "zzz = 1\n", 3, ["no such key", "labels, predictions, systems", "worst_slices"]),
        (GOOD + 'query = "user"\n', 3, ["query: it stands in the wrong place", "[columns]"]),
        (GOOD + "in-order = true\n", 3, ["in-order: it stands in the wrong place", "[columns]"]),
        (GOOD + 'output = "x.json"\n', 3, ["output: it belongs to one run", "--output on"]),
        (GOOD + 'preset = "spark"\n', 3, ["in the table [semantics]"]),
        (GOOD + "[columns]\n\ndepth = 3\n", 5, ["columns.depth", "at the top"]),
        (GOOD + '[columns]\nscor = "s"\n', 4, ["columns.scor", "did you mean score?"]),
        (GOOD + '[semantics]\nap_diviser = "hits"\n', 4, ["did you mean ap_divisor?"]),
        ('predictions = "p"\n', None, ["key labels is missing", "path of the labels"]),
        ('labels = "l"\n', None, ["key predictions is missing", "[systems]"]),
        (GOOD + '[systems]\na = "a"\n', 3, ["systems", "one of the two"]),
        ('labels = "l"\n[systems]\n', 2, ["systems: the table is empty"]),
        ('labels = "l"\n[systems]\n"" = "x"\n', 3, ["name of a system is empty"]),
        # Types.
        ('labels = 3\npredictions = "p"\n', 1, ["labels: it is the number 3", "a path"]),
        ('labels = ""\npredictions = "p"\n', 1, ["labels: the text is empty"]),
        ('labels = []\npredictions = "p"\n', 1, ["labels: the list is empty"]),
        ('labels = "l"\n[systems]\na = [\n"b",\n2]\n', 5, ["systems.a[2]", "the number 2"]),
        (GOOD + 'systems = "s"\n', 3, ["predictions are given as well"]),
        ('labels = "l"\nsystems = "s"\n', 2, ["systems: it is the text 's'", "expected a table"]),
        (GOOD + "metrics = 3\n", 3, ["metrics: it is the number 3", "a list of texts"]),
        (GOOD + 'metrics = [\n"map",\n\n4]\n', 6, ["metrics[2]: it is the number 4"]),
        (GOOD + "metrics = { a = 1 }\n", 3, ["metrics: it is a table"]),
        (GOOD + 'depth = "3"\n', 3, ["depth: it is the text '3'", "an integer"]),
        (GOOD + "depth = true\n", 3, ["depth: it is true", "an integer"]),
        (GOOD + "rel = 1979-05-27\n", 3, ["rel: it is 1979-05-27, a date", "a number"]),
        (GOOD + "judged_only = 1\n", 3, ["judged_only", "true or false"]),
        (GOOD + "columns = 1\n", 3, ["columns: it is the number 1", "a table: [columns]"]),
        # Values.
        (GOOD + "depth = 0\n", 3, ["depth: 0 is not in the range"]),
        (GOOD + 'memory = "much"\n', 3, ["memory: 'much' is no size", "500MB"]),
        (GOOD + '[columns]\ngain_function = "ex"\n', 4, ["it is 'ex'", "linear, exp", "mean exp"]),
        (
            GOOD + '[semantics]\npreset = "trec"\n',
            4,
            ["semantics.preset", "did you mean trec_eval"],
        ),
        (GOOD + '[semantics]\norder = "bad"\n', 4, ["semantics.order: it is 'bad'", "worst, best"]),
        # What is filled in.
        (GOOD + '\nby = ["a",\n"${NOT_THERE}"]\n', 5, ["by[2]", "NOT_THERE is not set", ":-"]),
        (GOOD + 'by = "${1}"\n', 3, ["by: '${' begins no ${NAME}"]),
    ],
)
def test_a_mistake_is_told_with_its_line(
    text: str, line: int | None, wanted: list[str], write: Callable[[str], Path], run: Any
) -> None:
    path = write(text)
    with pytest.raises(UsageError) as caught:
        rankmill.config.read_config(path, environment={})
    message = tells(caught.value, wanted)
    assert message.startswith(f"{path}, line {line}" if line else f"{path}:")
    assert line or ", line" not in message
    code, shown, error = run("evaluate", path)
    assert (code, shown) == (2, "")
    assert error == f"error: {message}\n"


def test_a_file_that_cannot_be_read(tmp_path: Path, run: Any) -> None:
    for path in (tmp_path / "none.toml", tmp_path / "folder.toml"):
        if path.name == "folder.toml":
            path.mkdir()
        code, _, error = run("evaluate", path)
        assert code == 2
        tells(error, ["cannot read", path.name, "rankmill init"])
    (tmp_path / "latin.toml").write_bytes(b'# a\nlabels = "\xe9"\n')
    tells(run("evaluate", tmp_path / "latin.toml")[2], ["line 2: no UTF-8"])


def test_files_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}rules = 1\n".replace("\n", "\r\n").encode())
    with pytest.raises(UsageError, match="line 3, rules"):
        rankmill.config.read_config(path)


@pytest.mark.parametrize("date", ["1.5.2024", "", "2024-13-01"])
def test_a_wrong_date(date: str, write: Callable[[str], Path], run: Any) -> None:
    code, _, error = run("evaluate", write(GOOD), "--date", date)
    assert code == 2
    tells(error, [f"date is '{date}'", "2024-05-01"])


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        ('metrics = ["map",\n"mapp@12", "bpref"]\n', 4, ["metrics[2]", "'mapp@12'"]),
        ('tests = "tt"\n', 3, ["tests)", "'tt'"]),
        ("confidence = 7.5\n", 3, ["confidence)"]),
        ('correction = "x"\n', 3, ["correction)"]),
        ('weight = "nope"\n', 3, ["weight)"]),
        ('per_query = "no/folder/q.parquet"\n', 3, ["per_query)", "folder"]),
    ],
)
def test_a_mistake_that_the_run_finds_is_told_with_its_line(
    text: str, line: int, wanted: list[str], tmp_path: Path, run: Any
) -> None:
    labels, predictions = write_dump(tmp_path)
    path = tmp_path / "rankmill.toml"
    systems = f'[systems]\na = "{predictions.name}"\nb = "{tmp_path}/./{predictions.name}"\n'
    path.write_text(f'labels = "{labels.name}"\n\n{text}{systems}')
    code, shown, error = run("compare", path)
    assert code in (2, 3)
    assert shown == ""
    tells(error, [*wanted, f"{path}, line {line}, "])


def test_a_missing_input_is_told_with_its_line(write: Callable[[str], Path], run: Any) -> None:
    path = write(GOOD)
    code, _, error = run("evaluate", path)
    assert code in (2, 3)
    tells(error, ["no such file", f"({path}, line 1, labels)"])


def test_an_option_of_the_command_line_is_not_blamed_on_the_file(tmp_path: Path, run: Any) -> None:
    labels, predictions = write_dump(tmp_path)
    path = tmp_path / "rankmill.toml"
    path.write_text(f'labels = "{labels}"\npredictions = "{predictions}"\nmetrics = ["mapp"]\n')
    error = run("evaluate", path, "-m", "mapp")[2]
    assert "unknown metric 'mapp'" in error
    assert "rankmill.toml" not in error


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_broken_file_never_fails_in_another_way(rolls: random.Random, edits: int) -> None:
    import tempfile

    text = [*FULL]
    for _ in range(edits):
        at = rolls.randrange(len(text) + 1)
        what = rolls.choice(
            ["", "[", "]", "{", "}", '"', "'", "=", ".", "\n", "#", "\\", "${", "1", "\x00"]
        )
        text[at : at + rolls.randrange(4)] = what
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rankmill.toml"
        path.write_text("".join(text), "utf-8")
        with suppress(UsageError):
            assert rankmill.config.read_config(path, date="2024-05-01", environment={}).systems


# ------------------------------------------------------------------ what is read

FULL = """\
labels = ["labels/a.parquet", "labels/b.parquet"]
baseline = "old"
metrics = "map@12"
by = ["country", "users.csv", "sub/users"]
tests = ["t", "bootstrap"]
confidence = 0.9
margin = 1
worst_slices = 5
judged_only = true
depth = 100
memory = "1GB"
per_query = "q-{date}.parquet"
[systems]
new = "${RUN:-run}/*.parquet"
old = "s3://bucket/old"
"the third" = "a,b"
[columns]
query = "user"
columns = "user,item"
in_order = true
[semantics]
preset = "trec_eval"
order = "given"
"""


def test_a_full_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "x.toml").write_text(FULL)
    monkeypatch.chdir(tmp_path)
    config = rankmill.config.read_config(
        "conf/x.toml", date="2024-05-01", environment={"RUN": "/runs"}
    )
    assert config.labels == ["conf/labels/a.parquet", "conf/labels/b.parquet"]
    assert config.systems == {
        "new": "/runs/*.parquet",
        "old": "s3://bucket/old",
        "the third": "conf/a,conf/b",
    }
    assert config.baseline == "old"
    assert config.options == {
        "metrics": ("map@12",),
        "by": ("country", "conf/users.csv", "conf/sub/users"),
        "tests": ("t", "bootstrap"),
        "confidence": 0.9,
        "margin": 1.0,
        "worst_slices": 5,
        "judged_only": True,
        "depth": 100,
        "memory": 10**9,
        "per_query": "conf/q-2024-05-01.parquet",
        "query": "user",
        "columns": "user,item",
        "in_order": True,
        "semantics": {"preset": "trec_eval", "order": "given"},
    }
    given = config.arguments(rankmill.compare)
    assert {name: one.data for name, one in given["runs"].items()} == config.systems
    assert given["baseline"] == "old"
    assert "per_query" not in given
    assert config.arguments(rankmill.evaluate_runs)["semantics"].depth == 100


@pytest.mark.parametrize(
    ("baseline", "read"),
    [("last", "last"), ("median:7", "median:7"), ("old", "old"), ("b.json", "conf/b.json")],
)
def test_baselines(
    baseline: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    text = f'labels = "l"\nbaseline = "{baseline}"\n[systems]\nold = "o"\n'
    (tmp_path / "conf" / "x.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert rankmill.config.read_config("conf/x.toml").baseline == read


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: "{" not in text and "$" not in text
)


@given(
    systems=st.dictionaries(PLAIN, PLAIN, min_size=1, max_size=3),
    options=st.fixed_dictionaries(
        {},
        optional={
            "metrics": st.lists(PLAIN, min_size=1, max_size=3),
            "tests": st.lists(PLAIN, min_size=1, max_size=3),
            "correction": PLAIN,
            "depth": st.integers(1, 10**9),
            "seed": st.integers(0, 10**9),
            "confidence": st.floats(allow_nan=False, allow_infinity=False),
            "judged_only": st.booleans(),
        },
    ),
    columns=st.fixed_dictionaries(
        {}, optional={"query": PLAIN, "score": PLAIN, "binary": st.booleans()}
    ),
)
def test_a_written_file_is_read_as_it_was_meant(
    systems: dict[str, str], options: dict[str, Any], columns: dict[str, Any]
) -> None:
    import os
    import tempfile

    text = "".join(f"{name} = {toml_value(value)}\n" for name, value in options.items())
    text += 'labels = "-"\n[systems]\n'
    text += "".join(f"{toml_value(n)} = {toml_value('s3://' + v)}\n" for n, v in systems.items())
    text += "[columns]\n"
    text += "".join(f"{name} = {toml_value(value)}\n" for name, value in columns.items())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.toml")
        Path(path).write_text(text, "utf-8", newline="")
        config = rankmill.config.read_config(path)
    assert config.labels == "-"
    assert config.options == columns | {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    assert [*config.systems] == [*systems]
