"""Check how a file is understood, and make sorted Parquet of it once."""

from rankmill import Labels, convert, evaluate

stars = Labels("stars.csv", query="topic", item="passage", gain="stars")
assert stars.head()["role"] == "labels"
print(convert(stars, "stars.parquet"))
print(evaluate("stars.parquet", "bm25.run", "ndcg@10"))
