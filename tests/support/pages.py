"""What other tests share with those of docs."""

from __future__ import annotations

import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
