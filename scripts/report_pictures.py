"""Make the pictures of the page about reports: the gate of a night in which one country broke.

    python scripts/report_pictures.py

Needs Chromium and Pillow.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import rankmill
from browser import browser
from rankmill import gate
from rankmill.cli.run_outputs import trends_of
from rankmill.nightly.history import History
from rankmill.nightly.report import lists_of, page

DOCS = Path(rankmill.__file__).parent / "docs"
QUERIES, ITEMS, LENGTH, NIGHTS = 60_000, 2_000, 12, 14
COUNTRIES, DEVICES = ("de", "fr", "us", "es", "it"), ("phone", "web", "tablet")
RULES = (
    "map@12 drop <= 1% confidence 0.95",
    "map@12[country=*] drop <= 3% confidence 0.95",
    "queries_only_labelled <= 1%",
    "queries change <= 10%",
)
# Of a picture: the width of the page, whether it is dark, and where it begins and how high it is.
PICTURES = {"light": (1100, False, 0, 1620), "dark": (390, True, 0, 1460)}


def labels() -> pa.Table:
    """Make labels with a country and a device."""
    draw = np.random.default_rng(1)
    counts = draw.choice(np.arange(1, 8), QUERIES, p=[0.12, 0.25, 0.25, 0.18, 0.12, 0.05, 0.03])
    items = (draw.power(0.5, counts.sum()) * ITEMS).astype(np.int64)
    country = draw.choice(COUNTRIES, QUERIES, p=[0.3, 0.2, 0.25, 0.15, 0.1])
    device = draw.choice(DEVICES, QUERIES, p=[0.6, 0.3, 0.1])
    lists = pa.ListArray.from_arrays(np.concatenate([[0], counts.cumsum()]), items)
    names = ["user_id", "items", "country", "device"]
    return pa.table([np.arange(QUERIES), lists, country, device], names)


def night(made: pa.Table, seed: int, better: float = 0.0, worse: float = 0.0) -> pa.Table:
    """Make predictions: at each rank the label of this number, or another item."""
    base, draw = np.random.default_rng(2), np.random.default_rng(seed)
    items, ranks = made["items"].combine_chunks(), np.arange(LENGTH)
    counts = np.asarray(items.value_lengths())[:, None]
    mine = np.asarray(items.values)[
        np.asarray(items.offsets)[:-1, None] + np.minimum(ranks, counts - 1)
    ]
    chance = np.full((QUERIES, 1), 1.0 + better + 0.005 * draw.standard_normal())
    chance[np.asarray(made["country"]) == "it"] -= worse
    luck = base.random((QUERIES, LENGTH)) + 0.01 * draw.standard_normal((QUERIES, LENGTH))
    right = (luck < chance * 0.4) & (ranks < counts)
    shown = np.where(right, mine, ITEMS + ranks)
    score = np.sort(base.random((QUERIES, LENGTH)) * 0.4 + 0.5 * right, axis=1)[:, ::-1]
    ends = np.arange(0, QUERIES * LENGTH + 1, LENGTH)
    lists = [pa.ListArray.from_arrays(ends, one.ravel()) for one in (shown, score)]
    return pa.table([np.arange(QUERIES), *lists], ["user_id", "items", "scores"])


def main() -> None:
    """Write the pictures into the folder of the pages."""
    from PIL import Image

    made, began = labels(), datetime(2026, 3, 1, 3, 15, tzinfo=UTC)
    asked = {"metrics": ["ndcg@10", "gap"], "by": ["country", "device"]}
    runs = {"baseline": "release.parquet", "candidate": "tonight.parquet"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        target = Path(folder) / "page.html"
        pq.write_table(made, "labels.parquet")
        pq.write_table(night(made, 0), runs["baseline"])
        for number in range(NIGHTS):
            last = number == NIGHTS - 1
            now = began + timedelta(days=number)
            tonight = night(made, number, *((0.03, 0.12) if last else ()))
            pq.write_table(tonight, runs["candidate"])
            inputs = "labels.parquet", runs["candidate"], RULES
            found = gate(*inputs, baseline=runs["baseline"], **asked, details=last)
            if last:
                lists = lists_of(found.details, {"labels": "labels.parquet", "runs": runs})
                target.write_text(
                    page(
                        found,
                        lists=lists,
                        history=trends_of(found, "history", now),
                        command="rankmill gate rankmill.toml --history history --report page.html",
                    )
                )
            History("history").record(found, time=now)
        with browser() as tab:
            for name, (width, dark, top, height) in PICTURES.items():
                path = Path(folder) / f"{name}.png"
                tab.open(target, width, dark=dark)
                clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
                tab.picture(path, clip=clip)
                image = Image.open(path).convert("RGB")
                if width > 1000:
                    image = image.resize(
                        (3 * width // 4, 3 * height // 4), Image.Resampling.LANCZOS
                    )
                image = image.quantize(128, Image.Quantize.MAXCOVERAGE)
                image.save(DOCS / f"report-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
