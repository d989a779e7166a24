"""Time the metrics over a catalogue beside map@12 alone, in one pass over ten million predictions.

    python benchmarks/catalogue.py [--users 833_333] [--rounds 7]

The dump is that of the demo with its users shuffled, as integers and as strings; one list in 100
repeats an item. Each run takes turns with map@12 alone. The script prints the median of the wall
time and of the CPU time of each, and of their ratios.
"""

from __future__ import annotations

import argparse

from generate import Settings, cache_folder, cached_dump
from many_metrics import beside_map

FIVE = ["coverage@12", "gini@12", "entropy@12", "hhi@12", "personalization@12"]
RUNS = {
    "map@12": ["map@12"],
    "and coverage@12": ["map@12", FIVE[0]],
    "and all five": ["map@12", *FIVE],
    "and all five at 3, 6 and 12": [
        "map@12",
        *(name.replace("12", k) for name in FIVE for k in ("3", "6", "12")),
    ],
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=833_333, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    asked = parser.parse_args(arguments)
    print("| ids | metrics | wall | CPU | wall / map@12 | CPU / map@12 |")
    print("|---|---|---:|---:|---:|---:|")
    for strings in (False, True):
        ids = "strings" if strings else "integers"
        dump = cache_folder().parent / f"catalogue-{ids}-{asked.users}"
        settings = Settings(users=asked.users, shuffle=True, strings=strings)
        labels, predictions = cached_dump(dump, settings)
        for name, times in beside_map(labels, predictions, RUNS, asked.rounds):
            print(f"| {ids} | {name} | {times.cells()} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
