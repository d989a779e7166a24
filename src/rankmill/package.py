"""The package: its version, that of what it writes, and how it hands its public names on.

Public names are those of the modules that define them, which are loaded on first use.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from rankmill.errors import InputError

__all__ = ["FORMAT", "__version__", "check_stamp", "handed_on", "public", "stamp"]

__version__ = "0.9.0"

#: The version of the JSON of all outcomes, of tables of queries, and of the runs of a history.
#: Raise it when a key changes its meaning; what an earlier version wrote is still read.
FORMAT = 1


_PLAN_ON_SPARK = (
    "planning on Spark is gone: both inputs are always shuffled by query, into one partition for "
    "each 32 MB of files; rankmill docs spark says how much memory a task needs"
)

_PREFERENCES = (
    "preferences are gone: use the program trec_eval for -R prefs and qrels_prefs; pair_accuracy "
    "takes the preferences of judged predictions"
)

#: What an earlier version had -> what to use instead: the name of a function and a command, that of
#: a module's such as spark.plan, an option such as --splits, which is a key of TOML, too, or what
#: an option took.
GONE = {
    **dict.fromkeys(["prefs", "qrels_prefs", "all_prefs"], _PREFERENCES),
    "qrels_jg": "qrels of several judges are gone: use the program trec_eval for -R qrels_jg, or "
    "evaluate the labels of each judge and take the mean",
    "items of top_k": "top_k no longer multiplies vectors: give it the scores, queries @ items.T, "
    "or search with a package such as faiss, and evaluate the ids that it finds",
    "spark.plan": _PLAN_ON_SPARK,
    "spark.plan_runs": _PLAN_ON_SPARK,
    "selftest": "selftest is gone: use rankmill warmup, which checks the installation, too",
    **dict.fromkeys(
        ["--html", "--man"],
        "it is gone: use rankmill docs PAGE, or read the pages in the folder docs of the package",
    ),
    "--worst-slices": "it is gone: --by shows every slice with its difference",
    "--min-overlap": "it is gone: queries are paired where both sides have 90% of them",
    "--replicates": "it is gone: the randomization test draws 10,000",
    "sequential": "sequential is gone: write the first night of a series, as in map@12 drop <= 1% "
    "confidence 0.95 since 2026-05-01",
    "undecided pass": "undecided pass is gone: take warn, which passes, too, and says so",
    "fuse": "fusing is gone: use ranx.fuse or the Python package of your choice, then evaluate the "
    "fused run",
    "best": "the baseline best is gone, as the best of many nights is a lucky one: name last, "
    "median:7, or the run of a release by its tag, as tag:release=v7",
    "stability": "stability is gone: compare with cutoffs shows how the ranking changes, as in "
    "rankmill compare --cutoffs 1,5,10",
    "Stability": "stability is gone: compare with cutoffs shows how the ranking changes",
    "bootstrap": "the bootstrap is gone: take the test t or randomization",
    "bca": "the bootstrap is gone: take the test t or randomization",
    "sign": "the sign test is gone: take the test wilcoxon, or randomization for the mean",
    "tukey": "Tukey's test is gone: take the test randomization with all_pairs, corrected by holm",
    "bonferroni": "the correction bonferroni is gone: take holm, which finds all that it finds",
}


def stamp() -> dict[str, Any]:
    """Return the keys with which all that is written for later begins."""
    return {"rankmill": __version__, "format": FORMAT}


def check_stamp(told: Mapping[str, Any], source: str) -> None:
    """Raise InputError if a later version of rankmill wrote what this one reads.

    Examples
    --------
    >>> check_stamp({"rankmill": "7.0", "format": 9}, "old.json")
    Traceback (most recent call last):
        ...
    rankmill.errors.InputError: old.json is of format 9, which rankmill 7.0 wrote; ...
    """
    found = told.get("format", 1)
    if not isinstance(found, int) or found > FORMAT:
        wrote = told.get("rankmill") or "another version"
        raise InputError(
            f"{source} is of format {found!r}, which rankmill {wrote} wrote; this is rankmill "
            f"{__version__}, which reads formats up to {FORMAT}: read it with rankmill {wrote} or "
            "newer"
        )


def handed_on(
    module: str,
    homes: Mapping[str, str],
    modules: Collection[str] = (),
    needs: Mapping[str, str] = {},
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module that hands names on.

    `homes` is public name -> the module below rankmill that defines it, and `modules` are the
    public modules within the module. `needs` is public name -> the package of an extra that it
    needs: without it, the name is not listed.
    """

    def find(name: str) -> Any:
        from importlib import import_module

        if name not in homes and name not in modules:
            gone = GONE.get(f"{module}.{name}".removeprefix("rankmill."))
            if gone is not None and _imports_a_name(sys._getframe(1)):
                raise ImportError(gone)
            raise AttributeError(gone or f"module {module!r} has no attribute {name!r}")
        try:
            if name in modules:
                return import_module(f"{module}.{name}")
            value = getattr(import_module(f"rankmill.{homes[name]}"), name)
        except ImportError as error:
            if name not in needs or _imports_a_name(sys._getframe(1)):
                raise
            # hasattr, help and completion expect no other error.
            raise AttributeError(str(error)) from error
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        own = (name for name in vars(sys.modules[module]) if name.startswith("__"))
        missing = {name for name, package in needs.items() if not _is_installed(package)}
        return sorted({*homes, *modules, *own} - missing)

    return find, names


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    with suppress(ImportError):  # which a finder may raise to hide a package
        return bool(sys.modules.get(package) or find_spec(package))
    return False


def _imports_a_name(frame: FrameType) -> bool:
    """Return whether a frame runs `from ... import ...`, which drops an AttributeError's text."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def public(name: str) -> Any:
    """Return a public function or class by its name, for those that stand below its module."""
    return getattr(sys.modules["rankmill"], name)
