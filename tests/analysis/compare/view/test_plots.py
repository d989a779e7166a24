"""Pictures of comparisons: what is drawn where, names that do not act, the same bytes each time."""

import random
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from browser import FOUND, browser
from cuts import cut
from flat import flat
from hostile_names import HOSTILE
from rankmill.analysis.compare.view.plots import (
    MOST_ROWS,
    columns_of,
    plot_comparison,
)
from rankmill.errors import UsageError
from rankmill.io.inert_text import brief, visible
from rankmill.show import charts
from rankmill.show.marks import COLOURS, AreaMark, Marker, Stroke, Text
from rankmill.show.pictures import Panel, Picture, picture_of_lines, text_width
from systems import compare, made, table


def words(svg: bytes | str) -> list[str]:
    """The texts of a picture; fails if it is no XML."""
    root = ElementTree.fromstring(svg)
    found = root.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in found]


def svg_of(found) -> bytes:
    return f"{found.plot().svg()}\n".encode()


def panels(found) -> list[list[Panel]]:
    """The columns of panels of a comparison."""
    return columns_of(found.whole, found.slices, found.settings, found.state.whole)


def titles(found) -> list[list[str]]:
    return [[one.title for one in column] for column in panels(found)]


def labels_of(panel: Panel) -> list[str]:
    return [text for _, text in panel.names]


def of(kind: type, panel: Panel) -> list:
    return [one for one in panel.drawing.marks if isinstance(one, kind)]


@pytest.fixture(scope="module")
def sliced():
    labels, runs, _, _ = cut()
    options = {"by": ["country", "age"], "margin": 0.01}
    return flat(rankmill.compare, labels, runs, ["map@3", "recall@2"], **options)


def test_each_metric_has_a_column_of_panels_with_its_numbers(sliced):
    ways = ["by country (queries)", "by age (queries)"]
    for metric, (whole, spread, by_country, by_age) in zip(
        sliced.values, panels(sliced), strict=True
    ):
        tied = sliced.differences[metric]["good"].tied
        told = f"queries; {tied} ({tied / sliced.queries:.1%}) tie, not drawn"
        assert [whole.title, spread.title] == [metric, told]
        assert [by_country.title, by_age.title] == ways
        assert labels_of(whole) == ["good"]
        assert of(AreaMark, whole)  # the margin
        countries = [one for one in sliced.slices if one.by == ("country",)]
        assert labels_of(by_country) == [
            f"{one.value[0] or '(unknown)'} ({one.queries})" for one in countries
        ]
        differences = [one.differences[metric]["good"] for one in countries]
        intervals_are_drawn(by_country, differences)
    wanted = "Difference from poor, with 95% intervals (of slices for all together)"
    shown = words(sliced.plot().svg())
    assert shown[0] == sliced.plot().title == wanted
    assert shown.count("de (66)") == 1  # the names of the first metric serve the second
    assert {"better", "worse"} <= {*shown[-3:]}


def intervals_are_drawn(panel: Panel, differences: list) -> None:
    """Hold a panel to the differences: shapes tell verdicts, and places are linear in values."""
    shapes = {"better": "up", "worse": "down", "no difference shown": "circle"}
    roles = {"better": "s0 good", "worse": "s0 bad", "no difference shown": "s0 even hollow"}
    lines = [one for one in of(Stroke, panel) if one.width == 2]
    points = of(Marker, panel)
    assert len(lines) == len(points) == len(differences)
    pairs = []
    for place, line, point, one in zip(panel.names, lines, points, differences, strict=True):
        assert (point.shape, point.role) == (shapes[one.verdict], roles[one.verdict])
        assert {y for _, y in line.points} == {point.y} == {place[0]}
        (low, _), (high, _) = line.points
        pairs += [(one.low, low), (one.value, point.x), (one.high, high)]
    (a, x), (b, z) = min(pairs), max(pairs)
    for value, across in pairs:
        assert across == pytest.approx(x + (z - x) * (value - a) / (b - a))
    assert 0 < x < z < 100


def test_a_bin_holds_queries_that_are_won_or_lost_and_none_that_tie(sliced):
    for metric, (_, spread, *_) in zip(sliced.values, panels(sliced), strict=True):
        one = sliced.differences[metric]["good"]
        bars = of(AreaMark, spread)
        ticks = {text.text: text.y for text in of(Text, spread)}
        middle = (11.0 + 98.0) / 2
        ground, decade = max(bar.top + bar.high for bar in bars), ticks["1"] - ticks["10"]
        # Heights are logarithms: the foot is at 0.6 of a query.
        base = bars[0].top + bars[0].high - (ticks["1"] - 4)
        counts = [round(10 ** ((bar.high - base) / decade)) for bar in bars]
        assert all(bar.top + bar.high == pytest.approx(ground) for bar in bars)
        sides = [bar.left + bar.wide / 2 < middle for bar in bars]
        lost = sum(count for count, left in zip(counts, sides, strict=True) if left)
        assert (lost, sum(counts) - lost) == (one.lost, one.won)
        assert min(one.lost, one.won) > 0


