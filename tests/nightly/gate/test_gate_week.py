"""A week of nightly runs: what the gate says of each."""

import random

import pyarrow as pa
import pyarrow.parquet as pq

QUERIES = 6000
COUNTRIES = ("de", "fr", "it", "es", "pl")
RULES = (
    "map@10 drop <= 2% confidence 0.95",
    "map@10[country=*] drop <= 3%",
    "queries change <= 10%",
    "repeated_items == 0",
)
UNDECIDED = "not enough data"


def night(seed, gains=0.0, losses=0.0, only=None, lost=0.0):
    """A dump: the label at the rank it always has, but in some queries a bit up or down."""
    fixed, draw = random.Random(7), random.Random(seed)
    queries, lists = [], []
    for q in range(QUERIES):
        rank, luck = fixed.randint(1, 14), draw.random()
        within = only is None or COUNTRIES[q % len(COUNTRIES)] == only
        if rank > 1 and luck < gains and within:
            rank -= 1
        elif luck > 1 - losses and within:
            rank += 1
        others = iter(range(1000 + q, 1020 + q))
        lists.append([q if r == rank else next(others) for r in range(1, 11)])
        queries.append(q)
    kept = range(int(QUERIES * (1 - lost)))
    return pa.table({"user_id": queries, "items": lists}).take(pa.array(kept))


NIGHTS = {
    "alike 1": (night(1, 0.01, 0.01), UNDECIDED, ""),
    "alike 2": (night(2, 0.01, 0.01), "held", ""),
    "alike 3": (night(3, 0.01, 0.01), "held", ""),
    "better": (night(4, 0.06, 0.01), "held", ""),
    "slightly worse": (night(5, 0.01, 0.03), UNDECIDED, ""),
    "worse in one country": (night(6, 0.01, 0.2, only="it"), "regressed", "country = it"),
    "a third is missing": (night(7, 0.01, 0.01, lost=1 / 3), "bad volume", ""),
}


def test_a_week_of_nights(run, tmp_path):
    labels = pa.table(
        {
            "user_id": range(QUERIES),
            "items": [[q] for q in range(QUERIES)],
            "country": [COUNTRIES[q % len(COUNTRIES)] for q in range(QUERIES)],
        }
    )
    pq.write_table(labels, tmp_path / "labels.parquet")
    pq.write_table(night(0), tmp_path / "before.parquet")
    asked = [part for rule in RULES for part in ("--rule", rule)]
    for name, (dump, word, slice_) in NIGHTS.items():
        pq.write_table(dump, tmp_path / "tonight.parquet")
        paths = [str(tmp_path / f"{one}.parquet") for one in ("labels", "tonight", "before")]
        code, out, err = run("gate", *paths[:2], "--baseline", paths[2], *asked)
        assert f"\nverdict: {word}" in out, (name, err)
        assert code == (word not in ("held", UNDECIDED))
        first = next(line for line in err.splitlines() if line.startswith(word))
        assert slice_ in first
