"""Random qrels and runs of TREC, and random flags of trec_eval."""

from __future__ import annotations

from pathlib import Path
from random import Random

Sides = tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]

LEVELS = ([0, 1], [0, 1, 2, 3], [0, 0, 0, 1], [-1, 0, 1, 2], [-2, -1, 0, 1, 5, 12], [1], [0])
MEASURES = (
    *("official", "all_trec", "set", "map", "P.5,10", "P.1", "ndcg_cut", "ndcg_cut.3,7", "ndcg"),
    *("iprec_at_recall.0.25,0.75,1", "relstring", "relstring.3", "utility.1,-.5,-.25,.125"),
    *("Rprec_mult.0.5,3", "success.2,9", "relative_P.3", "gm_map", "gm_bpref", "infAP", "binG"),
    *("11pt_avg.0.2,0.5,0.8", "G", "G.1=2,3=7", "ndcg_rel.1=2,2=5", "Rndcg", "Rndcg.1=3,2=9"),
    *("ndcg.1=3,2=7", "ndcg.0=1,1=2", "set_F", "set_F.0.5", "yaap", "num_nonrel_judged_ret"),
)


def random_sides(rng: Random) -> Sides:
    """Return qrels and a run with ties, queries on one side, and levels of several kinds."""
    count = rng.choice([1, 3, 8, 30, 150, 800])
    documents = [f"{rng.choice('dD')}{number}" for number in range(count)]
    levels = rng.choice(LEVELS)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(rng.choice([1, 5, 17, 32, 64] if count < 200 else [1, 3])):
        query = f"{rng.choice(['', 'q', 'Z'])}{number}"
        if number == 0 or rng.random() < 0.9:
            judged = rng.sample(documents, rng.randint(1, count))
            qrels[query] = {one: rng.choice(levels) for one in judged}
            # trec_eval crashes where all are below 0.
            qrels[query][judged[0]] = max(0, qrels[query][judged[0]])
        if number == 0 or rng.random() < 0.9:
            kind = rng.randint(0, 3)
            found = rng.sample(documents, rng.randint(1, count))
            run[query] = {one: _score(rng, kind) for one in found}
    return qrels, run


def _score(rng: Random, kind: int) -> float:
    # The last are equal as float32.
    some = (rng.random(), round(rng.random(), 1), float(rng.randint(-3, 3)), 1e8 + rng.random())
    return some[kind]


def write_sides(
    folder: Path,
    qrels: dict[str, dict[str, int]],
    run: dict[str, dict[str, float]],
    rng: Random,
) -> tuple[Path, Path]:
    """Write both in files, at times in random order."""
    sides = (
        [f"{q} 0 {d} {level}\n" for q, found in qrels.items() for d, level in found.items()],
        [f"{q} Q0 {d} 1 {score} tag{q}\n" for q, one in run.items() for d, score in one.items()],
    )
    paths = folder / "random.qrels", folder / "random.run"
    shuffled = rng.random() < 0.5
    for path, lines in zip(paths, sides, strict=True):
        if shuffled:
            rng.shuffle(lines)
        path.write_text("".join(lines))
    return paths


def random_flags(rng: Random) -> list[str]:
    """Return flags of trec_eval."""
    chances = (("-q", 0.6), ("-c", 0.5), ("-n", 0.1), ("-J", 0.25))
    flags = [flag for flag, chance in chances if rng.random() < chance]
    for flag, values in (("-l", (0, 1, 2, 3)), ("-M", (1, 5, 20)), ("-N", (10, 100000))):
        if rng.random() < 0.3:
            flags += [flag, str(rng.choice(values))]
    for _ in range(rng.choice([0, 1, 2, 5])):
        flags += ["-m", rng.choice(MEASURES)]
    return flags
