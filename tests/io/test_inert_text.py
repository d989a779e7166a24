"""Names and ids that would act on a terminal, a page or a spreadsheet are shown, and do nothing."""

import ast
import csv
import io
import re
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import rankmill
from cli_runs import on_a_terminal
from hostile_names import ESCAPES, SHOWN, TEXTS
from rankmill.io.inert_text import csv_cell, markdown_text, visible, visible_message
from shown import csv_text, html_table, markdown, plain_lines, plain_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("tea: 5 % (Größe) 東京 عربي", "tea: 5 % (Größe) 東京 عربي"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("\t\n\r\0\x7f\x9b", "\\t\\n\\r\\x00\\x7f\\x9b"),
        ("\u202e\u2066\u200b\u2028\ufeff", "\\u202e\\u2066\\u200b\\u2028\\ufeff"),
        ("\U000e0041\ufe0f\u3164", "\\U000e0041\\ufe0f\\u3164"),
        ("\udcff", "\\udcff"),
        ("a\\n", "a\\\\n"),
        ("a b\u00a0c", "a b\\xa0c"),
    ],
)
def test_what_is_shown_of_a_text(text, shown):
    assert visible(text) == shown
    assert visible_message(text) == shown.replace("\\\\", "\\")


@given(TEXTS)
def test_a_text_can_be_told_from_what_is_shown_and_nothing_acts(text):
    shown = visible(text)
    assert shown.isprintable()
    quoted = shown.replace('"', '\\"')
    assert ast.literal_eval(f'"{quoted}"') == text
    forbidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for one in (shown, visible_message(text), markdown_text(text), csv_cell(text)):
        assert not {unicodedata.category(character) for character in one} & forbidden


@given(st.lists(TEXTS, min_size=2, max_size=2))
def test_a_csv_cell_is_no_formula_and_can_be_read_back(texts):
    (header, row) = csv.reader(io.StringIO(csv_text(texts, [[*texts]]), newline=""))
    assert header == row
    for cell, text in zip(row, texts, strict=True):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d"))
        assert cell.removeprefix("'") == visible(text)


def test_numbers_in_csv_are_no_texts():
    rows = [[-0.5, -7, 1e-300, None, True, float("-inf")]]
    assert csv_text(list("abcdef"), rows) == "a,b,c,d,e,f\n-0.5,-7,1e-300,,True,-inf\n"


@given(st.lists(TEXTS, min_size=2, max_size=2))
def test_markdown_shows_a_cell_as_it_is(texts):
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse(markdown(texts, [texts, ["x", "y"]]))
    inline = [token for token in tokens if token.type == "inline"]
    assert len(inline) == 6
    for token, text in zip(inline, [*texts, *texts, "x", "y"], strict=True):
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == visible(text).strip(" ")
    assert sum(token.type == "tr_open" for token in tokens) == 3


@given(st.lists(TEXTS, min_size=2, max_size=2))
def test_a_row_of_a_plain_table_is_a_line(texts):
    assert len(plain_table(texts, [texts, texts]).split("\n")) == 4
    assert plain_table(texts, [texts]).replace("\n", "").isprintable()
    lines = plain_lines([(texts[0], texts[1])])
    assert lines == [f"{visible(texts[0])}  {visible(texts[1])}"]
    html = html_table(texts, [texts]).replace("\n", "")
    assert html.isprintable()
    assert set(re.findall(r"<(\w+)", html)) == {"table", "thead", "tr", "th", "tbody", "td"}


# The whole way


def write_hostile(folder):
    """Labels and two systems whose names, columns and ids are all hostile."""
    ids = [f"{ESCAPES}{number}" for number in range(3)]
    items = [[f"=item{ESCAPES}."], ["b"], ["-c"]]
    labels = folder / f"labels{ESCAPES}.parquet"
    systems = [folder / f"{start}{ESCAPES}.parquet" for start in "+="]
    query, item = f"q{ESCAPES}", f"i{ESCAPES}"
    pq.write_table(pa.table({query: ids, item: items}), labels)
    pq.write_table(pa.table({query: ids, item: items}), systems[0])
    pq.write_table(pa.table({query: ids[:2], item: items[1::-1]}), systems[1])
    return labels, systems, ["--query", query, "--item", item], ids


