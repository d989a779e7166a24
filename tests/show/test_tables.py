"""Tables of exact cells: how each kind is shown, in every format and on terminals of any width."""

import csv
import io
import json
from html import escape

import pytest

from hostile_names import ESCAPES, HOSTILE, SHOWN
from rankmill.cli.draw import draw
from rankmill.io.inert_text import markdown_text, visible
from rankmill.show.tables import Best, Column, Facts, Table, View, listing
from rankmill.show.writers import plain_text, write

ALL_KINDS = Table(
    [
        Column("id"),
        Column("queries", "count"),
        Column("bytes", "size"),
        Column("map", "value"),
        Column("95 %", "range"),
        Column("from", "difference"),
        Column("gain", "number"),
        Column("error", "error"),
        Column("score", "score"),
    ],
    [
        ["a", 1200, 12_345, 0.25, (0.05, 0.5), 0.125, 3.0, 0.0123, 1e300],
        [True, 7, 1, 0.5, None, 0.0, 12.5, None, float("-inf")],
        [17, None, None, None, (0.1, 1e-7), 1e-9, None, 0.5, 0.1 + 0.2],
    ],
)


def test_how_each_kind_is_shown():
    assert list(zip(*ALL_KINDS.texts(), strict=True)) == [
        ("id", "a", "yes", "17"),
        ("queries", "1,200", "7", ""),
        ("bytes", "12KB", "1B", ""),
        ("map", "0.2500000", "0.5000000", ""),
        ("95 %", "0.0500000..0.5000000", "", "0.1000000..1.00000e-07"),
        ("from", "+0.1250000", "+0.0000000", "+1.0e-09"),
        ("gain", "3.00000", "12.50000", ""),
        ("error", "0.0123", "", "0.5000"),
        ("score", "1e+300", "-inf", "0.3"),
    ]


def test_numbers_are_aligned_right_and_texts_and_ranges_left():
    table = Table([ALL_KINDS.columns[place] for place in (0, 1, 4, 6)], [])
    rows = [[row[place] for place in (0, 1, 4, 6)] for row in ALL_KINDS.rows]
    assert plain_text([table._replace(rows=rows)]).splitlines() == [
        "id   queries  95 %                        gain",
        "---  -------  ----------------------  --------",
        "a      1,200  0.0500000..0.5000000     3.00000",
        "yes        7                          12.50000",
        "17            0.1000000..1.00000e-07",
    ]
    assert plain_text([table]).splitlines()[1] == "--  -------  ----  ----"


def test_numbers_that_are_not_finite_are_shown_as_they_are():
    rows = [[float("inf")], [float("nan")], [-float("inf")]]
    assert Table([Column("x", "value")], rows).texts() == [["x"], ["inf"], ["nan"], ["-inf"]]
    assert Table([Column("x", "number")], [*rows, [0.5]]).texts()[4] == ["0.500000"]


def test_the_best_of_a_row_has_a_star_and_the_others_room_for_it():
    table = Table(
        [Column("metric"), Column("old", "value"), Column("new", "value"), Column("n", "count")],
        [["map", 0.25, Best(0.5), 3], ["gap", None, 0.125, 4]],
    )
    assert plain_text([table]).splitlines() == [
        "metric       old        new   n",
        "------  ---------  ---------  -",
        "map     0.250000   0.500000*  3",
        "gap                0.125000   4",
    ]
    assert json.dumps(table.rows[0]) == '["map", 0.25, 0.5, 3]'


def curve_view(points: list[tuple[int, float]]) -> View:
    """A new output: the view is all there is to write."""
    table = Table([Column("k", "count"), Column("map", "value")], points)
    return View(
        lambda: [table, "", Facts([("drawn from", ESCAPES)])],
        lambda: [table, Facts([("drawn from", "1,234", ESCAPES)]), ESCAPES],
        lambda: Table([Column("k"), Column("map")], points),
        lambda: {"points": points, "from": ESCAPES},
    )


def test_a_new_output_is_one_function_that_returns_a_view(capsys):
    view = curve_view([(1, 0.1 + 0.2), (1000, 0.5)])
    assert write(view, "table").splitlines() == [
        "    k       map",
        "-----  --------",
        "    1  0.300000",
        "1,000  0.500000",
        "",
        f"drawn from  {SHOWN}",
    ]
    assert write(view, "csv") == "k,map\n1,0.30000000000000004\n1000,0.5\n"
    assert json.loads(write(view, "json"))["points"] == [[1, 0.1 + 0.2], [1000, 0.5]]
    lines = write(view, "markdown").splitlines()
    assert lines[:3] == ["| k | map |", "| ---: | ---: |", "| 1 | 0.300000 |"]
    assert lines[4] == ""
    assert len(lines) == 6
    html = write(view, "html")
    assert '<td style="text-align: right">1,000</td>' in html
    assert "drawn from <b>1,234</b>: \\x1b[31m" in html
    assert "<b>\\n" not in html
    draw(view.screen())
    drawn = capsys.readouterr().out
    assert "1,000   0.500000" in drawn
    assert drawn.replace("\n", "").isprintable()


