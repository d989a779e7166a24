"""Mean average precision of a batch in a training loop: arrays in, an array out."""

import numpy as np

from rankmill import arrays

items = np.argsort(-np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.8]]), axis=1)
found = arrays.average_precision([[1], [0, 2]], items, k=2)
assert found.tolist() == [1.0, 1.0]
