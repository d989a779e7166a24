"""The page in a real Chromium: nothing overflows, nothing is asked for, and everybody can read it.

``RANKMILL_AXE`` names the file axe.min.js of axe-core, which then checks each page too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rankmill
from browser import CONTRAST, FOUND, Browser, browser
from flat import flat
from page_data import HOSTILE, data
from rankmill.analysis.compare.view.details import evaluate_in_detail
from rankmill.nightly.gate.gate import gate
from rankmill.nightly.report import lists_of, page
from rankmill.nightly.report.pages import leaderboard_page

pytestmark = pytest.mark.skipif(FOUND is None, reason="no Chromium to look at pages with")

AXE = os.environ.get("RANKMILL_AXE")
# Elements that reach beyond the window, but for those in a box that scrolls.
BEYOND = """[...document.querySelectorAll('body *')]
    .filter(one => !one.closest('.scroll') && one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => one.outerHTML.slice(0, 100))"""
# Boxes that a reader would have to scroll; those of folded tables are not shown.
SCROLLED = """[...document.querySelectorAll('.scroll')]
    .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText.slice(0, 80))"""
VIOLATIONS = """axe.run(document).then(found => found.violations.map(
    one => one.id + ': ' + one.nodes[0].html.slice(0, 200)))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a page of each kind."""
    made, folder = data(), tmp_path_factory.mktemp("pages")
    history = {m: [(day, 0.3 + day / 1e3, 0.01, "held") for day in range(30)] for m in ("map@5",)}
    runs = {"baseline": made["old"], "candidate": made["new"]}
    rules = ["map@5 >= 0.1", "map@5[group=*] drop <= 3% confidence 0.95", "repeated_items == 0"]
    verdict = flat(gate, made["labels"], made["new"], rules, baseline=made["old"],
                   metrics=["ndcg@5", "gap"], details=True)  # fmt: skip
    lists = lists_of(verdict.details, {"labels": made["labels"], "runs": runs})
    results, details = evaluate_in_detail(
        made["labels"], {"new": made["new"]}, ["map@5", "hit@1", "gap"]
    )
    ids = {one: [one] for one in HOSTILE}
    others = {one: ["other", one] for one in HOSTILE}
    systems = {"<script>" * 20: ids, "\u202e" * 99: others}
    hostile = flat(rankmill.compare, ids, systems, ["map@3"], details=True)
    texts = {
        "verdict": page(
            verdict, lists=lists, history=history, command="rankmill gate " + "x" * 500
        ),
        "result": page(results["new"], details=details),
        "hostile": page(hostile, lists=lists_of(hostile.details, {"labels": ids, "runs": systems})),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.mark.parametrize(
    ("width", "dark", "media"),
    [
        *((1400, False, "screen"), (1400, True, "screen"), (390, False, "screen")),
        *((390, True, "screen"), (800, False, "print")),
    ],
)
@pytest.mark.parametrize("name", ["verdict", "result", "hostile"])
def test_a_page_fits_and_asks_for_nothing(
    name: str, width: int, dark: bool, media: str, pages: dict[str, Path], tab: Browser
) -> None:
    tab.messages.clear()
    tab.requests.clear()
    tab.open(pages[name], width, dark=dark, media=media)
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert tab.value(BEYOND) == []
    assert tab.value(SCROLLED) == []
    assert tab.value(CONTRAST) == {}
    assert tab.messages == []
    assert tab.requests == [pages[name].as_uri()]
    assert tab.value("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    light = tab.value("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(17, 21, 26)") == (dark and media == "screen")
    if AXE:
        tab.value(Path(AXE).read_text("utf-8") + ";0")
        assert tab.value(VIOLATIONS) == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_of_pairs_can_be_read(dark: bool, tab: Browser, tmp_path: Path) -> None:
    made = data()
    runs = {"old": made["old"], "new": made["new"]}
    found = rankmill.compare(made["labels"], runs, "map@5,hit@1", by=["group"], all_pairs=True)
    (tmp_path / "board.html").write_text(leaderboard_page(found), "utf-8")
    tab.open(tmp_path / "board.html", 390, dark=dark)
    assert tab.value(BEYOND) == []
    assert tab.value(CONTRAST) == {}
    # Both kinds of text are looked at: a soft one, and one of a drawing.
    tab.open(_drawing(tmp_path, "#8a8a8a"), 390)
    assert len(tab.value(CONTRAST)) == 2
    tab.open(_drawing(tmp_path, "#666666"), 390)
    assert tab.value(CONTRAST) == {}


def _drawing(folder: Path, color: str) -> Path:
    """A page with two texts of a color, one of which stands on a dark rectangle on white."""
    text = f"""<p style="color: {color}">one</p><svg width="200" height="100">
        <rect width="200" height="100" fill="white"/><rect width="9" height="9" fill="black"/>
        <text x="20" y="50" fill="{color}">two</text></svg>"""
    (folder / "drawing.html").write_text(text, "utf-8")
    return folder / "drawing.html"


def test_a_script_in_a_page_would_be_refused(
    pages: dict[str, Path], tab: Browser, tmp_path: Path
) -> None:
    text = pages["result"].read_text("utf-8")
    bad = tmp_path / "bad.html"
    bad.write_text(text.replace("</main>", "<script>document.title = 'ran'</script></main>"))
    tab.open(bad, 800)
    assert tab.value("document.title") != "ran"
    assert tab.messages
