"""Pictures of comparisons: what is drawn where, names that do not act, the same bytes each time."""

import random
import re
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.compare.drawing import name_text, rendered, signed
from rankmill.compare.plots import MOST_ROWS, plot_comparison, plot_cutoffs
from rankmill.errors import UsageError
from rankmill.results.escaping import visible
from rankmill.version import install
from test_compare import compare, made, table
from test_escaping import HOSTILE
from test_package import run_python
from test_slices import cut

matplotlib = pytest.importorskip("matplotlib")

SIGNATURES = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}


def words(svg: bytes) -> list[str]:
    """The texts of a picture; fails if it is no XML."""
    root = ElementTree.fromstring(svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in texts]


def svg_of(found) -> bytes:
    return rendered(found.plot(), "a.svg")


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def labels_of(axes) -> list[str]:
    return [one.get_text() for one in axes.get_yticklabels()]


@pytest.fixture(scope="module")
def sliced():
    labels, runs, _, _ = cut()
    options = {"by": ["country", "age"], "margin": 0.01}
    return flat(rankmill.compare, labels, runs, ["map@3", "recall@2"], **options)


def test_each_metric_has_a_column_of_panels_with_its_numbers(sliced):
    figure = sliced.plot()
    by = ["by country (queries)", "by age (queries)"]
    ties = [sliced.differences[metric]["good"].tied for metric in sliced.values]
    told = [f"queries; {tied} ({tied / sliced.queries:.1%}) tie, not drawn" for tied in ties]
    expected = ["map@3", "recall@2", *told, by[0], by[0], by[1], by[1]]
    assert titles(figure) == expected
    wanted = "Difference from poor, with 95% intervals (of slices for all together)"
    assert figure.get_suptitle() == wanted
    places = {"map@3": figure.axes[4], "recall@2": figure.axes[5]}
    countries = [one for one in sliced.slices if one.by == ("country",)]
    assert labels_of(figure.axes[0]) == ["good"]
    assert labels_of(places["map@3"]) == [
        f"{one.value[0] or '(unknown)'} ({one.queries})" for one in countries
    ]
    assert not any(labels_of(places["recall@2"]))
    assert figure.axes[0].patches  # the margin
    fillings = {"better": "#0072B2", "worse": "#D55E00", "no difference shown": "white"}
    shapes = {"better": "^", "worse": "v", "no difference shown": "o"}
    for metric, axes in places.items():
        drawn = axes.lines[1:]  # the first is at 0
        for place, one in enumerate(countries):
            line, point = drawn[2 * place : 2 * place + 2]
            difference = one.differences[metric]["good"]
            assert [*line.get_xdata()] == [difference.low, difference.high]
            assert [*point.get_xdata()] == [difference.value]
            assert {*line.get_ydata(), *point.get_ydata()} == {place}
            assert point.get_marker() == shapes[difference.verdict]
            assert point.get_markerfacecolor() == fillings[difference.verdict]


def test_a_bin_holds_queries_that_are_won_or_lost_and_none_that_tie(sliced):
    figure = sliced.plot()
    for axes, metric in zip(figure.axes[2:4], sliced.values, strict=True):
        one = sliced.differences[metric]["good"]
        (bars,) = axes.patches
        counts, edges, _ = bars.get_data()
        counts = counts * (counts >= 1)  # what is below is the floor
        assert counts[edges[1:] <= 0].sum() == one.lost > 0
        assert counts[edges[:-1] >= 0].sum() == one.won > 0


def test_several_systems_share_a_panel_and_the_legend_tells_their_ties():
    labels, poor, good = made(4, 80)
    runs = {"poor": poor, "good": good, "same": dict(poor)}
    found = compare(labels, runs, ["map@3"])
    forest, spread = found.plot().axes
    assert labels_of(forest) == ["good", "same"]
    told = [one.get_text() for one in spread.get_legend().get_texts()]
    ties = {name: one.tied for name, one in found.differences["map@3"].items()}
    assert told == [f"good: {ties['good']} tie", "same: 80 tie"]
    many = {f"s{place}": poor if place % 2 else good for place in range(MOST_ROWS + 6)}
    figure = compare(labels, many, ["map@3"]).plot()
    assert titles(figure) == ["map@3; 5 more systems not drawn", "queries; first 6 of 45 systems"]
    assert len(labels_of(figure.axes[0])) == MOST_ROWS


def test_many_metrics_stand_in_rows_of_three():
    labels, poor, good = made(4, 20)
    metrics = ["map@3", "recall@2", "ndcg", "hit@1", "rprec"]
    figure = compare(labels, {"poor": poor, "good": good}, metrics).plot()
    assert [title for title in titles(figure) if "tie" not in title] == metrics
    rows = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    assert rows == [0] * 3 + [1] * 3 + [2] * 2 + [3] * 2


