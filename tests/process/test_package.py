"""The package as a whole: what is loaded when, who imports whom, what the repository holds."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import oracle
import rankmill
from rankmill.package import GONE
from repository import HOUSE, ROOT, SOURCE, run_python

FILES = sorted(SOURCE.rglob("*.py"))

# Tests of differences know no system: only numbers, and the exact sums of them.
STATISTICS = {"kernels", "columns", "threads", "metrics"}
MOST_ROOMS, MOST_ARROWS, MOST_STORIES, MOST_FLOORS = 27, 150, 11, 6
# What anything may import: errors, the version, and how public names are handed on.
BASE = {"errors", "package", "records"}
# The package itself holds the lazy public names; a process starts at __main__.
ENTRIES = {"", "__main__"}
# The public modules, which only hand names on. Those that are folders do so in their __init__.
PUBLIC = ("arrays", "config", "ir_measures", "kaggle", "metrics", "parts", "pytrec_eval", "spark")
PUBLIC += ("torch",)
ENTRIES |= {"arrays", "ir_measures", "kaggle", "parts", "pytrec_eval", "torch"}


# ------------------------------------------------------------------ what is loaded when


def test_import_loads_nothing_heavy() -> None:
    loaded = run_python("import rankmill, sys; print(*sys.modules)").split()
    assert "rankmill" in loaded
    assert {"numpy", "numba", "pyarrow", "click", "rich"}.isdisjoint(loaded)


HELPS = """--help; --version; evaluate --help; presets; explain --help; explain-evaluators --help
compare --help; report --help; gate --help; history --help; history prune --help; docs
docs speed; docs --help; init --help"""


def test_help_loads_nothing_heavy() -> None:
    """One process for all: the first one that loads something is named."""
    code = f"""
import contextlib, io, sys
import rankmill.__main__  # what a process runs; it ends by os._exit, so that main is called here
from rankmill.cli import main
for words in {HELPS!r}.replace("; ", chr(10)).splitlines():
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            main(words.split(), "rankmill")
        except SystemExit as ending:
            assert not ending.code, ending.code
    assert shown.getvalue().strip(), words
    assert "click" in sys.modules
    loaded = {{"numpy", "numba", "pyarrow", "rich"}} & sys.modules.keys()
    assert not loaded, (words, loaded)
print("none")
"""
    assert run_python(code) == "none\n"


INPUTS = [
    "'labels.csv', 'wide.csv'",
    "'labels.csv', 'long.csv'",
    "'labels.csv', 'strange.csv'",
    "'labels.csv', 'odd.csv'",
    "'labels.csv', 'printed.csv'",
    "'qrels.txt', 'run.trec'",
    "{'a': ['x']}, {'a': {'x': 0.5, 'y': 1.0}}",
    "{1: [2]}, {1: [(2, 0.5)]}",
    "[[1], []], [[1, 2], [3]]",
]


def test_evaluate_does_not_load_pandas(tmp_path: Path) -> None:
    """Arrow imports it to convert a list or a NumPy array, which takes longer than a small run."""
    pytest.importorskip("pandas")
    for name, text in {
        "labels.csv": "user_id,item_id\na,x\nb,y\n",
        "wide.csv": "user_id,items\na,x y\nb,y z\n",
        "long.csv": "user_id,item_id,score\na,x,0.5\nb,y,1\n",
        "qrels.txt": "a 0 x 1\n",
        "run.trec": "a Q0 x 1 0.5 tag\n",
        "shuffled.csv": "user_id,item_id,score\nb,x,0.5\na,y,1\nb,y,1\n",
        "strange.csv": "user_id,item_id,score\n0a,x,0.5\nb,y,1\n",  # it is looked up without zeros
        "odd.csv": "user_id,item_id,rank\na, x,1.0\nb,nan,2.0\n",
        "printed.csv": "user_id,items\na,\"['x', 'y']\"\nb,['y']\n",
    }.items():
        (tmp_path / name).write_text(text)
    calls = [f"rankmill.evaluate({inputs}, 'map')" for inputs in INPUTS]
    calls.append("rankmill.evaluate('labels.csv', 'long.csv', 'map', by='label_count').by")
    calls.append("rankmill.explain('labels.csv', 'long.csv', 'map', query_id='a').table")
    calls.append(
        "rankmill.compare('labels.csv', {'a': 'wide.csv', 'b': 'long.csv'}, 'map', moved=1)"
    )
    calls.append("rankmill.convert('shuffled.csv', 'out.parquet')")
    code = f"""
