"""Without the extra "test", what needs a library that is not there is skipped, with its name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = str(Path(__file__).resolve().parents[1])
# What the extra brings besides pytest, by the names of modules.
MODULES = {
    *("attrs", "cwl", "duckdb", "fsspec", "hypothesis", "implicit", "ir_measures", "moto"),
    *(
        "pandas",
        "polars",
        "proselint",
        "pyndeval",
        "pyNTCIREVAL",
        "pytrec_eval",
        "pytest_benchmark",
    ),
    *("rectools", "sklearn", "statsmodels", "torch", "torchmetrics"),
}


class Missing:
    """The last finder of modules: it ends the test, or the file of tests, that imports one.

    What the package itself tries to import stays an ImportError.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Skip what imports a module that nothing before this has found."""
        frame = sys._getframe(1)
        while "importlib._bootstrap" in frame.f_code.co_filename and frame.f_back is not None:
            frame = frame.f_back
        if name.partition(".")[0] in MODULES and frame.f_code.co_filename.startswith(TESTS):
            skip(name)


def skip(name: str) -> None:
    """Say what is missing, and what brings it."""
    reason = f"{name} is not installed: pip install --editable '.[test]'"
    pytest.skip(reason, allow_module_level=True)
