"""The pages of `rankmill docs`: by kind, by task, by the tool that one comes from, and by words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import click

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
    "Background": ("which-map", "counting", "memory", "scale", "benchmarks"),
}
"""Kind -> its pages, in the order in which they are listed."""
TASKS = {
    "Score predictions, and see why a query scores as it does": "start",
    "Find out which of two systems is better": "comparing",
    "Find out how a ranking of systems depends on the cutoff": "comparing",
    "Put a table into a paper": "comparing",
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

ALIKE = (
    "quer topic user image",
    "item document product doc",
    "repeat duplicate",
    "moved lost worse",
    "prediction run system model",
    "label qrels judgment truth",
    "submission competition",
    "rule threshold regression fail stop gate",
    "tie equal",
    "your-own own custom",
    "vector embedding neighbor",
    "page report dashboard html",
    "picture plot figure chart",
    "cron schedule nightly",
    "job build pipeline ci",
    "chat slack alert email",
    "drift anomaly",
    "group fair bias parity",
    "slice segment subgroup cohort",
    "confidence score probabilit",
    "differ disagree mismatch",
    "memory ram",
    "bucket s3 gcs cloud",
    "frame pandas polars",
    "fast slow speed latency",
    "option setting config yaml",
    "significan p-value",
    "sparse dense tensor matrix",
)
"""Words that find each other, each the beginning of longer ones."""
SMALL = (
    "a an and are as at be between by can do does for from has have how i if in is it its many me "
    "my not of on or out should than that the their to was what when where which why will with"
)
"""Words that say nothing of what is searched, unless there are no others."""

# So many sections fit a screen, with one line each below its place.
MOST = 10
WIDTH = 96


class Passage(NamedTuple):
    """A heading of a page, with the lines below it; the first one is the title of the page."""

    page: str
    heading: str
    lines: list[str]

    @property
    def text(self) -> str:
        """All that can be found in it."""
        return "\n".join([self.page, self.heading, *self.lines])


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
    formatter.write_text(
        "'rankmill docs PAGE' shows a page, 'rankmill docs WORDS' searches all of them, and "
        "'rankmill docs --html DIR' writes them for a browser."
    )
    return formatter.getvalue()


def passages(page: str, text: str) -> Iterator[Passage]:
    """Yield what stands below each heading of a page."""
    one, in_code = Passage(page, "", []), False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if in_code or not line.startswith("#"):
            if line and not line.startswith("```"):
                one.lines.append(line)
            continue
        if one.heading:
            yield one
        one = Passage(page, line.lstrip("# "), [])
    yield one


def search(found: Mapping[str, str], words: Sequence[str], some: bool = False) -> list[Passage]:
    """Return the passages with all words, or with `some` those with the most, best first.

    Words may be the beginnings of longer ones, plurals find the singular, and words find those that
    are alike, which are worth half. A heading with a word, or a task of the page, is worth more
    than any number of lines that many passages have. The search of the site does the same.
    """
    ways = [tuple(re.compile(one, re.I) for one in pair) for pair in ways_of(words)]
    ranked: dict[int, list[tuple[int, Passage]]] = {}
    for name, text in found.items():
        for number, one in enumerate(passages(name, text)):
            title, lines = title_of(one, number), "\n".join(one.lines)
            held = [way for way in ways if way[1].search(f"{title}\n{lines}")]
            above = sum(bool(kind.search(title)) for way in held for kind in way)
            inside = sum(len(kind.findall(lines)) for way in held for kind in way)
            ranked.setdefault(len(held), []).append((above * MOST + min(inside, 2 * MOST), one))
    ranked.pop(0, None)
    most = max(ranked, default=0) if some else len(ways)
    return [one for _, one in sorted(ranked.get(most, []), key=lambda each: -each[0])]


def title_of(one: Passage, number: int) -> str:
    """What stands above a passage: the first one of a page has the tasks that the page is for."""
    tasks = [] if number else [task for task, page in TASKS.items() if page == one.page]
    return " ".join([one.page, one.heading, *tasks])


def ways_of(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return a pattern of each word that says something, and one with all that are alike."""
    telling = [word for word in words if word.lower() not in SMALL.split()] or words
    start = r"(?<![^\W_])"
    return [
        (start + re.escape(word), f"{start}(?:{'|'.join(map(re.escape, _alike(word)))})")
        for word in map(_stem, telling)
    ]


def _alike(word: str) -> list[str]:
    """A word, and those of its groups: it may be a longer form of one of them."""
    groups = (group.split() for group in ALIKE)
    found = (of for of in groups if any(word.lower().startswith(one) for one in of))
    return [word, *(one for of in found for one in of)]


def _stem(word: str) -> str:
    """A word without the ending of a plural."""
    return word[:-1] if re.search(r"[a-z]{2,}[^s]s$", word, re.I) else word


def shown(found: Sequence[Passage], words: Sequence[str]) -> str:
    """Return the best passages, each with its page, its heading and its best line."""
    parts = []
    ways = [re.compile(alike, re.I) for _, alike in ways_of(words)]
    for one in found[:MOST]:
        best = max(one.lines, key=lambda line: sum(map(bool, _found(line, ways))), default="")
        parts.append(f"{one.page}: {one.heading}\n    {_cut(best, ways)}\n")
    if found[MOST:]:
        parts.append(f"and {len(found) - MOST} more; more words find fewer\n")
    return "".join(parts)


def _found(line: str, ways: Sequence[re.Pattern[str]]) -> list[re.Match[str] | None]:
    return [way.search(line) for way in ways]


def _cut(line: str, ways: Sequence[re.Pattern[str]]) -> str:
    """Return the part of a long line that has the first word found in it."""
    first = min((one.start() for one in _found(line, ways) if one is not None), default=0)
    start = max(0, min(first - WIDTH // 3, len(line) - WIDTH))
    cut, rest = line[start : start + WIDTH], line[start + WIDTH :]
    return f"{'...' if start else ''}{cut}{'...' if rest else ''}"
