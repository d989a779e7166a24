"""An installation without extras: help and completion work, and what needs an extra names it."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rankmill.errors import install
from repository import ROOT, SOURCE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# For developers: no code of the package names them.
NOT_FOR_USERS = {"docs", "test", "test-mlflow", "test-parts", "test-tables", "bench", "peers"}
# What needs the packages of each extra, below `import rankmill`.
USES = {
    "torch": "rankmill.torch.ListwiseAPLoss",
    "ir_measures": "rankmill.ir_measures",
    "delta": "rankmill.evaluate('delta', 'p.csv', 'map@3')",
    "iceberg": "rankmill.evaluate('iceberg', 'p.csv', 'map@3')",
    "remote": "rankmill.head('https://127.0.0.1:1/a.csv')",
    "spark": "main(['spark', 'evaluate', 'l.csv', 'p.csv', '-m', 'map@3'], 'r')",
    "mlflow": "main(['gate', 'l.csv', 'p.csv', '--rule', 'map@3 >= 0.1', '--history', 'h', "
    "'--mlflow=http://127.0.0.1:1'], 'r')",
}


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return found[0]


def needed(requirements: list[str]) -> set[str]:
    """The distributions that some need, with all that these need, as far as they are installed."""
    found, open_ones = set[str](), [*map(name_of, requirements)]
    while open_ones:
        name = open_ones.pop()
        try:
            more = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another system or Python
            continue
        if name not in found:
            found.add(name)
            open_ones += [name_of(one) for one in more if "extra ==" not in one]
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages: rankmill, and what it needs without extras."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "rankmill").symlink_to(SOURCE)
    for name in needed(PROJECT["dependencies"]):
        files = importlib.metadata.files(name) or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            found = Path(str(importlib.metadata.distribution(name).locate_file(top)))
            if found.exists() and not (folder / top).exists():
                (folder / top).symlink_to(found)
    return folder


def run_bare(bare: Path, code: str, folder: Path) -> Any:
    start = f"import sys; sys.path.insert(0, {str(bare)!r})\nimport json, rankmill\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_each_extra_has_a_use() -> None:
    assert {*PROJECT["optional-dependencies"]} - NOT_FOR_USERS == {*USES}


def test_no_package_of_an_extra_is_there(bare: Path, tmp_path: Path) -> None:
    """Otherwise, the tests below say nothing."""
    code = """
from importlib.util import find_spec
names = "torch torchmetrics ir_measures fsspec pyspark pandas mlflow"
print(json.dumps([name for name in names.split() if find_spec(name)]))
"""
    assert run_bare(bare, code, tmp_path) == []


def test_what_needs_an_extra_names_it(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("user_id,item_id\n1,10\n")
    (tmp_path / "p.csv").write_text("user_id,item_id,score\n1,10,0.5\n")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "iceberg" / "metadata").mkdir(parents=True)
    (tmp_path / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    code = f"""
import contextlib, io
from rankmill.cli import main
labels, runs = {{"a": ["x"]}}, {{"a": ["y", "x"]}}
told = {{}}
for extra, use in {USES!r}.items():
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        try:
            eval(use)
        except (Exception, SystemExit) as error:
            told[extra] = f"{{error}} {{shown.getvalue()}}"
print(json.dumps(told))
"""
    told = run_bare(bare, code, tmp_path)
    for extra in USES:
        assert install(extra) in " ".join(told[extra].split())


def test_help_and_completion_work(bare: Path, tmp_path: Path) -> None:
    code = """
import inspect, pydoc, rlcompleter
shown = []
for module in (rankmill, rankmill.torch):
    names = [name for name in dir(module) if not name.startswith("__")]
    members = [name for name, value in inspect.getmembers(module) if not name.startswith("__")]
    typed = rlcompleter.Completer({"it": module}).attr_matches("it.")
    assert pydoc.render_doc(module)
    shown.append(names)
    assert members == names, (members, names)
    assert {one.removeprefix("it.").rstrip("()") for one in typed} == {*names}, typed
assert not hasattr(rankmill, "ir_measures")
assert getattr(rankmill.torch, "RankingMetric", None) is None
print(json.dumps(shown))
"""
    import rankmill

    package, torch = run_bare(bare, code, tmp_path)
    everything = [*rankmill.__all__, *rankmill._MODULES]
    assert package == sorted({*everything} - {"ir_measures"})
    assert torch == ["ListwiseLoss", "listwise_ap", "listwise_ap_loss"]


IMPORTS = {
    "import rankmill.ir_measures": "ir_measures",
    "from rankmill import ir_measures": "ir_measures",
    "from rankmill.ir_measures import provider": "ir_measures",
    "from rankmill.torch import ListwiseAPLoss": "torch",
    "from rankmill.torch import listwise_ap, ListwiseAPLoss": "torch",
}


def test_an_import_names_the_extra(bare: Path, tmp_path: Path) -> None:
    code = f"""
told = []
for line in {[*IMPORTS]!r}:
    try:
        exec(line)
    except ImportError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    told = run_bare(bare, code, tmp_path)
    for text, extra in zip(told, IMPORTS.values(), strict=True):
        assert text.endswith(install(extra))
