"""What other tests share with those of trec eval."""

from __future__ import annotations

CLOSE = {"rel": 1e-12, "abs": 1e-14}
