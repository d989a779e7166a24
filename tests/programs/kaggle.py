"""A Kaggle submission, scored as the competition does."""

from rankmill import Predictions, evaluate, kaggle

print(evaluate("solution.csv", Predictions("submission.csv", in_order=True), "map@5"))
assert 0.83 < kaggle.mapk([[1, 2]], [[1, 9, 2]], k=3) < 0.84
