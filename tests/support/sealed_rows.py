"""What other tests share with those of parts refused."""

from __future__ import annotations

from typing import Any

from rankmill.metrics.records.state_rows import SEAL, sealed


def resealed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as if it had been written so: what is behind the checksum is checked as well."""
    return sealed({name: value for name, value in row.items() if name != SEAL})
