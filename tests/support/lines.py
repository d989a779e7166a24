"""Tables that have a line for each metric: what lacks one is told with the file and the line."""

from __future__ import annotations

from collections.abc import Iterable, Set

import pytest


def expect_lines(path: str, line: str, wanted: Iterable[str], there: Set[str]) -> None:
    """Fail unless a table has just the lines that are wanted.

    `line` is what to add, with {name} for the metric.
    """
    missing, spare = sorted({*wanted} - there), sorted(there - {*wanted})
    told = [f"add to {path}, {line.format(name=name)}" for name in missing]
    told += [f"take {name} out of {path}, {line.partition(':')[0]}" for name in spare]
    if told:
        pytest.fail("\n".join(told), pytrace=False)
