"""Hold the 95 % interval of a weighted sum of pooled recalls to what it promises, by simulation.

    python benchmarks/sum_intervals.py [--datasets 1000] [--sessions 300 1000 10000]

Data sets have the shape of OTTO's: a session has clicks, and some have carts and orders as well;
6 % have orders, whose weight is 0.6. The chance to find a label is known, and so is the true sum.
The labels of a session are found independently; or all labels of a type alike; or all labels of a
session alike, of whatever type, which the interval takes as independent.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa

import rankmill
from rankmill.columns.ragged_lists import Ragged

# The share of sessions with a type, its most labels, the chance to find one, and the weight.
TYPES = {"clicks": (1.0, 10, 0.5, 0.1), "carts": (0.3, 6, 0.4, 0.3), "orders": (0.06, 4, 0.6, 0.6)}
METRIC = "recall@20:micro"
SUM = "otto = " + " + ".join(
    f"{weight}*{METRIC}[type={name}]" for name, (*_, weight) in TYPES.items()
)
TRUTH = sum(chance * weight for *_, chance, weight in TYPES.values())


def sides(sessions: int, alike: str, draw: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """Return labels and predictions of a data set, a row for each session and type."""
    of_session = draw.random(sessions)
    lengths, names, found = [], [], []
    for name, (share, most, chance, _) in TYPES.items():
        has = np.flatnonzero(draw.random(sessions) < share)
        counts = draw.integers(1, most + 1, len(has))
        of_list = of_session[has] if alike == "session" else draw.random(len(has))
        chances = draw.random(counts.sum()) if alike == "nothing" else np.repeat(of_list, counts)
        lengths.append(counts)
        names += [name] * len(has)
        found.append(chances < chance)
    counts = np.concatenate(lengths)
    offsets = np.append(0, np.cumsum(counts))
    items = np.arange(len(np.concatenate(found)))
    predicted = np.where(np.concatenate(found), items, -1 - items)
    query = np.arange(len(counts))
    lists = [Ragged(offsets, values).to_arrow() for values in (items, predicted)]
    labels = pa.table({"query": query, "items": lists[0], "type": names})
    return labels, pa.table({"query": query, "items": lists[1]})


def main() -> None:
    """Print how many intervals hold the true sum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--sessions", type=int, nargs="+", default=[300, 1000, 10_000])
    options = parser.parse_args()
    print("sessions  found alike  intervals that hold the truth")
    for sessions in options.sessions:
        for alike in ("nothing", "type", "session"):
            held = 0
            for seed in range(options.datasets):
                both = sides(sessions, alike, np.random.default_rng([sessions, seed]))
                result = rankmill.evaluate(*both, METRIC, by="type", sums=SUM, per_query=False)
                one = result.sums["otto"]
                held += one.low <= TRUTH <= one.high
            print(f"{sessions:8,}  {alike:11}  {held / options.datasets:.1%}")


if __name__ == "__main__":
    main()
