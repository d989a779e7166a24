"""The bound of a mean with one unseen query, as its definition has it: slow and plain."""

import numpy as np
from scipy import stats


def cumulants(values, end, weights=None, codes=None):
    """Return the mean, the variance and the third cumulant of the mean with one more at `end`."""
    values = np.asarray(values, float)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    total = weights.sum()
    mean = (weights * values).sum() / total
    typical = (weights**2).sum() / total
    units, sizes, unseen = weights * values, weights, typical
    if codes is not None:
        places = np.unique(codes, return_inverse=True)[1]
        units, sizes = np.bincount(places, units), np.bincount(places, weights)
        largest = (sizes**2).sum() / total
        apart = weights * (values - mean)
        alone = (apart**2).sum()
        effect = (np.bincount(places, apart) ** 2).sum() / alone if alone else np.inf
        unseen = min(max(effect * typical, typical), largest)
    every = total + unseen
    middle = (units.sum() + unseen * end) / every
    z = np.append(units - sizes * middle, unseen * (end - middle)) / every
    return middle, (z**2).sum(), 2 * (z**3).sum()


def largest(values, end, tail, **how):
    """Return the upper bound; `end` is the upper end of the range."""
    mean, square, cube = cumulants(values, end, **how)
    if not square:
        return mean
    return float(stats.pearson3.isf(tail, cube / square**1.5, mean, square**0.5))


def smallest(values, end, tail, **how):
    """Return the lower bound; `end` is the lower end of the range."""
    return -largest(-np.asarray(values, float), -end, tail, **how)