import os, sys, rankmill
os.chdir({str(tmp_path)!r})
for call in {calls!r}:
    eval(call)
    assert "pandas" not in sys.modules, call
print("none")
"""
    assert run_python(code) == "none\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["evaluate", "--help"], ["oops"]])
def test_command_and_module_are_the_same(arguments: list[str]) -> None:
    command = Path(sysconfig.get_path("scripts")) / "rankmill"
    assert command.exists(), "install the package first: pip install -e '.[test]'"
    outcomes = [
        subprocess.run([*start, *arguments], capture_output=True, text=True, check=False)
        for start in ([str(command)], [sys.executable, "-m", "rankmill"])
    ]
    assert outcomes[0].stdout + outcomes[0].stderr
    assert outcomes[0].stdout == outcomes[1].stdout
    assert outcomes[0].stderr == outcomes[1].stderr
    assert outcomes[0].returncode == outcomes[1].returncode


def test_version_has_one_source() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "rankmill", "--version"], capture_output=True, text=True, check=True
    )
    assert rankmill.__version__ in printed.stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+", rankmill.__version__)
    assert rankmill.__version__ not in (ROOT / "pyproject.toml").read_text()


# ------------------------------------------------------------------ public names


VERBS = ["evaluate", "evaluate_runs", "compare", "gate", "gate_power", "explain"]
VERBS += ["explain_evaluators", "convert", "head", "plan", "metric"]
TAKEN = ["Labels", "Predictions", "Catalogue", "Semantics", "Rules", "Tests"]
GIVEN = ["Result", "Results", "Comparison", "Verdict", "History", "Trace"]
ERRORS = ["InputError", "RankmillError", "RegressionError", "ResourceError", "UsageError"]


@pytest.mark.parametrize("name", rankmill.__all__)
def test_public_name(name: str) -> None:
    value = getattr(rankmill, name)
    if name.startswith("__"):
        assert isinstance(value, str)
    else:
        assert value.__module__.startswith("rankmill.")
        assert value.__doc__
        assert value.__doc__.strip()


def test_the_example_of_the_help_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = (rankmill.__doc__ or "").split("::\n")[1].split("\n``")[0]
    exec(textwrap.dedent(told), {})
    assert len(rankmill.History("history")) == 1
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("recall@5", "num_rel_ret:sum", "label_count"))


def test_public_names_are_listed() -> None:
    assert len(rankmill.__all__) == len(set(rankmill.__all__))
    assert sorted(rankmill.__all__) == sorted([*VERBS, *TAKEN, *GIVEN, *ERRORS])
    assert len({*rankmill.__all__} - {*ERRORS}) <= 26
    shown = [name for name in dir(rankmill) if not name.startswith("__")]
    assert shown == sorted([*rankmill.__all__, *PUBLIC])
    listed = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in shown if f"`{name}`" not in listed] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        rankmill.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", [name for name in GONE if name.isidentifier()])
def test_a_name_that_is_gone_says_what_to_use(name: str) -> None:
    assert name not in dir(rankmill)
    with pytest.raises(AttributeError, match=f"^{GONE[name]}$"):
        getattr(rankmill, name)
    with pytest.raises(ImportError, match=f"^{GONE[name]}$"):
        exec(f"from rankmill import {name}", {})


def test_no_module_hides_a_function() -> None:
    assert {room(module) for module in MODULES}.isdisjoint(rankmill.__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_public_modules_hand_names_on(module: str) -> None:
    one = getattr(rankmill, module)
    assert one.__doc__
    for name in one.__all__:
        needs = {"ListwiseAPLoss": "torch", "RankingMetric": "torchmetrics"}.get(name, "numpy")
        if importlib.util.find_spec(needs):
            assert getattr(one, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        one.no_such_name  # noqa: B018


MOST = {"evaluate": 12, "evaluate_runs": 12, "compare": 20, "gate": 19}


@pytest.mark.parametrize("name", VERBS)
def test_a_function_has_few_parameters_and_all_have_names(name: str) -> None:
    functions = [getattr(rankmill, name), getattr(rankmill.spark, name, None)]
    for function in filter(None, functions):
        parameters = inspect.signature(function).parameters
        assert len(parameters) <= MOST.get(name, 18)
        assert {one.kind for one in parameters.values()} <= {
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        }
        told = " ".join((function.__doc__ or "").split())
        assert [one for one in parameters if one not in told] == []


def test_parts_have_no_nameless_parameters() -> None:
    for name in rankmill.parts.__all__:
        if inspect.isfunction(one := getattr(rankmill.parts, name)):
            kinds = {each.kind for each in inspect.signature(one).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_the_package_says_that_it_is_typed() -> None:
    """What mypy makes of that, it says of programs and of support/client.py."""
    assert (SOURCE / "py.typed").is_file()


# ------------------------------------------------------------------ who imports whom


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The full names of all modules that a module imports, inside of functions too."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                start = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{start}.{alias.name}"
                found.add(inner if inner in MODULES else start)
    return frozenset(found - {module})


def is_in(module: str, layer: set[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in layer)


def room(module: str) -> str:
    """The folder below the package that a module is in, or its name where it is in none."""
    return module.removeprefix("rankmill").removeprefix(".").partition(".")[0]


def reach(folder: str) -> set[str]:
    """All folders that one may import from: its own, and those of the table and theirs."""
    return {folder}.union(*map(reach, HOUSE[folder]))


def own_imports(module: str) -> set[str]:
    return {name for name in imports(module) if is_in(name, {"rankmill"})}


def foreign_imports(module: str) -> set[str]:
    packages = {name.partition(".")[0] for name in imports(module)}
    return packages - sys.stdlib_module_names - {"rankmill", "__future__"}


def test_imports_are_read_at_all() -> None:
    assert "rankmill.engine.evaluate" in MODULES
    assert "rankmill.kernels.jit" in own_imports("rankmill.kernels.metrics")
    assert "numba" in foreign_imports("rankmill.kernels.compiler")


def test_every_folder_is_in_the_table() -> None:
    assert {room(module) for module in MODULES} <= HOUSE.keys() | BASE | ENTRIES


@pytest.mark.parametrize("module", MODULES)
def test_imports_keep_to_the_table(module: str) -> None:
    if room(module) in ENTRIES or module.endswith(".__main__"):
        return
    if module in {f"rankmill.{name}" for name in PUBLIC}:
        return
    used = {room(name) for name in own_imports(module)} - BASE
    if room(module) in BASE:
        assert not used
        return
    if room(module) == "cli":
        used -= ENTRIES  # commands call what programs call
    assert used <= reach(room(module))
    if room(module) == "kernels":
        # A compiled kernel is kept for the sources of all kernels/, but calls only its own file's,
        # intrinsics, which are instructions, how ids are compared, and how values are sorted.
        shared = {"rankmill.kernels.jit", "rankmill.kernels.intrinsics"}
        if module.rpartition(".")[2] in ("jit", "cache", "compiler", "instructions"):
            policy = ("cache", "compiler", "instructions", "plain")
            shared |= {f"rankmill.kernels.{name}" for name in policy}
        shared |= {f"rankmill.kernels.{name}" for name in ("identity", "order")}
        assert own_imports(module) <= shared | {"rankmill.kernels"}


def test_statistics_know_no_system() -> None:
    for module in MODULES:
        if module.startswith("rankmill.analysis.statistics."):
            used = {name for name in own_imports(module) if room(name) not in BASE | STATISTICS}
            assert {name.rpartition(".")[0] for name in used} <= {"rankmill.analysis.statistics"}


def floors_of(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """On which floor each one stands: one above all that it imports."""
    floors: dict[str, int] = {}
    for one in graphlib.TopologicalSorter(graph).static_order():
        floors[one] = 1 + max((floors[each] for each in graph[one]), default=0)
    return floors


def test_the_house_has_few_rooms() -> None:
    # Records stand for the standard library's dataclasses, which are no room either.
    modules = [module for module in MODULES if room(module) != "records"]
    graph: dict[str, set[str]] = {room(module): set() for module in modules}
    for module in modules:
        used = {room(name) for name in own_imports(module)}
        graph[room(module)] |= used - {room(module), "records"}
    assert len(graph) <= MOST_ROOMS
    assert sum(map(len, graph.values())) <= MOST_ARROWS
    # The package only names what is below it, and is named for its version.
    below = {one: used - {""} for one, used in graph.items() if one}
    assert max(floors_of(below | {"": graph[""]}).values()) <= MOST_STORIES


FOLDERS = sorted({module.rpartition(".")[0] for module in MODULES} - {"", "rankmill"})


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_in_a_folder_stands_on_few_floors(folder: str) -> None:
    """The files and folders of a folder import each other in one direction."""
    depth = folder.count(".") + 2
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        if module.startswith(f"{folder}."):
            below = [name for name in own_imports(module) if name.startswith(f"{folder}.")]
            one = ".".join(module.split(".")[:depth])
            used = {".".join(name.split(".")[:depth]) for name in below}
            graph.setdefault(one, set()).update(used - {one})
    assert max(floors_of(graph).values()) <= MOST_FLOORS


def test_a_class_name_stands_once() -> None:
    names = [
        node.name
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_files_are_called_by_nouns() -> None:
    assert [path.stem for path in FILES if re.search("(ing|ed)$", path.stem)] == []


def test_no_import_goes_in_a_circle() -> None:
    # The package itself is left out: it holds the lazy public names, and all import its version.
    # cli/__init__.py is a group of commands, which are files beside it.
    graph = {module: own_imports(module) - {"rankmill"} for module in MODULES}
    del graph["rankmill"]
    tuple(graphlib.TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_foreign_imports(module: str) -> None:
    allowed = {"numpy", "numba"} if room(module) == "kernels" else {"numpy", "pyarrow"}
    if room(module) in ("cli", "__main__"):
        allowed = {"click", "rich", "numpy", "pyarrow"}
    if module == "rankmill.config.config":
        allowed = allowed | {"click"}
    if module in {f"rankmill.kernels.{name}" for name in ("instructions", "cache", "compiler")}:
        allowed = allowed | {"llvmlite"}  # a part of numba
    if module == "rankmill.io.stores.fsspec_files":
        allowed = allowed | {"fsspec", "aiohttp"}  # only for URLs that pyarrow does not know
    if module == "rankmill.adapters.torch.loss":
        allowed = {"torch"}
    if module == "rankmill.adapters.torch.ranking_metric":
        allowed = {"torch", "torchmetrics"}
    if room(module) == "spark":
        allowed = allowed | {"pyspark", "py4j"}  # only inside functions, as it is an extra
    if module == "rankmill.nightly.rules.reports":
        allowed = allowed | {"mlflow"}  # only for --mlflow
    if module == "rankmill.analysis.statistics.distributions":
        allowed = allowed | {"scipy"}  # only for who needs a tail: it takes long to import
    if module == "rankmill.results.answer":
        allowed = allowed | {"polars"}  # only for who asks for a frame
    if module == "rankmill.nightly.report.pages":
        allowed = allowed | {"jinja2"}  # only for who asks for a page
    if module == "rankmill.adapters.trec.provider":
        allowed = allowed | {"ir_measures"}  # which it is for
    if module == "rankmill.adapters.kaggle.submission":
        allowed = allowed | {"kaggle_metric_utilities"}  # only where Kaggle has it
    if module == "rankmill.adapters.kaggle.functions":
        allowed = allowed | {"pandas"}  # only for who asks for its table
    assert foreign_imports(module) <= allowed


# The statements that each folder may have; a budget goes up only for a reason that its commit says.
BUDGETS = {
    "adapters": 1_461,
    "analysis": 3_821,
    "cli": 2_104,
    "columns": 1_123,
    "config": 672,
    "engine": 3_277,
    "io": 845,
    "kernels": 3_065,
    "matching": 746,
    "metrics": 4_020,
    "nightly": 4_644,
    "results": 553,
    "root": 532,
    "semantics": 191,
    "show": 805,
    "sources": 6_664,
    "spark": 1_277,
}


@pytest.mark.small
def test_folders_keep_to_their_budgets() -> None:
    """Docstrings do not count, and lines do not matter."""
    counts = Counter[str]()
    for path in FILES:
        parts = path.relative_to(SOURCE).parts
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        counts[parts[0] if len(parts) > 1 else "root"] += sum(
            isinstance(node, ast.stmt) and not is_docstring(node) for node in nodes
        )
    over = {
        name: f"{count} of {BUDGETS[name]}"
        for name, count in counts.items()
        if count > BUDGETS[name]
    }
    todo = "delete as many elsewhere, or raise BUDGETS of this file and say in the commit what for"
    assert not over, f"{over} statements: {todo}"


def is_docstring(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_source_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


# ------------------------------------------------------------------ the tests

TESTS = ROOT / "tests"
# Tests of what no folder has alone, and what tests share.
APART = {"contract", "peers", "process", "programs", "samples", "shown", "support"}


def test_tests_mirror_the_house() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    mirrored = {one for one in folders if one.parts[:1] and one.parts[0] not in APART}
    assert {one.parts[0] for one in mirrored} >= {*HOUSE} - {"kernels", "threads"}
    assert [one for one in mirrored if not (SOURCE / one).is_dir()] == []


def test_no_test_imports_from_another() -> None:
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^\s*(from|import) .*\btest_", text, re.M):
            continue  # parsing all takes seconds
        for node in ast.walk(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert [n for n in names if n.rpartition(".")[2].startswith("test_")] == [], path


# ------------------------------------------------------------------ the repository


@pytest.fixture(scope="module")
def repository_files() -> list[Path]:
    """All files of the repository, those not yet committed too."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize(
    "unwanted",
    [
        # Written so that no pattern matches itself.
        pytest.param(
            r"py[p]i\.(?:org|python)|pythonhosted\.|registry\.npm|deb\.debian|conda\.anaconda",
            id="registry host",
        ),
        pytest.param(r"(?<![\w.$}])/(?:work|root|opt|Users)/", id="path of one machine"),
    ],
)
def test_repository_names_no_host_or_machine(repository_files: list[Path], unwanted: str) -> None:
    found = []
    for path in repository_files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.name}: {match[0]}" for match in re.finditer(unwanted, text)]
    assert Path(__file__) in repository_files
    assert found == []


