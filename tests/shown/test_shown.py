"""What commands and answers show, in every form, beside the files of golden/.

``pytest tests/shown --update`` writes the files again: look at the difference before you commit it.
What changes from run to run is masked: seconds, versions, checksums.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import Catalogue, Labels, Semantics

GOLDEN = Path(__file__).parent / "golden"
FORMATS = {"table": "txt", "markdown": "md", "latex": "tex", "csv": "csv", "json": "json"}
LABELS = pa.table(
    {
        "query": ["ann", "bob", "cy", "dan", "eve", "<b>&|_"],
        "items": [["a", "b"], ["c"], ["a"], ["d", "e"], [], ["b"]],
        "w": [1.0, 2.0, 0.5, 1.0, 1.0, 3.0],
        "country": ["se", "dk", "se", None, "no", "dk"],
    }
)
OLD = pa.table(
    {
        "query": ["ann", "bob", "cy", "<b>&|_", "zed"],
        "items": [["a", "x", "b"], ["x", "c"], ["x", "y"], ["b", "b", "a"], ["a"]],
        "score": [[0.9, 0.8, 0.5], [0.8, 0.5], [0.4, 0.3], [0.7, 0.6, 0.5], [0.2]],
    }
)
NEW = pa.table(
    {
        "query": ["ann", "bob", "cy", "dan", "<b>&|_"],
        "items": [["b", "a"], ["c"], ["a", "y"], ["x", "e"], ["a", "b"]],
        "score": [[0.9, 0.8], [0.8], [0.4, 0.3], [0.6, 0.5], [0.7, 0.6]],
    }
)
GRADED = pa.table(
    {
        "query": ["ann", "ann", "bob", "cy"],
        "item": ["a", "b", "c", "a"],
        "gain": [3.0, 1.0, 2.0, 0.0],
    }
)
TRAIN = pa.table({"query": ["ann", "bob", "bob", "cy"], "item": ["x", "a", "b", "c"]})
ITEMS = pa.table({"item": [*"abcdexy"], "genre": [["art"], ["art", "sea"]] * 3 + [["sea"]]})
TABLES = {
    "labels": LABELS,
    "old": OLD,
    "new": NEW,
    "empty": NEW.slice(0, 1),
    "graded": GRADED,
    "train": TRAIN,
    "items": ITEMS,
}
USUAL = "-m map@3 -m first_hit -m gap"
SUM = "both = 0.25*map@3[country=se] + 0.75*first_hit"
COMMANDS = {
    "evaluate": f"evaluate labels old {USUAL}",
    "evaluate without metrics": "evaluate labels old",
    "evaluate graded": "evaluate graded old -m ndcg@3 -m dcg -m err --gain gain",
    "evaluate weights": "evaluate labels old -m map@3 -m first_hit --weight w",
    "evaluate scope": f"evaluate graded old {USUAL} --gain gain --rel 2 --depth 2 --judged-only",
    "evaluate preset": "evaluate labels new -m map -m P_5 --preset trec_eval",
    "evaluate slices": f"evaluate labels old {USUAL} --by country --by label_count",
    "evaluate sums": ["evaluate labels old -m map@3 -m first_hit --by country --sum", SUM],
    "evaluate summaries": "evaluate labels old -m map@3:median -m recall@2:micro -m map:p90",
    "evaluate catalogue": (
        "evaluate labels old -m coverage@2 -m gini@2 -m novelty@2 -m ild@2 --train train.parquet "
        "--items items.parquet --item-group genre"
    ),
    "evaluate without a value": "evaluate labels old -m coverage_of_labels@1 -m auprc -m brier",
    "systems": f"evaluate labels old new {USUAL}",
    "systems of other queries": "evaluate labels old new -m map@3 --semantics unpredicted=skip",
    "systems slices": "evaluate labels old new -m map@3 --by country",
    "systems weights": "evaluate labels old new -m map@3 --weight w",
    "compare": f"compare labels old new {USUAL}",
    "compare slices": "compare labels old new -m map@3 -m first_hit --by country --moved 1",
    "compare margin": "compare labels old new -m map@3 --margin 0.5 --test t --test wilcoxon",
    "compare weights": "compare labels old new -m map@3 --weight w",
    "compare clusters": "compare labels old new -m map@3 --cluster country",
    "compare all pairs": "compare labels old new empty -m map@3 -m recall@2 --all-pairs",
    "compare cutoffs": "compare labels old new -m map -m hit --cutoffs 1,2,3",
    "compare pooled": "compare labels old new -m coverage@2 -m auprc -m map@3:median",
    "plan": f"evaluate labels old {USUAL} --plan",
    "plan of systems": f"evaluate labels old new {USUAL} --plan",
    "explain": "explain labels old -m map@3 --query-id ann",
    "explain gains": "explain graded old -m ndcg@3 --query-id ann --gain gain",
    "explain gap": "explain labels old -m gap",
    "explain no predictions": "explain labels old -m map@3 --query-id dan",
    "explain systems": "explain labels old new -m map@3 --query-id bob",
    "explain evaluators": "explain-evaluators labels old -m map@2",
    "explain evaluators gap": "explain-evaluators labels old -m gap",
    "metrics of one": "metrics map@12",
    "presets": "presets",
    "head labels": "head labels",
    "head predictions": "head old",
}


def masked(text: str) -> str:
    """Leave out what tells of the run and not of the question."""
    for pattern, instead in (
        (r'((?m:^)seconds +|seconds: |"seconds": )[0-9.e-]+', r"\1SECONDS"),
        (r'"(rankmill|checksum)": "[^"]*"', r'"\1": "..."'),
        (r"(2026-05-\d\d)([ T])\d\d:\d\d(:\d\d[.0-9]*)?", r"\1\2TIME"),
        (r'time="[0-9.]+"', 'time="SECONDS"'),
        (r"\b(20\d{6}T)\d{12}Z-[0-9a-f]{16}", r"\1-ID"),
    ):
        text = re.sub(pattern, instead, text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def alike(text: str) -> str:
    """Round what has every digit: the last ones of a tail of a distribution are the machine's."""
    return re.sub(r"\d+\.\d{13,}(e[-+]?\d+)?", lambda found: f"{float(found[0]):.12g}", text)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the tables as files."""
    monkeypatch.chdir(tmp_path)
    for name, table in TABLES.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


def agrees(name: str, text: str, update: bool) -> None:
    path = GOLDEN / name.replace(" ", "-")
    if update and not (path.exists() and alike(path.read_text("utf-8")) == alike(masked(text))):
        path.parent.mkdir(exist_ok=True)
        path.write_text(masked(text), "utf-8")
    assert alike(masked(text)) == alike(path.read_text("utf-8")), (
        "if it should change: pytest tests/shown --update"
    )


# Listings are no table of a paper.
ALL = [
    (name, form)
    for name in COMMANDS
    for form in FORMATS
    if form != "latex" or name not in ("metrics of one", "presets")
]


@pytest.mark.parametrize(("name", "form"), ALL)
def test_a_command_shows(name: str, form: str, shop: Path, run: Any, update: bool) -> None:
    asked = COMMANDS[name]
    typed, *rest = [asked] if isinstance(asked, str) else asked
    words = [f"{one}.parquet" if one in TABLES else one for one in typed.split()]
    code, shown, error = run(*words, *rest, "--format", form)
    assert code == 0
    assert all(form == "csv" and line.startswith("note: ") for line in error.splitlines())
    agrees(f"{name}.{FORMATS[form]}", shown + error, update)


HERE = {
    "evaluate": lambda: rankmill.evaluate(LABELS, OLD, ["map@3", "first_hit", "gap"]),
    "evaluate weights": lambda: rankmill.evaluate(Labels(LABELS, weight="w"), OLD, "map@3"),
    "evaluate slices": lambda: rankmill.evaluate(LABELS, OLD, "map@3", by="country", sums=SUM),
    "evaluate scope": lambda: rankmill.evaluate(
        Labels(GRADED, gain="gain"), OLD, "ndcg@3", semantics=Semantics(depth=2, judged_only=True)
    ),
    "evaluate catalogue": lambda: rankmill.evaluate(
        LABELS, OLD, ["coverage@2", "novelty@2"], catalogue=Catalogue(train=TRAIN, items=ITEMS)
    ),
    "systems": lambda: rankmill.evaluate_runs(LABELS, {"old": OLD, "n<e>w": NEW}, ["map@3", "gap"]),
    "explain": lambda: rankmill.explain(LABELS, OLD, "map@3", "ann"),
    "explain html": lambda: rankmill.explain(LABELS, OLD, "map@3", "<b>&|_"),
    "explain gap": lambda: rankmill.explain(LABELS, OLD, "gap"),
    "explain evaluators": lambda: rankmill.explain_evaluators(LABELS, OLD, "map@2"),
}
SHOWN = {"repr.txt": repr, "html": lambda one: one._repr_html_()}


@pytest.mark.parametrize("form", SHOWN)
@pytest.mark.parametrize("name", HERE)
def test_an_answer_shows(name: str, form: str, update: bool) -> None:
    agrees(f"python {name}.{form}", SHOWN[form](HERE[name]()), update)


BASE = "--baseline old.parquet --by country --history runs --date 2026-05-01"
VERDICTS = {
    "held": ("new", "map@3 >= 0.1", "map@3 drop <= 90% confidence none", "queries > 0"),
    "regressed": ("new", "first_hit >= 0.99", "map@3[country=*] >= 0.2 confidence 0.5"),
    "undecided": ("new", "map@3 drop <= 1%", "guardrail first_hit drop <= 2%"),
    "bad audit": ("old", "repeated_items == 0", "queries change <= 10%"),
    "no verdict": ("missing", "map@3 >= 0.1"),
}
OUTPUTS = {"summary": "txt", "markdown": "md", "junit": "xml", "json": "json", "output": "csv"}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_shows(name: str, shop: Path, run: Any, update: bool) -> None:
    system, *rules = VERDICTS[name]
    words = ["gate", "labels.parquet", f"{system}.parquet", *BASE.split()]
    words += [word for rule in rules for word in ("--rule", rule)]
    outputs = [f"--{form}={form}.{end}" for form, end in OUTPUTS.items()]
    code, shown, error = run(*words, *outputs)
    agrees(f"gate {name} lines.txt", f"{code}\n{shown}{error}", update)
    for form, end in OUTPUTS.items():
        told = (shop / f"{form}.{end}").read_text("utf-8")
        agrees(f"gate {name} {form}.{end}", told, update)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("shop")
def test_a_history_shows(form: str, run: Any, update: bool) -> None:
    for day, system in enumerate(("old", "new", "old"), 1):
        words = ["labels.parquet", f"{system}.parquet", "--rule", "map@3 >= 0.5"]
        run("gate", *words, "--history", "runs", "--date", f"2026-05-0{day}")
    code, shown, error = run("history", "runs", "-m", "map@3", "--format", form)
    assert (code, error) == (0, "")
    agrees(f"history.{FORMATS[form]}", shown, update)


def test_every_file_is_of_a_test() -> None:
    """Nothing of what is gone stays behind."""
    known = {f"{name}.{suffix}" for name in COMMANDS for suffix in FORMATS.values()}
    known |= {f"python {name}.{form}" for name in HERE for form in SHOWN}
    told = ["lines.txt", *(f"{form}.{end}" for form, end in OUTPUTS.items())]
    known |= {f"gate {name} {one}" for name in VERDICTS for one in told}
    known |= {f"history.{suffix}" for suffix in FORMATS.values()}
    assert {path.name for path in GOLDEN.iterdir()} <= {one.replace(" ", "-") for one in known}
