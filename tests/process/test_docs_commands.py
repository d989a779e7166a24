"""Every command that a page shows is run: as an example, by a test that is named, or here."""

from __future__ import annotations

import ast
import gzip
import inspect
import pydoc
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pages import FENCE, shell
from rankmill.cli import COMMANDS
from rankmill.cli.docs import PEERS
from repository import ROOT, SOURCE

PAGES = [ROOT / "README.md", ROOT / "JOURNEY.md", *sorted((SOURCE / "docs").glob("*.md"))]
CODE = re.compile(r"`([^`\n]+)`")
OUTPUTS = {"-o", "--per-query", "--plot", "--curve"}
LABELS = {"labels", "qrels", "solution", "history"}
# What other tests run as the pages have it. The other examples of a console are in test_docs.py,
# and scripts in test_docs_scripts.py.
ELSEWHERE = {
    "report": "tests/process/test_gallery.py",
    "nightly": "tests/process/test_nightly.py",
    "parts": "tests/process/test_docs.py",
    "spark": "tests/spark/test_spark_page.py",
}


def is_whole(command: str) -> bool:
    """Whether it can be typed as it is, and is not only the name of a command or an option."""
    words = command.split()
    if len(words) < 2 or words[0] != "rankmill" or words[1] not in COMMANDS:
        return False
    return any("." in one for one in words[2:]) or {*words[2:]} & {"run", "history"} != set()


def shown() -> Iterator[tuple[str, str]]:
    """Each page, and each command in its prose and in its blocks of text."""
    for path in PAGES:
        text = path.read_text("utf-8")
        for kind, body in FENCE.findall(text):
            body = re.sub(r"\\\n\s*", "", body).partition("  # ")[0] if kind == "text" else ""
            yield from ((path.stem, one) for one in body.splitlines() if is_whole(one))
        for code in CODE.findall(FENCE.sub("", text)):
            last = code.replace("\\|", "|").rpartition("| ")[2]
            if is_whole(last):
                yield path.stem, code.replace("\\|", "|")
    yield from (("index", typed) for typed, _ in PEERS.values() if is_whole(typed))


def write(name: str, command: str) -> None:
    """Write two queries to a file, as labels or as predictions, as its name and place have it."""
    path = Path(name.replace("*", "1"))
    path.parent.mkdir(parents=True, exist_ok=True)
    stem, is_labels = path.name.partition(".")[0], command.split()[2:3] == [name]
    is_labels = (is_labels and command.split()[1] != "history") or stem in LABELS
    lists = {1: [3, 4], 2: [5]} if is_labels else {1: [4, 9], 2: [5, 3]}
    rows = [(query, item, 9 - at) for query, of in lists.items() for at, item in enumerate(of)]
    suffix = "".join(path.suffixes)
    if suffix == ".py":
        path.touch()
    elif suffix == ".parquet":
        columns = zip(*rows, strict=True)
        names = ("query", "item", "score")
        pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    elif stem in ("solution", "submission", "mine"):
        cells = (f"{query},{' '.join(map(str, of))}\n" for query, of in lists.items())
        path.write_text("id,items\n" + "".join(cells))
    elif suffix == ".csv":
        header = "" if "--columns" in command else "query,item,score\n"
        lines = (f"{query},{item},{score}\n" for query, item, score in rows)
        path.write_text(header + "".join(lines))
    else:
        line = "{0} 0 {1} 1\n" if is_labels else "{0} Q0 {1} 1 {2} run\n"
        if suffix.startswith(".jsonl"):
            line = '{{"query": {0}, "item": {1}, "score": {2}}}\n'
        text = "".join(line.format(*row) for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())


HERE = sorted({command for page, command in shown() if page not in ELSEWHERE})


def test_commands_are_found() -> None:
    assert len(HERE) > 15
    assert "rankmill evaluate qrels.txt bm25.run --preset trec_eval -m official" in HERE
    assert not is_whole("rankmill evaluate --plan")
    assert not is_whole("rankmill docs start")


@pytest.mark.parametrize("command", HERE)
def test_what_the_prose_shows_can_be_typed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    command = re.sub(r"s3a?://", "", command)  # tests of stores read the same from a bucket
    words = shlex.split(command)
    named = {"run", "qrels", "labels"} & {*words}
    outputs = {name for flag, name in pairwise(words) if flag in OUTPUTS}
    files = {one for one in words if re.search(r"[\w*]\.[a-z]", one)} | named
    for name in sorted(files - outputs):
        bare = words[1] != "trec_eval" and name in named
        write(f"{name}/1.parquet" if bare else name, command)
        if bare:
            write(f"{name}/1.parquet", f"rankmill x {name}/1.parquet" if name == "labels" else "")
    for name in outputs:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
    if "|" in command:
        assert shell(command)
        return
    outcome = run_cli(*words[1:])
    codes = {0, 1} if words[1] == "check" else {0}  # 1: the submission has a problem
    assert outcome.exit_code in codes, outcome.stderr
    assert outcome.stderr == ""
    assert all(Path(name).is_file() for name in outputs)


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_other_pages_are_read_by_their_tests(page: str, test: str) -> None:
    assert f"{page}.md" in (ROOT / test).read_text("utf-8")


CALLS = {
    code
    for path in PAGES
    for code in CODE.findall(FENCE.sub("", path.read_text("utf-8")))
    if re.fullmatch(r"rankmill[\w.]*\(.*\)", code)
}


@pytest.mark.parametrize("code", sorted(CALLS))
def test_calls_in_the_prose_have_arguments_that_are_taken(code: str) -> None:
    if "torch" in code:
        pytest.importorskip("torchmetrics")
    if "spark" in code:
        pytest.importorskip("pyspark")
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    function = pydoc.locate(ast.unparse(call.func))
    assert callable(function), code
    given = {str(one.arg): one.value for one in call.keywords}
    inspect.signature(function).bind(*call.args, **given)
