"""How a run of a history is chosen as a baseline, as texts say it."""

import re
from typing import NamedTuple

from rankmill.errors import UsageError
from rankmill.package import GONE

__all__ = ["Choice", "is_choice", "read_choice"]

_CHOICES = re.compile(
    r"((?P<last>last) | median:(?P<median>[1-9]\d{0,6}) | ago:(?P<ago>[1-9]\d{0,5}d)"
    r"| tag:(?P<tag>[^=]+=.*?)) (?P<none>\ or\ none)? | (?P<run>\d{8}T\d{12}Z-[0-9a-f]{16})",
    re.VERBOSE | re.DOTALL,
)
EXPECTED = (
    "last, the median of the last runs as median:7, a run some days back as ago:28d, the "
    "newest run of a tag as tag:release=v7, each with ' or none' for the first night, or the id of "
    "a run"
)


class Choice(NamedTuple):
    """How a run of a history is chosen: its kind, and what stands behind the colon."""

    kind: str
    value: str
    optional: bool = False  # on the first night there is none

    @property
    def pinned(self) -> bool:
        """Whether the user named the run, so that it serves whatever its verdict."""
        return self.kind in ("tag", "run")


def is_choice(text: str) -> bool:
    """Return whether a text says how to choose a run of a history.

    Examples
    --------
    >>> is_choice("last or none"), is_choice("old.parquet")
    (True, False)
    """
    return bool(_CHOICES.fullmatch(text) or re.match("best$|(median|ago|tag):", text))


def read_choice(text: str) -> Choice:
    """Take apart how a run is chosen; UsageError if a history has no such run.

    Examples
    --------
    >>> read_choice("median:7"), read_choice("tag:release=v7").value
    (Choice(kind='median', value='7', optional=False), 'release=v7')
    >>> read_choice("tag:release=v7 or none")
    Choice(kind='tag', value='release=v7', optional=True)
    """
    found = _CHOICES.fullmatch(text)
    if found is None:
        told = f"a history has no baseline {text!r}; expected {EXPECTED}"
        raise UsageError(GONE.get(text, told))
    known = found.groupdict()
    optional = known.pop("none") is not None
    kind, value = next((kind, one) for kind, one in known.items() if one is not None)
    return Choice(kind, value, optional)
