"""Text that would be read as something else than was meant is an error, or read as it was meant."""

from pathlib import Path
from typing import Any

import pytest

import rankmill
import text_files as text
from flat import flat
from rankmill.errors import InputError

LABELS = {"q1": ["a", "b"], "q2": ["c", "d"]}


def scored(labels: Any, predictions: Any, **options: Any) -> float:
    """The map of some inputs."""
    return float(flat(rankmill.evaluate, labels, predictions, metrics=["map"], **options)["map"])


@pytest.mark.small
@pytest.mark.parametrize("content", [b'{"q": {"a": 1}, "q": {"b": 1}}', b'{"q": {"a": 1, "a": 0}}'])
def test_a_name_that_stands_twice_in_json(tmp_path: Path, content: bytes) -> None:
    path = text.write(tmp_path, "labels.json", content)
    with pytest.raises(InputError, match="appears twice in one object"):
        scored(path, {"q": ["a", "b"]})


@pytest.mark.small
@pytest.mark.parametrize("content", [b'{"q": {"a": {}}}', b'{"old": {"q": ["a"]}}'])
def test_json_of_another_shape_is_an_error_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = text.write(tmp_path, "labels.json", content)
    with pytest.raises(InputError, match=r"labels\.json.*expected"):
        scored(path, {"q": ["a", "b"]})


@pytest.mark.small
@pytest.mark.parametrize("missing", ["null", "None", "nan", "NaN"])
@pytest.mark.parametrize("other", ["'d'", r"'\x64'"])  # a list with an escape is parsed otherwise
def test_missing_items_of_lists_in_cells_are_null(tmp_path: Path, missing: str, other: str) -> None:
    cells = f"query,items\nq1,\"[{missing}, 'a', 'b']\"\nq2,\"['c', {other}]\"\n"
    path = text.write(tmp_path, "run.csv", cells.encode())
    assert scored(LABELS, path) == scored(LABELS, {"q1": [None, "a", "b"], "q2": ["c", "d"]}) == 1


@pytest.mark.small
def test_lists_with_escapes_do_not_change_the_others(tmp_path: Path) -> None:
    cells = "query,items\nq1,['a' 'b']\nq2,\"['c', '\\x64']\"\nq3,[01 1.50]\nq4,[]\nq5,['e']\n"
    path = text.write(tmp_path, "run.csv", cells.encode())
    lists = {**LABELS, "q3": ["01", "1.50"], "q5": ["e"]}
    assert scored(lists, path) == scored(path, lists) == 1


@pytest.mark.small
@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("['a' 'b' ... 'y' 'z']", "it was cut short when it was printed: write whole lists"),
        ("['a', ..., 'z']", "it was cut short when it was printed: write whole lists"),
        ("['a', 'b'", "expected a list with all its items"),
        ("[" * 5000, "expected a list with all its items"),
    ],
)
def test_lists_that_are_not_whole(tmp_path: Path, cell: str, message: str) -> None:
    path = text.write(tmp_path, "run.csv", f'query,items\nq1,"{cell}"\n'.encode())
    with pytest.raises(InputError, match=f"line 2, column 'items'.*{message}"):
        scored(LABELS, path)


@pytest.mark.small
@pytest.mark.parametrize("cell", ["('x', 'a')", "array(['x', 'a'])", r"['x' '\x61']", "[x, a]"])
def test_other_lists_of_python_in_cells(tmp_path: Path, cell: str) -> None:
    path = text.write(tmp_path, "run.csv", f'query,items\nq1,"{cell}"\n'.encode())
    assert scored({"q1": ["a"]}, path) == 0.5


@pytest.mark.small
@pytest.mark.parametrize("cell", ["{'a', 'b'}", "{'a'}", "frozenset({'a'})", "set()"])
def test_sets_in_cells_have_no_order(tmp_path: Path, cell: str) -> None:
    path = text.write(tmp_path, "run.csv", f'query,items\nq1,"{cell}"\n'.encode())
    with pytest.raises(InputError, match=r"line 2, .*it has no order of items: write a list"):
        scored(LABELS, path)


@pytest.mark.small
@pytest.mark.parametrize(
    ("header", "rows", "expected"),
    [
        ("query,items", "q1,a 0.5\nq2,c 0.25 d 0.125\n", 0.75),
        ("query,items,scores", "q1,x a,0.5 0.25\nq2,c d,0.75 0.5\n", 0.625),
        ("query,items,scores", 'q1,"[x, a]","[0.5, 0.25]"\nq2,"[c, d]","[0.75, 0.5]"\n', 0.625),
        ("query,item,score", "q1,x,0.1\nq1,a,0.5\nq2,c,1\n", 0.5),
        ("query,item,sim", "q1,x,0.1\nq1,a,0.5\nq2,c,1\n", 0.5),
        ("query,item,rank", "q1,x,2\nq1,a,1\nq2,c,1\n", 0.5),
    ],
)
@pytest.mark.parametrize("more", ["", "q3,\n"])
@pytest.mark.parametrize("names", [("1.csv", "2.csv"), ("2.csv", "1.csv")])
def test_files_without_values_beside_others(
    tmp_path: Path, header: str, rows: str, expected: float, more: str, names: tuple[str, str]
) -> None:
    empty = more.replace("\n", "," * (header.count(",") - 1) + "\n")
    text.write(tmp_path, names[0], f"{header}\n{rows}".encode())
    text.write(tmp_path, names[1], f"{header}\n{empty}".encode())
    metrics = ["map"] if "rank" in header or (header == "query,items" and more) else ["map", "gap"]
    result = rankmill.evaluate(LABELS, str(tmp_path), metrics=metrics)
    assert result["map"] == expected


