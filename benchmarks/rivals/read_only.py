"""Nothing but reading the columns that the others need: the floor for all that use pyarrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rivals.running import COLUMNS, run


def read(folder: Path, threads: int) -> None:
    pa.set_cpu_count(threads)
    tables = [pq.read_table(folder / f"{name}.parquet", columns=COLUMNS) for name in FILES]
    assert all(table.num_rows for table in tables)


FILES = ("labels", "predictions")

if __name__ == "__main__":
    run(read)
