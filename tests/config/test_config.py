"""rankmill.toml: what is read from it, and how mistakes are told."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import tells
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from rankmill.cli.init import toml_value
from rankmill.config.document import fill
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
    ("text", "wanted"),
    [
        # The document.
        (GOOD + "metrics = [", ["line 3: not valid TOML"]),
        (GOOD + "\n\nmetrics = map@12\n", ["line 5: not valid TOML"]),
        (GOOD + 'labels = "m"\n', ["line 3: not valid TOML", "overwrite"]),
        (GOOD + "x = " + "[" * 5000, ["too deep"]),
        (GOOD + "x = " + "1" * 5000, ["not valid TOML"]),
        # Keys.
        (GOOD + 'metric = "map"\n', ["metric: there is no such key", "mean metrics"]),
        (GOOD + 'per-query = "q.parquet"\n', ["did you mean per_query"]),
        (GOOD + "zzz = 1\n", ["no such key", "labels, predictions, systems", "moved"]),
        (GOOD + "worst_slices = 5\n", ["worst_slices", "--by shows every slice"]),
        (GOOD + "min_overlap = 0.5\n", ["min_overlap", "90% of them"]),
        (GOOD + "replicates = 99\n", ["replicates", "draws 10,000"]),
        (GOOD + 'undecided = "pass"\n', ["undecided", "take warn"]),
        (GOOD + 'query = "user"\n', ["query: it is in the wrong place", "[columns]"]),
        (GOOD + "in-order = true\n", ["in-order: it is in the wrong place", "[columns]"]),
        (GOOD + 'output = "x.json"\n', ["output: it belongs to one run", "--output on"]),
        (GOOD + "only_plan = true\n", ["it belongs to one run", "--plan on"]),
        (GOOD + "partitions = 3\n", ["it belongs to one run", "--partitions on"]),
        (GOOD + 'preset = "spark"\n', ["in the table [semantics]"]),
        (GOOD + "[columns]\n\ndepth = 3\n", ["columns.depth", "at the top"]),
        (GOOD + '[columns]\nscor = "s"\n', ["columns.scor", "did you mean score?"]),
        (GOOD + '[semantics]\nap_diviser = "hits"\n', ["did you mean ap_divisor?"]),
        ('predictions = "p"\n', ["key labels is missing", "path of the labels"]),
        ('labels = "l"\n', ["key predictions is missing", "[systems]"]),
        (GOOD + '[systems]\na = "a"\n', ["systems", "one of the two"]),
        ('labels = "l"\n[systems]\n', ["systems: the table is empty"]),
        ('labels = "l"\n[systems]\n"" = "x"\n', ["name of a system is empty"]),
        # The version.
        (
            GOOD + "version = 2\n",
            ["version: it is 2, and this", "reads 1", "install a newer"],
        ),
        (GOOD + "version = 0\n", ["version: it is the number 0; expected 1"]),
        (GOOD + "version = true\n", ["version: it is true; expected 1"]),
        (GOOD + "zzz = 1\nversion = 2\n", ["version: it is 2"]),
        # Types.
        ('labels = 3\npredictions = "p"\n', ["labels: it is the number 3", "a path"]),
        ('labels = ""\npredictions = "p"\n', ["labels: the text is empty"]),
        ('labels = []\npredictions = "p"\n', ["labels: the list is empty"]),
        ('labels = "l"\n[systems]\na = [\n"b",\n2]\n', ["systems.a[2]", "the number 2"]),
        (GOOD + 'systems = "s"\n', ["predictions are given as well"]),
        ('labels = "l"\nsystems = "s"\n', ["systems: it is the text 's'", "expected a table"]),
        (GOOD + "metrics = 3\n", ["metrics: it is the number 3", "a list of texts"]),
        (GOOD + 'metrics = [\n"map",\n\n4]\n', ["metrics[2]: it is the number 4"]),
        (GOOD + "metrics = { a = 1 }\n", ["metrics: it is a table"]),
        (GOOD + 'depth = "3"\n', ["depth: it is the text '3'", "an integer"]),
        (GOOD + "depth = true\n", ["depth: it is true", "an integer"]),
        (GOOD + "rel = 1979-05-27\n", ["rel: it is 1979-05-27, a date", "a number"]),
        (GOOD + "judged_only = 1\n", ["judged_only", "true or false"]),
        (GOOD + "columns = 1\n", ["columns: it is the number 1", "a table: [columns]"]),
        # Values.
        (GOOD + "depth = 0\n", ["depth: 0 is not in the range"]),
        (GOOD + 'memory = "much"\n', ["memory: 'much' is not a size", "500MB"]),
        (GOOD + '[columns]\ngain_function = "ex"\n', ["it is 'ex'", "linear, exp", "mean exp"]),
        (
            GOOD + '[semantics]\npreset = "trec"\n',
            ["semantics.preset", "did you mean trec_eval"],
        ),
        (GOOD + '[semantics]\norder = "bad"\n', ["semantics.order: it is 'bad'", "worst, best"]),
        # What is filled in.
        (GOOD + '\nby = ["a",\n"${NOT_THERE}"]\n', ["by[2]", "NOT_THERE is not set", ":-"]),
        (GOOD + 'by = "${1}"\n', ["by: '${' begins no ${NAME}"]),
    ],
)
def test_a_mistake_is_told_with_its_key(
    text: str, wanted: list[str], write: Callable[[str], Path], run: Any
) -> None:
    path = write(text)
    with pytest.raises(UsageError) as caught:
        rankmill.config.read_config(path, environment={})
    message = tells(caught.value, wanted)
    assert message.startswith((f"{path}, ", f"{path}:"))
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
    tells(run("evaluate", tmp_path / "latin.toml")[2], ["line 2: not UTF-8"])


def test_files_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}rules = 1\n".replace("\n", "\r\n").encode())
    with pytest.raises(UsageError, match=r"x\.toml, rules: it is the number 1"):
        rankmill.config.read_config(path)


@pytest.mark.parametrize("date", ["1.5.2024", "", "2024-13-01", "tomorrow"])
def test_a_wrong_date(date: str, write: Callable[[str], Path], run: Any) -> None:
    code, _, error = run("evaluate", write(GOOD), "--date", date)
    assert code == 2
    tells(error, [f"date is '{date}'", "2024-05-01", "today or yesterday in UTC"])


@pytest.mark.parametrize(("date", "days"), [(None, 0), ("today", 0), ("yesterday", 1)])
def test_dates_that_are_named(date: str | None, days: int, write: Callable[[str], Path]) -> None:
    def today() -> datetime.date:
        return datetime.datetime.now(datetime.UTC).date()

    before, path = today(), write(GOOD + 'report = "{date}.html"\n')
    found = rankmill.config.read_config(path, date=date).options["report"]
    some = {before, today()}  # midnight may pass
    days_before = {str(one - datetime.timedelta(days=days)) for one in some}
    assert Path(found).stem in days_before


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
version = 1
labels = ["labels/a.parquet", "labels/b.parquet"]
baseline = "old"
metrics = "map@12"
by = ["country", "users.csv", "sub/users", "users.csv:age"]
tests = ["t", "wilcoxon"]
confidence = 0.9
margin = 1
moved = -5
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
        "by": ("country", "conf/users.csv", "conf/sub/users", "conf/users.csv:age"),
        "tests": ("t", "wilcoxon"),
        "confidence": 0.9,
        "margin": 1.0,
        "moved": -5,
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
            # A text with @ may be a file of metrics, and is changed as paths are.
            "metrics": st.lists(PLAIN.filter(lambda one: "@" not in one), min_size=1, max_size=3),
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
