"""Generate a random recommendation dump: ``labels.parquet`` and ``predictions.parquet``.

    python benchmarks/generate.py OUT_DIR --users 1_000_000 [--strings] [--shuffle] [--long]

Each user has 12 predictions and, on average, 3.6 labels out of 105,542 items of Zipf popularity.
6 % of the predictions are planted hits, which are taken from the user's own labels; popular items
add some hits by chance. 1 % of the lists repeat an item. One user in 200 has an empty label list,
one in 200 has no predictions, and one in 200 has no row among the labels. The script needs only
numpy and pyarrow.

The same settings give the same files. The random numbers are drawn chunk by chunk, so another value
of the constant CHUNK gives different files of the same kind.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ITEMS = 105_542
PREDICTIONS = 12
MEAN_LABELS = 3.6
PLANTED_HITS = 0.06
LISTS_WITH_REPEAT = 0.01
EMPTY_LABEL_LISTS = 0.005
ONLY_LABELLED = 0.005
ONLY_PREDICTED = 0.005

#: With 12 items and confidences a row, a row group has about 20 MB, which a worker can easily hold.
#: A million users are 8 row groups, enough to keep a few workers busy to the end.
ROW_GROUP = 131_072
CHUNK = 4 * ROW_GROUP

#: This key is stored in each file. A cached file whose value for it differs is written again.
STAMP_KEY = b"rankmill.dump"
GENERATOR_VERSION = 1


@dataclass(frozen=True)
class Settings:
    """What to generate."""

    users: int = 1_000_000
    seed: int = 0
    strings: bool = False
    shuffle: bool = False
    row_group: int = ROW_GROUP

    @property
    def stamp(self) -> bytes:
        return f"version={GENERATOR_VERSION} {self}".encode()


class Popularity:
    """Draws item indices: item ``i`` with probability proportional to ``1 / (i + 1)``."""

    def __init__(self, items: int = ITEMS) -> None:
        weights = 1.0 / np.arange(1, items + 1)
        self.cumulative = np.cumsum(weights) / weights.sum()

    def draw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return np.searchsorted(self.cumulative[:-1], generator.random(size)).astype(np.int32)


def item_numbers(generator: np.random.Generator) -> np.ndarray:
    """Nine-digit article numbers in an order that says nothing about popularity, int64[ITEMS]."""
    lowest, step = 108_775_015, 8_050
    numbers = lowest + step * np.arange(ITEMS) + generator.integers(0, step, ITEMS)
    return generator.permutation(numbers)


def draw_labels(
    generator: np.random.Generator, popularity: Popularity, users: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels for each user.

    Returns
    -------
    offsets : int64[users + 1]
    items : int32[offsets[-1]]
        Item indices; those of user u are ``items[offsets[u]:offsets[u + 1]]``.
    """
    mean_beyond_first = MEAN_LABELS / (1 - EMPTY_LABEL_LISTS) - 1
    counts = 1 + generator.negative_binomial(2, 2 / (2 + mean_beyond_first), users)
    counts[generator.random(users) < EMPTY_LABEL_LISTS] = 0
    offsets = np.zeros(users + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    items = popularity.draw(generator, int(offsets[-1]))
    keys = np.repeat(np.arange(users) * ITEMS, counts) + items
    suspects = np.arange(keys.size)
    while True:
        order = suspects[np.argsort(keys[suspects], kind="stable")]
        repeats = order[1:][keys[order[1:]] == keys[order[:-1]]]
        if not repeats.size:
            return offsets, items
        fresh = popularity.draw(generator, repeats.size)
        keys[repeats] += fresh.astype(np.int64) - items[repeats]
        items[repeats] = fresh
        # Only the lists that were changed can repeat an item now.
        touched = np.zeros(users, bool)
        touched[keys[repeats] // ITEMS] = True
        suspects = suspects[touched[keys[suspects] // ITEMS]]


def draw_predictions(
    generator: np.random.Generator,
    popularity: Popularity,
    label_starts: np.ndarray,
    label_counts: np.ndarray,
    label_items: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Ranked items and confidences for some users, given where each one's labels lie.

    Returns
    -------
    items : int32[users, PREDICTIONS]
        Item indices, the best first; distinct but for LISTS_WITH_REPEAT of the lists.
    scores : float32[users, PREDICTIONS]
        Descending within each list.
    """
    users = label_starts.size
    items = popularity.draw(generator, users * PREDICTIONS).reshape(users, PREDICTIONS)
    rows, columns = np.nonzero(generator.random((users, PREDICTIONS)) < PLANTED_HITS)
    has_labels = label_counts[rows] > 0
    rows, columns = rows[has_labels], columns[has_labels]
    picks = label_starts[rows] + generator.integers(0, label_counts[rows])
    items[rows, columns] = label_items[picks]

    suspects = np.arange(users)
    while suspects.size:
        lists = items[suspects]
        in_order = np.sort(lists, axis=1)
        repeating = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
        suspects, lists = suspects[repeating], lists[repeating]
        order = np.argsort(lists, axis=1, kind="stable")
        in_order = np.take_along_axis(lists, order, axis=1)
        row, place = np.nonzero(in_order[:, 1:] == in_order[:, :-1])
        items[suspects[row], order[row, place + 1]] = popularity.draw(generator, row.size)

    rows = np.flatnonzero(generator.random(users) < LISTS_WITH_REPEAT)
    later = generator.integers(1, PREDICTIONS, rows.size)
    items[rows, later] = items[rows, generator.integers(0, later)]

    scores = generator.random((users, PREDICTIONS), dtype=np.float32)
    return items, np.sort(scores, axis=1)[:, ::-1]


class Ids:
    """User and item ids as Arrow arrays, int64 or strings."""

    def __init__(self, generator: np.random.Generator, users: int, strings: bool) -> None:
        self.strings = strings
        numbers = item_numbers(generator)
        if strings:
            self._users = np.frombuffer(generator.bytes(32 * users), "V32")
            self._items = pa.array([str(number) for number in numbers.tolist()])
        else:
            self._users = np.cumsum(generator.integers(1, 10, users))
            self._items = numbers

    def users(self, rows: np.ndarray) -> pa.Array:
        chosen = self._users[rows]
        if not self.strings:
            return pa.array(chosen)
        offsets = np.arange(chosen.size + 1, dtype=np.int32) * 64
        text = pa.py_buffer(chosen.tobytes().hex().encode())
        return pa.StringArray.from_buffers(chosen.size, pa.py_buffer(offsets), text)

    def items(self, indices: np.ndarray) -> pa.Array:
        if self.strings:
            return self._items.take(pa.array(indices))
        return pa.array(self._items[indices])


class Dump:
    """All of a made-up dump that has to be in memory; tables are made of it piece by piece."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.generator = np.random.default_rng(settings.seed)
        self.popularity = Popularity()
        users = settings.users
        self.ids = Ids(self.generator, users, settings.strings)
        self.label_offsets, self.label_items = draw_labels(self.generator, self.popularity, users)
        side = self.generator.random(users)
        self.labelled = np.flatnonzero(side >= ONLY_PREDICTED)
        self.predicted = np.flatnonzero(side < 1 - ONLY_LABELLED)
        if settings.shuffle:
            self.generator.shuffle(self.predicted)

    def label_tables(self) -> Iterator[pa.Table]:
        """Columns user_id and items."""
        for rows in chunks(self.labelled):
            starts, stops = self.label_offsets[rows], self.label_offsets[rows + 1]
            offsets = np.zeros(rows.size + 1, np.int32)
            np.cumsum(stops - starts, out=offsets[1:])
            places = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
            items = self.ids.items(self.label_items[places])
            lists = pa.ListArray.from_arrays(pa.array(offsets), items)
            yield pa.table({"user_id": self.ids.users(rows), "items": lists})

    def prediction_tables(self) -> Iterator[pa.Table]:
        """Columns user_id, items and scores."""
        for rows in chunks(self.predicted):
            starts = self.label_offsets[rows]
            counts = self.label_offsets[rows + 1] - starts
            items, scores = draw_predictions(
                self.generator, self.popularity, starts, counts, self.label_items
            )
            offsets = pa.array(np.arange(rows.size + 1, dtype=np.int32) * PREDICTIONS)
            yield pa.table(
                {
                    "user_id": self.ids.users(rows),
                    "items": pa.ListArray.from_arrays(offsets, self.ids.items(items.ravel())),
                    "scores": pa.ListArray.from_arrays(offsets, pa.array(scores.ravel())),
                }
            )


def chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, rows.size, CHUNK):
        yield rows[start : start + CHUNK]


def to_long(table: pa.Table) -> pa.Table:
    """One row an item: user_id and item_id, and rank (from 1) and score where there are scores."""
    lists = table["items"].combine_chunks()
    counts = np.diff(lists.offsets.to_numpy())
    owner = np.repeat(np.arange(counts.size), counts)
    columns = {"user_id": table["user_id"].take(pa.array(owner)), "item_id": lists.flatten()}
    if "scores" in table.column_names:
        before = np.cumsum(counts) - counts
        columns["rank"] = pa.array((np.arange(owner.size) - before[owner] + 1).astype(np.int32))
        columns["score"] = table["scores"].combine_chunks().flatten()
    return pa.table(columns)


@contextmanager
def whole_or_nothing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; it takes its name only if the block succeeds."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write(tables: Iterator[pa.Table], path: Path, settings: Settings) -> None:
    with whole_or_nothing(path) as temporary:
        writer = None
        try:
            for table in tables:
                table = table.replace_schema_metadata({STAMP_KEY: settings.stamp})
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table, row_group_size=settings.row_group)
        finally:
            if writer is not None:
                writer.close()


def generate(folder: Path, settings: Settings, long: bool = False) -> tuple[Path, Path]:
    """Write the dump into ``folder``; return the paths of the labels and of the predictions."""
    folder.mkdir(parents=True, exist_ok=True)
    dump = Dump(settings)
    labels, predictions = folder / "labels.parquet", folder / "predictions.parquet"
    write(dump.label_tables(), labels, settings)
    write(dump.prediction_tables(), predictions, settings)
    if long:
        for path in (labels, predictions):
            wide = pq.ParquetFile(path)
            groups = (wide.read_row_group(group) for group in range(wide.num_row_groups))
            write(
                (to_long(group) for group in groups),
                path.with_stem(f"{path.stem}_long"),
                # A row group holds as many long rows as one row group of the wide file gives.
                replace(settings, row_group=settings.row_group * PREDICTIONS),
            )
    return labels, predictions


def is_there(path: Path, settings: Settings) -> bool:
    """Whether ``path`` is a whole file written with these settings."""
    try:
        return (pq.read_schema(path).metadata or {}).get(STAMP_KEY) == settings.stamp
    except (OSError, pa.ArrowException):
        return False


def cached_dump(folder: Path, settings: Settings | None = None) -> tuple[Path, Path]:
    """Like `generate`, unless both files are there already."""
    settings = settings or Settings()
    labels, predictions = folder / "labels.parquet", folder / "predictions.parquet"
    if is_there(labels, settings) and is_there(predictions, settings):
        return labels, predictions
    return generate(folder, settings)


def cache_folder() -> Path:
    """Where the demo's dump lies, outside of the source tree."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rankmill" / "demo"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="OUT_DIR")
    parser.add_argument("--users", type=int, default=Settings.users)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--strings", action="store_true", help="64-hex users, 9-digit items")
    parser.add_argument("--shuffle", action="store_true", help="predictions in another user order")
    parser.add_argument("--row-group", type=int, default=ROW_GROUP, help="rows (%(default)s)")
    parser.add_argument("--long", action="store_true", help="write *_long.parquet as well")
    parser.add_argument("--if-missing", action="store_true", help="keep files that are there")
    options = parser.parse_args(arguments)
    for name in ("users", "row_group"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    settings = Settings(
        options.users, options.seed, options.strings, options.shuffle, options.row_group
    )
    if options.if_missing and options.long:
        parser.error("--if-missing looks at the wide files only; leave out --long")
    start = time.perf_counter()
    if options.if_missing:
        paths = cached_dump(options.folder, settings)
    else:
        paths = generate(options.folder, settings, options.long)
    seconds = time.perf_counter() - start
    sizes = ", ".join(f"{path} ({path.stat().st_size / 1e6:.0f} MB)" for path in paths)
    print(f"{sizes} in {seconds:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
