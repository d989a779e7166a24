"""What other tests share with those of movielens."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1].parent


SCRIPT = ROOT / "scripts" / "movielens.py"


BESIDE_CHECKOUT = ROOT.parent / "shared" / "data" / "ml-latest-small" / "ratings.csv"
