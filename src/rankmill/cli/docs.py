"""`rankmill docs`: the pages about rankmill, which are Markdown files of the package."""

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.process import is_terminal

KINDS: dict[str, tuple[str, ...]] = {
    "Start here": ("start", "data", "numbers"),
    "How to": (
        *("comparing", "gate", "nightly", "report", "notebooks"),
        *("kaggle", "trec", "rag", "spark", "parts"),
    ),
    "Reference": ("metrics", "catalogue", "confidence", "config", "changelog"),
    "Background": ("statistics", "speed"),
}
"""Kind -> its pages, in the order in which they are listed."""
TASKS = {
    "Score predictions, and see why a query scores as it does": "start",
    "Read CSV, TREC, JSON Lines, or files in a bucket; look up an exit code": "data",
    "Find out why two evaluators disagree, and what exactly is counted": "numbers",
    "Find out which of two systems is better": "comparing",
    "Put a table into a paper": "comparing",
    "Know how often a verdict is wrong": "statistics",
    "Stop a bad model before it ships": "gate",
    "Evaluate every night, keep a history, and send a line to a chat": "nightly",
    "Keep the options of a job in a file": "config",
    "Show a run to others as a page or a picture": "report",
    "Evaluate data frames, dicts, arrays, and tensors": "notebooks",
    "Score and check a Kaggle submission": "kaggle",
    "Evaluate a TREC run": "trec",
    "Score the hits of a vector store, and test a retriever in CI": "rag",
    "Choose a metric, or add one of your own": "metrics",
    "Measure coverage, novelty, fairness, or diversity of all lists": "catalogue",
    "Check confidences and thresholds": "confidence",
    "Evaluate on a cluster": "spark",
    "Evaluate in parts, by a shell loop, SLURM, Ray, or Dask; plan for a billion users": "parts",
    "See how fast rankmill is, and evaluate more data than fits into memory": "speed",
    "See what is new": "changelog",
}
"""What a reader wants to do -> the page about it."""
PEERS = {
    "trec_eval": ("rankmill trec_eval -q -m map qrels run", "trec"),
    "pytrec_eval": ("from rankmill import pytrec_eval", "trec"),
    "ir_measures": ("from rankmill.ir_measures import provider", "trec"),
    "Kaggle": ("rankmill check solution.csv submission.csv -m map@12", "kaggle"),
    "TorchMetrics": ("from rankmill.torch import RankingMetric", "notebooks"),
    "ranx": ("rankmill evaluate labels run -m map --preset ranx", "numbers"),
    "scikit-learn": ("rankmill evaluate labels run -m ndcg@10 --preset sklearn", "numbers"),
    "Spark MLlib": ("rankmill evaluate labels run -m map --preset spark", "numbers"),
    "recommenders": ("rankmill evaluate labels run -m map@10 --preset recommenders", "numbers"),
    "RecTools, RecBole": ("rankmill metrics --elsewhere", "metrics"),
    "RePlay, LensKit": ("rankmill metrics --elsewhere", "metrics"),
    "Elliot, Cornac": ("rankmill metrics --elsewhere", "metrics"),
}
"""A tool that a reader comes from -> what to type instead, and the page about it."""
MOVED = {
    **dict.fromkeys(("files", "formats", "stores"), "data"),
    **dict.fromkeys(("counting", "which-map"), "numbers"),
    **dict.fromkeys(("python", "arrays", "torch"), "notebooks"),
    **dict.fromkeys(("memory", "benchmarks"), "speed"),
    **{"drop-ins": "trec", "scale": "parts", "diversity": "catalogue", "gallery": "report"},
}
"""The name of a page that is gone -> the page that has what it said."""

_EXAMPLES = """
rankmill docs
rankmill docs start
"""


def pages() -> dict[str, str]:
    """Return the name of each page and its Markdown, in the order of their kinds.

    Links to other pages, which a terminal cannot follow, are commands alone.
    """
    folder = files("rankmill") / "docs"
    names = [name for of in KINDS.values() for name in of]
    texts = {name: (folder / f"{name}.md").read_text("utf-8") for name in names}
    return {
        name: re.sub(r"\[(`rankmill docs \w+`)\]\(\w+\.md\)", r"\1", texts[name]) for name in names
    }


def about(text: str) -> str:
    """Return the sentence that a page begins with, below its title."""
    return " ".join(text.split("\n\n")[1].split())


def listed(found: Mapping[str, str]) -> str:
    """Return the pages by kind, by task and by the tool that a reader comes from."""
    formatter = click.HelpFormatter(max_width=100)
    widest = max(map(len, found))
    for kind, names in KINDS.items():
        with formatter.section(kind):
            formatter.write_dl([(name.ljust(widest), about(found[name])) for name in names])
    with formatter.section("To do this, read"):
        formatter.write_dl([(page.ljust(widest), task) for task, page in TASKS.items()])
    with formatter.section("Coming from another tool, type"):
        peers = [(peer, f"{typed}  ({page})") for peer, (typed, page) in PEERS.items()]
        formatter.write_dl(peers)
    formatter.write_paragraph()
    formatter.write_text("'rankmill docs PAGE' shows a page.")
    return formatter.getvalue()


def _complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [name for name in sorted(pages()) if name.startswith(begun)]


@table_command(
    "docs",
    [click.Argument(["page"], required=False, shell_complete=_complete)],
    examples=_EXAMPLES,
)
def command(page: str | None) -> None:
    """Show a PAGE about rankmill, or list the pages by kind, by task, and by other tools."""
    found = pages()
    if page is None:
        emit(listed(found))
        return
    page = MOVED.get(page, page)
    if page not in found:
        near = get_close_matches(page.lower().removesuffix(".md"), [*found, *MOVED], 1)
        meant = f" did you mean {near[0]}?" if near else ""
        raise click.UsageError(f"there is no page {page!r}:{meant} there are {', '.join(found)}")
    if is_terminal(sys.stdout) and sys.stdout.encoding.lower().startswith("utf"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(found[page]))
    else:
        emit(found[page])
