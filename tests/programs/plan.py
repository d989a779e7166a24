"""Will it fit? What will be read?"""

import rankmill

told = rankmill.plan("labels.parquet", "new.parquet", ["map@12", "gap"], memory=1 << 28)
print(f"{told['memory'] >> 20} MiB, {told['predictions']['bytes']:,} bytes")
