"""Every text for users in plain American English: spelling, style, and this project's own tics."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import rankmill
from pages import FENCE
from rankmill.cli import COMMANDS, main
from rankmill.cli.command import Command
from rankmill.config.options import OPTIONS
from repository import ROOT, SOURCE

sys.path.insert(0, str(ROOT / "scripts"))
from messages import messages

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "JOURNEY.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((SOURCE / "docs").glob("*.md")),
]
MODULES = ("arrays", "config", "kaggle", "metrics", "parts", "pytrec_eval", "spark")

# What other languages say in these words, and English does not.
TICS = [
    r"\ba (?:row|line|file|list|column|URL|number|gain|relevance|value|term) an? \w+",  # per query
    r"\bcomes? to\b",  # amounts to, adds up to
    r"\btells?\b(?! (?:\w+ )?apart)",  # shows, determines, warns
    r"\btold\b",
    r"\b(?:is|are) made of\b",
    r"\bfor having\b",
    r"\d %",  # 95%
    r"\bin (?:the place|that) of\b",  # instead of
    r"\bstands? (?:a second|above|at|before|below|between|in|there|twice|under)\b",
    r"\bbehind\b",  # after
    r"\b[Bb]eside\b",  # next to, with
    r"\bpassed over\b",  # ignored, skipped
    r"\bso that (?:an?|each|neither|no|none|one)\b",  # so
    r"(?<!there\s)(?<!There\s)\b(?:is|are) no\b(?! (?:longer|more)\b)",  # is not a
    r"\bexpected as many\b",  # the same number
    r"\bmends?\b",  # fix
    r"\b(?:its|their) (?:kin|like)\b",  # related metrics
    r"\bsomebody\b",
    r"\b(?:does|do) not go with\b",  # cannot be combined with
    r"(?<!such )\bas (?:500MB|map|recall|latin|model=|30d|365d|12h)",  # such as
]
SPACE = re.compile(r"(?<!\?)(?<!such) ")  # which may be the break of a line


def prose(text: str) -> str:
    """The running text, line for line: without blocks of code, each name in code its own word."""
    number = count()
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"`[^`\n]+`", lambda _: f"code{next(number)}", text)
    text = re.sub(r"\]\([^()\s]*\)", "]", text)
    return re.sub(r"^#+ (.*)$", r"\1.", text, flags=re.M)


def helps() -> str:
    """What helps say: of the program, of commands, and of options."""
    modules = [importlib.import_module(home) for home, _ in COMMANDS.values()]
    defined = (one for module in modules for one in vars(module).values())
    commands = [*dict.fromkeys(one for one in defined if isinstance(one, Command))]
    texts = [main.help, main.epilog, *(line for _, line in COMMANDS.values())]
    texts += [one.help for one in commands]
    texts += [text for one in commands for text in one._exits.values()]
    texts += [one.help for rows in OPTIONS.values() for one in rows]
    # Names of metrics, commands and options are no words.
    return re.sub(r"'[^'\n]+'|--[\w-]+", lambda one: f"`{one[0]}`", "\n\n".join(map(str, texts)))


def docstrings() -> str:
    """What help() shows of the public names and modules, without examples, types and tables."""
    found: dict[str, None] = {}
    for module in (rankmill, *(importlib.import_module(f"rankmill.{one}") for one in MODULES)):
        found[module.__doc__ or ""] = None
        for public in (getattr(module, name) for name in getattr(module, "__all__", ())):
            if inspect.ismodule(public) or not callable(public):
                continue
            members = vars(public).items() if inspect.isclass(public) else ()
            told = [one for name, one in members if not name.startswith("_")]
            told = [one for one in told if inspect.isroutine(one) or isinstance(one, property)]
            if (getattr(public, "__module__", None) or "").startswith("rankmill"):
                found.update(dict.fromkeys(one.__doc__ or "" for one in (public, *told)))
    text = "\n\n".join(map(inspect.cleandoc, found))
    text = re.sub(r"^(Examples|References)\n-+\n(?:.*\n)*?(?=\n\n\S|\Z)", "", text, flags=re.M)
    text = re.sub(r"^(>>> .*\n(?:.+\n)*)", "", text, flags=re.M)  # examples and what they print
    text = re.sub(r"(::\n\n)(?: {4}.*\n|\n)+", r"\1", text)
    text = re.sub(r"^(\w[\w, ]*) : .*$|^-+$|\.\. math::.*$", r"", text, flags=re.M)
    return re.sub(r"``([^`]+)``|\"[^\"\n]+\"", "`code`", text)


def errors() -> str:
    """What messages of errors say, with a name for what they fill in."""
    texts = [text for path in sorted(SOURCE.rglob("*.py")) for _, _, text in messages(path)]
    return re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "`x`", ".\n\n".join(texts))


def texts() -> Iterator[tuple[str, str]]:
    """Yield each name of a text and its prose."""
    for path in PAGES:
        name, text = path.stem, prose(path.read_text("utf-8"))
        if path.parent.name == "benchmarks":  # figures, written as they were measured
            name, text = "benchmarks-README", re.sub(r"^\|.*", "", text, flags=re.M)
        yield name, text
    yield "helps", prose(helps())
    yield "docstrings", prose(docstrings())
    yield "messages", prose(errors())


TEXTS = dict(texts())


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.md").write_text(text, "utf-8")
    return sorted(map(str, tmp_path.glob("*.md")))


def found(*command: str) -> str:
    """What a program finds wrong; it must find nothing, and not fail otherwise either."""
    ran = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr if ran.returncode or ran.stdout else ""


def test_spelling_is_american(files: list[str]) -> None:
    pytest.importorskip("codespell_lib")
    # A catalogue is what the option and the class are called.
    words = "catalogue,catalogues,penalising,modelling"  # the latter in titles of papers
    dictionaries = ("--builtin", "clear,rare,en-GB_to_en-US", "-L", words)
    assert found("codespell_lib", *dictionaries, *files) == ""


def test_style(files: list[str], tmp_path: Path) -> None:
    pytest.importorskip("proselint")
    config = tmp_path / "proselint.json"
    # Quotes are straight and dots three, as in code; "2 are plain" is no time of day.
    config.write_text(json.dumps({"checks": {"typography": False, "dates_times": False}}))
    assert found("proselint", "check", "--config", str(config), *files) == ""


@pytest.mark.parametrize("name", TEXTS)
def test_no_tics(name: str) -> None:
    tics = [
        f"{name}:{TEXTS[name].count(chr(10), 0, tic.start()) + 1}: {tic[0]}"
        for pattern in TICS
        for tic in re.finditer(SPACE.sub(r"[ \\t]*[ \\n][ \\t]*", pattern), TEXTS[name])
    ]
    assert tics == []