def test_a_listing_is_the_same_table_in_all_formats():
    view = listing(Table([Column("name")], [["=a"]]), [{"name": "=a", "more": [1]}])
    assert write(view, "table") == "name\n----\n=a\n"
    assert write(view, "csv") == "name\n'=a\n"
    assert write(view, "markdown") == "| name |\n| --- |\n| =a |\n"
    assert json.loads(write(view, "json")) == [{"name": "=a", "more": [1]}]


@pytest.mark.small
def test_how_the_kinds_of_a_comparison_are_shown():
    columns = [Column("95%", "interval"), Column("p", "p"), Column("won", "share")]
    columns += [Column("relative", "change")]
    rows = [
        [(-0.00012345, 0.0101), 0.05, 0.125, -0.5],
        [(-0.5, -0.25), 3e-9, 0.0, 0.00123],
        [(0.0, 0.0), 0.0001, 1.0, 0.0],
        [None, 1.0, None, None],
    ]
    assert Table(columns, rows).texts()[1:] == [
        ["-0.0001..+0.0101", "0.0500", "12.5%", "-50.00%"],
        ["-0.5000..-0.2500", "<0.0001", "0.0%", "+0.12%"],
        ["+0.0000..+0.0000", "0.0001", "100.0%", "+0.00%"],
        ["", "1.0000", "", ""],
    ]


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_nothing_is_cut_off_on_a_terminal_of_any_width(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    names = [f"system-{number}-{'x' * 30}" for number in range(7)]
    rows = [
        [f"metric-{row}", *(row + place / 8 for place in range(7)), "why " * 20] for row in range(3)
    ]
    table = Table(
        [Column("metric"), *(Column(name, "value") for name in names), Column("meaning")], rows
    )
    draw([table])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    text = "\n".join(lines)
    assert "…" not in text
    assert text.count("why") == 60
    for row in table.texts()[1:]:
        assert not [cell for cell in row[1:-1] if cell not in text]
    assert all(f"system-{number}" in text for number in range(7))
    assert text.count("x") == 30 * 7


@pytest.mark.parametrize("text", HOSTILE)
def test_titles_cells_facts_and_lines_are_data(capsys, monkeypatch, text):
    monkeypatch.setenv("COLUMNS", "300")
    table = Table([Column(text), Column(text, "value")], [[text, 0.5]])
    parts = [table, Facts([(text, text, text)]), Facts([(text, text)], aligned=False), text]
    view = View(lambda: parts, lambda: parts, lambda: table, lambda: [text])
    draw(parts)
    shown = {name: write(view, name) for name in ("table", "csv", "markdown", "html")}
    shown["drawn"] = capsys.readouterr().out
    counts = {"table": 9, "csv": 3, "markdown": 4, "html": 9, "drawn": 9}
    expected = {"markdown": markdown_text(text), "html": escape(visible(text))}
    for name, written in shown.items():
        assert written.replace("\n", "").isprintable()
        assert written.count(expected.get(name, visible(text))) >= counts[name]
    assert json.loads(write(view, "json")) == [text]


@pytest.mark.parametrize("columns", [20, 80])
def test_a_wide_character_takes_two_columns(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    draw([Table([Column("東京"), Column("map", "value")], [["京" * 5, 0.5], ["b", 0.25]])])
    lines = [line for line in capsys.readouterr().out.splitlines() if "0." in line]
    assert len(lines) == 2


def test_a_csv_of_every_kind_can_be_read_back():
    exact = Table(ALL_KINDS.columns[:4], [row[:4] for row in ALL_KINDS.rows])
    rows = list(csv.reader(io.StringIO(write(listing(exact, None), "csv"))))
    assert rows[1:] == [
        ["a", "1200", "12345", "0.25"],
        ["True", "7", "1", "0.5"],
        ["17", "", "", ""],
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([Best(0.50002), 0.50001, 0.1], ["0.50002*", "0.50001", "0.10000"]),
        ([Best(0.5), Best(0.5), 0.25], ["0.5000*", "0.5000*", "0.2500"]),
        ([0.50002, 0.50001, Best(0.6)], ["0.5000", "0.5000", "0.6000*"]),
        ([Best(123456.4), 123456.2, None], ["123456.4*", "123456.2", ""]),
        ([Best(0.1 + 0.2), 0.3], ["0.3000*", "0.3000"]),  # nobody can read 17 digits
    ],
)
def test_no_decimals_hide_what_is_best(values, shown):
    table = Table([Column("map", "lettered")], [[one] for one in values])
    assert [text.rstrip() for (text,) in table.texts()[1:]] == shown
