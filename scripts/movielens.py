"""Make labels and two sets of predictions from MovieLens ratings.

    python scripts/movielens.py RATINGS.csv OUT_DIR

Each user's latest 20 % of ratings (rounded down, at least one) are the labels; of ratings with the
same timestamp, the one further down in the file is the later. What remains is the training part,
from which two recommenders predict 12 items a user, leaving out what the user rated there:

- popularity: the score of an item is the number of its training ratings;
- item cosine: the sum, over the user's training items, of the cosine between the two items' columns
  of the binary user-item matrix.

An item with a score of 0 is not predicted; equal scores are ordered by item id. Written to OUT_DIR:
``labels.parquet`` (user_id, items, and ``rating``, the gain of each item),
``predictions_popularity.parquet`` and ``predictions_itemcosine.parquet`` (user_id, items, scores).
The user-item matrix is held densely, which suits the small data sets only.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

PREDICTIONS = 12
COLUMNS = {
    "userId": pa.int64(),
    "movieId": pa.int64(),
    "rating": pa.float64(),
    "timestamp": pa.int64(),
}


@dataclass(frozen=True)
class Split:
    """Ratings by user and time; users and items are indices into the sorted ids."""

    user_ids: np.ndarray
    item_ids: np.ndarray
    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    is_label: np.ndarray

    @property
    def training(self) -> np.ndarray:
        """bool[users, items]: what each user rated in the training part."""
        matrix = np.zeros((self.user_ids.size, self.item_ids.size), bool)
        matrix[self.users[~self.is_label], self.items[~self.is_label]] = True
        return matrix


def read_ratings(path: Path) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(column_types=COLUMNS, include_columns=list(COLUMNS))
    return pyarrow.csv.read_csv(path, convert_options=options)


def split_latest(ratings: pa.Table) -> Split:
    user_ids, users = np.unique(ratings["userId"].to_numpy(), return_inverse=True)
    item_ids, items = np.unique(ratings["movieId"].to_numpy(), return_inverse=True)
    # lexsort is stable, so equal timestamps stay in file order.
    order = np.lexsort((ratings["timestamp"].to_numpy(), users))
    users = users[order]
    counts = np.bincount(users)
    labels = np.maximum(counts // 5, 1)
    from_the_end = np.cumsum(counts)[users] - np.arange(users.size)
    return Split(
        user_ids,
        item_ids,
        users,
        items[order],
        ratings["rating"].to_numpy()[order],
        is_label=from_the_end <= labels[users],
    )


def popularity_scores(training: np.ndarray) -> np.ndarray:
    """float64[users, items]: the number of training ratings of each item, for every user alike."""
    return np.broadcast_to(training.sum(axis=0, dtype=np.float64), training.shape)


def item_cosine_scores(training: np.ndarray) -> np.ndarray:
    """float64[users, items]: the sum of the cosines between an item and the user's items."""
    matrix = training.astype(np.float64)
    norms = np.sqrt(matrix.sum(axis=0))
    columns_of_length_one = matrix / np.where(norms > 0, norms, 1.0)
    # matrix @ (columns.T @ columns), multiplied in the order that needs no items x items matrix.
    scores = (matrix @ columns_of_length_one.T) @ columns_of_length_one
    # The last bits depend on the order in which the linear algebra library adds; without them,
    # items that should tie do so on every machine.
    return np.round(scores, 9)


def best_unseen(scores: np.ndarray, training: np.ndarray) -> list[np.ndarray]:
    """Up to PREDICTIONS item indices for each user, the best first, all with a score above 0."""
    unseen = np.where(training, 0.0, scores)
    order = np.argsort(-unseen, axis=1, kind="stable")[:, :PREDICTIONS]
    chosen = np.take_along_axis(unseen, order, axis=1) > 0
    return [row[keep] for row, keep in zip(order, chosen, strict=True)]


def list_column(lists: list[np.ndarray], kind: pa.DataType) -> pa.Array:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(lists), kind))


def label_table(split: Split) -> pa.Table:
    counts = np.bincount(split.users[split.is_label], minlength=split.user_ids.size)
    stops = np.cumsum(counts)[:-1]
    items = split.item_ids[split.items[split.is_label]]
    return pa.table(
        {
            "user_id": pa.array(split.user_ids),
            "items": list_column(np.split(items, stops), pa.int64()),
            "rating": list_column(np.split(split.ratings[split.is_label], stops), pa.float64()),
        }
    )


def prediction_table(split: Split, scores: np.ndarray, training: np.ndarray) -> pa.Table:
    best = best_unseen(scores, training)
    return pa.table(
        {
            "user_id": pa.array(split.user_ids),
            "items": list_column([split.item_ids[row] for row in best], pa.int64()),
            "scores": list_column(
                [scores[user, row] for user, row in enumerate(best)], pa.float64()
            ),
        }
    )


def write(table: pa.Table, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        pq.write_table(table, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    print(f"{path}: {table.num_rows} users, {len(table['items'].combine_chunks().flatten())} items")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ratings", type=Path, metavar="RATINGS.csv")
    parser.add_argument("folder", type=Path, metavar="OUT_DIR")
    options = parser.parse_args(arguments)
    try:
        ratings = read_ratings(options.ratings)
    except (OSError, pa.ArrowException) as error:
        sys.exit(f"error: cannot read ratings from {options.ratings}: {error}")
    if not ratings.num_rows:
        sys.exit(f"error: {options.ratings} has no ratings")
    split = split_latest(ratings)
    training = split.training
    options.folder.mkdir(parents=True, exist_ok=True)
    write(label_table(split), options.folder / "labels.parquet")
    for name, recommender in (
        ("popularity", popularity_scores),
        ("itemcosine", item_cosine_scores),
    ):
        table = prediction_table(split, recommender(training), training)
        write(table, options.folder / f"predictions_{name}.parquet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
