"""Records, held to the classes that `dataclasses` makes of the same fields."""

import copy
import dataclasses
import inspect
import pickle
import pprint
from dataclasses import KW_ONLY, FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from rankmill.records import record
from rankmill.sources.nouns import Labels


def _classes(make: Any) -> list[Any]:
    """Return the same classes as one decorator or the other makes them."""

    @make(frozen=True)
    class Plain:
        x: int
        y: int = 2
        z: tuple[int, ...] = field(default_factory=tuple)
        kind: ClassVar[str] = "plain"

    @make(frozen=True)
    class Named:
        x: int
        _: KW_ONLY
        y: "int" = 2
        hidden: int = field(default=3, repr=False, compare=False)
        late: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "late", self.x + self.y)

    @make
    class Open:
        x: int
        y: list[int] = field(default_factory=list)

    @make(frozen=True, eq=False)
    class Child(Plain):
        x: int = 7
        w: int = 8

        def __repr__(self) -> str:
            return "a child"

    class Asked:
        def __get__(self, one: Any, cls: Any) -> Any:
            return 4 if one is None else vars(one)["x"]

        def __set__(self, one: Any, value: Any) -> None:
            vars(one)["x"] = value

    @make(eq=False)
    class Descriptor:
        x: Any = Asked()
        y: int = 5

    @make(frozen=True, repr=False, kw_only=True)
    class Equal:
        x: int = 1

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    return [Plain, Named, Open, Child, Descriptor, Equal]


PAIRS = [*zip(_classes(record), _classes(dataclasses.dataclass), strict=True)]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((), {}), ((1,), {}), ((1, 5), {}), ((1, 5, (6,)), {}), ((1, 2, 3, 4, 5), {})),
    *(((1,), {"x": 2}), ((1,), {"q": 2}), ((1,), {"late": 2}), ((1,), {"hidden": 4})),
    *(((), {"x": 1, "y": 9}), ((), {"x": 1}), ((), {"y": 9})),
]


def _outcome(cls: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    try:
        one = cls(*args, **given)
    except TypeError:
        return TypeError
    same, other = cls(*args, **given), dataclasses.replace(one, x=77)
    try:
        hashed: object = hash(one) == hash(same)
    except TypeError:
        hashed = TypeError
    try:
        one.x = one.x
        changed = True
    except FrozenInstanceError:
        changed = False
    shown = repr(one).partition(" object at ")[0]
    values = vars(one), vars(other), dataclasses.asdict(one), vars(copy.deepcopy(one))
    return values, shown, one == same, one == other, hashed, changed, one != 3


@pytest.mark.parametrize(("made", "real"), PAIRS)
def test_records_are_what_dataclasses_are(made: Any, real: Any) -> None:
    for args, given in CALLS:
        assert _outcome(made, args, given) == _outcome(real, args, given)
    assert str(inspect.signature(made)) == str(inspect.signature(real))
    assert made.__match_args__ == real.__match_args__
    told = [[(one.name, one.type) for one in dataclasses.fields(cls)] for cls in (made, real)]
    assert told[0] == told[1]


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Labels: got an unexpected keyword argument 'qury'$"):
        Labels([], qury="user")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Labels: missing a required argument: 'data'$"):
        Labels()  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError, match="'gain'"):
        Labels([]).gain = "rating"  # type: ignore[misc]


def test_records_travel_and_are_printed() -> None:
    labels = Labels([1], item="page")
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert "item='page'" in pprint.pformat(labels)