def test_several_systems_share_a_panel_and_the_legend_tells_their_ties():
    labels, poor, good = made(4, 80)
    runs = {"poor": poor, "good": good, "same": dict(poor)}
    found = compare(labels, runs, ["map@3"])
    ((forest, spread),) = panels(found)
    assert labels_of(forest) == ["good", "same"]
    ties = {name: one.tied for name, one in found.differences["map@3"].items()}
    assert [text for _, text in spread.keys] == [f"good: {ties['good']} tie", "same: 80 tie"]
    many = {f"s{place}": poor if place % 2 else good for place in range(MOST_ROWS + 6)}
    found = compare(labels, many, ["map@3"])
    assert titles(found) == [["map@3; 5 more systems not drawn", "queries; first 6 of 45 systems"]]
    assert len(labels_of(panels(found)[0][0])) == MOST_ROWS
    found.plot().svg()


def test_where_no_query_differs_the_panel_says_so():
    labels, poor, _ = made(4, 20)
    found = compare(labels, {"poor": poor, "same": dict(poor)}, ["map@3"])
    assert "no query differs" in words(svg_of(found))


def test_many_metrics_stand_in_rows_of_three():
    labels, poor, good = made(4, 20)
    metrics = ["map@3", "recall@2", "ndcg", "hit@1", "rprec"]
    marks = compare(labels, {"poor": poor, "good": good}, metrics).plot().marks
    heads = [one for one in marks if isinstance(one, Text) and one.role == "head"]
    assert [one.text for one in heads] == metrics
    assert len({one.y for one in heads[:3]}) == len({one.y for one in heads[3:]}) == 1
    assert heads[0].x == heads[3].x < heads[1].x < heads[2].x
    assert heads[0].y < heads[3].y


def test_of_many_slices_the_largest_are_drawn():
    labels, poor, good = made(4, 300)
    draw = random.Random(1)
    shops = [f"s{place}" if place < 100 else f"s{draw.randrange(9)}" for place in range(300)]
    labelled = table(labels).append_column("shop", pa.array(shops))
    runs = {"poor": table(poor), "good": table(good)}
    found = rankmill.compare(labelled, runs, ["map@3"], by="shop")
    assert len(found.slices) == 100
    panel = panels(found)[0][2]
    assert panel.title == "by shop (queries); 60 smaller not drawn"
    assert len(labels_of(panel)) == MOST_ROWS
    assert {f"s{place} " for place in range(9)} <= {one.split("(")[0] for one in labels_of(panel)}
    three = rankmill.compare(labelled, {**runs, "more": table(good)}, ["map@3"], by="shop")
    panel = panels(three)[0][2]
    assert panel.title == "by shop (queries); 80 smaller not drawn"
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
    found.plot(tmp_path / "a.svg")
    shown = words((tmp_path / "a.svg").read_bytes())
    assert ("no value" in shown) == (not queries)
    assert ("not tested" in shown) == (queries == 1)


def test_a_metric_that_is_no_mean_has_a_point_and_says_so():
    labels, poor, good = made(4, 30)
    scores = pa.array([[3.0, 2.0, 1.0]] * 30)
    runs = {
        n: table(one).append_column("score", scores) for n, one in {"p": poor, "g": good}.items()
    }
    found = rankmill.compare(table(labels), runs, ["gap", "map@3"], by="label_count")
    gap, mean = panels(found)
    assert [len(gap), len(mean)] == [3, 3]
    assert gap[1].title == "no mean over queries"
    assert not gap[1].drawing.marks
    assert len(of(Marker, gap[0])) == 1
    svg_of(found)
    alone = rankmill.compare(table(labels), runs, ["gap"])
    assert titles(alone) == [["gap"]]


def test_with_weights_the_differences_of_queries_are_left_out(sliced):
    from rankmill.analysis.compare.differences.comparison_state import Sums, SystemColumn

    columns = sliced.state.whole.columns
    bare = {
        m: {n: SystemColumn(one.mean, None) for n, one in of.items()} for m, of in columns.items()
    }
    sums = Sums(sliced.queries, bare)
    found = columns_of(sliced.whole, [], sliced.settings, sums)
    assert [[one.title for one in column] for column in found] == [["map@3"], ["recall@2"]]
    plot_comparison("poor", sliced.whole, [], sliced.settings, sums).svg()


