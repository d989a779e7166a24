"""What the caller told of an input, for the formats that do not tell it themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# The default memory limit in bytes. If the confidences need more, they are read twice; if scattered
# rows need more, they are grouped on disk.
MEMORY = 1 << 30

Role = Literal["labels", "predictions", "train", "items", "features"]


@dataclass(frozen=True)
class Asked:
    """What the caller told of an input.

    Attributes
    ----------
    role : {"labels", "predictions", "train", "items", "features"}
        What it is given as; all but predictions are read as labels are.
    format : str or None
        The name of a format.
    columns : tuple of str
        The names of the columns, if the files have no header.
    query, item : str or None
        The columns of query ids and items.
    facts : tuple of str
        More columns of the labels.
    memory : int
        How many bytes a part of a file may take that is held whole.
    """

    role: Role = "labels"
    format: str | None = None
    columns: tuple[str, ...] = ()
    query: str | None = None
    item: str | None = None
    facts: tuple[str, ...] = ()
    memory: int = MEMORY

    @classmethod
    def of(cls, role: Role, options: Mapping[str, Any]) -> "Asked":
        """What options of `evaluate` tell of one side."""
        names = options["columns"]
        query, item = options["query"], options["item"]
        if role == "labels":
            names = options["label_columns"] or names
            query, item = options["label_query"] or query, options["label_item"] or item
        return cls(role, options[f"{role}_as"], column_names(names), query, item)


def column_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of columns, which a text has between commas.

    Examples
    --------
    >>> column_names("query,item"), column_names(["query"]), column_names(None)
    (('query', 'item'), ('query',), ())
    """
    return tuple(names.split(",") if isinstance(names, str) else names or ())
