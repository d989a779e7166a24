"""The names by which columns are found."""

import functools
import re

# Names are compared in lower case, without underscores, dashes and spaces, and without the types
# that RecBole writes behind them, as in user_id:token.
ALIASES: dict[str, tuple[str, ...]] = {
    "query": (
        *("query", "query_id", "queries", "q_id", "qid", "user", "user_id", "uid"),
        *("customer", "customer_id", "image", "image_id", "topic", "topic_id", "session"),
        *("session_id", "session_type", "visitor_id", "account_id", "display_id", "order_id"),
    ),
    "item": (
        *("item", "items", "item_id", "item_ids", "doc", "docs", "doc_id", "doc_ids", "docno"),
        *("document", "document_id", "article", "articles", "article_id", "article_ids"),
        *("product", "products", "product_id", "product_ids", "movie_id", "track_id"),
        *("landmark_id", "landmark", "landmarks", "class_id", "class", "classes", "ref_id"),
        *("corpus_id", "images", "ad_id"),
    ),
    "score": ("score", "scores", "confidence", "confidences", "conf", "probability", "similarity"),
    "rank": ("rank", "ranks", "position"),
    "gain": (
        *("gain", "gains", "relevance", "rel", "grade", "grades", "judgment", "judgement"),
        "relevance_score",
    ),
}
# Names that are used only if no column has a name of ALIASES; those of scores and gains only for
# columns of numbers. If there are several groups, the names of the first group come first.
WEAK_ALIASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "query": (("question", "question_id", "reviewer_id", "member_id", "person_id"), ("id",)),
    "item": (
        (
            *("iid", "pid", "passage", "passage_id", "sku", "asin", "isbn", "book_id", "video_id"),
            *("song_id", "news_id", "post_id", "hotel_id", "game_id", "recipe_id", "paper_id"),
        ),
        ("id", "ids"),
    ),
    "score": (("sim", "logit", "logits", "yhat", "prob", "pred", "pred_score", "value", "est"),),
    "gain": (
        ("label", "labels", "target", "relevant"),
        ("score", "scores", "value"),
        ("clicked",),
    ),
}
# Names of item columns of one side. The other side uses them only if it finds no other item column.
ITEM_ALIASES: dict[str, tuple[str, ...]] = {
    "labels": ("label", "labels", "relevant", "truth", "ground_truth", "target", "targets"),
    "predictions": ("prediction", "predictions", "predicted", "recommendations", "recommended"),
}
# Columns of numbers that are neither a score nor a gain: those with one of these names, and those
# whose last word is one of these words, as in category_id or createdAt.
OTHER_NUMBERS = {
    *ALIASES["rank"],
    *("time", "timestamp", "datetime", "date", "year", "month", "day", "hour"),
    *("iteration", "iter", "q0", "index", ""),
}
OTHER_WORDS = {"id", "ids", "timestamp", "ts", "date", "at", "index"}
# The names that pandas gives to an index without a name.
OF_INDEX = re.compile(r"indexlevel\d+|unnamed:\d+(\.\d+)*")


# The last words of the names of numbers that are smaller for better items.
DISTANCES = {"distance", "distances", "dist", "dists", "loss"}
# The names, or last words, of booleans that tell which rows are relevant.
EVENTS = {
    *("clicked", "click", "purchased", "purchase", "bought", "liked", "watched", "converted"),
    *("relevant", "isrelevant", "isclick", "isclicked", "iscorrect", "correct", "positive"),
    *("target", "label", "relevance"),
}
# The last words of names of columns that may say how relevant a row is.
GRADED = EVENTS | {"gain", "rel", "grade", "judgment", "judgement", "rating", "score"}


@functools.lru_cache(1 << 12)
def plain(name: str) -> str:
    """A name as it is compared, or several with zeros between.

    Examples
    --------
    >>> plain("User ID"), plain("item_id:token")
    ('userid', 'itemid')
    """
    name = re.sub(r":(token|float)(_seq)?(?=\0|$)", "", name.lower())
    return name.replace("_", "").replace("-", "").replace(" ", "")


# What has one of these names beside an item is its number, even if it is written as text.
OF_NUMBER = {plain(one) for one in (*ALIASES["score"], *ALIASES["gain"])}
NUMBERED = OF_NUMBER | {plain(one) for one in ALIASES["rank"]}


def is_other(name: str) -> bool:
    """Whether the name tells that the numbers are neither scores nor gains."""
    if plain(name.rpartition(".")[2]) in OTHER_NUMBERS or OF_INDEX.fullmatch(plain(name)):
        return True
    return bool(words_of(name) & OTHER_WORDS)


def words_of(name: str) -> set[str]:
    """A name as it is compared, and its last word, unless a word of it is "not".

    Examples
    --------
    >>> sorted(words_of("is_relevant")), sorted(words_of("createdAt"))
    (['isrelevant', 'relevant'], ['at', 'createdat'])
    """
    words = [one.lower() for one in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]
    return {plain(name), *([] if {"no", "non", "not"} & {*words} else words[-1:])}
