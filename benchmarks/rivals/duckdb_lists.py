"""DuckDB by one who knows its list functions: rows are joined whole, nothing is unnested.

Each label is looked up in the user's predictions (``list_position`` gives the first place), so the
12 million pairs never become rows.
"""

from __future__ import annotations

from pathlib import Path

from rivals.duckdb_join import evaluate
from rivals.running import run

QUERY = """
WITH labelled AS (
    SELECT user_id, items FROM read_parquet($labels) WHERE len(items) > 0
),
hits AS (
    SELECT
        least(len(l.items), 12) AS divisor,
        list_sort(list_filter(
            list_transform(l.items, lambda item: list_position(p.items[:12], item)),
            lambda rank: rank IS NOT NULL
        )) AS ranks
    FROM read_parquet($predictions) p JOIN labelled l USING (user_id)
)
SELECT
    coalesce(sum(list_sum(list_transform(ranks, lambda rank, place: place / rank)) / divisor), 0)
    / (SELECT count(*) FROM labelled)
FROM hits
"""


def evaluate_lists(folder: Path, threads: int) -> float:
    return evaluate(folder, threads, QUERY)


if __name__ == "__main__":
    run(evaluate_lists)
