"""Do in Python what the file of the nightly job says."""

import rankmill
from rankmill.config import read_config

config = read_config("rankmill.toml")
verdict = rankmill.gate(**config.arguments(rankmill.gate))
assert verdict.word == "held"
