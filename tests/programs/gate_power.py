"""What would these rules have seen?"""

import rankmill

rule = "map@12 drop <= 1% confidence 0.95"
found = rankmill.gate_power("labels.parquet", "new.parquet", rule, baseline="old.parquet")
print(found.rules[0].smallest, found.rules[0].alarms)
