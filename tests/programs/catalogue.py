"""Beyond accuracy: coverage, novelty and diversity, without what users have seen."""

from rankmill import Catalogue, evaluate

catalogue = Catalogue(train="seen.parquet", items="items.parquet", group="genre", drop_seen=True)
metrics = ["map@12", "coverage@12", "novelty@12", "ild@12"]
print(evaluate("labels.parquet", "new.parquet", metrics, catalogue=catalogue))
