"""The functions that competition notebooks write by hand, under their names, for large inputs.

Lists of items are Python lists, NumPy or pandas arrays (a 2-D array holds a list a row), Arrow
arrays or ``Ragged``; items are integers, strings or anything else that is hashable, and match
exactly, as ``==`` compares them. Lists belong together by position.

All functions keep three rules, which notebooks do not always:

- A repeated prediction counts where it stands first; the repeat keeps its rank and is wrong.
- Labels are counted as they are given: one that stands twice counts twice in a divisor.
- A missing item (None, NaN, pandas' NA) is no label; as a prediction it is wrong and keeps its
  rank. A missing list is an empty one.

Functions of one query are plain Python, quick for short lists and linear in long ones. Those of
many run compiled; they raise InputError where numbers of lists differ, or where all labels are
integers and all predictions strings, so that nothing could ever be right.
"""

from rankmill.kaggle.confidence import GAP_vector
from rankmill.kaggle.many_queries import map_per_set, mapk, mean_average_precision
from rankmill.kaggle.one_query import (
    apk,
    average_precision,
    average_precision_at_k,
    map_per_image,
    precision_at_k,
    recall,
    rel_at_k,
)

__all__ = [
    "GAP_vector",
    "apk",
    "average_precision",
    "average_precision_at_k",
    "map_per_image",
    "map_per_set",
    "mapk",
    "mean_average_precision",
    "precision_at_k",
    "recall",
    "rel_at_k",
]
