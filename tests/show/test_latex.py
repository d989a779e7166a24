"""LaTeX: tables that a paper takes in, in which no name acts and the marks say what is shown."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from cuts import cut
from hostile_names import HOSTILE, TEXTS
from rankmill.analysis.compare.view.comparison import view_of
from rankmill.analysis.compare.view.tables import CORRECTIONS, TITLES
from rankmill.analysis.statistics.significance import CORRECTIONS as ALL_CORRECTIONS
from rankmill.analysis.statistics.significance import TESTS
from rankmill.io.inert_text import _GREEK, _GREEK_NAMES, latex_text, visible
from rankmill.show.tables import Best, Column, Marked, Table, View
from rankmill.show.writers import write
from systems import compare, made, table

MATHEMATICS = {r"\to": "→", r"\le": "≤", r"\ge": "≥", "-": "−", r"\infty": "∞"}
MATHEMATICS |= {f"\\{n}": g for n, g in zip(_GREEK_NAMES.split(), _GREEK, strict=True)}
COMMANDS = {
    **{"\\textbackslash": "\\", "\\textasciitilde": "~", "\\textasciicircum": "^"},
    **{"\\textless": "<", "\\textgreater": ">", "\\textbar": "|", "\\char34": '"'},
    **{f"${command}$": one for command, one in MATHEMATICS.items()},
    **{"\\dots": "…", "$\\uparrow$": "↑", "$\\downarrow$": "↓", "$\\approx$": "≈", "\\ ": " "},
    **{f"\\{one}": one for one in "&%$#_{}"},
}
ACTS = r"\$\\[A-Za-z]+\$|\$-\$|\\(?:char34|[A-Za-z]+)|\\."
TOKEN = re.compile(rf"(?P<acts>{ACTS})|(?P<group>\{{\}}|\{{([\[*])\}})|(?P<plain>.)", re.S)
ACTIVE = set('&%$#_{}~^\\<>|"')
ACTING = ["\\input{/etc/passwd}", "\\\\", "[1] a", "*a", "a & b", "50% off", "$x$", "#1", "a_b^c"]
ACTING += ["{", "}", "~", 'a"b', "a--b---c", "``a''", "?`!`", ",,", "<<>>", "  two  spaces "]


def read_back(latex: str) -> str:
    """What LaTeX would show of a text; fails if anything else than known characters is in it."""
    shown = ""
    for found in TOKEN.finditer(latex):
        if found["acts"]:
            shown += COMMANDS[found["acts"]]
        elif found["group"]:
            shown += found[3] or ""
        else:
            assert found["plain"] not in ACTIVE | {"\n"}
            shown += found["plain"]
    return shown


@given(st.one_of(TEXTS, st.text(st.sampled_from("\\&%${}[]*^~_-'`,?! a"))))
def test_a_text_is_shown_as_it_is_and_nothing_acts(text):
    check(text)


@pytest.mark.parametrize("text", ACTING)
def test_a_text_that_would_act_does_not(text):
    check(text)


def check(text):
    latex = latex_text(text)
    assert read_back(latex) == visible(text)
    assert not re.search(r"--|,,|''|``|[?!]`|  |^[ \[*]| $", latex.replace("\\ ", "_"))


def structure(text: str) -> list[list[list[str]]]:
    """The cells of each tabular; fails where braces, environments or cells do not add up."""
    depth = 0
    for one in re.findall(r"(?<!\\)(?:\\\\)*[{}]", re.sub(r"\\textbackslash\{\}", "", text)):
        depth += 1 if one[-1] == "{" else -1
        assert depth >= 0
    assert depth == 0
    tabulars = re.findall(
        r"\\begin\{tabular\}\{([lr]+)\}\n\\toprule\n(.*?)\\bottomrule\n\\end\{tabular\}\n",
        text,
        re.S,
    )
    assert len(tabulars) == text.count("\\begin{") == text.count("\\end{") > 0
    found = []
    for sides, body in tabulars:
        head, rule, rest = body.partition("\\midrule\n")
        assert rule
        rows = [
            re.split(r"(?<!\\) & ", line[: -len(" \\\\")]) for line in (head + rest).splitlines()
        ]
        assert all(line.endswith(" \\\\") for line in (head + rest).splitlines())
        assert {len(row) for row in rows} == {len(sides)}
        found.append(rows)
    return found


def of(comparison) -> str:
    return write(view_of(comparison), "latex")


def test_all_kinds_of_cells():
    titles = {
        "text": "a_b",
        "short": "map@3",
        "interval": "95%",
        "p": "p",
        "change": "x",
        "score": "s",
    }
    columns = [Column(title, kind) for kind, title in titles.items()]
    rows = [
        ["[a]", Best(0.125, "↑"), (-0.5, 0.25), 0.00001, -0.25, 1e-300],
        ["b", Marked(0.0125, "↓"), None, 0.04, 0.5, float("-inf")],
        ["c", Marked(0.5), (0.25, 0.5), None, None, None],
        ["d", None, (0.0, 1e-9), 1.0, 0.0, 12.5],
    ]
    shown = Table(columns, rows)
    text = write(View(list, lambda: [shown, "a & b"], lambda: shown, dict), "latex")
    (cells,) = structure(text)
    assert cells == [
        ["a\\_b", "map@3", "95\\%", "p", "x", "s"],
        ["{[}a]", "\\textbf{0.1250}\\rlap{\\textsuperscript{$\\uparrow$}}",
         "{[}$-0.500$, $+0.250$]", "$<0.0001$", "$-25.00\\%$", "$1 \\times 10^{-300}$"],
        ["b", "0.0125\\rlap{\\textsuperscript{$\\downarrow$}}", "", "0.0400", "$+50.00\\%$",
         "$-\\infty$"],
        ["c", "0.5000", "{[}$+0.250$, $+0.500$]", "", "", ""],
        ["d", "", "{[}$+0.000$, $+1.0 \\times 10^{-9}$]", "1.0000", "$+0.00\\%$", "12.5"],
    ]  # fmt: skip
    assert "{\\footnotesize a \\& b\\par}" in text


def test_marks_are_for_latex_only():
    table = Table([Column("map", "value")], [[Best(0.125, "↑")], [Marked(0.25, "↓")]])
    view = View(lambda: [table], lambda: [table], lambda: table, lambda: table.rows)
    assert write(view, "table") == "     map\n---------\n0.125000*\n0.250000\n"
    assert write(view, "csv") == "map\n0.125\n0.25\n"
    assert "0.125000}\\rlap{\\textsuperscript{$\\uparrow$}}" in write(view, "latex")


def test_marks_and_bold_are_the_words_of_the_comparison():
    labels, poor, good = made(6, 200)
    runs = {"base": good, "poor": poor, "nearly": dict(good) | {0: [99]}}
    found = compare(labels, runs, ["map@3", "recall@2"], margin=0.05)
    rows = structure(of(found))[0]
    marks = {"better": "uparrow", "worse": "downarrow", "equal within the margin": "approx"}
    for place, metric in enumerate(found.values, 1):
        for name, cell in ((row[0], row[place]) for row in rows[1:]):
            one = found.differences[metric].get(name)
            expected = marks.get(one.verdict) if one else None
            assert re.findall(r"\$\\(\w+)\$", cell) == ([expected] if expected else [])
            every = [each.value for each in found.values[metric].values()]
            assert ("textbf" in cell) == (found.values[metric][name].value == max(every))
            number = float(re.search(r"[\d.]+", cell)[0])
            assert number == pytest.approx(found.values[metric][name].value, abs=5e-5)
    assert [row[0] for row in rows] == ["system", "base", "poor", "nearly"]
    alone = compare(labels, {"base": good, "poor": poor}, ["map@3"])
    assert structure(of(alone))[0][1][1].startswith("\\textbf{")
    assert "$\\downarrow$ shown to be worse; bold: best value for this metric" in of(alone)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({}, "by a paired t-test, p corrected by Holm over 2 tests, level 0.05."),
        (
            {"correction": "none", "tests": "wilcoxon"},
            "test, p not corrected, level 0.05.",
        ),
        ({"margin": 0.25, "confidence": 0.9}, "The margin is 0.25, by two one-sided t-tests."),
    ],
)
def test_the_note_tells_test_correction_level_and_queries(options, note):
    labels, poor, good = made(2, 30)
    text = of(compare(labels, {"p_1": poor, "g": good}, ["map@3", "recall@2"], **options))
    assert "Means over 30 queries. Compared with p\\_1 by " in text
    assert note in text


def test_every_test_and_correction_has_its_words():
    assert set(TITLES) == {*TESTS}
    assert set(CORRECTIONS) == set(ALL_CORRECTIONS) - {"none"}


def test_slices_and_moved_queries_are_tables_too():
    labels, runs, _, _ = cut()
    found = rankmill.compare(labels, runs, ["map@3", "recall@2"], by=["country", "age"], moved=1)
    main, country, age, *more = structure(of(found))
    assert [row[0] for row in country] == ["country", "de", "", "fr", "", "it", "", "(unknown)", ""]
    assert [row[0] for row in age] == ["age", "9", "", "10", "", "30", ""]
    assert country[0] == ["country", "queries", "system", "map@3", "recall@2"]
    assert country[1][2:3] + country[2][2:3] == ["poor", "good"]
    assert len(main) == 3
    assert len(more) == 2
    told = "Slices: p is corrected over all 14 tests of slices, apart from the whole."
    assert told in of(found)


@pytest.mark.parametrize("count", [0, 1])
def test_without_values_the_table_says_that_nothing_is_tested(count):
    runs = {"a": {1: [1]} if count else {2: [9]}, "b": {1: [1]}}
    found = compare({1: [1]}, runs, ["map@3"], semantics={"unpredicted": "skip"})
    assert found.queries == count
    assert structure(of(found))[0][1:] == [["a", "1.000" * count], ["b", "1.000" * count]]


def hostile_comparison():
    labels, poor, good = made(3, 40)
    names = [one for one in (*HOSTILE, *ACTING) if "\udc80" not in one]
    runs = {name: table(poor if place % 2 else good) for place, name in enumerate(names)}
    shops = [names[place % len(names)] for place in range(len(labels))]
    labels = table(labels).append_column("\\a{_}", [shops])
    return rankmill.compare(labels, runs, ["map@3"], by="\\a{_}", moved=1), names


@pytest.mark.long
def test_names_do_not_act():
    found, names = hostile_comparison()
    rows = structure(of(found))[0]
    assert [read_back(row[0]) for row in rows[1:]] == [visible(name) for name in names]


NAMES = ["bm25_v2 & co #1 50% ~^\\{}", "naïve Łódź “x” €", "β-VAE ≤ 3 → Ω"]


def named_runs() -> tuple[pa.Table, dict[str, pa.Table]]:
    """Labels with slices of such names, and three systems."""
    labels, poor, good = made(3, 40)
    noisy = {q: (good if q % 3 else poor)[q] for q in labels}
    runs = dict(zip(NAMES, map(table, (poor, good, noisy)), strict=True))
    return table(labels).append_column(NAMES[0], pa.array([NAMES[q % 3] for q in labels])), runs


def compared(**options: Any) -> rankmill.Comparison:
    return rankmill.compare(*named_runs(), ["map@3", "first_rank"], by=NAMES[0], **options)


def negative() -> View:
    column = Column("x", "short")
    made_up = Table([column], [[Best(-0.5, "↓")], [Best(-2.5e-7)], [Best(float("inf"))]])
    return View(list, lambda: [made_up], lambda: made_up, dict)


KINDS: dict[str, Callable[[], Any]] = {
    "hostile": lambda: hostile_comparison()[0],
    "result": lambda: rankmill.evaluate(
        named_runs()[0], named_runs()[1][NAMES[0]], ["map@3", "gini"], by=NAMES[0]
    ),
    "results": lambda: rankmill.evaluate_runs(*named_runs(), ["map@3", "map(rel=1)@2:median"]),
    "comparison": lambda: compared(moved=1, margin=0.1),
    "leaderboard": lambda: compared(all_pairs=True),
    "verdict": lambda: rankmill.gate(
        named_runs()[0], named_runs()[1][NAMES[0]], ["map@3 >= 0.1", f"map@3[{NAMES[0]}=*] >= 0.9"]
    ),
    "trace": lambda: rankmill.explain(named_runs()[0], named_runs()[1][NAMES[0]], "map@3", 1),
    "evaluators": lambda: rankmill.explain_evaluators(*map(dict, made(3)[:2]), "map"),
}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex, and booktabs")
@pytest.mark.parametrize("kind", [*KINDS, "negative"])
def test_latex_compiles(kind: str, tmp_path: Path) -> None:
    body = write(negative(), "latex") if kind == "negative" else KINDS[kind]().to_latex()
    if kind == "hostile":
        body = "".join(one if one < "\u017e" else "?" for one in body)
    assert ("lualatex" in body) == (kind == "hostile")
    (tmp_path / "body.tex").write_text(body, "utf-8")
    asked = "".join(re.findall(r"^% .*?(\\usepackage\S*)", body, re.M))
    head = f"\\documentclass{{article}}{asked}"
    (tmp_path / "a.tex").write_text(f"{head}\\begin{{document}}\\input{{body}}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:].decode(errors="replace")
    assert b"Missing character" not in (tmp_path / "a.log").read_bytes()


def test_bold_reaches_numbers_in_mathematics() -> None:
    shown = [row[0] for row in structure(write(negative(), "latex"))[0][1:]]
    assert shown == [
        "\\textbf{\\boldmath$-0.5000$}\\rlap{\\textsuperscript{$\\downarrow$}}",
        "\\textbf{\\boldmath$-2.500 \\times 10^{-7}$}",
        "\\textbf{\\boldmath$\\infty$}",
    ]


def test_latex_tells_what_its_characters_need() -> None:
    def head(text: str) -> list[str]:
        shown = Table([Column("x")], [[text]])
        told = write(View(list, lambda: [shown], lambda: shown, dict), "latex")
        return [line for line in told.splitlines() if line.startswith("%")][1:]

    assert head("α, β ≤ ∞") == []
    assert head("é") == [r"% It needs \usepackage[T1]{fontenc} too."]
    assert head("é日本") == [
        "% pdflatex lacks 日 本: take lualatex or xelatex, and by fontspec a font that has them."
    ]


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_suffix_of_the_file_chooses_latex(command, tmp_path, monkeypatch, run_cli):
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    labels, poor, good = made(5, 20)
    for name, lists in {"labels": labels, "poor": poor, "good": good}.items():
        pq.write_table(table(lists), f"{name}.parquet")
    inputs = [f"{name}.parquet" for name in ("labels", "poor", "good")]
    assert run_cli(command, *inputs, "-m", "map@3", "-o", "a.tex").exit_code == 0
    printed = run_cli(command, *inputs, "-m", "map@3", "--format", "latex")
    text = Path("a.tex").read_text("utf-8")
    assert text == printed.stdout
    assert text.startswith("% This needs \\usepackage{booktabs}")
    assert structure(text)[0][0] == ["system", "map@3"] or command == "evaluate"
    assert run_cli("metrics", "--format", "latex").exit_code == 0