def test_of_many_slices_the_largest_are_drawn():
    labels, poor, good = made(4, 300)
    draw = random.Random(1)
    shops = [f"s{place}" if place < 100 else f"s{draw.randrange(9)}" for place in range(300)]
    labelled = table(labels).append_column("shop", pa.array(shops))
    runs = {"poor": table(poor), "good": table(good)}
    found = rankmill.compare(labelled, runs, ["map@3"], by="shop")
    assert len(found.slices) == 100
    panel = found.plot().axes[2]
    assert panel.get_title(loc="left") == "by shop (queries); 60 smaller not drawn"
    assert len(labels_of(panel)) == MOST_ROWS
    assert {f"s{place} " for place in range(9)} <= {one.split("(")[0] for one in labels_of(panel)}
    three = rankmill.compare(labelled, {**runs, "more": table(good)}, ["map@3"], by="shop")
    panel = three.plot().axes[2]
    assert panel.get_title(loc="left") == "by shop (queries); 80 smaller not drawn"
    assert labels_of(panel)[:2] == [
        f"s0 · {name} ({shops.count('s0')})" for name in ("good", "more")
    ]


@pytest.mark.parametrize("queries", [0, 1, 2])
def test_with_few_queries_there_is_still_a_picture(queries, tmp_path):
    runs = {
        "a": {q: [q] for q in range(queries)} or {9: [9]},
        "b": {q: [7] for q in range(queries)},
    }
    runs["b"] = runs["b"] or {8: [8]}
    labels = {0: [0], 1: [1], 8: [8], 9: [9]}
    found = compare(labels, runs, ["map@3"], semantics={"unpredicted": "skip"}, by="label_count")
    assert found.queries == queries
    found.plot(tmp_path / "a.png")
    shown = words(svg_of(found))
    assert ("no value" in shown) == (not queries)
    assert ("not tested" in shown) == (queries == 1)


def test_a_metric_that_is_no_mean_has_a_point_and_says_so():
    labels, poor, good = made(4, 30)
    scores = pa.array([[3.0, 2.0, 1.0]] * 30)
    runs = {
        n: table(one).append_column("score", scores) for n, one in {"p": poor, "g": good}.items()
    }
    found = rankmill.compare(table(labels), runs, ["gap", "map@3"], by="label_count")
    figure = found.plot()
    assert len(titles(figure)) == 6
    assert [*figure.axes[0].lines[-1].get_xdata()] == [found.differences["gap"]["g"].value]
    svg_of(found)
    alone = rankmill.compare(table(labels), runs, ["gap"])
    assert titles(alone.plot()) == ["gap"]


def test_with_weights_the_differences_of_queries_are_left_out(sliced):
    from rankmill.compare.sums import Column, Sums

    columns = sliced.state.whole.columns
    bare = {m: {n: Column(one.mean, None) for n, one in of.items()} for m, of in columns.items()}
    sums = Sums(sliced.queries, bare, {})
    figure = plot_comparison("poor", sliced.whole, [], sliced.settings, sums)
    assert titles(figure) == ["map@3", "recall@2"]


@pytest.mark.parametrize("format", SIGNATURES)
def test_the_same_comparison_gives_the_same_bytes(sliced, format, tmp_path):
    path = tmp_path / f"a.{format.upper()}"
    figure = sliced.plot(path)
    first = path.read_bytes()
    assert first.startswith(SIGNATURES[format])
    assert rendered(figure, path) == first
    assert b"CreationDate" not in first
    bounds = [one for axes in figure.axes for one in axes.get_position().bounds]
    assert bounds == pytest.approx([round(one, 5) for one in bounds], abs=1e-14)
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other", "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        sliced.plot(path)
        assert dict(matplotlib.rcParams) == before
    assert path.read_bytes() == first
    assert b"matplotlib.org/" not in first or format == "pdf"


def test_pyplot_is_not_used():
    code = """
import sys, pyarrow as pa, rankmill
labels = pa.table({"query": [1, 2], "items": [[1], [2]]})
rankmill.compare(labels, {"a": labels, "b": labels}, ["map@3"]).plot()
print([name in sys.modules for name in ("matplotlib", "matplotlib.pyplot")])
"""
    assert run_python(code).splitlines()[-1] == "[True, False]"


def test_names_are_text_that_does_not_act():
    labels, poor, good = made(3, 20)
    names = [
        "base $x$",
        "$\\frac{1}{2}$",
        "a_b^c",
        "<b>&amp;",
        *(n for n in HOSTILE if "\udc80" not in n),
    ]
    runs = {name: good if place else poor for place, name in enumerate(names)}
    shown = words(svg_of(compare(labels, runs, ["map@3"])))
    assert "Difference from base $x$, with 95% intervals" in shown
    for name in names[1:]:
        text = visible(name)
        short = text if len(text) <= 36 else f"{text[:17]}…{text[-18:]}"
        assert short.strip() in {one.strip() for one in shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a" * 40, "a" * 17 + "…" + "a" * 18), ("$", "\\$"), ("\n", "\\n"), ("", "")],
)
def test_name_text(text, shown):
    assert name_text(text) == shown


