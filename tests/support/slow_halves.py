"""What other tests share with those of agreement."""

import itertools
import math

import pytest


def slow_one_way(listed, other):
    """Return the AP correlation of a ranking with another, by two loops."""
    terms = []
    for i in range(len(listed)):
        above = [j for j in range(len(listed)) if listed[j] > listed[i]]
        if above:
            terms.append(sum(other[j] > other[i] for j in above) / len(above))
    return 2 * sum(terms) / len(terms) - 1 if terms else None


def slow_tau_ap(first, second):
    ways = [slow_one_way(first, second), slow_one_way(second, first)]
    return None if None in ways else sum(ways) / 2


def slow_coins(query, seed, splits):
    """Return in which splits an integer query is in the first half, in plain Python."""

    def mixed(word):
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        return word ^ word >> 31

    key = mixed(query % 2**64 ^ mixed(seed))
    words = [mixed((key + n * 0x9E3779B97F4A7C15) % 2**64) for n in range(1, splits // 64 + 2)]
    return [words[split // 64] >> split % 64 & 1 for split in range(splits)]


def slow_halves(values, seed, splits):
    """Return tau and the share of agreeing splits, from {system: {query: value}}, by loops."""
    stats = pytest.importorskip("scipy.stats")
    queries = list(next(iter(values.values())))
    coins = {query: slow_coins(query, seed, splits) for query in queries}
    taus, alike = [], {pair: [] for pair in itertools.permutations(values, 2)}
    for split in range(splits):
        halves = [[q for q in queries if coins[q][split] == side] for side in (1, 0)]
        if not all(halves):
            continue
        means = [
            {
                name: round(math.fsum(one[q] for q in half) / len(half), 12)
                for name, one in values.items()
            }
            for half in halves
        ]
        tau = stats.kendalltau(*(list(one.values()) for one in means)).statistic
        taus += [] if math.isnan(tau) else [tau]
        for (one, other), found in alike.items():
            signs = [(mean[one] > mean[other]) - (mean[one] < mean[other]) for mean in means]
            found += [signs[0] == signs[1]] if any(signs) else []
    shares = {pair: sum(found) / len(found) if found else None for pair, found in alike.items()}
    return sum(taus) / len(taus) if taus else None, shares
