"""What other tests share with those of slices."""

import random

import pyarrow as pa

from systems import made, table


def cut(seed=3, count=240):
    """Labels with a country and an age, a poor system and a better one but in one country."""
    labels, poor, good = made(seed, count)
    draw = random.Random(seed)
    country = {query: draw.choice(["de", "fr", "it", None]) for query in labels}
    good = {q: [99, *poor[q][:2]] if country[q] == "it" else one for q, one in good.items()}
    age = {query: draw.choice([9, 10, 30]) for query in labels}
    columns = {"country": list(country.values()), "age": list(age.values())}
    labelled = table(labels)
    for name, values in columns.items():
        labelled = labelled.append_column(name, pa.array(values))
    return labelled, {"poor": table(poor), "good": table(good)}, country, age
