"""`rankmill docs`: the pages about rankmill, which are Markdown files of the package."""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.cli.process import is_terminal

KINDS: dict[str, tuple[str, ...]] = {
    "Start here": ("start",),
    "How to": (
        *("comparing", "gate", "nightly", "report", "gallery"),
        *("kaggle", "drop-ins", "python", "arrays", "torch", "stores", "spark", "parts"),
    ),
    "Reference": (
        *("metrics", "catalogue", "confidence", "diversity"),
        *("files", "formats", "config", "changelog"),
    ),
    "Background": ("statistics", "which-map", "counting", "memory", "scale", "benchmarks"),
}
"""Kind -> its pages, in the order in which they are listed."""
TASKS = {
    "Score predictions, and see why a query scores as it does": "start",
    "Find out which of two systems is better": "comparing",
    "Find out how a ranking of systems depends on the cutoff": "comparing",
    "Put a table into a paper": "comparing",
    "Know how often a verdict is wrong": "statistics",
    "Stop a bad model before it ships": "gate",
    "Evaluate every night, keep a history, and send a line to a chat": "nightly",
    "Keep the options of a job in a file": "config",
    "Show a run to others as a page": "report",
    "Choose a picture, a table or a page": "gallery",
    "Score and check a Kaggle submission": "kaggle",
    "Evaluate a TREC run": "drop-ins",
    "Find out why two evaluators disagree": "which-map",
    "Know what exactly is counted": "counting",
    "Choose a metric, or add one of your own": "metrics",
    "Measure coverage, novelty or fairness of all lists": "catalogue",
    "Measure how many aspects a list covers": "diversity",
    "Check confidences and thresholds": "confidence",
    "Evaluate during training": "torch",
    "Find out how a file is read, and what an exit code means": "files",
    "Read CSV, TREC or JSON Lines": "formats",
    "Evaluate data frames and dicts": "python",
    "Evaluate matrices of scores": "arrays",
    "Evaluate files in a bucket": "stores",
    "Evaluate on a cluster": "spark",
    "Evaluate in parts, by a shell loop, SLURM, Ray or Dask": "parts",
    "Evaluate more data than fits into memory": "memory",
    "Plan for a billion users": "scale",
    "See how fast rankmill is": "benchmarks",
    "See what is new": "changelog",
}
"""What a reader wants to do -> the page about it."""
PEERS = {
    "trec_eval": ("rankmill trec_eval -q -m map qrels run", "drop-ins"),
    "pytrec_eval": ("from rankmill import pytrec_eval", "drop-ins"),
    "ir_measures": ("from rankmill.ir_measures import provider", "drop-ins"),
    "Kaggle": ("rankmill check solution.csv submission.csv -m map@12", "kaggle"),
    "TorchMetrics": ("from rankmill.torch import RankingMetric", "torch"),
    "ranx": ("rankmill evaluate labels run -m map --preset ranx", "which-map"),
    "scikit-learn": ("rankmill evaluate labels run -m ndcg@10 --preset sklearn", "which-map"),
    "Spark MLlib": ("rankmill evaluate labels run -m map --preset spark", "which-map"),
    "recommenders": ("rankmill evaluate labels run -m map@10 --preset recommenders", "which-map"),
    "RecTools, RecBole": ("rankmill metrics --elsewhere", "metrics"),
    "RePlay, LensKit": ("rankmill metrics --elsewhere", "metrics"),
    "Elliot, Cornac": ("rankmill metrics --elsewhere", "metrics"),
}
"""A tool that a reader comes from -> what to type instead, and the page about it."""

_EXAMPLES = """
rankmill docs
rankmill docs start
"""


def pages() -> dict[str, str]:
    """Return the name of each page and its Markdown, in the order of their kinds."""
    folder = files("rankmill") / "docs"
    names = [name for of in KINDS.values() for name in of]
    return {name: (folder / f"{name}.md").read_text("utf-8") for name in names}


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
    if page not in found:
        near = get_close_matches(page.lower().removesuffix(".md"), found, 1)
        meant = f" did you mean {near[0]}?" if near else ""
        raise click.UsageError(f"there is no page {page!r}:{meant} there are {', '.join(found)}")
    if is_terminal(sys.stdout) and sys.stdout.encoding.lower().startswith("utf"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(found[page]))
    else:
        emit(found[page])
