"""scripts/messages.py shows every message, however it is put together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from repository import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import messages as script

RAISED = """
def one(a, b):
    raise InputError(f"{a.name}: {len(b)} rows; " "expected " + "as many")
    return UsageError("made here")
    raise
    raise ValueError
    raise worded(a, "b")
"""


def test_messages_stand_as_in_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "SOURCE", tmp_path)
    (tmp_path / "a.py").write_text(RAISED)
    assert [*script.messages(tmp_path / "a.py")] == [
        ("a.py:3", "InputError", "{a.name}: {len(b)} rows; expected as many"),
        ("a.py:4", "UsageError", "made here"),
        ("a.py:7", "worded", "{a} | b"),
    ]


@pytest.mark.long
def test_the_table_has_the_messages_with_all_words() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "messages.py"), "compare", "TWO systems"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in shown[::2]] == [*3 * ["UsageError"], "messages"]
    assert "cli/compare.py" in shown[2]
    assert "takes the PREDICTIONS of two systems or more" in shown[3]
