"""README and the pages in plain American English: spelling, style, and this project's own tics."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from pages import FENCE
from repository import ROOT, SOURCE

PAGES = [ROOT / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
# Pages in older words: take a name out when its page is rewritten.
OLD_WORDS = {"arrays", "drop-ins", "memory", "metrics", "parts"}
READ = [path for path in PAGES if path.stem not in OLD_WORDS]

# What other languages say in these words, and English does not.
TICS = [
    r"\ba (?:row|line|file|list|column|URL) an? \w+",  # a row per query
    r"\bcomes? to\b",  # amounts to, adds up to
    r"\btells\b",  # shows, determines, warns
    r"\b(?:is|are) told\b",
    r"\b(?:is|are) made of\b",
    r"\bfor having\b",
    r"\d %",  # 95%
    r"\bin the place of\b",  # instead of
    r"\bstands? (?:above|at|before|behind|below|beside|between|for|in|there|under)\b",
    r"\bthose behind\b",  # those after them
    r"\bpassed over\b",  # ignored, skipped
    r"\bso that (?:an?|each|neither|no|none|one)\b",  # so
    r"(?<!there\s)\b(?:is|are) no (?:end|error|item|label|line|mean|part|problem|score)s?\b",
]


def prose(text: str) -> str:
    """The running text, line for line: without blocks of code, each name in code its own word."""
    number = count()
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"`[^`\n]+`", lambda _: f"code{next(number)}", text)
    return re.sub(r"^#+ (.*)$", r"\1.", text, flags=re.M)


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    for path in READ:
        (tmp_path / path.name).write_text(prose(path.read_text("utf-8")), "utf-8")
    return sorted(map(str, tmp_path.glob("*.md")))


def found(*command: str) -> str:
    """What a program finds wrong; it must find nothing, and not fail otherwise either."""
    ran = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr if ran.returncode or ran.stdout else ""


def test_spelling_is_american(texts: list[str]) -> None:
    pytest.importorskip("codespell_lib")
    # A catalogue is what the option and the class are called.
    dictionaries = ("--builtin", "clear,rare,en-GB_to_en-US", "-L", "catalogue")
    assert found("codespell_lib", *dictionaries, *texts) == ""


def test_style(texts: list[str], tmp_path: Path) -> None:
    pytest.importorskip("proselint")
    config = tmp_path / "proselint.json"
    # Quotes are straight and dots three, as in code.
    config.write_text(json.dumps({"checks": {"typography": False}}))
    assert found("proselint", "check", "--config", str(config), *texts) == ""


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_no_tics(path: Path) -> None:
    text = prose(path.read_text("utf-8"))
    tics = [
        f"{path.name}:{text.count(chr(10), 0, tic.start()) + 1}: {tic[0]}"
        for pattern in TICS
        for tic in re.finditer(pattern.replace(" ", r"\s+"), text)
    ]
    assert tics == []


@pytest.mark.parametrize("name", sorted(OLD_WORDS))
def test_pages_in_older_words_exist(name: str) -> None:
    assert (SOURCE / "docs" / f"{name}.md").is_file()
