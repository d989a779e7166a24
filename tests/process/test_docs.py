"""README, CONTRIBUTING and the pages of `rankmill docs`: what they show is what happens."""

from __future__ import annotations

import doctest
import glob
import importlib
import inspect
import os
import pydoc
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankmill
from cli_runs import on_a_terminal
from pages import FENCE, shell
from rankmill.cli import COMMANDS
from rankmill.cli.docs import KINDS, MOVED, PEERS, TASKS
from rankmill.errors import install
from rankmill.package import GONE
from repository import HOUSE, ROOT, SOURCE

README, CONTRIBUTING, JOURNEY = (
    ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "JOURNEY")
)
PAGES = sorted((SOURCE / "docs").glob("*.md"))
NAMES = [path.stem for path in PAGES]
ALL = [README, CONTRIBUTING, JOURNEY, *PAGES]

# What starts a cluster is run in a process of its own.
CLUSTER = re.compile(r"^>>> (?:import|from) (ray|dask)\b", re.M)
CODE = re.compile(r"`([^`\n]+)`")


# ------------------------------------------------------------------ examples


def commands(shown: str) -> Iterator[tuple[str, str]]:
    """The commands of what is shown of a console, each with its output there."""
    for one in re.split(r"^\$ ", shown, flags=re.M)[1:]:
        command, _, output = one.partition("\n")
        yield command, output


def output_of(command: str, run_cli: Any) -> str:
    """What a command prints, or what is wrong with it if it fails."""
    loop = re.fullmatch(r"for i in ([\w ]+); do (.*); done", command)
    if loop:  # as a shell runs it, in this process
        each = (loop[2].replace("$i", one) for one in loop[1].split())
        return "".join(output_of(one, run_cli) for one in each)
    program, *words = shlex.split(command)
    arguments = [one for word in words for one in sorted(glob.glob(word)) or [word]]
    if program == "rankmill":
        outcome = run_cli(*arguments)
        return (outcome.stderr if outcome.exit_code else "") or outcome.stdout
    assert program == "python", f"a page shows a command that no test can run: {command}"
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    return ran.stderr if ran.returncode else ran.stdout


