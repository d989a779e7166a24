"""Records: dataclasses made without generating code, which takes long for a hundred of them."""

import dataclasses
from collections.abc import Callable
from inspect import Parameter, Signature, get_annotations
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(cls=None, /, **how):
        """Make a class a dataclass, as ``dataclasses.dataclass`` does with the same arguments.

        It takes ``frozen``, ``eq``, ``repr`` and ``kw_only``.

        Examples
        --------
        >>> @record(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), dataclasses.replace(Point(1), y=2) == Point(1, 2)
        (Point(x=1, y=0), True)
        """
        return _made(cls, **how) if cls is not None else lambda cls: _made(cls, **how)


__all__ = ["record"]


class _Signature:
    """The signature of a class, which is made when it is asked for."""

    def __get__(self, _: Any, cls: Any) -> Signature:
        parameters = []
        for one in sorted(_given(cls), key=lambda one: bool(one.kw_only)):
            kind = Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = one.default
            if one.default_factory is not dataclasses.MISSING:
                default = dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]
            default = Parameter.empty if default is dataclasses.MISSING else default
            parameters.append(Parameter(one.name, kind, default=default, annotation=one.type))
        return Signature(parameters, return_annotation=None)


def _given(cls: Any) -> list[Any]:
    """Return the fields that an instance is made of."""
    return [one for one in cls.__dataclass_fields__.values() if one.init]


def _fields_of(cls: type, kw_only: bool) -> dict[str, Any]:
    """Return the fields of a class and of its bases as `dataclasses` has them."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= getattr(base, "__dataclass_fields__", {})
    for name, kind in get_annotations(cls).items():
        if kind in (dataclasses.KW_ONLY, "KW_ONLY"):
            kw_only = True
        elif not str(kind).removeprefix("typing.").startswith("ClassVar"):
            default: Any = getattr(cls, name, dataclasses.MISSING)
            one = default
            if not isinstance(default, dataclasses.Field):
                one = dataclasses.field(default=default)
            elif one.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, one.default)
            one.name, one.type, one.kw_only = name, kind, kw_only
            one._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            found[name] = one
    return found


def _made(
    cls: Any, *, frozen: bool = False, eq: bool = True, repr: bool = True, kw_only: bool = False
) -> Any:
    fields = cls.__dataclass_fields__ = _fields_of(cls, kw_only)
    cls.__dataclass_params__ = SimpleNamespace(
        init=True, repr=repr, eq=eq, order=False, unsafe_hash=False, frozen=frozen
    )
    positional = tuple(one.name for one in _given(cls) if not one.kw_only)
    cls.__match_args__, cls.__signature__ = positional, _Signature()  # type: ignore[misc]
    cls.__init__ = _init_of(cls)
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refuse, _refuse
    if eq:
        compared = _getter([one.name for one in fields.values() if one.compare])
        if cls.__dict__.get("__hash__") is None:  # which is there beside a method __eq__
            cls.__hash__ = (lambda self: hash(compared(self))) if frozen else None
        if "__eq__" not in cls.__dict__:
            cls.__eq__ = lambda self, other: (
                compared(self) == compared(other) if type(other) is type(self) else NotImplemented
            )
    if repr and "__repr__" not in cls.__dict__:
        shown = [one.name for one in fields.values() if one.repr]
        cls.__repr__ = lambda self: (
            f"{type(self).__qualname__}("
            f"{', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
        )
    return cls


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that gives these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _refuse(self: Any, name: str, value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _init_of(cls: Any) -> Callable[..., None]:
    missing, all_fields = dataclasses.MISSING, cls.__dataclass_fields__.values()
    order = cls.__match_args__
    known = frozenset(one.name for one in _given(cls))
    # In their order, in which `vars` shows them; the missing ones are given or made.
    values = {one.name: one.default for one in all_fields}
    makers = [one for one in all_fields if one.default_factory is not missing]
    needed = known.intersection(name for name, value in values.items() if value is missing)
    needed = needed.difference(one.name for one in makers)
    for name in values.keys() - known:
        if values[name] is missing:
            del values[name]
    post_init = getattr(cls, "__post_init__", None)

    def init(self: Any, /, *args: Any, **given: Any) -> None:
        named = dict(zip(order, args, strict=False)) | given if args else given
        if len(named) < len(args) + len(given) or not needed <= named.keys() <= known:
            try:
                cls.__signature__.bind(*args, **given)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}: {error}") from None
        held = self.__dict__
        held.update(values)
        for one in makers:
            if one.name not in named:
                held[one.name] = one.default_factory()
        held.update(named)
        if post_init is not None:
            self.__post_init__()

    return init
