"""Score frames of pandas whose columns have names of their own."""

import pandas as pd

from rankmill import Labels, Predictions, evaluate

bought = pd.DataFrame({"shopper": [7, 7, 8], "sku": [1, 2, 3], "visits": [9, 9, 1]})
shown = pd.DataFrame({"shopper": [7, 7, 8], "sku": [1, 5, 3], "sim": [0.9, 0.5, 0.4]})
labels = Labels(bought, query="shopper", item="sku", weight="visits")
result = evaluate(labels, Predictions(shown, query="shopper", item="sku", score="sim"), ["map@2"])
assert result["map@2"] == 0.55