def test_ticks_have_signs():
    assert [signed(one) for one in (0.25, 0.0, -0.025)] == ["+0.25", "0", "−0.025"]


def test_curves_over_cutoffs():
    points = [(1, 0.25, 0.2, 0.3), (5, None, None, None), (10, 0.5, None, None)]
    figure = plot_cutoffs({"map": {"old": points, "$new$": []}, "ndcg": {"old": points[:1]}}, 0.9)
    assert titles(figure) == ["map", "ndcg"]
    first = figure.axes[0]
    (line,) = first.lines
    assert [*line.get_xdata()] == [1, 5, 10]
    assert [str(one) for one in line.get_ydata()] == ["0.25", "nan", "0.5"]
    shown = words(rendered(figure, "a.svg"))
    assert {"old", "$new$", "cutoff", "Value over cutoffs, with 90% intervals"} <= {*shown}
    assert shown.count("10") == 1
    assert words(rendered(plot_cutoffs({}), "a.svg")) == ["Value over cutoffs"]


def test_a_system_looks_the_same_over_all_metrics_and_those_not_drawn_are_told():
    points = [(1, 0.25, 0.2, 0.3), (5, 0.5, 0.4, 0.6)]
    curves = {"map": {"a": points, "b": points}, "ndcg": {"b": points}}
    first, second = plot_cutoffs(curves).axes
    assert second.lines[0].get_color() == first.lines[1].get_color()
    figure = plot_cutoffs({"map": {f"s{place}": points for place in range(9)}})
    assert figure.get_suptitle() == "Value over cutoffs; first 6 of 9 systems"
    assert len(figure.axes[0].lines) == 6


# The way of a picture to its file


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels, poor, good = made(5, 20)
    for name, lists in {"labels": labels, "poor": poor, "good": good}.items():
        pq.write_table(table(lists), f"{name}.parquet")
    return [f"{name}.parquet" for name in ("labels", "poor", "good")]


def test_the_command_writes_the_picture_with_its_other_files(files, run_cli):
    more = ["-o", "a.json", "--per-query", "q.parquet", "--plot", "a.svg"]
    assert run_cli("compare", *files, "-m", "map@3", *more).exit_code == 0
    assert all(Path(name).exists() for name in more[1::2])
    runs = {"poor": files[1], "good": files[2]}
    assert Path("a.svg").read_bytes() == svg_of(rankmill.compare(files[0], runs, ["map@3"]))
    url = Path("b.svg").resolve().as_uri()
    assert run_cli("compare", *files, "-m", "map@3", "--plot", url).exit_code == 0
    assert Path("b.svg").read_bytes() == Path("a.svg").read_bytes()


def test_all_files_are_written_or_none(files, run_cli, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(import_module("rankmill.compare.drawing"), "rendered", fail)
    before = {*Path.cwd().iterdir()}
    more = ["-o", "a.json", "--per-query", "q.parquet", "--plot", "a.svg"]
    assert run_cli("compare", *files, "-m", "map@3", *more).exit_code != 0
    assert {*Path.cwd().iterdir()} == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--plot", "a.jpg"], "cannot draw 'a.jpg': expected a name in .svg, .png or .pdf"),
        (["--plot", "a"], "cannot draw 'a': expected a name in .svg, .png or .pdf"),
        (["--plot", "none/a.svg"], "there is no folder"),
        (["--plot", "a.svg", "-o", "./a.svg"], "-o and --plot are the same file"),
        (["--plot", "a.svg", "--per-query", "a.svg"], "--per-query and --plot are the same file"),
        (["--plot", "labels.svg"], "it is one of the inputs"),
    ],
)
def test_what_is_wrong_is_told_before_any_work(options, told, files, run_cli, monkeypatch):
    monkeypatch.setattr(import_module("rankmill.compare.compare"), "compare", None)  # not come to
    Path("labels.svg").write_bytes(Path(files[0]).read_bytes())
    ran = run_cli("compare", "labels.svg", *files[1:], "--labels-as", "parquet", *options)
    assert ran.exit_code == 2
    assert told in ran.stderr


def test_without_matplotlib_the_error_says_what_to_install(files, run_cli, monkeypatch, sliced):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    told = install("plot")
    ran = run_cli("compare", *files, "--plot", "a.svg")
    assert ran.exit_code == 2
    assert told in ran.stderr
    with pytest.raises(UsageError, match=re.escape(told)):
        sliced.plot()
    with pytest.raises(UsageError, match=r"expected a name in \.svg"):
        sliced.plot("a.gif")


def test_a_notebook_shows_the_picture_once(sliced, tmp_path):
    figure = sliced.plot(tmp_path / "a.png")
    data, size = figure._repr_png_()
    assert data == (tmp_path / "a.png").read_bytes()
    assert [*size.values()] == [round(100 * one) for one in figure.get_size_inches()]
    helpers = import_module("matplotlib._pylab_helpers")
    assert helpers.Gcf.get_all_fig_managers() == []  # a notebook shows those of pyplot again
    assert figure._repr_html_() is None
