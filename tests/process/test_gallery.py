"""The gallery has every kind of picture and page there is, each made by a command that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from movielens_paths import BESIDE_CHECKOUT
from rankmill.cli.run_outputs import _TEXTS
from rankmill.config.options import OPTIONS
from rankmill.engine.curves import cuts_of, has_curves
from rankmill.metrics.aggregate import axes_of
from rankmill.metrics.registry import examples, parse, parse_all
from repository import ROOT, SOURCE

sys.path.insert(0, str(ROOT / "scripts"))

DOCS = SOURCE / "docs"
PAGE = (DOCS / "report.md").read_text("utf-8")
SHOWN = re.findall(r"!\[[^\]]+\]\((gallery-[\w-]+\.(?:svg|png))\)", PAGE)


def commands() -> list[list[str]]:
    from gallery_pictures import commands

    return commands(PAGE)


def made() -> dict[str, str]:
    """Name of a picture or a page -> the command with the option that makes it."""
    found = {}
    for words in commands():
        for flag, value in pairwise(words):
            if flag.startswith("-") and value.endswith((".svg", ".html")):
                found[value] = f"{words[1]} {'--report' if flag == '-o' else flag}"
    return found


def test_each_option_that_makes_a_picture_or_a_page_is_shown_with_each_command() -> None:
    pages = {f"--{name}" for name, (what, _) in _TEXTS.items() if what == "HTML"}
    kinds = {
        f"{command} {flag}"
        for rows in OPTIONS.values()
        for one in rows
        for flag in one.flags
        if flag in pages or ".svg" in one.help.split(". ")[0]
        for command in one.on.split()
        if command != "spark"  # which draws what the others draw
    }
    assert {"history --plot", "gate --report", "evaluate --leaderboard"} <= kinds
    assert {*made().values()} == kinds


def test_each_kind_of_curve_is_shown() -> None:
    asked = [words[words.index("-m") + 1] for words in commands() if "--plot" in words[-2:]
             and words[1] == "evaluate"]  # fmt: skip
    metrics = [one.text for text in asked for one in parse_all([text])]
    assert has_curves(metrics)
    drawn = {axes_of(parse(text)) for text in metrics}
    assert drawn == {axes_of(parse(text)) for text in examples()}
    assert {"map", "recall", "iprec"} <= {*cuts_of(metrics)}


def test_each_picture_is_that_of_a_command_and_small() -> None:
    files = {path.name: path.stat().st_size for path in DOCS.glob("gallery-*")}
    assert {*SHOWN} == {*files}
    assert len(SHOWN) == len({*SHOWN})
    names = {f"gallery-{name}" if name.endswith(".svg") else f"gallery-{name[:-5]}.png"
             for name in made()}  # fmt: skip
    assert {*SHOWN} == names
    assert max(files.values()) < 150_000
    assert sum(files.values()) < 1_500_000


@pytest.mark.long
def test_the_pictures_are_those_of_today(tmp_path: Path) -> None:
    """Pages are pictures of a browser, whose fonts differ from one machine to the next."""
    ratings = os.environ.get("RANKMILL_MOVIELENS", str(BESIDE_CHECKOUT))
    if not os.path.exists(ratings):
        pytest.skip("no MovieLens ratings beside the checkout; RANKMILL_MOVIELENS can name a file")
    script = ROOT / "scripts" / "gallery_pictures.py"
    ran = subprocess.run([sys.executable, script, ratings, tmp_path], capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for name in SHOWN:
        assert (tmp_path / name).exists() or name.endswith(".png"), name
        if name.endswith(".svg"):
            assert (tmp_path / name).read_bytes() == (DOCS / name).read_bytes(), name
    rows = [line for line in ran.stdout.splitlines() if line.startswith("| ")][:5]
    assert "\n".join(rows) in PAGE
