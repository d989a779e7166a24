"""Simulated nights: how often a gate fails without change, and how often with a true drop.

    python benchmarks/nights.py [--nights 200] [--users 1000000] [--json FILE]

Each night, a system ranks the label of each user at a rank of its own, which differs a bit from
night to night; with a true drop of 1 % it loses one label in a hundred. The gate compares it with
the night before, and fails if a drop is shown.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import rankmill
from rankmill.nightly.gate.gate import gate

RULE = "map@12 drop <= 0% confidence 0.95"
LENGTH = 12


def night(draw: np.random.Generator, ranks: np.ndarray, lost: float) -> rankmill.arrays.Ragged:
    """Return a dump: the label of user q is item 0, all others are wrong."""
    moved = ranks + draw.choice([-1, 0, 1], len(ranks), p=[0.15, 0.7, 0.15])
    moved = np.where(draw.random(len(ranks)) < lost, LENGTH + 1, np.maximum(moved, 1))
    items = np.tile(np.arange(1, LENGTH + 1), len(ranks))
    hits = np.flatnonzero(moved <= LENGTH)
    items[hits * LENGTH + moved[hits] - 1] = 0
    return rankmill.arrays.Ragged(np.arange(len(ranks) + 1) * LENGTH, items)


def failures(nights: int, users: int, lost: float, seed: int) -> float:
    """Return the share of nights on which the gate failed."""
    draw = np.random.default_rng(seed)
    ranks = draw.integers(1, 20, users)
    labels = rankmill.arrays.Ragged(np.arange(users + 1), np.zeros(users, np.int64))
    failed = 0
    for _ in range(nights):
        before, after = night(draw, ranks, 0.0), night(draw, ranks, lost)
        failed += gate(labels, after, RULE, baseline=before).exit_code
    return failed / nights


def main() -> None:
    """Simulate and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nights", type=int, default=200)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = {}
    for name, users, lost in (
        ("without change, 10,000 users", 10_000, 0.0),
        (f"without change, {options.users:,} users", options.users, 0.0),
        (f"a true drop of 1%, {options.users:,} users", options.users, 0.01),
    ):
        began = time.perf_counter()
        found[name] = failures(options.nights, users, lost, seed=len(found))
        seconds = (time.perf_counter() - began) / options.nights
        print(f"{name}: {found[name]:.1%} of {options.nights} nights fail ({seconds:.2f} s each)")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
