"""Heads of columns explain themselves, in the same words in HTML and on a terminal."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import on_a_terminal
from rankmill.show.tables import HEADS, Column, Table, meaning
from rankmill.show.writers import html_text

LABELS = {query: [query % 7] for query in range(40)}
OLD = {query: [(query * 3) % 7, query % 7] for query in range(40)}
NEW = {query: [query % 7 if query % 3 else 9, 8] for query in range(40)}
HEAD = re.compile(r'<th scope="col"[^>]*?(?: title="([^"]*)")?>([^<]*)</th>')


@pytest.fixture(scope="module")
def compared() -> Any:
    return rankmill.compare(LABELS, {"old": OLD, "new": NEW}, "map@2", by="label_count")


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """The files of labels, old and new."""
    found = []
    for name, lists in (("labels", LABELS), ("old", OLD), ("new", NEW)):
        found.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(pa.table({"query": [*lists], "items": [*lists.values()]}), found[-1])
    return found


def test_html_has_the_meanings_as_titles(compared: Any) -> None:
    table = Table([Column("system"), Column("± 95%", "error")], [["<a>", 0.5]])
    half = 'left" title="half the width of the confidence interval of the value">± 95%</th>'
    assert half in html_text([table])
    assert '<th style="text-align: left">system</th>' in html_text([table])
    assert f'title="{meaning("relative")}">relative</th>' in compared.to_html()


def test_every_head_of_a_comparison_has_a_meaning(compared: Any) -> None:
    heads = re.findall(r"<th [^>]*?>(.*?)</th>", compared.to_html())
    lacking = {unescape(head).strip() for head in heads if not meaning(unescape(head))}
    assert lacking == {"map@2", "label_count", "old", "new", ""}
    assert {head.strip() for head in heads} & {"from old", "p (holm)", "relative", "won"}


def test_a_report_has_the_same_meanings(paths: list[str], run: Any) -> None:
    page = run("report", *paths, "-m", "map@2", "-o", "-")[1]
    found = {unescape(head): unescape(title) for title, head in HEAD.findall(page)}
    assert found["± 95%"] == meaning("± 95%")
    assert found["change"] == meaning("change")
    assert all(title == meaning(head) for head, title in found.items())


def test_a_leaderboard_has_the_same_meanings(paths: list[str], tmp_path: Path, run: Any) -> None:
    board = tmp_path / "board.html"
    given = ["compare", *paths, "-m", "map@2", "--by", "label_count", "--leaderboard", str(board)]
    given += ["--all-pairs"]
    assert run(*given)[0] == 0
    page = board.read_text("utf-8")
    found = {unescape(head): unescape(title) for title, head in HEAD.findall(page)}
    known = {head for head, title in found.items() if title}
    assert {"against", "difference", "p (holm)", "result", "queries", "from old"} <= known
    assert all(found[head] == meaning(head) for head in known)
    assert not any(map(meaning, {*found} - known))


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
def test_a_terminal_has_a_legend_and_a_pipe_has_none(paths: list[str], run: Any) -> None:
    given = ["compare", *paths, "-m", "map@2"]
    shown = " ".join(
        " ".join(on_a_terminal(f"from rankmill.cli import main\nmain({given})", 100)).split()
    )
    assert "± 95% half the width" in shown
    assert f" relative {meaning('relative')}" in shown
    assert meaning("won") not in shown  # says it itself
    assert "half the width" not in run(*given)[1]


def test_each_meaning_can_be_found() -> None:
    """No pattern hides behind an earlier one that takes all its heads."""
    for one in HEADS:
        example = re.sub(r"\(\s\.\+\)\?|\( \.\+\)\?", "", one).replace(".+", "95").replace("\\", "")
        assert meaning(example) == HEADS[one], one
