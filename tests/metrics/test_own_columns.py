"""Metrics of somebody's own that see columns: the bits of plain Python in every layout."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from own_columns_oracle import SeenList, labels_of, values_of
from rankmill import Catalogue, metric
from rankmill.errors import InputError, UsageError
from rankmill.metrics import registry

pytestmark = pytest.mark.small
POSITIVE = (0, math.inf)


def revenue(ranks: Any, item_price: Any, k: int) -> float:
    """the prices of the hits within k"""
    total = 0.0
    for rank in ranks:
        if item_price[rank - 1] == item_price[rank - 1]:
            total += item_price[rank - 1]
    return total


def shelf(item_price: Any, predictions: int, scale: float = 1.0) -> float:
    """the mean price of what is shown, where it is known"""
    total, count = 0.0, 0
    for price in item_price:
        if price == price:
            total += price
            count += 1
    return scale * total / max(1, count) + 0.001 * len(item_price)


def revenue_oracle(one: SeenList) -> float:
    total = 0.0
    for rank in one.ranks:
        if not math.isnan(one.of_items[rank - 1]):
            total += one.of_items[rank - 1]
    return total


def shelf_oracle(one: SeenList) -> float:
    known = [price for price in one.of_items if not math.isnan(price)]
    total = 0.0
    for price in known:
        total += price
    return total / max(1, len(known)) + 0.001 * len(one.of_items)


ORACLES = {"revenue": revenue_oracle, "shelf": shelf_oracle}


@pytest.fixture(autouse=True)
def metrics() -> Iterator[None]:
    """Define the metrics, compiled and plain, and forget them and those of a test."""
    for function in (revenue, shelf):
        metric(f"{function.__name__}[@k]", range=POSITIVE, better="higher")(function)
        plain = metric(f"plain_{function.__name__}[@k]", range=POSITIVE, compile=False)
        plain(function)
    yield
    for spec in registry.own_metrics():
        for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
            table.pop(spec.name.lower(), None)


DRAW = random.Random(5)
ITEMS = [*range(30)]
PRICES = {item: DRAW.choice([None, 0.1 * DRAW.randrange(1, 99)]) for item in ITEMS[:25]}
ROWS = [
    (query, DRAW.choice(ITEMS), DRAW.choice([0.0, 1.0, 1.0, 2.0]), DRAW.choice([None, *range(9)]))
    for query in range(60)
    for _ in range(DRAW.randrange(1, 7))
]
LISTS = {query: [DRAW.choice(ITEMS) for _ in range(DRAW.randrange(0, 9))] for query in range(3, 63)}
NAMES = ["revenue@3", "shelf@3", "revenue", "shelf", "map@3", "recall@5"]


def labels() -> pa.Table:
    columns = zip(*ROWS, strict=True)
    return pa.table(dict(zip(("user_id", "item_id", "gain", "seconds"), columns, strict=True)))


def predictions() -> pa.Table:
    return pa.table({"user_id": [*LISTS], "items": pa.array(LISTS.values(), pa.list_(pa.int64()))})


def items() -> pa.Table:
    prices = pa.array([*PRICES.values()], pa.float64())
    return pa.table({"item_id": [*PRICES], "price": prices})


def expected(name: str, **how: Any) -> dict[Any, float]:
    of, _, k = name.partition("@")
    known = labels_of(ROWS)
    return values_of(known, LISTS, PRICES, int(k or 99), ORACLES[of], **how)


def queries_of(result: Any, name: str) -> dict[Any, float]:
    table = result.per_query
    return dict(zip(*(table[one].to_pylist() for one in ("user_id", name)), strict=True))


def test_columns_of_items_stand_by_rank() -> None:
    result = rankmill.evaluate(
        labels(), predictions(), [*NAMES, "plain_revenue@3"], catalogue=Catalogue(items=items())
    )
    for name in NAMES[:4]:
        assert queries_of(result, name) == expected(name), name
    plain = rankmill.evaluate(labels(), predictions(), NAMES[4:])
    assert {name: result[name] for name in plain.metrics} == plain.metrics
    neither = queries_of(result, "plain_revenue@3")  # without a better side: a list may be empty
    assert neither == {**expected("revenue@3")}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"item_id": [1], "cost": [2.0]}, "no column 'price', which revenue@3 sees; the columns"),
        ({"item_id": [1], "price": [[2.0]]}, "column 'price', which revenue@3 sees, holds list"),
        ({"item_id": [1], "price": [{"a": 2.0}]}, "holds struct.*expected numbers, booleans"),
        ({"item_id": [1], "price": ["dear"]}, "found 'dear'; expected a number for the column of"),
        ({"item_id": [1, 1], "price": [1.0, 2.0]}, "item 1 has 1 and 2 in column 'price'; expec"),
        ({"item_id": [[1]], "price": [2.0]}, "the items are in lists, so price cannot be of each"),
        ({"item_id": [1], "price": [2**53 + 1]}, "column 'price': the number 9007199254740993 has"),
    ],
)
def test_columns_that_cannot_be_seen_are_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rankmill.evaluate(
            labels(), predictions(), "revenue@3", catalogue=Catalogue(items=pa.table(table))
        )


def test_without_a_table_of_items_it_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match=r"revenue@3 sees columns of the items.*Catalogue\(items="):
        rankmill.evaluate(labels(), predictions(), "revenue@3")
    with pytest.raises(UsageError, match="give items as a table"):
        rankmill.evaluate(labels(), predictions(), "revenue@3", catalogue=Catalogue(items=[1, 2]))
