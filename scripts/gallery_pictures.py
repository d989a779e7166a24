"""Run the commands of the gallery on MovieLens, and put their pictures and pages beside it.

    python scripts/gallery_pictures.py RATINGS.csv [DIR]

RATINGS.csv is that of MovieLens; `movielens.py` beside this makes labels and predictions of it. DIR
is the folder of the pages by default. Pictures of HTML pages need Chromium and Pillow;
without Chromium only the SVG files are made.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import rankmill
from browser import FOUND, browser
from movielens import PREDICTIONS
from rankmill.show.marks import COLOURS

SCRIPT = Path(__file__).resolve().with_name("movielens.py")
DOCS = Path(rankmill.__file__).parent / "docs"
WIDTH, HEIGHT = 1000, 1900  # of the top of a page that is shown
SHADES = 8  # of each color
BROKEN = 1  # the exit code of a gate


def commands(page: str) -> list[list[str]]:
    """Return the words of each command that a page shows and no test runs."""
    shown = "".join(re.findall(r"^```text\n(.*?)^```", page, re.M | re.S))
    return [shlex.split(line) for line in shown.splitlines() if line.startswith("rankmill ")]


def make_inputs(ratings: Path) -> None:
    """Write the labels and the predictions that the commands name."""
    subprocess.run([sys.executable, SCRIPT, ratings, "."], check=True, stdout=subprocess.DEVNULL)
    labels = pq.read_table("labels.parquet").drop_columns("rating")
    pq.write_table(labels, "labels.parquet")
    Path("predictions_popularity.parquet").rename("popularity.parquet")
    cosine = pq.read_table("predictions_itemcosine.parquet")
    pq.write_table(cosine, "cosine.parquet")
    runs = [pq.read_table("popularity.parquet"), cosine]
    pq.write_table(fused(runs), "fused.parquet")
    # A guess at chances: the scores over the largest one.
    scores = cosine["scores"].combine_chunks()
    chances = pc.divide(scores.values, pc.max(scores.values).as_py())
    lists = pa.ListArray.from_arrays(scores.offsets, chances)
    pq.write_table(cosine.set_column(2, "scores", lists), "chances.parquet")


def fused(runs: list[pa.Table]) -> pa.Table:
    """Return the best items of each user by reciprocal rank fusion; equal ones by id."""
    users: dict[int, Counter[int]] = {}
    for run in runs:
        for user, items in zip(*run.select(["user_id", "items"]).to_pydict().values(), strict=True):
            scores = users.setdefault(user, Counter())
            for rank, item in enumerate(items, 1):
                scores[item] += 1 / (60 + rank)
    rows = []
    for user in sorted(users):
        best = sorted(users[user].items(), key=lambda one: (-one[1], one[0]))[:PREDICTIONS]
        items, numbers = zip(*best, strict=True)
        rows.append({"query_id": user, "items": items, "scores": numbers})
    return pa.Table.from_pylist(rows)


def top_of_page(tab: object, html: Path, png: Path) -> None:
    """Write a picture of the top of a page, up to the end of a section, in few colours."""
    from PIL import Image

    tab.open(html.resolve(), WIDTH)
    # The last section has how long it took.
    ends = tab.value("""[...document.querySelectorAll('section:not(:last-of-type)')]
        .map(one => one.getBoundingClientRect().bottom)""")
    height = max([one for one in ends if one <= HEIGHT], default=HEIGHT) + 12
    tab.picture(png, clip={"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1})
    image = Image.open(png).convert("RGB")
    size = 3 * image.width // 4, 3 * image.height // 4
    image = image.resize(size, Image.Resampling.LANCZOS)
    few = Image.new("P", (1, 1))
    few.putpalette([*image.getpixel((2, 2)), *palette()])
    image.quantize(palette=few, dither=Image.Dither.NONE).save(png, optimize=True)


def palette() -> list[int]:
    """Return the colors of a light page, and what stands between each and the ground of a card."""
    found = []
    for text, _ in COLOURS.values():
        own = [int(text[at : at + 2], 16) for at in (1, 3, 5)]
        found += [255 - (255 - one) * share // SHADES for share in range(SHADES + 1) for one in own]
    return found


def main() -> None:
    ratings, target = Path(sys.argv[1]).resolve(), Path([*sys.argv, DOCS][2]).resolve()
    page = (DOCS / "report.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        make_inputs(ratings)
        for words in commands(page):
            told = [sys.executable, "-m", *words]
            ran = subprocess.run(told, capture_output=True, text=True, check=False)
            if ran.returncode not in (0, BROKEN if words[1] == "gate" else 0):
                sys.exit(f"{shlex.join(words)}\n{ran.stderr}")
            if "markdown" in words:
                print(ran.stdout)
        for svg in Path().glob("*.svg"):
            (target / f"gallery-{svg.name}").write_bytes(svg.read_bytes())
        if FOUND is not None:
            with browser() as tab:
                for html in sorted(Path().glob("*.html")):
                    top_of_page(tab, html, target / f"gallery-{html.stem}.png")


if __name__ == "__main__":
    main()