def test_the_same_comparison_gives_the_same_bytes(sliced, tmp_path):
    picture = sliced.plot(tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_text("utf-8") == f"{picture.svg()}\n"
    assert sliced.plot().svg() == picture.svg()
    assert picture.svg().startswith("<svg ")


def test_names_are_text_that_does_not_act():
    labels, poor, good = made(3, 20)
    hostile = [name for name in HOSTILE if "\udc80" not in name]
    names = ["base $x$", "$\\frac{1}{2}$", "a_b^c", "<b>&amp;", "</text><script>", *hostile]
    runs = {name: good if place else poor for place, name in enumerate(names)}
    picture = compare(labels, runs, ["map@3"]).plot()
    shown = {one.strip() for one in words(picture.svg())}
    assert "Difference from base $x$, with 95% intervals" in shown
    for name in names[1:]:
        text = brief(name, 36)
        assert len(text) <= 36
        assert text.strip() in shown
        assert len(visible(name)) > 36 or text == visible(name)


def test_curves_over_cutoffs():
    first = {1.0: (0.25, (0.2, 0.3))}
    points = first | {5.0: (None, None), 10.0: (0.5, None)}
    lines = {"map": {"old": points, "$new$": {}}, "ndcg": {"old": first}}
    picture = picture_of_lines(lines, "Value by cutoff")
    shown = words(picture.svg())
    assert {"map", "ndcg", "old", "$new$", "1", "5", "10"} <= {*shown}
    assert shown[0] == "Value by cutoff"
    markers = [one for one in picture.marks if isinstance(one, Marker) and one.role == "s0"]
    first, last, other, _ = markers  # the last is in the legend
    assert first.x < last.x < other.x
    assert first.y > last.y
    upright = [
        one
        for one in picture.marks
        if isinstance(one, Stroke) and len({x for x, _ in one.points}) < 2
    ]
    assert len(upright) == 2  # the intervals; there is no line over the gap
    assert not [
        one
        for one in picture.marks
        if isinstance(one, Stroke) and one.width == 2 and one not in upright
    ]
    assert words(picture_of_lines({}, "Value by cutoff").svg()) == ["Value by cutoff"]


def test_a_system_looks_the_same_over_all_metrics_and_those_not_drawn_are_told():
    points = {1.0: (0.25, (0.2, 0.3)), 5.0: (0.5, (0.4, 0.6))}
    curves = {"map": {"a": points, "b": points}, "ndcg": {"b": points}}
    marks = picture_of_lines(curves, "Value by cutoff").marks
    paths = [(one.role, one.dash) for one in marks if isinstance(one, Stroke) and one.dash]
    assert paths == [("s1", "6 3")] * 2
    many = {"map": {f"s{place}": points for place in range(9)}}
    picture = picture_of_lines(many, "Value by cutoff")
    assert picture.title == "Value by cutoff; first 6 of 9 systems"
    markers = [one for one in picture.marks if isinstance(one, Marker)]
    assert len({(one.role, one.shape) for one in markers}) == 6
    assert len(markers) == 6 * 3


@pytest.mark.parametrize("least", [0.25, 1.1e-5, 1.1e-9, 123_456.0])
def test_long_numbers_of_an_axis_stand_beside_the_drawing(least):
    drawing = charts.lines([charts.Series("s0", [least, 1.3 * least])], ["1", "2"], "", "")
    left = min(one.points[0][0] for one in drawing.marks if isinstance(one, Stroke))
    numbers = [one for one in drawing.marks if isinstance(one, Text) and one.x == 0]
    assert len(numbers) > 2
    assert max(text_width(one.text) for one in numbers) <= 300 * left / 100 + 2


@pytest.mark.skipif(FOUND is None, reason="Chromium is not installed")
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser_texts_neither_touch_nor_leave_the_picture(dark, sliced, tmp_path):
    labels, poor, good = made(4, 80)
    runs = {"poor": poor, "W" * 40: good, "日本語" * 9: dict(poor), "c": good}
    wide = compare(labels, runs, ["map@3", "first_rank@3", "num_ret", "ndcg", "hit@1"])
    with browser() as tab:
        for number, found in enumerate((sliced, wide)):
            path = tmp_path / f"{number}.svg"
            found.plot(path)
            tab.open(path, 1400, dark=dark)
            boxes = tab.value(
                "[...document.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()])"
                ".map(([t, b]) => [t, b.x, b.y, b.x + b.width, b.y + b.height])"
            )
            width, height = found.plot()[1:3]
            for text, left, top, right, bottom in boxes:
                assert left >= 0, text
                assert top >= 0, text
                assert right <= width, text
                assert bottom <= height, text
            rows = sorted(boxes, key=lambda one: (round(one[4]), one[1]))
            for one, other in pairwise(rows):
                assert round(one[4]) != round(other[4]) or one[3] <= other[1] + 0.5, (one, other)
            ground = tab.value("getComputedStyle(document.querySelector('rect.card')).fill")
            channels = [int(COLOURS["card"][dark][i : i + 2], 16) for i in (1, 3, 5)]
            assert ground == f"rgb({', '.join(map(str, channels))})"


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

    monkeypatch.setattr(Picture, "svg", fail)
    before = {*Path.cwd().iterdir()}
    more = ["-o", "a.json", "--per-query", "q.parquet", "--plot", "a.svg"]
    assert run_cli("compare", *files, "-m", "map@3", *more).exit_code != 0
    assert {*Path.cwd().iterdir()} == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--plot", "a.jpg"], "cannot draw 'a.jpg': expected a name in .svg"),
        (["--plot", "a"], "cannot draw 'a': expected a name in .svg"),
        (["--plot", "none/a.svg"], "there is no folder"),
        (["--plot", "a.svg", "-o", "./a.svg"], "-o and --plot are the same file"),
        (["--plot", "a.svg", "--per-query", "a.svg"], "--per-query and --plot are the same file"),
        (["--plot", "labels.svg"], "it is one of the inputs"),
    ],
)
def test_what_is_wrong_is_told_before_any_work(options, told, files, run_cli, monkeypatch):
    monkeypatch.setattr(
        import_module("rankmill.analysis.compare.compare"), "compare", None
    )  # not come to
    Path("labels.svg").write_bytes(Path(files[0]).read_bytes())
    ran = run_cli("compare", "labels.svg", *files[1:], "--labels-as", "parquet", *options)
    assert ran.exit_code == 2
    assert told in ran.stderr


