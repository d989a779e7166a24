"""Fields of results that are made when somebody asks for them."""

from functools import partial
from typing import Any


class WhenAsked:
    """A field of a dataclass that may be set to a `partial`: it is called when first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, held_by: Any, owner: type | None = None) -> Any:
        if held_by is None:
            return None  # the default of the field
        value = vars(held_by)[self._name]
        if isinstance(value, partial):
            value = vars(held_by)[self._name] = value()
        return value

    def __set__(self, held_by: Any, value: Any) -> None:
        vars(held_by)[self._name] = value
