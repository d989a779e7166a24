"""Outcomes as dicts, lists, strings and numbers, and back by the types of their fields."""

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

_Kind = TypeVar("_Kind")


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; what has a `to_dict` says itself how."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def plain_fields(one: Any, names: str) -> dict[str, Any]:
    """Return some attributes, whose names stand between blanks, as JSON holds them."""
    return {name: plain(getattr(one, name)) for name in names.split()}


def read_fields(kind: type[_Kind], told: Mapping[str, Any]) -> _Kind:
    """Return the dataclass or named tuple that `plain` told of; what is no field is passed over."""
    fields = {name: told[name] for name in kind.__annotations__ if name in told}
    known = {
        name: _read(_kind_of(kind, name), one) for name, one in fields.items() if one is not None
    }
    return kind(**fields | known)


def _kind_of(kind: type, name: str) -> Any:
    """Return the type of a field; those of other fields may be known to type checkers only."""
    alone = SimpleNamespace(__annotations__={name: kind.__annotations__[name]})
    return get_type_hints(alone, vars(sys.modules[kind.__module__]))[name]


def _read(kind: Any, value: Any) -> Any:
    origin, of = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin in (Union, UnionType):
        several = [one for one in of if one is not NoneType]
        return _read(several[0], value) if len(several) == 1 else value
    if origin is dict:
        as_key = int if of[0] is int else str
        return {as_key(name): _read(of[1], one) for name, one in value.items()}
    if origin is list:
        return [_read(of[0], one) for one in value]
    if origin is tuple:
        kinds = [of[0]] * len(value) if of[-1] is Ellipsis else of
        return tuple(_read(one, part) for one, part in zip(kinds, value, strict=True))
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return read_fields(kind, value)
    return value
