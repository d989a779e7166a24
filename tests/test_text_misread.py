"""Text that would be read as something else than was meant is an error, or read as it was meant."""

from pathlib import Path
from typing import Any

import pytest

import rankmill
import text_files as text
from rankmill.errors import InputError

LABELS = {"q1": ["a", "b"], "q2": ["c", "d"]}


def scored(labels: Any, predictions: Any, **options: Any) -> float:
    """The map of some inputs."""
    return float(rankmill.evaluate(labels, predictions, metrics=["map"], **options)["map"])


@pytest.mark.small
@pytest.mark.parametrize("content", [b'{"q": {"a": 1}, "q": {"b": 1}}', b'{"q": {"a": 1, "a": 0}}'])
def test_a_name_that_stands_twice_in_json(tmp_path: Path, content: bytes) -> None:
    path = text.write(tmp_path, "labels.json", content)
    with pytest.raises(InputError, match="stands twice in one object"):
        scored(path, {"q": ["a", "b"]})


@pytest.mark.small
@pytest.mark.parametrize("missing", ["null", "None", "nan", "NaN"])
@pytest.mark.parametrize("other", ["'d'", r"'\x64'"])  # a list with an escape is parsed otherwise
def test_missing_items_of_lists_in_cells_are_null(tmp_path: Path, missing: str, other: str) -> None:
    cells = f"query,items\nq1,\"[{missing}, 'a', 'b']\"\nq2,\"['c', {other}]\"\n"
    path = text.write(tmp_path, "run.csv", cells.encode())
    assert scored(LABELS, path) == scored(LABELS, {"q1": [None, "a", "b"], "q2": ["c", "d"]}) == 1


@pytest.mark.small
def test_lists_with_escapes_do_not_change_the_others(tmp_path: Path) -> None:
    cells = "query,items\nq1,['a' 'b']\nq2,\"['c', '\\x64']\"\nq3,[01 1.50]\nq4,[]\nq5,['e']\n"
    path = text.write(tmp_path, "run.csv", cells.encode())
    lists = {**LABELS, "q3": ["01", "1.50"], "q5": ["e"]}
    assert scored(lists, path) == scored(path, lists) == 1


@pytest.mark.small
@pytest.mark.parametrize("cell", ["['a' 'b' ... 'y' 'z']", "['a', ..., 'z']", r"['a' '\x64']"])
def test_lists_that_are_not_whole(tmp_path: Path, cell: str) -> None:
    path = text.write(tmp_path, "run.csv", f'query,items\nq1,"{cell}"\n'.encode())
    with pytest.raises(InputError, match=r"line 2: items is .* expected a list"):
        scored(LABELS, path)