@pytest.mark.parametrize("name", ["scripts/demo", "scripts/test", "scripts/test-spark", ".ci/run"])
def test_scripts_can_be_started(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert subprocess.run(["bash", "-n", str(ROOT / name)], check=False).returncode == 0


# ------------------------------------------------------------------ the made-up dump


def make_dump(folder: Path, *options: str) -> tuple[Path, Path]:
    command = [sys.executable, str(ROOT / "benchmarks" / "generate.py"), str(folder), *options]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "labels.parquet", folder / "predictions.parquet"


def as_mapping(path: Path) -> dict[Any, list[Any]]:
    columns = pq.read_table(path).to_pydict()
    if "scores" not in columns:
        return dict(zip(columns["user_id"], columns["items"], strict=True))
    pairs = (
        list(zip(items, scores, strict=True))
        for items, scores in zip(columns["items"], columns["scores"], strict=True)
    )
    return dict(zip(columns["user_id"], pairs, strict=True))


DUMP_METRICS = ["map@12", "map", "mrr@12", "precision@5", "recall@12", "hit@3", "f1@12"]
DUMP_METRICS += ["rprec", "ndcg@12", "dcg", "gap", "gap@3"]


@pytest.mark.parametrize(
    ("users", "options"),
    [
        pytest.param(300, [], marks=[pytest.mark.small, pytest.mark.lengthy]),
        pytest.param(
            300, ["--strings", "--shuffle"], marks=[pytest.mark.small, pytest.mark.lengthy]
        ),
        pytest.param(
            2_000, ["--row-group", "300", "--strings", "--shuffle"], marks=pytest.mark.long
        ),
        pytest.param(8_000, ["--row-group", "1_000"], marks=pytest.mark.long),
        pytest.param(
            8_000, ["--row-group", "1_000", "--strings", "--shuffle"], marks=pytest.mark.long
        ),
    ],
)
def test_dump_equals_the_oracle(users: int, options: list[str], tmp_path: Path) -> None:
    paths = make_dump(tmp_path, "--users", str(users), "--long", *options)
    expected = oracle.evaluate(*map(as_mapping, paths), DUMP_METRICS)
    assert expected.metrics["gap"] > 0
    for path in paths:
        long = path.with_stem(f"{path.stem}_long")
        assert long.exists()
    for labels in (paths[0], paths[0].with_stem("labels_long")):
        for predictions in (paths[1], paths[1].with_stem("predictions_long")):
            result = rankmill.evaluate(labels, predictions, metrics=DUMP_METRICS)
            assert result.metrics == pytest.approx(expected.metrics, rel=1e-12, abs=1e-12)
            assert result.queries == expected.queries


@pytest.mark.long
def test_dump_is_made_as_told(tmp_path: Path) -> None:
    users = 50_000
    labels, predictions = map(as_mapping, make_dump(tmp_path, "--users", str(users)))
    everyone = labels.keys() | predictions.keys()
    sizes = [len(items) for items in labels.values()]
    lists = [[item for item, _ in listed] for listed in predictions.values()]
    assert len(everyone) == users
    assert {len(listed) for listed in lists} == {12}
    # Each bound is at least five standard deviations away from what the docstring promises.
    assert sum(sizes) / len(sizes) == pytest.approx(3.6, abs=0.06)
    assert sizes.count(0) / users == pytest.approx(0.005, abs=0.002)
    assert (users - len(labels)) / users == pytest.approx(0.005, abs=0.002)
    assert (users - len(predictions)) / users == pytest.approx(0.005, abs=0.002)
    repeating = sum(len(set(listed)) < len(listed) for listed in lists)
    assert repeating / len(lists) == pytest.approx(0.01, abs=0.003)
    assert all(len(set(items)) == len(items) for items in labels.values())
    hits = sum(
        len({item for item, _ in listed} & set(labels.get(user, ())))
        for user, listed in predictions.items()
    )
    assert 0.055 < hits / (12 * len(lists)) < 0.15
    items = {item for listed in lists for item in listed}
    assert all(10**8 <= item < 10**9 for item in items)
    assert all(
        scores == sorted(scores, reverse=True)
        for scores in ([score for _, score in listed] for listed in predictions.values())
    )


@pytest.mark.long
def test_dump_is_the_same_again_and_kept_if_there(tmp_path: Path) -> None:
    first = make_dump(tmp_path / "first", "--users", "500")
    again = make_dump(tmp_path / "again", "--users", "500")
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    before = first[0].stat().st_mtime_ns
    make_dump(tmp_path / "first", "--users", "500", "--if-missing")
    assert first[0].stat().st_mtime_ns == before
    first[1].write_bytes(first[1].read_bytes()[:-100])
    make_dump(tmp_path / "first", "--users", "500", "--if-missing")
    assert first[1].read_bytes() == again[1].read_bytes()
    make_dump(tmp_path / "first", "--users", "500", "--seed", "1", "--if-missing")
    assert first[1].read_bytes() != again[1].read_bytes()
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == [
        "labels.parquet",
        "predictions.parquet",
    ]
