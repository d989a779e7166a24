"""What the caller told of an input, for the formats that do not tell it themselves."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["labels", "predictions"]


@dataclass(frozen=True)
class Asked:
    """What the caller told of an input.

    Attributes
    ----------
    role : {"labels", "predictions"}
    format : str or None
        The name of a format.
    columns : tuple of str
        The names of the columns, if the files have no header.
    query, item : str or None
        The columns of query ids and items.
    """

    role: Role = "labels"
    format: str | None = None
    columns: tuple[str, ...] = ()
    query: str | None = None
    item: str | None = None
