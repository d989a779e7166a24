"""Functions that competition notebooks write by hand, with the same names, for large inputs.

Use `score` as the function of a Kaggle metric notebook, and `check` to find what is wrong with a
submission. All other functions take lists:

Lists of items are Python lists, NumPy or pandas arrays (a 2-D array has one list in each row),
Arrow arrays or ``Ragged``. Items are integers, strings or any other hashable objects, and match
exactly, as ``==`` compares them. Lists at the same position belong to the same query.

All functions follow three rules, which notebooks do not always follow:

- A repeated prediction counts at its first place; the repeat keeps its rank and is wrong.
- Labels count as they are given: a label that is given twice counts twice in a divisor.
- A missing item (None, NaN, pandas' NA) is not a label. As a prediction it is wrong and keeps its
  rank. A missing list is an empty list.

Functions for one query are plain Python. They are fast for short lists, and their time is linear in
the length. Functions for many queries run compiled. They raise InputError if the numbers of lists
differ. An integer is never a string: if labels are integers and predictions are strings, the value
is 0, as in notebooks.
"""

from rankmill.adapters.kaggle.functions import (
    GAP_vector,
    apk,
    average_precision,
    average_precision_at_k,
    map_per_image,
    map_per_set,
    mapk,
    mean_average_precision,
    precision_at_k,
    recall,
    rel_at_k,
)
from rankmill.adapters.kaggle.submission import ParticipantVisibleError, check, score

__all__ = [
    "GAP_vector",
    "ParticipantVisibleError",
    "apk",
    "average_precision",
    "average_precision_at_k",
    "check",
    "map_per_image",
    "map_per_set",
    "mapk",
    "mean_average_precision",
    "precision_at_k",
    "recall",
    "rel_at_k",
    "score",
]