@pytest.mark.parametrize("path", ["a.png", "a.pdf"])
def test_other_pictures_are_converted_from_svg(files, run_cli, sliced, path):
    ran = run_cli("compare", *files, "--plot", path)
    assert ran.exit_code == 2
    told = f"pictures are .svg; convert one to {path[1:]} with Inkscape, rsvg-convert or CairoSVG"
    assert told in ran.stderr
    with pytest.raises(UsageError, match=told):
        sliced.plot().save(path)
    assert run_cli("compare", *files, "--plot", "a.svg").exit_code == 0
    with pytest.raises(UsageError, match=r"expected a name in \.svg"):
        sliced.plot("a.gif")


def test_a_notebook_shows_the_picture(sliced):
    picture = sliced.plot()
    assert picture._repr_svg_() == picture.svg()
    assert "height: auto" not in picture.svg()  # of which CairoSVG makes an empty picture
    root = ElementTree.fromstring(picture.svg())
    (style,) = root.iter("{http://www.w3.org/2000/svg}style")
    rules = [one for one in style.text.splitlines() if one.endswith("}") and one != "}"]
    # They are for this picture, and for no other of the notebook.
    assert rules
    assert all(one.startswith(".rankmill") for one in rules)
    assert repr(picture).startswith("<Picture: Difference from poor")


def test_intervals_of_very_few_queries_do_not_widen_the_axis():
    labels, poor, good = made(3, 40)
    good = {q: good[q] if q % 2 else poor[q] for q in labels}
    by = pa.table({"query": list(labels), "pair": [f"p{q // 2:02}" for q in labels]})
    found = rankmill.compare(table(labels), {"a": table(poor), "b": table(good)}, "dcg@3", by=by)
    widest = max(one.differences["dcg@3"]["b"].high or 0 for one in found.slices)
    whole = found.differences["dcg@3"]["b"]
    assert widest > 100 * whole.high
    ((_, _, slices),) = panels(found)
    ends = [float(t.text.replace("\u2212", "-")) for t in of(Text, slices) if t.text[-1].isdigit()]
    assert 10 * whole.high <= max(ends) <= 2 * 10 * whole.high
    assert [t.text for t in of(Text, slices)].count("▸") > 10  # what is beyond is told
    assert len(of(Marker, slices)) == len(found.slices)
