"""The rules by which the columns of an input are read, as `rankmill head` and a page show them."""

from typing import NamedTuple

# The rules that only say how a column was found.
NAMES = ("found by its name", "you named it", "part of the query")


class ReadingRule(NamedTuple):
    """A rule: what there is, what is read, and the option for another way."""

    have: str
    read: str
    option: str = ""


# Name -> rule; a test has an example of each, and holds the page of formats to them.
RULES: dict[str, ReadingRule] = {
    "found by its name": ReadingRule(
        "columns with usual names, such as `user_id`, `item_id`, and `score`",
        "the role that the name shows",
        "`--query`, `--item`, `--score`, `--rank`, `--gain`, `--label-query`, `--label-item`",
    ),
    "you named it": ReadingRule("a column that you name for a role", "that column"),
    "part of the query": ReadingRule(
        "several columns that make a query", "one id of all of them", "`--query user,day`"
    ),
    "named after an event": ReadingRule(
        "a column of booleans such as `purchased`, or of numbers called `is_relevant`, in labels; "
        "`rating` with a `score`",
        "gains, with a note",
        "`--gain`, `--binary`",
    ),
    "struct of one field": ReadingRule(
        'a struct of one field, such as `{"list": [{"element": 7}]}` of BigQuery', "that field"
    ),
    "structs of item and number": ReadingRule(
        "lists of structs with an item and numbers, such as Spark's recommendations",
        "the items, and the other fields as columns; a single number of predictions is the score",
    ),
    "pairs in lists": ReadingRule(
        "`[[7, 0.8], [8, 0.5]]` in a cell", "items, each with its number"
    ),
    "map of items": ReadingRule(
        'maps, such as `{"d1": 0.9}`', "the keys as items, with their numbers"
    ),
    "field per item": ReadingRule(
        "a struct with a field for each item", "the fields as items, with their numbers"
    ),
    "column per rank": ReadingRule(
        "a column for each rank: `rec_1`, `rec_2`, ...",
        "one list for each query; an error if they look like scores or gains",
    ),
    "separated list": ReadingRule(
        "several items in a cell: `w_1 w_2`, `a,b`, `a;b`, `a\\|b`",
        "a list, unless the row has a score, a rank, or a gain",
        "`csv-spaces`, `csv-commas`, `csv-semicolons`, `csv-bars`, `csv-tabs`",
    ),
    "one item of several words": ReadingRule(
        "`Toy Story` in a row with a score, a rank, or a gain, or where the other side has it",
        "one item",
        "`csv-long`, or those above",
    ),
    "printed list": ReadingRule(
        "`[1, 2]`, `['a', 'b']`, or `[1 2]` in a cell",
        "a list, as JSON, Python, or NumPy prints it",
        "`csv-long` if it is one item",
    ),
    "items and numbers in turn": ReadingRule(
        "`8815 0.93 27 0.5` in a cell of predictions",
        "items, each with its score, if at least half of the scores are fractions",
        "`csv-pairs`",
    ),
    "list beside the items": ReadingRule(
        "as many numbers in a cell of text as its row has items", "a number for each item"
    ),
    "numbers of the items": ReadingRule(
        "items that have numbers in the same cells", "scores of predictions, gains of labels"
    ),
    "missing lists": ReadingRule("a file without any list in a column of lists", "empty lists"),
    "whole doubles": ReadingRule("ids that are doubles without fractions", "integers: 7.0 is 7"),
    "decimals": ReadingRule("ids that are decimals without fractions", "integers"),
    "UUIDs": ReadingRule("UUIDs as values of 16 bytes", "their text"),
    "dates and times": ReadingRule("dates and times that name queries", "their text"),
    "booleans as ids": ReadingRule("booleans that name queries", "their text"),
    "text as integers": ReadingRule(
        "text ids on one side, all written like 7, and integers on the other", "integers"
    ),
    "integers as text": ReadingRule(
        "integers on one side, and other text on the other",
        'text, so 7 is `"7"`, and `007` isn\'t; an error if no text is an integer',
    ),
    "integers with a point": ReadingRule(
        "text ids such as `7.0`, where all are integers", "7, with a note", "`--exact-ids`"
    ),
    "UUIDs in lower case": ReadingRule(
        "UUIDs on one side, and their text on the other", "text in lower case"
    ),
    "times in text": ReadingRule(
        "dates and times on one side, and their text on the other",
        "instants: 2024-01-01T00:00+00:00 is 2024-01-01Z",
        "`--exact-ids`",
    ),
    "spaces around ids": ReadingRule(
        "spaces around text ids", "left out, with a note", "`--exact-ids`"
    ),
    "other blanks around ids": ReadingRule(
        "no-break spaces around text ids", "as they stand, with a note"
    ),
    "words for missing": ReadingRule(
        "`nan`, `None`, `null`, `NULL`, or `\\N` as an id",
        "missing: left out, with a note; an error asks where both sides have it",
        "`--exact-ids`",
    ),
    "padding": ReadingRule(
        "an item that you call padding, such as the `-1` of FAISS", "left out", "`--padding -1`"
    ),
    "numbers in text": ReadingRule(
        "scores, gains, or ranks as text",
        "numbers; any other text is an error that names the row",
    ),
    "decimal commas": ReadingRule(
        "scores, gains, or weights such as `0,95`",
        "numbers, if you say so; otherwise an error",
        "`--decimal ,`",
    ),
    "booleans as numbers": ReadingRule("booleans as gains or scores", "1 and 0"),
    "whole ranks": ReadingRule("ranks as floats", "ranks, if all are whole", "`--in-order`"),
}
