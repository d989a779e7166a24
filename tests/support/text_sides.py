"""What other tests share with those of text formats."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st

import text_files as text
from strategies import stands_for_itself

GAINS = (3, 1, 2, 0, -1)


def lists_of(kind: str, seed: int, values: Any, queries: int = 60) -> text.Lists:
    """Random lists; ids are integers, or strings that look like integers but are none."""
    draw = random.Random(seed)
    ids = range(1, 200) if kind == "int" else [f"{n:04d}" for n in range(1, 200)]
    names = draw.sample(ids, queries)
    return {
        query: [
            (item, values(draw, i)) for i, item in enumerate(draw.sample(ids, draw.randint(1, 9)))
        ]
        for query in names
    }


def side(kind: str, which: str) -> text.Lists:
    if which == "labels":
        return lists_of(kind, 1, lambda draw, i: draw.choice(GAINS[:3]) if i else 1)
    return lists_of(kind, 2, lambda draw, i: 1.0 / (1 + i) + draw.random() / 100)


def json_object(lists: text.Lists, indent: int | None = None) -> str:
    return json.dumps({str(query): dict(items) for query, items in lists.items()}, indent=indent)


# Name -> the name of the file, what writes it, whether the twin has lists, and options of evaluate.
PREDICTIONS: dict[str, tuple[str, Any, bool, dict[str, Any]]] = {
    "csv long": ("p.csv", lambda one: text.long_text(one, "score"), False, {}),
    "csv crlf": ("p.csv", lambda one: text.long_text(one, "score", end="\r\n"), False, {}),
    "csv semicolons": ("p.csv", lambda one: text.long_text(one, "score", ";"), False, {}),
    "csv mark": ("p.csv", lambda one: b"\xef\xbb\xbf" + text.long_text(one, "score"), False, {}),
    "csv told": (
        "p.dat",
        lambda one: text.long_text(one, "score"),
        False,
        {"predictions_as": "csv"},
    ),
    "tsv long": ("p.tsv", lambda one: text.long_text(one, "score", "\t"), False, {}),
    "no suffix": ("p", lambda one: text.long_text(one, "score", "\t"), False, {}),
    "csv blanks": ("p.csv", lambda one: text.wide_text(one, "score", " "), True, {}),
    "csv commas": ("p.csv", lambda one: text.wide_text(one, "score", ", "), True, {}),
    "csv bars": ("p.csv", lambda one: text.wide_text(one, "score", "|"), True, {}),
    "csv tabs": ("p.csv", lambda one: text.wide_text(one, "score", "\t"), True, {}),
    "tsv blanks": ("p.tsv", lambda one: text.wide_text(one, "score", " ", "\t"), True, {}),
    "csv json": ("p.csv", lambda one: text.brackets_text(one, "score"), True, {}),
    "csv python": ("p.csv", lambda one: text.brackets_text(one, "score", repr), True, {}),
    "csv pairs": ("p.csv", text.pairs_text, True, {}),
    "run": ("p.run", text.run_text, False, {}),
    "run tabs": ("p.txt", lambda one: text.run_text(one, "\t  "), False, {}),
    "jsonl": ("p.jsonl", lambda one: text.json_lines(one, "score"), True, {}),
    "json": ("p.json", lambda one: json_object(one).encode(), False, {}),
    "json lines": ("p.json", lambda one: json_object(one, indent=1).encode(), False, {}),
    "jsonl long": ("p.ndjson", lambda one: text.json_rows(one, "score"), False, {}),
}


# Name -> the file, its content, and the message.
BAD: dict[str, tuple[str, bytes, str]] = {
    "five columns in a run": (
        "p.run",
        b"1 Q0 7 1 0.5 t\n1 Q0 8 2 0.4\n",
        "p.run: line 2: 5 columns; expected 6",
    ),
    "qrels as a run": ("p.run", b"1 0 7 1\n", "p.run: line 1: 4 columns; predictions in TREC's"),
    "blank lines at the start": (
        "p.csv",
        b"\n \r\nuser,item\n1,8\n\n1\n",
        "p.csv: line 6: 1 column; expected 2",
    ),
    "columns of one name behind a blank line": (
        "p.csv",
        b"\nuser,item,item\n1,8,8\n",
        "p.csv: line 2: two columns are called 'item'",
    ),
    "blank lines alone": ("p.csv", b"\n \n\r\n", "p.csv is empty; expected a header"),
    "text in a score": (
        "p.run",
        b"\n1 Q0 7 1 0.5 t\n\n1 Q0 8 2 high t\n",
        "p.run (line 4, column 'score'): found 'high'; expected a number",
    ),
    "NaN in a score": (
        "p.run",
        b"1 Q0 7 1 nan t\n",
        "p.run: line 1 (query 1): column 'score' is nan",
    ),
    "a score is missing": (
        "p.csv",
        b'user,item,score\n1,7,0.5\n1,8,""\n',
        "p.csv: line 3 (query 1): column 'score' is missing",
    ),
    "a quote is open": (
        "p.csv",
        b'user,item,score\n1,7,0.5\n1,"8,0.5\n2,7,1\n',
        "p.csv: line 3: a quoted text that starts here is not closed",
    ),
    "text after a quote": (
        "p.csv",
        b'user,item,score\n1,"7"x,0.5\n',
        "p.csv: line 2: a quoted text is followed by more text",
    ),
    "too many fields": (
        "p.csv",
        b"user,item,score\n1,7,0.5\n1,8,0,5\n",
        "p.csv: line 3: 4 columns; expected 3",
    ),
    "no query": ("p.csv", b"user,item,score\n1,7,0.5\n,8,0.5\n", "p.csv: line 3 has no query id"),
    "a query twice": (
        "p.csv",
        b"user,items\n1,[7 8]\n\n2,[9 10]\n1,[7 9]\n",
        "p.csv: query 1 appears a second time in line 5; expected",
    ),
    "one item or several": (
        "p.csv",
        b"user,items\n1,7 8\n2,9 10\n1,7 9\n",
        "p.csv (column 'items'): rows repeat a query, and '7 8' may be one item, or a list",
    ),
    "odd pairs": (
        "p.csv",
        b"user,items\n" + b"".join(b"%d,7 0.5 8 0.4\n" % i for i in range(20)) + b"99,9 0.5 8\n",
        "p.csv (line 22, column 'items'): found '9 0.5 8'; expected pairs",
    ),
    "a broken list": (
        "p.csv",
        b'user,items\n1,"[7, 8]"\n2,"[7, 8"\n',
        r"""p.csv (line 3, column 'items'): found '[7, 8'; expected a list with all its items""",
    ),
    "no JSON": ("p.jsonl", b'{"user": 1, "items": [7]}\n\n{"user": 2\n', "p.jsonl: line 3: "),
    "JSON of two types": (
        "p.jsonl",
        b'{"user": 1, "items": [7]}\n{"user": 2, "items": ["a"]}\n',
        "p.jsonl: line 2: items is ['a'] (list); expected a number for each item, as before",
    ),
    "a score that is not a number": (
        "p.csv",
        b"user,item,score\n1,7,0.5\n1,8,high\n2,9,abc\n",
        "p.csv (line 3, column 'score'): found 'high'; expected a number",
    ),
    "only one score, and no number": (
        "p.csv",
        b"user,item,score\n1,7,\n1,8,\n2,9,abc\n",
        "p.csv (line 4, column 'score'): found 'abc'; expected a number",
    ),
    "a score of JSON that is not a number": (
        "p.jsonl",
        b'{"user": 1, "item": 7, "score": 1}\n\n{"user": 2, "item": 7, "score": "abc"}\n',
        "p.jsonl: line 3: score is 'abc' (str); expected a number, as before",
    ),
    "scores of JSON that are no numbers": (
        "p.jsonl",
        b'{"user": 1, "item": 7, "score": "abc"}\n{"user": 2, "item": 7, "score": "5"}\n',
        "p.jsonl (line 1, column 'score'): found 'abc'; expected a number for the score",
    ),
    "an array of JSON": (
        "p.jsonl",
        b"[1]\n",
        "p.jsonl holds 1 (int); expected a list of items",
    ),
    "UTF-16": ("p.csv", "user,items\n".encode("utf-16"), "p.csv is text in UTF-16"),
    "carriage returns": ("p.csv", b"user,items\r1,7\r", "p.csv: line 1: lines end in a carriage"),
    "empty": ("p.csv", b"", "p.csv is empty; expected a header"),
    "two columns of a name": (
        "p.csv",
        b"user,item,item\n",
        "p.csv: line 1: two columns are called",
    ),
    "only a header": ("p.csv", b"user,items\n", "p.csv holds no rows; expected predictions"),
    "only line ends": ("p.txt", b"\n\n\n", "p.txt is empty; expected a header"),
    "fractions only": (
        "p.csv",
        b"user,items\n1,1.5 2.5\n2,3.5 4.5\n",
        "p.csv (column 'items'): '1.5 2.5' may be an item and its confidence, or several items",
    ),
    "lists in rows of a query": (
        "p.csv",
        b"user,items\n1,7 8\n1,9 10\n2,9 10\n2,1 2\n",
        "p.csv (column 'items'): rows repeat a query, and '7 8' may be one item, or a list",
    ),
}


# A byte order mark within a file is refused.
letters = st.characters(codec="utf-8", exclude_characters="\0\ufeff")


words = st.text(letters, min_size=1, max_size=6).filter(stands_for_itself)


plain_words = words.filter(
    lambda word: not any(one.isspace() for one in word) and not word.startswith("#")
)