def commands(folder):
    labels, systems, columns, ids = write_hostile(folder)
    skip = ["--semantics", "unpredicted=skip"]
    return {
        "one": ["evaluate", labels, systems[0], *columns, "-m", "map@3"],
        "several": ["evaluate", labels, *systems, *columns, "-m", "map@3", *skip],
        "plan": ["evaluate", labels, *systems, *columns, "-m", "map@3", "--plan"],
        "explain": ["explain", labels, systems[0], *columns, "-m", "map", "--query-id", ids[0]],
        "difference": [
            *("explain-evaluators", labels, systems[1], *columns, "-m", "map"),
            *("--presets", "default,spark"),
        ],
        "comparison": ["compare", labels, *systems, *columns, "-m", "map@3", "--moved", "1"],
    }


KINDS = ["one", "several", "plan", "explain", "difference", "comparison"]


@pytest.mark.small
@pytest.mark.parametrize("format", ["table", "csv", "markdown", "json"])
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_do_nothing_in_a_pipe(run, tmp_path, kind, format):
    code, out, err = run(*commands(tmp_path)[kind], "--format", format)
    assert code == 0
    assert all(format == "csv" and line.startswith("note: ") for line in err.splitlines())
    assert (out + err).replace("\n", "").isprintable()
    if format == "json":
        assert "\\u001b[31m" in out
        return
    shown = markdown_text(ESCAPES) if format == "markdown" else SHOWN
    # In CSV and Markdown, a result holds no names except those of systems.
    assert (shown in out) == (kind != "one" or format == "table")
    if format == "markdown":
        assert (
            len(
                {
                    line.replace("\\|", "").count("|")
                    for line in out.split("\n\n")[0].split("\n")
                    if line
                }
            )
            == 1
        )
    if format == "csv":
        rows = list(csv.reader(io.StringIO(out)))
        assert len({len(row) for row in rows}) == 1
        cells = [cell for row in rows for cell in row]
        assert not [one for one in cells if one.startswith(("=", "+", "@"))]
        assert kind not in ("several", "explain") or [one for one in cells if one.startswith("'=")]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_do_nothing_on_a_terminal(tmp_path, kind):
    arguments = [str(one) for one in commands(tmp_path)[kind]]
    lines = on_a_terminal(f"from rankmill.cli import main\nmain({arguments!r})", 400)
    text = "\n".join(lines)
    assert SHOWN in text
    assert "".join(lines).isprintable()
    assert not [line for line in lines if "Traceback" in line]


@pytest.mark.small
def test_hostile_names_do_nothing_in_errors(run, tmp_path):
    labels, systems, columns, ids = write_hostile(tmp_path)
    query = columns[:2]
    for arguments, code in (
        (["evaluate", tmp_path / f"no{ESCAPES}.parquet", systems[0]], 3),
        (["evaluate", labels, systems[0], *query, "--item", f"no{ESCAPES}"], 3),
        (["evaluate", labels, systems[0], "-m", f"map{ESCAPES}"], 2),
        (["evaluate", labels, systems[0], f"--no{ESCAPES}"], 2),
        (["evaluate", labels, systems[0], *columns, "-o", tmp_path / ESCAPES / "x"], 2),
        (["explain", labels, systems[0], *columns, "-m", "map", "--query-id", f"no{ids[0]}"], 3),
        ([f"no{ESCAPES}"], 2),
    ):
        found, out, err = run(*arguments)
        assert (found, out) == (code, "")
        assert err.startswith("error: ")
        assert err.replace("\n", "").isprintable()
        assert "\\x1b[31m" in err
        assert len(err.splitlines()) == (1 if "Usage" not in err else 3)


def hostile_results():
    labels = pa.table({"query": [ESCAPES, "b"], "items": [[f"{ESCAPES}."], ["c"]]})
    predictions = pa.table({"query": ["b", ESCAPES], "items": [["x", "c"], [f"{ESCAPES}."]]})
    return [
        rankmill.evaluate(labels, predictions, "map"),
        rankmill.explain(labels, predictions, "map", ESCAPES),
        rankmill.explain_evaluators(
            labels, predictions, "map", {ESCAPES: "default", f"spark{ESCAPES}": "spark"}
        ),
    ]


@pytest.mark.small
@pytest.mark.parametrize("place", range(3))
def test_hostile_ids_do_nothing_in_a_notebook(place):
    found = hostile_results()[place]
    assert repr(found).replace("\n", "").isprintable()
    html = found._repr_html_()
    assert html.replace("\n", "").isprintable()
    assert "<b>\\n" not in html
    if place:
        assert SHOWN in repr(found)
        assert "\\x1b[31m" in html
