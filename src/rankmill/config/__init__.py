"""The file rankmill.toml: its values, the lines where they stand, how a first one is written."""