def untrue(text: str, run_cli: Any) -> list[str]:
    """What a page's examples show and what does not happen, run in order in the working folder."""
    names: dict[str, Any] = {}
    wrong: list[str] = []
    checker = doctest.OutputChecker()
    for number, (kind, body) in enumerate(FENCE.findall(text)):
        if kind == "python" and not CLUSTER.search(body):
            test = doctest.DocTestParser().get_doctest(body, {}, f"block {number}", None, 0)
            test.globs = names
            runner = doctest.DocTestRunner(checker, False, doctest.ELLIPSIS)
            runner.run(test, out=wrong.append, clear_globs=False)
        elif kind == "console":
            for command, wanted in commands(body):
                found = output_of(command, run_cli)
                found = "".join(f"{line.rstrip()}\n" for line in found.rstrip().splitlines())
                if not checker.check_output(
                    wanted.rstrip() + "\n", found or "\n", doctest.ELLIPSIS
                ):
                    wrong.append(f"$ {command}\n{found}")
    return wrong


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, but for the scripts of the repository."""
    monkeypatch.chdir(tmp_path)
    for name in ("benchmarks", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", [README, JOURNEY, *PAGES], ids=lambda path: path.stem)
def test_examples_are_true(path: Path, run_cli: Any) -> None:
    text = path.read_text("utf-8")
    if "RankingMetric" in text:
        pytest.importorskip("torchmetrics")
    if path == README:  # its examples are of the files that the first page creates
        start = (SOURCE / "docs" / "start.md").read_text("utf-8")
        text = text.replace("```console", f"{next(FENCE.finditer(start))[0]}\n```console", 1)
    assert untrue(text, run_cli) == []


@pytest.mark.parametrize("module", ["rankmill", *(f"rankmill.{one}" for one in rankmill._MODULES)])
def test_examples_run_as_pasted(module: str) -> None:
    """Nothing is there but what an example imports."""
    if module == "rankmill.torch":
        pytest.importorskip("torchmetrics")
    wrong: list[str] = []
    public = importlib.import_module(module)
    for name in public.__all__:
        found = getattr(public, name)
        if inspect.isclass(found) or inspect.isroutine(found):
            for test in doctest.DocTestFinder().find(found, name, module=False, globs={}):
                doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=wrong.append)
    assert wrong == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("library", ["ray", "dask"])
def test_programs_of_clusters_are_true(library: str, tmp_path: Path) -> None:
    pytest.importorskip("dask.distributed" if library == "dask" else library)
    text = (SOURCE / "docs" / "parts.md").read_text("utf-8")
    blocks = [body for kind, body in FENCE.findall(text) if kind == "python"]
    own = [at for at, one in enumerate(blocks) if re.findall(CLUSTER, one) == [library]]
    assert len(own) == 1
    kept = [one for one in blocks[: own[0]] if not CLUSTER.search(one)] + [blocks[own[0]]]
    (tmp_path / "program.md").write_text("\n".join(kept))
    command = [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", "program.md"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_the_array_job_gives_what_one_process_does(run_cli: Any) -> None:
    text = (SOURCE / "docs" / "parts.md").read_text("utf-8")
    blocks = FENCE.findall(text)
    setup = next(body for kind, body in blocks if kind == "python")
    assert untrue(f"```python\n{setup}```\n", run_cli) == []
    (script,) = (body for kind, body in blocks if kind == "text" and "#SBATCH" in body)
    first, last = map(int, re.findall(r"#SBATCH --array=(\d+)-(\d+)", script)[0])
    for number in range(first, last + 1):
        shown = shell(script, SLURM_ARRAY_TASK_ID=str(number))
        assert shown.startswith(f"part {number} of {last}: ")
    asked = re.findall(r"-m \S+", script)
    parts = shell("rankmill merge state-*.arrow --format csv")
    assert parts == shell(f"rankmill evaluate labels run {' '.join(asked)} --format csv")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("example", "fails"),
    [
        ("```python\n>>> 1 + 1\n2\n\n```\n```python\n>>> 1 + 1\n3\n\n```\n", True),
        ("```python\n>>> x = 1\n\n```\n```python\n>>> x\n1\n\n```\n", False),
        ("```python\n>>> 1 / 0\n\n```\n", True),
        ("```console\n$ rankmill --version\nrankmill 0...\n```\n", False),
        ("```console\n$ rankmill --version\nrankmill\n```\n", True),
        ("```console\n$ rankmill --version\n```\n", True),
        ("```console\n$ rankmill nonsense\n```\n", True),
        ("```console\n$ python -c 'raise ValueError'\n```\n", True),
        ("```console\n$ python -c pass\n$ rankmill --version\nrankmill 1...\n```\n", True),
    ],
)
def test_untrue_examples_are_found(example: str, fails: bool, run_cli: Any) -> None:
    assert bool(untrue(example, run_cli)) == fails


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_example_is_run(path: Path) -> None:
    text = path.read_text("utf-8")
    kinds = {kind for kind, _ in FENCE.findall(text)}
    # CONTRIBUTING shows commands that set up or run these tests, and a diff that is tested beside.
    told = {"sh", "text", "diff"} if path == CONTRIBUTING else {"python", "console", "sh", "text"}
    assert kinds <= told
    for kind, body in FENCE.findall(text):
        if kind == "python":
            assert re.match(r">>> ", body)
            assert body.endswith("\n\n")  # else the fence is an output that is wanted
        if kind == "console":
            assert body.startswith("$ ")
    outside = FENCE.sub("", text) + "".join(b for kind, b in FENCE.findall(text) if kind == "text")
    assert not re.search(r"^\s*(?:\$|>>>) ", outside, re.M)
    for line in FENCE.sub("", text).splitlines():
        assert not line.startswith("    "), "code is fenced, not indented"
        assert line.count("`") % 2 == 0, f"code goes on in the next line: {line}"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_scripts_that_are_named_exist(path: Path) -> None:
    for kind, body in FENCE.findall(path.read_text("utf-8")):
        for line in body.splitlines() if kind == "sh" else ():
            named = re.findall(r"(?:\./)?((?:scripts|benchmarks)/[\w./]+)", line)
            assert named or line.startswith((".venv/bin/", "#")), line
            options = re.findall(r"(--[\w-]+)", line.partition("#")[0])
            for name in named:
                assert (ROOT / name).is_file(), line
                assert all(option in (ROOT / name).read_text("utf-8") for option in options), line


# ------------------------------------------------------------------ names in the prose


def prose(path: Path) -> list[str]:
    """What stands between backticks in the running text."""
    return CODE.findall(FENCE.sub("", path.read_text("utf-8")))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_names_in_the_prose_exist(path: Path) -> None:
    gone = GONE if path.stem == "changelog" else ()
    for code in prose(path):
        words = code.split()
        if words[-1].removeprefix("rankmill.") in gone:
            continue
        if words[0] == "rankmill" and len(words) > 1:
            assert words[1] in COMMANDS, code
            assert words[1] != "docs" or words[2:] in (
                *([], ["PAGE"]),
                *([n] for n in NAMES),
            )
        if re.fullmatch(r"rankmill(?:\.\w+)+", code) and code != "rankmill.toml":
            if "torch" in code:
                pytest.importorskip("torchmetrics" if "RankingMetric" in code else "torch")
            assert pydoc.locate(code) is not None, code


def test_options_in_the_prose_exist(run_cli: Any) -> None:
    helps = "".join(run_cli(name, "--help-all").stdout for name in COMMANDS)
    for code in (code for path in ALL for code in prose(path)):
        for option in re.findall(r"(?:^|(?<= ))--[a-z-]+", code):
            scripts = ("scripts/test", "tests/conftest.py")
            known = option in helps or any(
                option in (ROOT / name).read_text("utf-8") for name in scripts
            )
            assert known, code


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_links_and_files_in_the_prose_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", FENCE.sub("", text)) + re.findall(r'src="([^"]+)"', text)
    for link in links:
        name, _, anchor = link.partition("#")
        other = path.parent / name if name else path
        assert other.is_file(), link
        if anchor:
            assert anchor in anchors(other.read_text("utf-8")), link
    for code in prose(path):
        if re.fullmatch(r"[\w./]+/[\w.]*|(?:tests|scripts|benchmarks)/[\w./]+", code):
            assert any((base / code).exists() for base in (ROOT, SOURCE)), code


def anchors(text: str) -> list[str]:
    """The name of each heading of a page in links, as GitHub makes it."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each) is not None for each in found)
        found.append(f"{slug}-{count}" if count else slug)
    return found