@pytest.mark.small
def test_files_with_lists_of_two_kinds(tmp_path: Path) -> None:
    text.write(tmp_path, "1.csv", b"query,items\nq1,a 0.5\n")
    text.write(tmp_path, "2.csv", b"query,items\nq2,c d e\n")
    with pytest.raises(InputError, match=r"2\.csv .line 2, .* expected pairs of an item and a num"):
        scored(LABELS, str(tmp_path))


@pytest.mark.small
def test_a_separator_that_few_lists_hold(tmp_path: Path) -> None:
    rows = "".join(f"q{i},a b c\n" for i in range(20))
    path = text.write(tmp_path, "run.csv", f"query,items\n{rows}q20,a|x b\n".encode())
    with pytest.raises(InputError, match="'a b c' may be a list of items separated by spaces, and"):
        scored(LABELS, path)


@pytest.mark.small
@pytest.mark.parametrize("name", ["sim", "score", "relevance", "gains"])
def test_a_text_among_numbers(tmp_path: Path, name: str) -> None:
    """The column stays one of numbers, so that it is not left unread."""
    content = f"query,item,{name}\nq1,a,1\nq1,b,0\nq2,c,1\nq2,d,NA\n"
    path = text.write(tmp_path, "x.csv", content.encode())
    with pytest.raises(
        InputError, match=rf"line 5, column '{name}'\): found 'NA'; expected a number"
    ):
        scored(LABELS, path) if name == "sim" else scored(path, LABELS)
    lists = f"query,items,{name}\nq1,a b,1 0\nq2,c d,1 NA\nq3,c d,1 1\n"
    path = text.write(tmp_path, "wide.csv", lists.encode())
    with pytest.raises(
        InputError, match=rf"line 3, column '{name}'\): found 'NA'; expected a number"
    ):
        rankmill.evaluate(LABELS, path, metrics=["gap"]) if name == "sim" else scored(path, LABELS)


@pytest.mark.small
def test_numbers_beside_items_with_blanks_and_commas(tmp_path: Path) -> None:
    cells = "query,items,sim\nq1,\"['x y', 'a', 'b, c']\",\"[0.5, 0.25, 0.125]\"\nq2,[],[]\n"
    path = text.write(tmp_path, "run.csv", cells.encode())
    result = rankmill.evaluate(LABELS, path, metrics=["map", "gap"])
    assert result["map"] == 0.125
    assert result.to_dict()["inputs"]["predictions"]["columns"]["score"] == "sim"


@pytest.mark.small
def test_named_columns_of_what_may_be_trec(tmp_path: Path) -> None:
    """The lists of a wide file may look like the documents and relevances of qrels."""
    path = text.write(tmp_path, "labels.tsv", b"q1\t1 2\nq2\t3 4\n")
    lists = {"q1": ["1", "2"], "q2": ["3", "4"]}
    with pytest.raises(InputError, match="choose tsv or trec"):
        scored(path, lists, label_columns="query,items")
    assert scored(path, lists, label_columns="query,items", labels_as="tsv") == 1
    qrels = text.write(tmp_path, "qrels.tsv", b"q1\t0\t1\t1\n")
    run = text.write(tmp_path, "run.csv", b"q1,1,2\n")
    assert scored(qrels, run, columns="query,item,rank") == 1


NAMES = (
    *("labels", "items", "predictions", "ground_truth", "truth", "target", "relevant", "label"),
    *("prediction", "item", "item_id"),
)


@pytest.mark.small
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", ["labels", "predictions"])
@pytest.mark.parametrize("cells", ["5;6 7;8;9 10", "1;2;3;9 10", "a;b c;d e;f g"])
def test_the_name_of_a_column_does_not_tell_whether_it_holds_lists(
    tmp_path: Path, name: str, side: str, cells: str
) -> None:
    keys = [f"{session},{kind}" for session in (1, 2) for kind in ("clicks", "orders")]
    rows = "".join(f'{key},"{cell}"\n' for key, cell in zip(keys, cells.split(";"), strict=True))
    path = text.write(tmp_path, "x.csv", f"session,type,{name}\n{rows}".encode())
    other = {"1": ["5", "a"]}
    sides = (path, other) if side == "labels" else (other, path)
    with pytest.raises(InputError, match=r"rows repeat a query.*query=\['session', 'OTHER'\]"):
        scored(*sides, in_order=True)
    with pytest.raises(InputError, match=r"query '1' appears a second time"):
        scored(*sides, in_order=True, labels_as="csv-wide", predictions_as="csv-wide")
    lists = rankmill.evaluate(
        rankmill.Labels(path, query=["session", "type"]),
        rankmill.Predictions(path, query=["session", "type"], in_order=True),
        ["recall"],
    )
    assert (lists["recall"], lists.queries) == (1, 4)
    assert lists.audit["labels"] == len(cells.replace(";", " ").split())


@pytest.mark.small
def test_words_in_rows_of_a_query_are_one_item(tmp_path: Path) -> None:
    path = text.write(tmp_path, "x.csv", b"session,item\n1,Toy Story\n1,7\n2,8\n2,9\n")
    assert scored(path, {"1": ["Toy Story"], "2": ["8"]}, in_order=True) == 0.5


@pytest.mark.small
def test_an_item_and_a_number_that_may_both_be_items_are_asked_about(tmp_path: Path) -> None:
    path = text.write(tmp_path, "run.csv", b"query,items\nq1,1.5 2.5\nq2,3.5 4.5\n")
    with pytest.raises(InputError, match=r"'1.5 2.5' may be an item and its confidence"):
        scored({"q1": ["1.5"]}, path)
    assert scored({"q1": ["2.5"]}, path, predictions_as="csv-spaces") == 0.5
    assert scored({"q1": ["1.5"]}, path, predictions_as="csv-pairs") == 1
