"""Calls of a user with mistakes, which mypy sees: it refuses a comment where it sees none."""

import rankmill
from rankmill import Labels, compare, evaluate, gate
from rankmill.arrays import Ragged
from rankmill.config import read_config
from rankmill.metrics import parse

__all__ = ["lists", "parse", "read_config", "result"]

lists = Ragged.from_lists([[1]])
result: rankmill.Result = evaluate(Labels("l", gain="stars"), "run", semantics="trec_eval")
compare("l", {"old": "a", "new": "b"}, quary="user")  # type: ignore[call-arg]
gate("l", "run", "map >= 0.1", bassline="q")  # type: ignore[call-arg]
Labels("l", gian="stars")  # type: ignore[call-arg]
rankmill.Semantics(ap_diviser="labels")  # type: ignore[call-arg]
wrong: int = evaluate("l", "run")  # type: ignore[assignment]
Labels("l", "user", "item")  # type: ignore[call-arg]