def extras_told(text: str) -> Iterator[tuple[str, str]]:
    """What a text tells to install with extras of rankmill: the command, and the extras."""
    # Help breaks its lines anywhere.
    for told in re.finditer(r"pip\s+install\s+(['\"]?[\w./]*\[([\w,]+)\]['\"]?)", text):
        yield f"pip install {told[1]}", told[2]


def test_what_is_told_to_install_works_from_a_checkout(run_cli: Any) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    helps = [run_cli(name, "--help-all").stdout for name in COMMANDS]
    texts = [*helps, *(path.read_text("utf-8") for path in (*ALL, *SOURCE.rglob("*.py")))]
    told = [one for text in texts for one in extras_told(text)]
    assert len(told) > 4
    for command, names in told:
        # A checkout beside other files, as in a workflow, goes by its folder.
        as_is = command.replace("./rankmill[", ".[")
        assert as_is == install(names).partition(" in ")[0], command
        assert {*names.split(",")} <= {*extras["optional-dependencies"]}, command


def test_contributing_has_the_table_of_imports() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", CONTRIBUTING.read_text("utf-8"), re.M)
    assert {name: set(CODE.findall(cells)) for name, cells in rows} == HOUSE


# ------------------------------------------------------------------ rankmill docs


def test_docs_lists_pages_by_kind_and_what_they_are_about(run: Any) -> None:
    code, listed, _ = run("docs")
    assert code == 0
    by_kind = listed.partition("To do this, read")[0]
    assert [*re.findall(r"^  ([\w-]+)  ", by_kind, re.M)] == [
        n for of in KINDS.values() for n in of
    ]
    assert re.findall(r"^(\S.*):$", by_kind, re.M) == [*KINDS]
    modules = {"config", "kaggle", "metrics", "parts", "spark"}
    modules |= {"trec", "notebooks"}  # of pytrec_eval and ir_measures, and of arrays and torch
    assert modules | {"numbers", "speed"} <= {*NAMES}


def test_every_page_has_one_kind_and_indexes_name_pages() -> None:
    assert sorted(name for of in KINDS.values() for name in of) == NAMES
    assert {*TASKS.values(), *(page for _, page in PEERS.values())} == {*NAMES}


def test_the_site_lists_the_pages_by_kind() -> None:
    site = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    kinds: dict[str, list[str]] = {}
    for kind, page in re.findall(r"^  - (.+):$|^      - ([\w-]+)\.md$", site, re.M):
        if kind:
            kinds[kind] = []
        else:
            kinds[[*kinds][-1]].append(page)
    assert kinds == {kind: [*names] for kind, names in KINDS.items()}


