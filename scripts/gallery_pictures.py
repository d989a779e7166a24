"""Make the pictures of the gallery, from MovieLens: two recommenders and both fused.

    python scripts/gallery_pictures.py RATINGS.csv

RATINGS.csv is that of MovieLens; `movielens.py` beside this makes labels and predictions of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import rankmill

SCRIPT = Path(__file__).with_name("movielens.py")
DOCS = Path(rankmill.__file__).parent / "docs"


def main() -> int:
    ratings = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        subprocess.run([sys.executable, str(SCRIPT), str(ratings), folder], check=True)
        runs = {
            name: f"predictions_{name.replace(' ', '')}.parquet"
            for name in ("popularity", "item cosine")
        }
        rankmill.fuse([*runs.values()], "fused.parquet", top=12)
        runs["fused"] = "fused.parquet"
        labels = rankmill.Labels("labels.parquet", binary=True)
        found = rankmill.compare(labels, runs, ["map@12", "ndcg@12"], by="label_count")
        pictures = {
            "compare": found.plot(),
            "cutoffs": rankmill.evaluate_runs(labels, runs, "map@1..12,recall@1..12").plot(),
            "recall": rankmill.evaluate_runs(labels, runs, "pr").plot(),
            "stability": rankmill.stability(labels, runs, "map", cutoffs=[1, 2, 5, 12]).plot(),
        }
        for name, picture in pictures.items():
            picture.save(DOCS / f"gallery-{name}.svg")
        table = rankmill.compare(labels, runs, ["map@12", "ndcg@12", "hit@12"], all_pairs=True)
        print(table.to_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
