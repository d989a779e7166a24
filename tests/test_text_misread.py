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
