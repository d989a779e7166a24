"""Metrics over the vectors of items: the oracle, scikit-learn, known answers, what is refused."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue_oracle
import rankmill
from catalogues import KINDS, LISTS, assert_values, table
from flat import flat
from rankmill import InputError, UsageError
from rankmill.matching.catalogue import Features
from strategies import examples
from vectors import VECTORS, scaled

METRICS = [f"{name}{at}" for name in catalogue_oracle.FEATURED for at in ("@1", "@3", "")]


@pytest.mark.small
@settings(max_examples=examples(60))
@given(LISTS, LISTS, LISTS, VECTORS, st.sampled_from([*KINDS]), st.randoms(use_true_random=False))
def test_the_oracle(
    labels: dict[int, list[int]],
    predictions: dict[int, list[int]],
    train: dict[int, list[int]],
    vectors: dict[int, list[float]],
    kind: str,
    draw: random.Random,
) -> None:
    """Vectors as a column or several, and in other orders: the same bits; so are two parts."""
    if not any(labels.values()) or not any(train.values()) or not any(map(any, vectors.values())):
        return
    name, arrow = KINDS[kind]
    sides = [
        {query: [name(item) for item in listed] for query, listed in one.items()}
        for one in (labels, predictions, train)
    ]
    named = {name(item): one for item, one in vectors.items()}
    plain = {item: scaled(one) for item, one in named.items()}
    expected = {
        text: catalogue_oracle.value(text, *sides[:2], train=sides[2], vectors=plain)
        for text in METRICS
    }
    tables = [table(one, arrow) for one in sides]
    ids = pa.array([*named], arrow)
    lists = pa.array([*named.values()], pa.list_(pa.float64()))
    columns = {f"x{j}": pa.array(one) for j, one in enumerate(zip(*named.values(), strict=True))}
    shapes = [pa.table({"item": ids, "vector": lists}), pa.table({"item": ids, **columns})]
    shapes.append(shapes[0].take(np.array(draw.sample(range(len(ids)), len(ids)))))
    found = []
    for features in shapes:
        reversed_train = tables[2].take(np.arange(len(tables[2]))[::-1].copy())
        parts = []
        for half in (0, 1):
            cut = [
                one.filter(pa.array([q % 2 == half for q in one["query"].to_pylist()], pa.bool_()))
                for one in tables[:2]
            ]
            options = {"features": features, "train": reversed_train}
            row = flat(rankmill.parts.evaluate_part, *cut, METRICS, **options).to_row()
            parts.append(rankmill.parts.State.from_row(pa.Table.from_pylist([row]).to_pylist()[0]))
        found.append(parts[1].merge(parts[0]).result().metrics)
        whole = flat(
            rankmill.parts.evaluate_part, *tables[:2], METRICS, features=features, train=tables[2]
        )
        found.append(whole.result().metrics)
    assert_values(found[0], expected)
    assert all(one == found[0] for one in found)


# ------------------------------------------------------------------ known answers

LABELS = table({1: ["a"], 2: ["b"]}, pa.string())
PREDICTIONS = table({1: ["a", "b", "a"], 2: ["c", "q", "d", "e"]}, pa.string())
TRAIN = table({1: ["b", "c"], 2: ["d", "q"], 3: ["a"]}, pa.string())
VECTOR_OF = {"a": [3, 0], "b": [0, 0.5], "c": [-1, 0], "d": [1, 1], "e": [0, 0]}
FEATURES = pa.table(
    {"item_id": [*VECTOR_OF], "vector": [[*map(float, v)] for v in VECTOR_OF.values()]}
)


@pytest.mark.small
def test_known_answers() -> None:
    """A repeat does not count, nor an item without a vector, nor one of zeros."""
    asked = ["ild_cosine", "ild_cosine@2", "epd_cosine@1", "epd_cosine"]
    found = rankmill.evaluate(
        LABELS, PREDICTIONS, asked, catalogue=rankmill.Catalogue(train=TRAIN, features=FEATURES)
    )
    half = math.sqrt(0.5)
    # Right angles in query 1; in query 2, c and d have an angle of 135 degrees.
    assert found["ild_cosine"] == pytest.approx((1 + 1 + half) / 2, rel=1e-14)
    assert found["ild_cosine@2"] == 1  # c and q are no pair, as q has no vector
    # a from b and c, which is opposite; c from d.
    assert found["epd_cosine@1"] == pytest.approx(((1 + 2) / 2 + 1 + half) / 2, rel=1e-14)
    # Beside that b from b and c, and d from d.
    each = (1 + 2 + 0 + 1) / 4, (1 + half + 0) / 2
    assert found["epd_cosine"] == pytest.approx(sum(each) / 2, rel=1e-14)
    assert found.inputs["features"]["columns"] == {"item": "item_id", "vector": "vector"}
    assert found.inputs["features"]["rows"] == 5


@pytest.mark.small
def test_the_catalogue_is_that_of_the_features_without_another() -> None:
    found = rankmill.evaluate(
        LABELS, LABELS, "coverage", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    assert found["coverage"] == 0.5  # a and b of a, b, c, d: e has a vector of zeros
    found = rankmill.evaluate(
        LABELS, LABELS, "coverage", catalogue=rankmill.Catalogue(train=TRAIN, features=FEATURES)
    )
    assert found["coverage"] == 0.4  # a and b of a, b, c, d, q
    found = rankmill.evaluate(
        LABELS,
        LABELS,
        "coverage",
        catalogue=rankmill.Catalogue(items=pa.table({"item": ["a"]}), features=FEATURES),
    )
    assert found["coverage"] == 1


@pytest.mark.small
def test_only_directions_count() -> None:
    """Lengths do not matter: a power of 2 not in a bit, though its square is beyond float64."""
    first = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    for factor in (2.0**1020, 2.0**-1040, 2.0):
        longer = {item: [factor * one for one in vector] for item, vector in VECTOR_OF.items()}
        found = rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=longer)
        )
        assert found.metrics == first.metrics
    for kind in (pa.float32(), pa.float16(), pa.decimal128(8, 3)):
        lists = FEATURES["vector"].cast(pa.list_(kind))
        other = FEATURES.set_column(1, "vector", lists)
        found = rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=other)
        )
        assert found.metrics == first.metrics


@pytest.mark.small
def test_the_same_direction_is_no_distance() -> None:
    vectors = {n: [0.1 * n, 0.3 * n, 0.7 * n] for n in range(1, 200)}
    lists = [[*range(1, 200)]]
    found = rankmill.evaluate(
        dict(enumerate(lists)),
        dict(enumerate(lists)),
        "ild_cosine",
        catalogue=rankmill.Catalogue(features=vectors),
    )
    assert 0 <= found["ild_cosine"] < 1e-13


# ------------------------------------------------------------------ scikit-learn, and many blocks


def large(seed: int = 5) -> tuple[pa.Table, pa.Table, pa.Table, np.ndarray]:
    draw = np.random.default_rng(seed)
    lists = {q: draw.choice(300, 8, replace=False).tolist() for q in range(700)}
    train = {
        q: draw.choice(320, int(n), replace=False).tolist()
        for q, n in enumerate(draw.integers(0, 40, 650))
    }
    labels = {q: [int(n)] for q, n in enumerate(draw.integers(0, 300, 700))}
    vectors = draw.normal(size=(310, 12))
    return (*(table(one, pa.int64()) for one in (labels, lists, train)), vectors)


def test_scikit_learn() -> None:
    from sklearn.metrics.pairwise import cosine_distances

    labels, predictions, train, vectors = large()
    features = pa.table({"item": np.arange(310), "vector": [*vectors]})
    asked = "ild_cosine@5,epd_cosine@5"
    found = rankmill.evaluate(
        labels, predictions, asked, catalogue=rankmill.Catalogue(train=train, features=features)
    )
    far = cosine_distances(vectors)
    had = dict(zip(*(train[name].to_pylist() for name in ("query", "items")), strict=True))
    pairs, history = [], []
    for query, listed in zip(
        *(predictions[n].to_pylist() for n in ("query", "items")), strict=True
    ):
        top = listed[:5]
        pairs.append(far[np.ix_(top, top)][np.triu_indices(5, 1)].mean())
        before = [item for item in had.get(query, []) if item < 310]
        history += [far[np.ix_(top, before)].mean()] if before else []
    assert found["ild_cosine@5"] == pytest.approx(np.mean(pairs), rel=1e-11)
    assert found["epd_cosine@5"] == pytest.approx(np.mean(history), rel=1e-11)


def test_blocks_threads_files_and_orders_change_no_bit(tmp_path: Path) -> None:
    labels, predictions, train, vectors = large()
    features = pa.table({"item": np.arange(310), "vector": [*vectors]})
    asked = ["ild_cosine@5", "epd_cosine@5", "ild_cosine", "epd_cosine", "map@3"]
    first = rankmill.evaluate(
        labels, predictions, asked, catalogue=rankmill.Catalogue(train=train, features=features)
    )
    paths = {}
    for name, one in (("l", labels), ("p", predictions), ("t", train), ("f", features)):
        paths[name] = tmp_path / f"{name}.parquet"
        pq.write_table(one, paths[name], row_group_size=100)
    both = paths["l"], paths["p"]
    for threads in (1, 3):
        found = flat(
            rankmill.evaluate, *both, asked, features=paths["f"], train=paths["t"], threads=threads
        )
        assert found.metrics == first.metrics
        assert found.standard_errors == first.standard_errors
    draw = np.random.default_rng(1)
    long = pa.table(
        {
            "query": np.repeat(train["query"].to_numpy(), [len(one) for one in train["items"]]),
            "item": pa.chunked_array(train["items"]).combine_chunks().flatten(),
        }
    )
    mixed = [one.take(draw.permutation(len(one))) for one in (predictions, features, long)]
    found = rankmill.evaluate(
        labels, mixed[0], asked, catalogue=rankmill.Catalogue(train=mixed[2], features=mixed[1])
    )
    assert found.metrics == first.metrics
    wide = {f"x{j}": vectors[:, j] for j in range(12)}
    columns = pa.table({"item": np.arange(310), **wide})
    pyarrow.csv.write_csv(columns, tmp_path / "f.csv")
    for one in (columns, str(tmp_path / "f.csv"), dict(enumerate(vectors)), vectors):
        found = rankmill.evaluate(
            labels, predictions, asked, catalogue=rankmill.Catalogue(train=train, features=one)
        )
        assert found.metrics == first.metrics


@pytest.mark.small
def test_files_of_text(tmp_path: Path) -> None:
    """Numbers that look like integers at first, and lists in cells."""
    first = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    texts = {
        "f.csv": "item,x,y\na,3,0\nb,0,0.5\nc,-1,0\nd,1,1\n",
        "f.tsv": "item\tx\ty\na\t3\t0\nb\t0\t5e-1\nc\t-1\t0\nd\t1\t1\n",
        "f.jsonl": '{"item": "a", "v": [3, 0]}\n{"item": "b", "v": [0, 0.5]}\n'
        '{"item": "c", "v": [-1, 0]}\n{"item": "d", "v": [1, 1]}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        path = str(tmp_path / name)
        found = rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=path)
        )
        assert found.metrics == first.metrics, name


@pytest.mark.small
def test_vectors_take_as_many_bytes_as_the_page_says() -> None:
    ids = rankmill.columns.ids.to_ids(np.arange(1000), "items")
    features = Features(ids, np.ones((1000, 7)))
    assert features.units.nbytes == 1000 * 7 * 8


@pytest.mark.small
def test_lists_of_one_size_and_nulls() -> None:
    """An item whose vector is null is one without a vector, and a row without an item is none."""
    first = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    rows = [("x", None), (None, [1, 1]), *VECTOR_OF.items()]
    items = pa.array([item for item, _ in rows], pa.string())
    for kind in (pa.list_(pa.float32(), 2), pa.large_list(pa.float64())):
        nulls = pa.table({"item": items, "vector": pa.array([one for _, one in rows], kind)})
        found = rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=nulls)
        )
        assert found.metrics == first.metrics


@pytest.mark.small
def test_a_title_beside_a_column_of_lists_is_not_read() -> None:
    first = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    titled = FEATURES.append_column("title", pa.array([*"vwxyz"])).append_column(
        "genres", pa.array([["art"]] * 5)
    )
    found = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=titled)
    )
    assert found.metrics == first.metrics
    assert found.inputs["features"]["unread"] == ["title", "genres"]


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    first = rankmill.evaluate(
        LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
    )
    arrays = [np.array(one, float) for one in VECTOR_OF.values()]
    frames = [pandas.DataFrame({"item": [*VECTOR_OF], "vector": arrays})]
    frames.append(
        pandas.DataFrame(
            {"item": [*VECTOR_OF], **dict(zip("xy", np.transpose(arrays), strict=True))}
        )
    )
    for frame in frames:
        found = rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=frame)
        )
        assert found.metrics == first.metrics


@pytest.mark.small
@pytest.mark.parametrize(
    "features",
    [
        {0: [1.0, 0.0], 1: [0.0, 1.0]},
        [[1.0, 0.0], [0.0, 1.0]],
        np.eye(2),
        np.eye(2, dtype=np.float16),
        np.eye(2, dtype=np.float16) * np.float16(0.1),
    ],
)
@pytest.mark.filterwarnings("error")
def test_objects_of_python_have_a_column_of_items(features: Any) -> None:
    found = rankmill.evaluate(
        [[0], [1]], [[0, 1], [1, 0]], "ild_cosine", catalogue=rankmill.Catalogue(features=features)
    )
    assert found["ild_cosine"] == 1.0
    assert found.inputs["features"]["columns"] == {"item": "item", "vector": "vector"}


@pytest.mark.small
@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.array([1.0, 2.0]), ["the ndarray of features holds"]),
        ([1.0, 2.0], ["the list of features holds 1.0"]),
        (np.ones((2, 2, 2)), ["3 dimensions"]),
        ({0: 1.0}, ["the value of 0 is 1.0"]),
        ({0: "ab"}, ["the value of 0 is 'ab'"]),
        ({0: {"a": 1}}, ["holds {'a': 1}"]),
        ({0: {1.0, 2.0}}, ["holds {1.0, 2.0}"]),
        ([{0: 1.0}], ["holds {0: 1.0}"]),
        ({0: ["x"]}, ["holds ['x']"]),
        ([[(1, 2.0)]], ["holds [(1, 2.0)]"]),
        (5, ["cannot be a int"]),
        (iter([1]), ["list_iterator"]),
    ],
)
def test_objects_that_are_no_vectors(features: Any, words: list[str]) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        rankmill.evaluate(
            [[0]], [[0, 1]], "ild_cosine", catalogue=rankmill.Catalogue(features=features)
        )
    tells(caught.value, [*words, "{item: vector}, or a matrix whose row i is item i"])
    assert "query:" not in str(caught.value)
    assert "each query" not in str(caught.value)


# ------------------------------------------------------------------ refused


def features_of(vectors: Any, kind: Any = None, items: Any = ("a", "b", "c")) -> pa.Table:
    return pa.table({"item": [*items], "v": pa.array(vectors, kind or pa.list_(pa.float64()))})


@pytest.mark.small
@pytest.mark.parametrize(
    ("features", "words"),
    [
        (None, ["ild_cosine@3", "--features", "vectors"]),
        (features_of([[1, 2], [1, 2, 3], [1, 2]]), ["features:", "row 1", "3 numbers", "has 2"]),
        (features_of([[1], [math.nan], [1]]), ["row 1", "nan at place 0", "finite"]),
        (features_of([[1, 1], [1, math.inf], [1, 1]]), ["row 1", "inf at place 1"]),
        (features_of([[1, 1], [1, None], [1, 1]]), ["row 1", "nan at place 1"]),
        (features_of([1.0, None, 2.0], pa.float64()), ["row 1", "nan"]),
        (features_of([[1], [1], [1]], items="aba"), ["row 2", "'a'", "row 0", "once"]),
        (features_of([[0], [0], [0]]), ["zeros", "direction"]),
        (features_of([None, None, []]), ["holds no vectors in 'v'"]),
        (features_of(["x", "y", "z"], pa.string()), ["'v' holds string", "leave out"]),
        (features_of([["x"]] * 3, pa.list_(pa.string())), ["'v' holds list<", "leave out"]),
        (pa.table({"item": ["a"]}), ["no column other than 'item'", "vectors"]),
        (
            features_of([[1]] * 3).append_column("w", pa.array([[1.0]] * 3)),
            ["several columns", "v, w"],
        ),
        (features_of([[2**63 - 1]] * 3, pa.list_(pa.int64())), ["'v'", "no float64"]),
        (features_of([[1]] * 3, items=(1, 2, 3)), ["item ids cannot be compared"]),
        (rankmill.arrays.Ragged.from_lists([["a"]]), ["lists of items", "{item: vector}"]),
    ],
)
def test_refused(features: Any, words: list[str]) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        rankmill.evaluate(
            LABELS, PREDICTIONS, "ild_cosine@3", catalogue=rankmill.Catalogue(features=features)
        )
    tells(caught.value, words)


@pytest.mark.small
def test_refused_elsewhere() -> None:
    with pytest.raises(UsageError, match=r"epd_cosine needs what .* Catalogue\(train="):
        rankmill.evaluate(
            LABELS, PREDICTIONS, "epd_cosine", catalogue=rankmill.Catalogue(features=FEATURES)
        )
    with pytest.raises(UsageError, match="ild_cosine@3 depends on which of equal confidences"):
        rankmill.evaluate(
            LABELS,
            PREDICTIONS,
            "ild_cosine@3",
            semantics={"order": "worst"},
            catalogue=rankmill.Catalogue(features=FEATURES),
        )
    parts = [
        rankmill.parts.evaluate_part(
            LABELS, PREDICTIONS, "ild_cosine", catalogue=rankmill.Catalogue(features=FEATURES[:n])
        )
        for n in (3, 4)
    ]
    with pytest.raises(UsageError, match=r"3 vectors of 2 numbers.*4 vectors of 2 numbers"):
        parts[0].merge(parts[1])


@pytest.mark.small
def test_rows_are_told_by_file_and_batch(tmp_path: Path) -> None:
    """A repeat in another file, and a vector of another length in a later one."""
    for name, rows in (("1", [[1.0]] * 3), ("2", [[1.0]] * 2)):
        items = [f"i{name}{n}" for n in range(len(rows))]
        pq.write_table(features_of(rows, items=items), tmp_path / f"{name}.parquet")
    again = features_of([[1.0]] * 2, items=("x", "i11"))
    pq.write_table(again, tmp_path / "3.parquet")
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(
            LABELS,
            PREDICTIONS,
            "ild_cosine",
            catalogue=rankmill.Catalogue(features=str(tmp_path / "*.parquet")),
        )
    tells(caught.value, ["3.parquet: row 1", "'i11'", "1.parquet: row 1"])
    pq.write_table(features_of([[1.0, 2.0]], items=("x",)), tmp_path / "3.parquet")
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(
            LABELS,
            PREDICTIONS,
            "ild_cosine",
            catalogue=rankmill.Catalogue(features=str(tmp_path / "*.parquet")),
        )
    tells(caught.value, ["3.parquet: row 0", "2 numbers", "has 1"])


def test_the_column_of_groups_is_no_part_of_a_vector() -> None:
    vectors = {"x": [1.0, 0.6, 0.0], "y": [0.0, 0.8, 1.0]}
    plain = pa.table({"item_id": ["a", "b", "c"], **vectors})
    both = plain.append_column("maker", pa.array([7, 8, 7]))
    labels, run = {"q": {"a": 1}}, {"q": [("a", 0.9), ("b", 0.8), ("c", 0.7)]}
    wanted = rankmill.evaluate(
        labels, run, "ild_cosine", catalogue=rankmill.Catalogue(features=plain)
    )
    asked: Any = {"items": both, "item_group": "maker", "features": both}
    found = flat(rankmill.evaluate, labels, run, ["ild_cosine", "ild"], **asked)
    assert found["ild_cosine"] == wanted["ild_cosine"]
    assert found.inputs["features"]["columns"] == {"item": "item_id", "vector": "x, y"}
    with pytest.raises(UsageError, match="'item_id' is the column of the items: name another"):
        rankmill.evaluate(
            labels, run, "ild", catalogue=rankmill.Catalogue(items=both, group="item_id")
        )
