"""What other tests share with those of compare."""

import random

import pyarrow as pa

import rankmill
from flat import flat

METRICS = ["map@3", "recall@2", "ndcg"]


def table(lists):
    return pa.table({"query": list(lists), "items": list(lists.values())})


def made(seed, count=60):
    """Labels, a poor system and a better one, as {query: items}."""
    draw = random.Random(seed)
    labels = {query: draw.sample(range(8), draw.randint(1, 3)) for query in range(count)}
    poor = {query: draw.sample(range(8), 3) for query in labels}
    good = {q: [one[0], *(draw.sample(range(8, 12), 2))] for q, one in labels.items()}
    return labels, poor, good


def compare(labels, runs, metrics=METRICS, **options):
    runs = {name: table(one) if isinstance(one, dict) else one for name, one in runs.items()}
    labels = table(labels) if isinstance(labels, dict) else labels
    return flat(rankmill.compare, labels, runs, metrics, **options)


def numbers(found):
    """Return all of a comparison that must not depend on the order of rows, systems and files."""
    content = found.to_dict()
    for key in ("seconds", "inputs", "systems"):
        del content[key]
    return content