def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="zensical is missing: pip install '.[docs]'")
    shutil.copytree(SOURCE / "docs", tmp_path / "src" / "rankmill" / "docs")
    (tmp_path / "scripts").mkdir()
    for name in ("mkdocs.yml", "scripts/site"):
        shutil.copy(ROOT / name, tmp_path / name)
    build = [str(tmp_path / "scripts" / "site")]
    python = os.environ | {"PYTHON": sys.executable}
    ran = subprocess.run(build, env=python, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert all((tmp_path / "build" / "site" / name / "index.html").is_file() for name in NAMES)
    assert "url=start/" in (tmp_path / "build" / "site" / "index.html").read_text("utf-8")


def test_each_peer_of_the_readme_is_in_the_index() -> None:
    table = README.read_text("utf-8").partition("| you use |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| \[([^]]+)\]\(src/rankmill/docs/([\w-]+)\.md\) \| ", table, re.M)
    named = {name: page for names, (_, page) in PEERS.items() for name in names.split(", ")}
    assert {one: page for names, page in rows for one in names.split(", ")} == named


@pytest.mark.parametrize("peer", PEERS)
def test_what_is_typed_instead_of_a_peer_stands_on_its_page(peer: str, run_cli: Any) -> None:
    typed, page = PEERS[peer]
    text = (SOURCE / "docs" / f"{page}.md").read_text("utf-8")
    words = typed.split()
    if words[0] != "rankmill":
        assert words[-1].partition("(")[0] in text
        return
    helps = run_cli(words[1], "--help-all").stdout if words[1] != "trec_eval" else text
    assert words[1] in COMMANDS
    assert all(option in helps for option in re.findall(r"(?<= )--?[a-z]+", typed))
    assert words[1] in text or words[-1] in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_docs_shows_a_page(path: Path, run: Any) -> None:
    # A terminal shows the commands alone of links to other pages.
    text = re.sub(r"\[(`rankmill docs \w+`)\]\(\w+\.md\)", r"\1", path.read_text("utf-8"))
    assert run("docs", path.stem) == (0, text, "")
    assert not re.search(r"(?<!\[)`rankmill docs \w+`", FENCE.sub("", path.read_text("utf-8")))
    title, about, _ = text.split("\n\n", 2)
    assert re.fullmatch(r"# \S[^\n]*", title)
    assert re.fullmatch(r"[A-Z][^.]*\.", about)
    assert " ".join(about.split()) in " ".join(run("docs")[1].split())


@pytest.mark.parametrize(
    ("asked", "hint"), [("wich-map", "which-map"), ("NUMBER.md", "numbers"), ("xyzzy", None)]
)
def test_words_that_no_page_has_are_wrong_usage(asked: str, hint: str | None, run: Any) -> None:
    code, shown, error = run("docs", asked)
    assert (code, shown) == (2, "")
    assert f"no page '{asked}'" in error
    assert all(name in error for name in NAMES)
    assert ("did you mean" in error) == (hint is not None)
    assert f"did you mean {hint}? " in error or hint is None


def test_the_name_of_a_page_that_is_gone_shows_the_one_that_has_its_words(run: Any) -> None:
    assert {*MOVED.values()} <= {*NAMES}
    assert not {*MOVED} & {*NAMES}
    assert run("docs", "which-map") == run("docs", "numbers")


def test_the_set_of_pages_stays_small() -> None:
    assert len(PAGES) <= 20
    assert sum(len(path.read_text("utf-8").split()) for path in PAGES) <= 28_000
    assert README.read_text("utf-8").count("\n") <= 120


def test_a_word_that_is_no_page_names_the_nearest(run: Any) -> None:
    code, shown, error = run("docs", "part")
    assert (code, shown) == (2, "")
    assert "there is no page 'part': did you mean parts?" in error
    assert "there are start, data, " in run("docs", "xyzzy")[2]


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_docs_are_drawn_on_a_terminal_that_has_the_characters(encoding: str) -> None:
    code = f"sys.stdout.reconfigure(encoding={encoding!r})\nfrom rankmill.cli import main\n"
    shown = "\n".join(on_a_terminal(f"import sys\n{code}main(['docs', 'speed'])", 100))
    assert "Rivals" in shown
    assert "\\xd7" in shown or encoding == "utf-8"
    assert ("##" in shown) == ("```" in shown) == (encoding == "ascii")
