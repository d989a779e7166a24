"""pytrec_eval: trec_eval's C code behind dictionaries (the package pytrec-eval-terrier)."""

from __future__ import annotations

from pathlib import Path

import pytrec_eval

from rivals.as_dicts import read, with_our_divisor
from rivals.running import CUTOFF, run


def evaluate(folder: Path, threads: int) -> float:
    labels, predictions = read(folder, threads)
    evaluator = pytrec_eval.RelevanceEvaluator(labels, {f"map_cut.{CUTOFF}"})
    found = evaluator.evaluate(predictions)
    values = (
        with_our_divisor(measures[f"map_cut_{CUTOFF}"], len(labels[user]))
        for user, measures in found.items()
    )
    return sum(values) / len(labels)


if __name__ == "__main__":
    run(evaluate)
