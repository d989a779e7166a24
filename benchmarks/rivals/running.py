"""What each rival does when it is run: ``python -m rivals.NAME FOLDER THREADS``.

All compute the same: map@12 of FOLDER/predictions.parquet against FOLDER/labels.parquet. An item
that a list repeats counts once, at its first rank, and the repeat keeps its rank. The sum of the
precisions is divided by min(12, R). Users without labels are left out of the mean; those with
labels and no predictions score 0. The rivals may rely on what the generator promises: one row a
user, no nulls, and no label twice for a user.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

CUTOFF = 12
COLUMNS = ["user_id", "items"]


def run(work: Callable[[Path, int], float | None]) -> None:
    """Do the work with the folder and the number of threads of the command line."""
    folder, threads = sys.argv[1:]
    print(json.dumps({"value": work(Path(folder), int(threads))}))
