"""`rankmill docs --html`: a small site that needs no network, written whole or not at all."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from browser import CONTRAST, FOUND, browser
from rankmill.cli import manual, site

# Elements that reach beyond the window, but for those in a box that scrolls.
BEYOND = """[...document.querySelectorAll('body *')]
    .filter(one => !one.closest('.scroll, pre'))
    .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => one.outerHTML.slice(0, 100))"""


SEARCHED = [
    "the ties",
    "duplicate rows in my submission",
    "slack alert",
    "leading zeros",
    "x2 holm",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "site"
    site.write_site(str(folder), manual.pages())
    return folder


def test_the_command_writes_all_pages(run: Any, tmp_path: Path, written: Path) -> None:
    folder = tmp_path / "site"
    code, shown, error = run("docs", "--html", str(folder))
    assert (code, error) == (0, "")
    assert shown == f"wrote {len(manual.pages()) + 1} pages: open {folder / 'index.html'}\n"
    assert {one.stem for one in folder.glob("*.html")} == {"index", *manual.pages()}
    for one in written.iterdir():
        assert (folder / one.name).read_bytes() == one.read_bytes()


def test_links_lead_somewhere_and_nothing_is_fetched(written: Path) -> None:
    anchors = {
        one.name: {*re.findall(r' id="([^"]+)"', one.read_text("utf-8"))}
        for one in written.glob("*.html")
    }
    for name in anchors:
        text = (written / name).read_text("utf-8")
        links = [html.unescape(one) for one in re.findall(r'(?:href|src|action)="([^"]*)"', text)]
        assert len(links) > 25
        for link in links:
            page, _, anchor = link.partition("#")
            assert not page or (written / page).is_file(), link
            assert not anchor or anchor in anchors[page or name], link
        assert "url(" not in text
        assert " style=" not in text
        assert text.count("default-src &#39;none&#39;") == 1


def test_every_section_is_in_the_index_with_its_link(written: Path) -> None:
    text = (written / "index.html").read_text("utf-8")
    rows = json.loads(text.partition('id="data">')[2].partition("</script>")[0])["sections"]
    assert len(rows) == sum(len([*manual.passages(*one)]) for one in manual.pages().items())
    for page, title, heading, anchor, *_ in rows:
        shown = (written / f"{page}.html").read_text("utf-8")
        assert f"<title>{html.escape(title)} · rankmill</title>" in shown
        assert f' id="{anchor}">' in shown, (page, heading)


def test_pages_are_escaped(tmp_path: Path) -> None:
    hostile = "# <script>alert(1)</script>\n\nAbout `</script>` <b>.\n\n[x](javascript:alert(1))\n"
    hostile += "\n![A picture](missing.png)\n"
    site.write_site(str(tmp_path), {**manual.pages(), "start": hostile})
    for name in ("start", "index", "gate"):
        text = (tmp_path / f"{name}.html").read_text("utf-8")
        assert "<script>alert" not in text
        assert "<b>" not in text
        assert 'href="javascript' not in text
        assert text.count("</script>") == 2 * (name == "index")
    assert "<p>A picture</p>" in (tmp_path / "start.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("missing/site", "cannot write to missing/site: No such file or directory"),
        ("file", "cannot write to file"),
        ("s3://bucket/site", "--html is the URL s3://bucket/site"),
        ("", "--html is empty"),
    ],
)
def test_a_folder_that_cannot_be_written_is_wrong_usage(
    folder: str, message: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    code, shown, error = run("docs", "--html", folder)
    assert (code, shown) == (2, "")
    assert message in error
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert Path("file").read_text() == "kept"


def test_nothing_is_written_where_one_file_cannot_be(run: Any, tmp_path: Path) -> None:
    (tmp_path / "gate.html").mkdir()
    assert run("docs", "--html", str(tmp_path))[0] == 2
    assert [one.name for one in tmp_path.iterdir()] == ["gate.html"]


@pytest.mark.skipif(FOUND is None, reason="no Chromium to look at pages with")
def test_pages_fit_a_phone_and_the_search_works_from_files(written: Path) -> None:
    with browser() as one:
        for path in sorted(written.glob("*.html")):
            one.open(path, 390)
            assert one.value(BEYOND) == [], path.name
            assert one.value(CONTRAST) == {}, path.name
            one.open(path, 390, dark=True)
            assert one.value(CONTRAST) == {}, path.name
        one.open(written / "gallery.html", 1200, dark=True)
        assert one.value("[...document.images].filter(one => !one.naturalWidth).length") == 0
        before = one._loaded
        one.value("q.value = 'holm [('; document.forms[0].requestSubmit()")
        while one._loaded == before:
            one._read()
        assert "with some of these words" in one.value("found.innerText")
        one.value("q.value = 'xyzzy[('; q.dispatchEvent(new Event('input'))")
        assert one.value("found.innerText") == "No section has any of these words."
        for typed in SEARCHED:
            one.value(f"q.value = {typed!r}; q.dispatchEvent(new Event('input'))")
            links = one.value("[...found.querySelectorAll('a')].map(one => one.innerText)")
            words = typed.split()
            best = manual.search(manual.pages(), words) or manual.search(
                manual.pages(), words, some=True
            )
            headings = [each.heading.replace("`", "") for each in best[:30]]
            assert [link.rpartition(": ")[2] for link in links] == [
                heading.rpartition(": ")[2] for heading in headings
            ]
        one.value("q.value = 'holm corr'; q.dispatchEvent(new Event('input'))")
        assert "Comparing systems: Which test to use" in one.value("found.innerText")
        assert one.value("lists.hidden")
        assert one.messages == []
        assert {url.partition(":")[0] for url in one.requests} == {"file"}
