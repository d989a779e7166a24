"""What will be read?"""

import rankmill

told = rankmill.plan("labels.parquet", "new.parquet", ["map@12", "gap"])
print(f"{told['predictions']['bytes']:,} bytes")
